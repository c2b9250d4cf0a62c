"""With a hub: it hears what we see, and we do what it orders. When it is away, the child does not notice."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.wire import WireBeat
from tests.agent.supervise.hub import BOUND, Hub, hub_at
from tests.agent.supervise.running import ROOT, RUN, environ, run, said
from tests.servers.nats import NatsServer
from tests.servers.process import free_port


@pytest.fixture(scope="module")
def server() -> Iterator[NatsServer]:
    with NatsServer() as server:
        yield server


@pytest.fixture
async def hub(server: NatsServer) -> AsyncIterator[Hub]:
    async with hub_at(server.url) as hub:
        yield hub


@asynccontextmanager
async def running(url: str, *args: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`lifesigns run --hub URL --id coder-7 ARGS`."""
    process = await asyncio.create_subprocess_exec(
        *RUN,
        *("--hub", url, "--id", "coder-7", "--profile", "swift"),
        *args,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environ(),
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await asyncio.wait_for(process.communicate(), BOUND)


async def ended(process: asyncio.subprocess.Process) -> int:
    return await asyncio.wait_for(process.wait(), BOUND)


async def test_a_life_is_told_from_its_begin_to_its_end(hub: Hub, server: NatsServer) -> None:
    script = "echo hello; sleep 2.5; echo last words >&2; exit 3"
    async with running(server.url, "--task", "t-19", "--", "sh", "-c", script) as process:
        registered = await hub.until(s.AgentRegistered)
        assert (registered.agent_id, registered.task_id) == ("coder-7", "t-19")
        await hub.until(s.ActivitySeen, lambda word: word.kind == "output")
        exited = await hub.until(s.ProcessExited)
        assert (exited.status, exited.signal) == (3, None)
        assert exited.detail == "Last output: hello | last words"
        assert exited.incarnation == registered.incarnation
        told = [beat.metrics for beat in hub.all(WireBeat)]
        assert len(told) >= 2
        assert told[-1] is not None
        assert (told[-1].memory_mb or 0.0) > 0.1
        assert await ended(process) == 3


async def test_who_ends_well_or_by_its_user_is_no_crash(hub: Hub, server: NatsServer) -> None:
    async with running(server.url, "--restart", "always", "--", "sleep", "300") as process:
        await hub.until(s.AgentRegistered)
        process.terminate()
        await ended(process)
        assert (await hub.until(s.AgentLeft)).reason.startswith("ended by its user")
        assert not hub.all(s.ProcessExited)


async def test_pings_are_answered(hub: Hub, server: NatsServer) -> None:
    async with running(server.url, "--", "sleep", "300"):
        life = (await hub.until(s.AgentRegistered)).incarnation
        ping = e.SendPing(0.0, "p-1", 1, "coder-7", life, seq=7, suspicion="test")
        await hub.send(ping)
        assert (await hub.until(s.PongReceived)).seq == 7


async def test_orders_for_another_life_are_not_obeyed(hub: Hub, server: NatsServer) -> None:
    async with running(server.url, "--", "sleep", "300") as process:
        await hub.until(s.AgentRegistered)
        stop = e.Terminate(
            0.0, "t-1", 1, "coder-7", "another", reason="no", save_for=1.0, findings=(), seq_seen=0
        )
        await hub.send(stop)
        failed = await hub.until(s.TerminationFailed)
        assert "another is not the life that runs" in failed.reason
        assert process.returncode is None


async def test_the_news_that_an_older_life_was_replaced_ends_nobody_else(
    hub: Hub, server: NatsServer
) -> None:
    async with running(server.url, "--", "sleep", "300") as process:
        life = (await hub.until(s.AgentRegistered)).incarnation
        await hub.send(e.StopStranger(0.0, "s-1", 1, "coder-7", "second", "first was replaced", "first"))
        await hub.send(e.SendPing(0.0, "p-1", 1, "coder-7", life, seq=1, suspicion="test"))
        await hub.until(s.PongReceived)
        assert process.returncode is None
        assert life is not None
        await hub.send(e.StopStranger(0.0, "s-2", 1, "coder-7", "second", "it was replaced", life))
        assert await ended(process) != 0


async def test_a_hub_that_was_deposed_is_not_obeyed(hub: Hub, server: NatsServer) -> None:
    async with running(server.url, "--", "sleep", "300"):
        life = (await hub.until(s.AgentRegistered)).incarnation
        await hub.send(e.SendPing(0.0, "p-1", 5, "coder-7", life, seq=1, suspicion="test"))
        await hub.until(s.PongReceived)
        await hub.send(e.SendPing(0.0, "p-2", 4, "coder-7", life, seq=2, suspicion="test"))
        await hub.send(e.SendPing(0.0, "p-3", 5, "coder-7", life, seq=3, suspicion="test"))
        await hub.until(s.PongReceived, lambda pong: pong.seq == 3)
        assert [pong.seq for pong in hub.all(s.PongReceived)] == [1, 3]


async def test_a_nudge_of_a_person_is_delivered(hub: Hub, server: NatsServer) -> None:
    wait = "until [ -s $LIFESIGNS_NUDGES ]; do sleep 0.05; done; cat $LIFESIGNS_NUDGES; sleep 300"
    async with running(server.url, "--nudge", "file", "--", "sh", "-c", wait) as process:
        await hub.until(s.AgentRegistered)
        hub.hear(s.NudgeRequested(agent_id="coder-7", message="How is it going?"))
        await hub.until(s.NudgeDelivered)
        assert process.stdout is not None
        assert b'"text": "How is it going?"' in await asyncio.wait_for(process.stdout.readline(), BOUND)


async def test_a_child_whose_silence_was_ours_is_not_ended_for_it(hub: Hub, server: NatsServer) -> None:
    async with running(server.url, "--", "sleep", "300") as process:
        life = (await hub.until(s.AgentRegistered)).incarnation
        for_silence = e.Terminate(
            0.0, "t-1", 1, "coder-7", life, "Nothing heard", 0.1, (), seq_seen=3, on_silence=True
        )
        await hub.send(for_silence)
        assert "it runs" in (await hub.until(s.TerminationFailed)).reason
        assert process.returncode is None


async def test_a_child_that_speaks_is_not_ended_by_an_order_that_is_withdrawn(
    hub: Hub, server: NatsServer
) -> None:
    """It was given time to save, or to be heard again. Only what was not withdrawn is carried out then."""
    speak = 'touch "$LIFESIGNS_RUN/speaks"; echo speaks; sleep 300'
    async with running(server.url, "--", "sh", "-c", speak) as process:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), BOUND) == b"speaks\n"
        life = (await hub.until(s.AgentRegistered)).incarnation
        orders = [
            e.Terminate(0.0, f"t-{n}", 1, "coder-7", life, "it loops", 1.0, (), seq_seen=3) for n in (1, 2)
        ]
        await hub.send(orders[0])
        await hub.send(e.Withdraw(0.0, "t-1-withdrawn", 1, "coder-7", life, withdrawn="t-1"))
        await hub.send(orders[1])
        assert (await hub.until(s.TerminationDone)).order_id == "t-2"


