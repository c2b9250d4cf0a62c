"""What one token says by the hooks of coding agents is its own trouble.

Promises:
    1. Sessions that one token makes up push out none of another's: a session that the hub forgot looks silent while its model thinks.
    2. What is written down of sessions fits into what the next hub reads, whatever their names are.
    3. Others are heard while a large event is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lifesigns.hub.principals import Role
from lifesigns.integrations.hooks import registry
from tests.web.hub import RunningHub, running_hub
from tests.web.listening import until

HOOK = "/hooks/claude-code"
MINE = "claude/good/11111111"


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[RunningHub]:
    async with running_hub(state=tmp_path) as hub:
        yield hub


def event(session: str, project: str, name: str = "SessionStart", **more: Any) -> dict[str, Any]:
    return {"session_id": session, "cwd": f"/home/{project}", "hook_event_name": name, **more}


def beats(hub: RunningHub) -> int:
    """Of the neighbour, after a look at its process."""
    hub.web.site.hooks.look(hub.service.clock())
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
