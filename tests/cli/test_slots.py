"""What does not know slots says so, and never passes a part of the fleet for the whole."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.audit.keys import signer_in
from lifesigns.cli import main
from lifesigns.cli.judging import check
from lifesigns.config.load import load
from lifesigns.errors import UsageError
from lifesigns.hub.slots import divide


@pytest.fixture
def divided(tmp_path: Path) -> Path:
    """A store whose fleet several hubs judge."""
    path = tmp_path / "divided.db"

    async def make() -> None:
        store = SqliteStore(path)
        await divide(store, 1.0)
        await store.close()
        (tmp_path / "state").mkdir(mode=0o700)
        signer_in(tmp_path / "state", None)

    asyncio.run(make())
    return path


@pytest.mark.parametrize(
    "command",
    [
        "audit verify --store {store} --state {folder}/state",
        "audit export --store {store} --state {folder}/state --out {folder}/log",
        "replay --store {store} --profile tolerant",
        "store move {store} sqlite:///{folder}/new.db",
    ],
)
def test_a_command_that_reads_the_store_of_one_hub_refuses_a_divided_one(
    divided: Path, tmp_path: Path, command: str
) -> None:
    """An empty audit log would verify."""
    env = {"LIFESIGNS_STATE": str(tmp_path / "state"), "HOME": str(tmp_path)}
    words = command.format(store=f"sqlite:///{divided}", folder=tmp_path).split()
    done = CliRunner().invoke(main, words, env=env)
    assert done.exit_code != 0
    assert "does not know slots yet" in done.output


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ({"LIFESIGNS_ZONE": "eu-1"}, "zone"),
        ({"LIFESIGNS_MEMORY__FILE": "/tmp/memory.json"}, "memory.file"),
        ({}, "--grpc"),
    ],
)
def test_what_needs_one_hub_for_all_agents_is_refused_at_the_start(
    setting: dict[str, str], named: str
) -> None:
    config = load(environ={"LIFESIGNS_HUBS__JUDGE": "all", **setting})
    assert config.hubs.judge == "all"
    given: dict[str, Any] = {"--grpc": 4317 if named == "--grpc" else None}
    with pytest.raises(UsageError) as refused:
        check(config, **given)
    assert str(refused.value).startswith(f"{named} cannot be used with hubs.judge: all")
    check(load(environ={"LIFESIGNS_HUBS__JUDGE": "all"}), **{"--grpc": None})