async def test_a_stop_of_the_hubs_is_followed_by_the_life_it_orders(hub: Hub, server: NatsServer) -> None:
    tell = "echo $LIFESIGNS_INCARNATION $LIFESIGNS_HANDOFF; sleep 300"
    async with running(server.url, "--restart", "on-failure", "--", "sh", "-c", tell) as process:
        assert process.stdout is not None
        first = (await asyncio.wait_for(process.stdout.readline(), BOUND)).split()
        await hub.until(s.ActivitySeen)
        hub.hear(s.TerminationRequested(agent_id="coder-7", reason="it loops", respawn=True, by="ada"))
        stopped = await hub.until(s.TerminationDone)
        assert not stopped.forced
        await hub.until(s.RespawnStarted)
        second = (await asyncio.wait_for(process.stdout.readline(), BOUND)).split()
        assert second[0] != first[0]
        assert b"it loops" in b" ".join(second)


async def test_a_child_that_obeys_before_we_hear_of_it_still_has_a_successor(
    hub: Hub, server: NatsServer
) -> None:
    """It heard the hub's order to end, and has ended well; ours is on its way. We do not go before the hub has spoken."""
    obey = 'touch "$LIFESIGNS_RUN/told to stop"; exit 0'
    script = f"if [ $LIFESIGNS_ATTEMPT = 1 ]; then {obey}; fi; echo $LIFESIGNS_CHECKPOINT $LIFESIGNS_INCARNATION; sleep 300"
    async with running(server.url, "--restart", "on-failure", "--", "sh", "-c", script) as process:
        assert process.stdout is not None
        ended = await hub.until(s.ProcessExited)
        respawn = e.Respawn(
            0.0,
            "r-1",
            1,
            "coder-7",
            ended.incarnation,
            task_id=None,
            checkpoint_id="cp-3",
            new_incarnation="two",
            attempt=1,
            handoff="",
        )
        await hub.send(respawn)
        await hub.until(s.RespawnStarted)
        assert await asyncio.wait_for(process.stdout.readline(), BOUND) == b"cp-3 two\n"


