"""`lifesigns replay`, as a user meets it."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.cli import main
from lifesigns.views.moments import moment
from tests.replay.recording import T0, Recording, beats

TIGHTER = "policy.silence.timeout=10"


@pytest.fixture(autouse=True)
def nothing_of_ours_around(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, a home without configuration, a hub's state, a wide screen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    for name in [name for name in os.environ if name.startswith(("LIFESIGNS_", "XDG_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LIFESIGNS_STATE", str(tmp_path / "state"))


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Five minutes of three agents, one of them cut off for a minute, in the hub's own database."""

    async def record(store: Callable[[], SqliteStore]) -> None:
        async with Recording(store) as hub:
            lives = {"a": "1", "b": "1", "c": "1"}
            await beats(hub, 0, 300, lives, silent={"a": [(100.0, 160.0)]})
            await hub.stop()

    path = tmp_path / "state" / "lifesigns.db"
    asyncio.run(record(lambda: SqliteStore(path)))
    return path


def at(seconds: float) -> str:
    return datetime.fromtimestamp(T0 + seconds, UTC).isoformat()


def replay(*args: str) -> Result:
    return CliRunner().invoke(main, ["replay", *args], catch_exceptions=False)


def of_it(*args: str) -> Result:
    return replay("--from", at(0), "--to", at(300), *args)


@pytest.mark.usefixtures("recorded")
def test_what_differs_is_told_in_words_and_by_the_exit_status() -> None:
    said = of_it("--set", TIGHTER)
    assert said.exit_code == 1
    assert "policy.silence.timeout: 15 s -> 10 s" in said.output
    (line,) = [line for line in said.output.splitlines() if "earlier under the other" in line]
    assert "5.0 s earlier under the other: disconnected for" in line
    assert "Nothing heard for 10 s (a beat is expected every 5.0 s); pinged twice without an answer." in line
    assert said.output.endswith("1 agent of 3 would have been judged differently.\n")


@pytest.mark.usefixtures("recorded")
def test_nothing_different_is_well() -> None:
    said = of_it("--profile", "swarm")
    assert said.exit_code == 0
    assert "Both policies are the same." in said.output
    assert "disconnected" in said.output
    assert said.output.endswith("Nothing would have been judged differently, of 3 agents.\n")


@pytest.mark.usefixtures("recorded")
def test_json_has_everything() -> None:
    said = of_it("--set", TIGHTER, "--json", "--agent", "a")
    told = json.loads(said.output)
    assert said.exit_code == 1
    assert told["settings"] == {"policy.silence.timeout": {"in_force": 15.0, "other": 10.0}}
    assert told["noted_then"] == {"healthy": 2, "disconnected": 1}
    assert (told["agents"], told["missed"], told["left_out"]) == (1, 0, [])
    flip = told["differences"][0]
    assert {key: flip[key] for key in ("agent_id", "change", "what", "by_s", "note")} == {
        "agent_id": "a",
        "change": "earlier",
        "what": "disconnected",
        "by_s": 5.0,
        "note": "",
    }
    assert (flip["at"], flip["until"]) == (moment(T0 + 105), moment(T0 + 160))


def test_the_other_policy_may_be_a_file_and_the_one_in_force_is_found_as_usual(recorded: Path) -> None:
    Path("lifesigns.yaml").write_text(f"store: sqlite://{recorded}\npolicy: {{silence: {{timeout: 10}}}}\n")
    Path("other.yaml").write_text("policy: {silence: {timeout: 20}}\n")
    os.environ.pop("LIFESIGNS_STATE")
    said = of_it("--config", "other.yaml")
    assert said.exit_code == 1
    assert "policy.silence.timeout: 10 s -> 20 s" in said.output


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    ("args", "error"),
    [
        ([], "say what the other policy is: --set KEY=VALUE, --profile NAME or --config FILE"),
        (
            ["--set", "timeout=5"],
            "--set: 'timeout=5' is no setting; it would be like policy.silence.timeout=10",
        ),
        (["--set", "policy.silence.timeout"], "is no setting"),
        (["--set", "policy.silence.timeot=5"], "did you mean policy.silence.timeout?"),
        (["--set", "policy.silence.timeout=soon"], "policy.silence.timeout"),
        (["--profile", "lenient"], "--profile: 'lenient' is unknown"),
        (["--config", "none.yaml"], "none.yaml: does not exist"),
        (["--profile", "swift", "--since", "yesterday"], "--since: 'yesterday' is not a duration"),
        (
            ["--profile", "swift", "--from", "noon"],
            "--from: 'noon' is no time; it would be like 2026-11-15T18:00",
        ),
        (["--profile", "swift", "--since", "1h", "--from", at(0)], "two ways to say when it begins"),
        (["--profile", "swift", "--from", at(10), "--to", at(5)], "ends before it begins"),
        (["--profile", "swift", "--since", "0"], "ends before it begins"),
        (
            ["--profile", "swift", "--from", at(9e6), "--to", at(9.1e6)],
            "nothing of that time; the oldest it has is of 2026",
        ),
        (
            ["--profile", "swift", "--from", at(0), "--to", at(300), "--agent", "x"],
            "'x' is not in the journal",
        ),
        (["--profile", "swift", "--store", "sqlite:///nowhere/x.db"], "there is no database /nowhere/x.db"),
        (["--profile", "swift", "--store", "ftp://x"], "begins with one of sqlite://"),
    ],
)
def test_wrong_usage_is_one_clear_line(args: list[str], error: str) -> None:
    said = replay(*args)
    assert said.exit_code == 2
    assert error in said.output
    assert len(said.output.splitlines()) == 1


def test_without_a_hub_there_is_nothing_to_replay_and_nothing_is_made(tmp_path: Path) -> None:
    said = replay("--profile", "swift")
    assert said.exit_code == 2
    assert "there is no database" in said.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("recorded")
def test_ctrl_c_ends_it_and_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lifesigns.replay.replay", interrupted)
    said = of_it("--profile", "swift")
    assert said.exit_code == 130
    assert said.output == "Stopped before the end: nothing is known.\n"
