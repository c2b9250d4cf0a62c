"""What one token says by the hooks of coding agents is its own trouble.

Promises:
    1. Sessions that one token makes up push out none of another's: a session that the hub forgot looks silent while its model thinks.
    2. What is written down of sessions fits into what the next hub reads, whatever their names are.
    3. Others are heard while a large event is read.
    4. A breaker that a person opened closes again when its tool works, however many calls others make meanwhile.
    5. A subagent that has finished leaves nothing behind, however many there were.
    6. Others get their turn while the hub looks at the processes of very many.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lifesigns.core.breaker import Breaker
from lifesigns.core.policy import BreakerPolicy
from lifesigns.core.signals import BreakerState
from lifesigns.files import write_whole
from lifesigns.hub.principals import Role
from lifesigns.integrations.hooks import breakers, processes, registry
from lifesigns.integrations.hooks.sessions import Session, Speaker
from tests.security.test_floods import turns_taken
from tests.web.hub import RunningHub, running_hub
from tests.web.listening import until

HOOK = "/hooks/claude-code"
MINE = "claude/good/11111111"


@pytest.fixture
async def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningHub]:
    """It looks often at the processes of its sessions."""
    monkeypatch.setattr(registry, "LOOK_EVERY", 0.02)
    async with running_hub(state=tmp_path) as hub, hub.web.site.hooks.watching():
        yield hub


def event(session: str, project: str, name: str = "SessionStart", **more: Any) -> dict[str, Any]:
    return {"session_id": session, "cwd": f"/home/{project}", "hook_event_name": name, **more}


def beats(hub: RunningHub) -> int:
    """Of the neighbour, whose process is looked at."""
    agent = hub.service.engine.agent(MINE)
    return 0 if agent is None else agent.beats


async def begin(hub: RunningHub) -> None:
    """A neighbour's session, in a process that lives."""
    good = await hub.token_for(Role.AGENT, "claude/good/*")
    async with hub.client(good) as neighbour:
        answer = await neighbour.post(HOOK, params={"pid": os.getpid()}, json=event("1" * 12, "good"))
        assert answer.status_code == 200


async def test_a_token_that_makes_up_sessions_loses_its_own(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "SESSIONS_MAX", 10)
    await begin(hub)
    async with hub.client(await hub.token_for(Role.AGENT, "claude/evil/*")) as evil:
        for n in range(30):
            assert (await evil.post(HOOK, json=event(f"session-{n}", "evil"))).status_code == 200
    await until(lambda: beats(hub) > 0)  # Its process is still watched.


async def test_what_is_written_down_can_be_read_by_the_next_hub(
    hub: RunningHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "FILE_MAX", 64 * 1024)
    await begin(hub)
    async with hub.client(await hub.token_for(Role.AGENT, "claude/evil/*")) as evil:
        for n in range(200):
            call = {"tool_name": "\x01" * 256, "tool_use_id": f"{n:0256}"}
            said = event(f"session-{n % 3}", "evil", "PreToolUse", **call)
            assert (await evil.post(HOOK, json=said)).status_code == 200
        assert (await evil.post(HOOK, json=event("session-9", "evil"))).status_code == 200
    written = (tmp_path / "hooks" / registry.FILE).read_bytes()
    assert len(written) <= registry.FILE_MAX
    assert "1" * 12 in [one["id"] for one in json.loads(written)]


def call(session: str, project: str, number: int, name: str = "PreToolUse", **more: Any) -> dict[str, Any]:
    return event(session, project, name, tool_name="Bash", tool_use_id=f"call-{number}", **more)


def is_turned(hub: RunningHub) -> bool:
    """Whether the neighbour's breaker was turned."""
    (known,) = hub.service.engine.beliefs.breakers[MINE].values()
    return known.state is not BreakerState.CLOSED


async def test_a_tool_that_works_again_is_let_through_however_many_calls_others_make(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breakers, "BY_HAND", BreakerPolicy(recovery_timeout=0.01))
    good, evil = [await hub.token_for(Role.AGENT, f"claude/{name}/*") for name in ("good", "evil")]
    async with hub.client(good) as neighbour, hub.client(evil) as greedy:

        async def says(number: int, name: str = "PreToolUse") -> dict[str, Any]:
            answer = await neighbour.post(HOOK, json=call("1" * 12, "good", number, name))
            return dict(answer.json())

        assert await says(1) == {}
        opened = await hub.post(
            "/api/v1/breakers/Bash/open", {"reason": "it is broken"}, params={"agent": MINE}
        )
        assert opened.status_code == 202, opened.text
        await until(lambda: is_turned(hub))
        async with asyncio.timeout(10):
            while await says(2):  # It is refused until one is tried.
                pass
        for n in range(300):
            assert (await greedy.post(HOOK, json=call("session-1", "evil", n))).status_code == 200
        assert await says(2, "PostToolUse") == {}
        assert await says(3) == {}, "the outcome of the call that was tried was forgotten"


async def test_a_subagent_that_has_finished_leaves_nothing_behind(hub: RunningHub) -> None:
    def breakers_in_memory() -> int:
        gc.collect()
        return sum(isinstance(one, Breaker) for one in gc.get_objects())

    before = breakers_in_memory()
    async with hub.client(await hub.token_for(Role.AGENT, "claude/evil/*")) as evil:
        for n in range(300):
            for name in ("PreToolUse", "SubagentStop"):
                said = call("session-1", "evil", n, name, agent_id=f"{n:06}")
                assert (await evil.post(HOOK, json=said)).status_code == 200
    assert breakers_in_memory() - before < 10


async def test_others_get_their_turn_while_very_many_sessions_are_looked_at(tmp_path: Path) -> None:
    """As a hub is started that knows as many as one token can make up: all of them beat."""
    pid = os.getpid()
    known = [
        Session(
            program="claude-code",
            id=f"session-{n}",
            main=Speaker(f"claude/evil/{n}"),
            pid=pid,
            started=processes.started(pid),
            source="evil",
            announced=True,
            subagents={str(k): Speaker(f"claude/evil/{n}/{k}") for k in range(100)},
        )
        for n in range(200)
    ]
    folder = tmp_path / "hooks"
    folder.mkdir(mode=0o700)
    write_whole(folder / registry.FILE, msgspec.json.encode(known))
    async with running_hub(state=tmp_path) as hub:
        turns = asyncio.create_task(turns_taken())
        async with hub.web.site.hooks.watching():
            await until(lambda: len(hub.service.engine.beliefs.agents) >= 2000)
        turns.cancel()
        assert max(await turns) < 0.2  # It was 1.6.
