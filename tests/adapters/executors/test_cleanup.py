"""Cleaning up after a life: by a command or somebody's server, once for each life, tried again, never while the agent lives."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from lifesigns.adapters.executors.cleanup_command import CleanupCommand
from lifesigns.adapters.executors.commands import Command
from lifesigns.adapters.executors.order_webhook import OrderWebhook
from lifesigns.adapters.executors.webhook import Webhook
from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.core.commands import CLEANUP_FACTS
from lifesigns.core.profiles import profile
from lifesigns.core.signals import CleanedUp
from lifesigns.errors import AdapterError, UsageError
from lifesigns.hub import executors
from lifesigns.ports import NotExecuted
from tests.adapters.channels.peers import Peer, Reply
from tests.adapters.executors.ground import HandyHub, cleanup, handy_hub, settings, until

POLICY = profile("balanced").with_changes({"respawn": {"backoff": (0.01,), "jitter": 0.0}})
TELLS = """
import json, os, sys
told = {name: value for name, value in os.environ.items() if name.startswith("LIFESIGNS_")}
with open("told", "a") as file:
    file.write(json.dumps([sys.argv[1:], told]) + "\\n")
"""


def command(folder: Path, said: str, **more: Any) -> CleanupCommand:
    made = Command(said, CLEANUP_FACTS, cwd=folder, **more)
    return CleanupCommand(made, folder / "cleanups", hub="http://hub")


# --- by a command ------------------------------------------------------------------------------------------


async def test_a_command_is_told_who_is_gone_and_no_shell_reads_it(tmp_path: Path) -> None:
    (tmp_path / "tells.py").write_text(TELLS)
    hand = command(tmp_path, f"{sys.executable} -S tells.py {{agent_id}} {{incarnation}}")
    outcome = await hand.carry_out(cleanup())
    assert outcome == CleanedUp(agent_id="coder-7", order_id="1-9")
    argv, told = json.loads((tmp_path / "told").read_text())
    assert argv == ["coder-7", "one"]
    assert told == {
        "LIFESIGNS_AGENT_ID": "coder-7",
        "LIFESIGNS_AGENT_SLUG": "coder-7",
        "LIFESIGNS_INCARNATION": "one",
        "LIFESIGNS_TASK": "t-19",
        "LIFESIGNS_CHECKPOINT": "cp-3",
        "LIFESIGNS_REASON": "It's stopped; $(whoami)",
        "LIFESIGNS_HUB": "http://hub",
    }


async def test_a_shell_reads_it_if_you_want_and_free_text_is_in_its_environment(tmp_path: Path) -> None:
    hand = command(tmp_path, 'echo "$LIFESIGNS_REASON" > said && echo out', shell=True)
    await hand.carry_out(cleanup())
    assert (tmp_path / "said").read_text() == "It's stopped; $(whoami)\n"
    assert (tmp_path / "cleanups" / "output.log").read_text() == "out\n"


async def test_one_that_fails_is_tried_again_and_one_that_is_not_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(NotExecuted, match="ended with status 3") as failed:
        await command(tmp_path, "exit 3", shell=True).carry_out(cleanup())
    assert failed.value.transient
    with pytest.raises(AdapterError, match="cannot be started") as missing:
        await command(tmp_path, "/nowhere/clean").carry_out(cleanup())
    assert not missing.value.transient


async def test_one_that_is_given_up_ends_with_all_it_started(tmp_path: Path) -> None:
    """What was to be cleaned up may belong to the next life by then."""
    hand = command(tmp_path, "sleep 300 & echo $! > pid; wait", shell=True)
    trying = asyncio.create_task(hand.carry_out(cleanup()))
    await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    child = int((tmp_path / "pid").read_text())
    trying.cancel()
    await asyncio.gather(trying, return_exceptions=True)
    await until(lambda: not psutil.pid_exists(child) or psutil.Process(child).status() == "zombie")


@pytest.mark.parametrize("wrong", ["rm {new_incarnation}", "rm 'x", " "])
def test_a_command_that_cannot_work_is_told_at_once(tmp_path: Path, wrong: str) -> None:
    with pytest.raises(UsageError, match="the command"):
        command(tmp_path, wrong)


# --- by somebody's server ----------------------------------------------------------------------------------


async def test_a_server_is_told_which_life_is_over() -> None:
    async with Peer() as peer:
        hand = OrderWebhook(Webhook(peer.url))
        assert await hand.carry_out(cleanup()) == CleanedUp(agent_id="coder-7", order_id="1-9")
        await hand.close()
        (request,) = peer.requests
    assert request.json == {
        "version": 1,
        "type": "cleanup",
        "id": "1-9",
        "epoch": 1,
        "agent_id": "coder-7",
        "incarnation": "one",
        "task_id": "t-19",
        "checkpoint_id": "cp-3",
        "reason": "It's stopped; $(whoami)",
    }
    assert request.headers["idempotency-key"].startswith("1-9@")


# --- in a hub ----------------------------------------------------------------------------------------------


@asynccontextmanager
async def tidy_hub(state: Path, peer: Peer, store: str = "") -> AsyncIterator[HandyHub]:
    """A hub where somebody cleans up after coders, and starts them anew."""
    given = settings(
        cleanup={"webhook": f"{peer.url}/cleanup", "agents": ["coder-*"]},
        respawn={"webhook": f"{peer.url}/respawn"},
    )
    kept = MemoryStore(store) if store else None
    async with handy_hub(state, store=kept, policy=POLICY, given=given) as hub:
        yield hub


def asked(peer: Peer, what: str) -> list[dict[str, Any]]:
    return [request.json for request in peer.requests if request.path == f"/{what}"]


async def stages(hub: HandyHub, rung: str) -> list[str]:
    found = (await hub.http.get("/api/v1/interventions", params={"rung": rung})).json()["interventions"]
    return [stage["stage"] for one in found for stage in one["stages"]]


async def until_stage(hub: HandyHub, rung: str, *expected: str) -> None:
    async with asyncio.timeout(30):
        while await stages(hub, rung) != [*expected]:  # noqa: ASYNC110 -- the hub is asked over HTTP
            await asyncio.sleep(0.01)


async def test_after_a_crash_it_is_cleaned_up_and_then_started_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new life must not find its things removed: it begins when the clean-up is done, however often that is tried."""
    monkeypatch.setattr(executors, "WAITS", (0.05,))
    async with Peer() as peer:
        peer.replies.extend([Reply(503), Reply(hangs_up=True)])
        async with tidy_hub(tmp_path, peer) as hub:
            await hub.beat()
            await hub.crash()
            await hub.crash()
            await until(lambda: asked(peer, "respawn"))
            paths = [request.path for request in peer.requests]
            assert paths == ["/cleanup", "/cleanup", "/cleanup", "/respawn"]
            assert [one["incarnation"] for one in asked(peer, "cleanup")] == ["one"] * 3
            keys = {request.headers["idempotency-key"] for request in peer.requests[:3]}
            assert len(keys) == 1
            assert await stages(hub, "cleanup") == ["ordered", "done"]


