"""`life.checkpoint("cp-3", state=...)`: the state is at the hub before the checkpoint counts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import lifesigns
from lifesigns.agent.sender.states import STATE_MAX, content_of
from lifesigns.core.signals import CheckpointSaved
from lifesigns.errors import UsageError
from lifesigns.hub.principals import Role
from tests.adapters.executors.ground import HandyHub, handy_hub, until
from tests.agent.sender.ear import Ear
from tests.agent.sender.http_hub import HttpHub


async def living(hub: HandyHub, **more: Any) -> lifesigns.Sender:
    made = await hub.service.access.tokens.create(
        role=Role.AGENT, name="agents", agents="coder-*", now=hub.service.clock()
    )
    return lifesigns.Sender("coder-7", hub=hub.url, token=made.token, task="t-19", **more)


def chain(hub: HandyHub) -> list[tuple[str, str | None, bool]]:
    lineage = hub.service.engine.beliefs.lineages.get("coder-7")
    links = [] if lineage is None else lineage.chain
    return [(one.id, one.parent_id, one.digest.startswith("hub:")) for one in links]


def told(words: Iterable[object]) -> list[CheckpointSaved]:
    return [word for word in words if isinstance(word, CheckpointSaved)]


async def test_bytes_a_file_and_anything_json_can_write_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "state.bin"
    file.write_bytes(b"from a file")
    async with handy_hub(tmp_path) as hub, await living(hub) as life:
        life.checkpoint("cp-1", state=b"\x00bytes")
        life.checkpoint("cp-2", parent="cp-1", state=file)
        file.write_bytes(b"changed later")
        life.checkpoint("cp-3", parent="cp-2", state={"done": ["a", "ü"], "next": 3})
        await until(lambda: len(chain(hub)) == 3)
        assert chain(hub) == [("cp-1", None, True), ("cp-2", "cp-1", True), ("cp-3", "cp-2", True)]
        got = [(await hub.http.get(f"/api/v1/tasks/t-19/checkpoints/cp-{n}")).content for n in (1, 2, 3)]
        assert got[:2] == [b"\x00bytes", b"from a file"]
        assert json.loads(got[2]) == {"done": ["a", "ü"], "next": 3}


async def test_what_is_said_later_comes_later_and_beats_wait_for_nothing(tmp_path: Path) -> None:
    """A stop answered with a checkpoint that is not there yet would be respawned from the one before."""
    async with handy_hub(tmp_path) as hub:
        async with await living(hub) as life:
            life.progress("one")
            life.checkpoint("cp-1", state=bytes(1_000_000))
            life.progress("two")
            life.checkpoint("cp-2", parent="cp-1", state=bytes(2_000_000))
        assert chain(hub) == [("cp-1", None, True), ("cp-2", "cp-1", True)]
        agent = hub.service.engine.agent("coder-7")
        await until(lambda: agent is not None and agent.health == "terminated")


@pytest.mark.parametrize("why", ["an older hub", "no room"])
async def test_a_hub_that_does_not_keep_it_is_told_of_it_all_the_same(tmp_path: Path, why: str) -> None:
    if why == "no room":
        (tmp_path / "checkpoints").write_text("a file where the folder should be")
        async with handy_hub(tmp_path) as hub, await living(hub) as life:
            life.checkpoint("cp-1", state=b"x")
            await until(lambda: chain(hub))
            assert chain(hub) == [("cp-1", None, False)]
    else:
        with HttpHub() as old:
            async with lifesigns.Sender("coder-7", hub=old.url, task="t-19") as life:
                life.checkpoint("cp-1", state=b"x")
                await until(lambda: told(old.words))
        (saved,) = told(old.words)
        assert saved.digest == "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"


async def test_an_upload_that_never_ends_does_not_take_the_last_words_with_it() -> None:
    with HttpHub() as slow:
        slow.misbehave = lambda target, _: b"" if "checkpoints" in target else None
        async with lifesigns.Sender("coder-7", hub=slow.url, task="t-19", close_for=1.5) as life:
            life.checkpoint("cp-1", state=b"x")
        words = [type(word).__name__ for word in slow.words]
    assert words[-2:] == ["CheckpointSaved", "AgentLeft"]


async def test_a_hub_that_is_away_is_waited_for() -> None:
    """As words are: what was not kept is not told as kept, and nothing is lost."""
    with HttpHub() as hub:
        answers = [b"HTTP/1.1 503 away\r\nContent-Length: 0\r\n\r\n"] * 2
        kept = b"HTTP/1.1 201 kept\r\nContent-Length: 2\r\n\r\n{}"
        tries: list[bytes] = []

        def misbehave(target: str, body: bytes) -> bytes | None:
            if "checkpoints" not in target:
                return None
            tries.append(body)
            return answers.pop() if answers else kept

        hub.misbehave = misbehave
        async with lifesigns.Sender("coder-7", hub=hub.url, task="t-19", close_for=10.0) as life:
            life.checkpoint("cp-1", state=b"x")
            life.progress("later")
    assert tries == [b"x"] * 3
    assert not told(hub.words)


@pytest.mark.parametrize(
    ("state", "wrong"),
    [
        (object(), "cannot be written as JSON"),
        (Path("/no/such/file"), "cannot be read"),
        (bytes(STATE_MAX + 1), "more than the"),
        (float("nan"), ""),
    ],
)
def test_a_state_that_cannot_be_kept_is_the_callers_mistake(state: object, wrong: str) -> None:
    if wrong:
        with pytest.raises(UsageError, match=wrong):
            content_of(state)
    else:
        assert content_of(state) == b"NaN"


async def test_over_a_bus_only_its_digest_is_told() -> None:
    with Ear() as ear:
        async with lifesigns.Sender("coder-7", hub=ear.url, task="t-19") as life:
            life.checkpoint("cp-1", state=b"x")
    assert [word.digest[:7] for word in told(ear.words)] == ["sha256:"]