async def test_a_stop_without_a_successor_ends_us(hub: Hub, server: NatsServer) -> None:
    async with running(server.url, "--", "sleep", "300") as process:
        await hub.until(s.ActivitySeen)
        hub.hear(s.TerminationRequested(agent_id="coder-7", reason="enough", by="ada"))
        assert await ended(process) == -15
        await hub.until(s.TerminationDone)
        assert process.stderr is not None
        assert b"was stopped after" in await process.stderr.read()


async def test_a_crash_has_one_successor_whoever_starts_it(
    hub: Hub, server: NatsServer, tmp_path: Path
) -> None:
    """The hub orders a respawn at once, and we had planned a restart: there is one new life, not two."""
    script = (
        f"echo x >> {tmp_path}/lives; [ $LIFESIGNS_ATTEMPT -gt 1 ] || {{ sleep 1.5; exit 1; }}; sleep 300"
    )
    async with running(server.url, "--restart", "on-failure", "--", "sh", "-c", script):
        await hub.until(s.ProcessExited)
        first = hub.all(s.AgentRegistered)[0].incarnation
        second = await hub.until(s.AgentRegistered, lambda word: word.incarnation != first)
        await hub.until(s.ActivitySeen, lambda word: word.incarnation == second.incarnation)
        await asyncio.sleep(2.5)
        assert (tmp_path / "lives").read_text() == "x\nx\n"
        assert {word.incarnation for word in hub.all(s.AgentRegistered)} == {first, second.incarnation}


async def test_a_crash_the_child_tells_itself_has_the_successor_that_the_hub_ordered(
    hub: Hub, server: NatsServer
) -> None:
    """The child tells of the exception and lives for a moment more: the order that comes meanwhile waits for its end."""
    code = f"""
import sys; sys.path.insert(0, {str(ROOT / "src")!r})
import time
from lifesigns.assembly.senders import Sender
try:
    with Sender(profile="swift") as life:
        time.sleep(300 if life.handoff else 1)
        raise KeyError("x")
finally:
    time.sleep(1)
"""
    async with running(server.url, "--restart", "on-failure", "--", sys.executable, "-c", code) as process:
        crash = await hub.until(s.ProcessExited)
        assert (crash.detail, crash.status) == ("KeyError: 'x'", None)
        await hub.until(s.RespawnStarted)
        await hub.until(WireBeat, lambda beat: beat.incarnation != crash.incarnation)
        assert not hub.all(s.RespawnFailed)
        assert process.returncode is None


async def test_a_child_that_speaks_for_itself_is_left_to_do_so(hub: Hub, server: NatsServer) -> None:
    code = f"""
import sys; sys.path.insert(0, {str(ROOT / "src")!r})
import time
from lifesigns.assembly.senders import Sender
with Sender(profile="swift") as life:
    life.phase("talking")
    time.sleep(4)
sys.exit(5)
"""
    async with running(server.url, "--", sys.executable, "-c", code) as process:
        await hub.until(s.AgentLeft)
        assert await ended(process) == 5
        beats = hub.all(WireBeat)
        own = [beat.phase == "talking" for beat in beats]
        first = own.index(True)
        assert own[first:].count(False) <= 1, "at most one that was on its way"
        assert {beat.incarnation for beat in beats} == {hub.all(s.AgentRegistered)[0].incarnation}


def test_a_hub_that_is_away_changes_nothing_for_the_child() -> None:
    url = f"nats://127.0.0.1:{free_port()}"
    done = run("--hub", url, "--id", "coder-7", "--", "sh", "-c", "sleep 6; echo done; exit 3")
    assert done.returncode == 3
    assert done.stdout == b"done\n"
    warnings = [line for line in said(done) if "the hub cannot be reached" in line]
    assert len(warnings) == 1
    assert done.stderr.decode().splitlines() == said(done), "and nothing of a log's"


async def test_a_hub_that_comes_back_is_introduced_to_the_child_again() -> None:
    with NatsServer() as server:
        async with running(server.url, "--", "sleep", "300") as process:
            async with hub_at(server.url) as before:
                await before.until(s.AgentRegistered)
            server.kill()
            assert process.stderr is not None
            assert b"cannot be reached" in await asyncio.wait_for(process.stderr.readline(), BOUND)
            server.start()
            async with hub_at(server.url) as after:
                await after.until(s.AgentRegistered)
                await after.until(s.ActivitySeen)


def test_a_wrong_address_is_a_wrong_usage() -> None:
    done = run("--hub", "gopher://x", "--", "true")
    assert done.returncode == 2
    assert b"gopher" in done.stderr