async def test_a_hub_that_ends_in_between_has_it_done_by_the_next_one(tmp_path: Path) -> None:
    store = f"cleanup-{time.time_ns()}-{os.getpid()}"
    async with Peer() as peer:
        peer.replies.append(Reply(hangs=True))
        async with tidy_hub(tmp_path, peer, store) as hub:
            await hub.beat()
            await hub.say({"type": "left", "agent_id": "coder-7", "incarnation": "one"})
            await until(lambda: asked(peer, "cleanup"))
        async with tidy_hub(tmp_path, peer, store) as hub:
            await until_stage(hub, "cleanup", "ordered", "done")
    first, second = peer.requests
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


async def test_who_comes_back_by_itself_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never on an agent that lives: what was not done by then is dropped."""
    monkeypatch.setattr(executors, "WAITS", (0.05,))
    async with Peer(lambda request: Reply(503)) as peer, tidy_hub(tmp_path, peer) as hub:
        await hub.beat()
        await hub.crash()
        await until(lambda: len(asked(peer, "cleanup")) >= 2)
        await hub.beat(incarnation="two")
        await until_stage(hub, "cleanup", "ordered", "dropped")
        await until(lambda: not any(entry.trying for entry in hub.service.hub.ledger))
        tries = len(asked(peer, "cleanup"))
        await hub.beat(incarnation="two")
        assert len(asked(peer, "cleanup")) == tries
        assert (await hub.http.get("/api/v1/agents/coder-7")).json()["state"] == "healthy"


async def test_a_server_that_refuses_is_told_to_people(tmp_path: Path) -> None:
    async with Peer(lambda request: Reply(404, b"no such pod")) as peer, tidy_hub(tmp_path, peer) as hub:
        await hub.beat()
        await hub.say({"type": "left", "agent_id": "coder-7", "incarnation": "one"})
        await until_stage(hub, "cleanup", "ordered", "failed")
        found = await hub.http.get("/api/v1/events/list", params={"types": "NEEDS_HUMAN"})
        (needed,) = [event["data"] for event in found.json()["events"]]
        assert needed["reason"] == "not_cleaned_up"
        assert "no such pod" in needed["text"]
        assert len(asked(peer, "cleanup")) == 1


async def test_nobody_cleans_up_after_others(tmp_path: Path) -> None:
    async with Peer() as peer, tidy_hub(tmp_path, peer) as hub:
        await hub.beat("tester-1")
        await hub.say({"type": "left", "agent_id": "tester-1", "incarnation": "one"})
        await hub.beat()
        await hub.say({"type": "left", "agent_id": "coder-7", "incarnation": "one"})
        await until_stage(hub, "cleanup", "ordered", "done")
        assert [one["agent_id"] for one in asked(peer, "cleanup")] == ["coder-7"]


async def test_a_clean_up_that_still_runs_when_the_agent_lives_again_is_ended(tmp_path: Path) -> None:
    given = settings(cleanup={"command": f"echo $$ > {tmp_path}/pid; sleep 300", "shell": True})
    async with handy_hub(tmp_path, policy=POLICY, given=given) as hub:
        await hub.beat()
        await hub.crash()
        await until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
        pid = int((tmp_path / "pid").read_text())
        await hub.beat(incarnation="two")
        await until(lambda: not psutil.pid_exists(pid))
