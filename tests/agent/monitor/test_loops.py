"""Agents on an event loop: while it answers, they live."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

from lifesigns.agent.monitor import Monitor
from tests.agent.monitor.heard import QUICK, Heard


class Named:
    def __init__(self, name: str) -> None:
        self.name = name


def block(seconds: float) -> None:
    """A blocking call inside a coroutine is the point of these tests."""
    time.sleep(seconds)


def spin(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


async def test_a_blocked_loop_is_a_freeze_of_all_who_live_on_it_and_names_who_blocks() -> None:
    """All on a frozen loop are frozen; the reason names the running task and its line, the stack shows the call."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        go = asyncio.Event()

        async def hang() -> None:
            await go.wait()
            spin(1.3)

        task = asyncio.create_task(hang(), name="culprit")
        monitor.watch(task)
        monitor.watch(Named("victim"))
        monitor.watch(asyncio.get_running_loop(), "loop")
        await heard.comes("agent-healthy", "loop")
        go.set()
        await task
        for name in ("culprit", "victim", "loop"):
            event = heard.wait("agent-disconnected", name)
            assert event.type == "event-loop-freeze"
            assert event.health == "disconnected"
            assert "culprit holds it up at " in event.reason
            assert "test_loops.py:" in event.reason
            assert event.stack is not None
            assert "spin" in event.stack
            assert event.last_seen is not None
            assert event.downtime is None


async def test_who_comes_back_is_told_with_its_downtime_and_once() -> None:
    """Reconnected with downtime, then healthy; nothing is told twice."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        monitor.watch(Named("sleeper"))
        await heard.comes("agent-healthy", "sleeper")
        block(1.3)
        back = await heard.comes("agent-reconnected", "sleeper")
        assert back.downtime is not None
        assert 1.0 < back.downtime < 10
        assert back.last_seen is not None
        metrics = monitor.metrics("sleeper")
        assert metrics is not None
        assert (metrics.status, metrics.disconnection_count, metrics.missed_heartbeats) == ("healthy", 1, 0)
    assert heard.of("sleeper") == [
        "agent-healthy",
        "agent-disconnected",
        "agent-reconnected",
        "agent-healthy",
    ]


async def test_a_declared_blocking_call_excuses_everybody_on_the_loop() -> None:
    """`busy` around what blocks: no event, neither for who declared it nor for its neighbours."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        worker, _neighbour = monitor.watch(Named("worker")), monitor.watch(Named("neighbour"))
        await heard.comes("agent-healthy", "neighbour")
        with worker.busy("a large file"), worker.busy("a part of it"):
            block(1.3)
        await asyncio.sleep(0.5)
        assert heard.of("worker") == heard.of("neighbour") == ["agent-healthy"]


async def test_a_declared_call_over_its_bound_excuses_nobody() -> None:
    """The bound is the promise: when it is over, the loop owes its answer again."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        worker = monitor.watch(Named("worker"))
        monitor.watch(Named("neighbour"))
        await heard.comes("agent-healthy", "neighbour")
        with worker.busy("quickly", bound=0.2):
            block(1.7)
        assert (await heard.comes("agent-disconnected", "neighbour")).type == "event-loop-freeze"


async def test_who_is_busy_elsewhere_does_not_excuse_who_blocks() -> None:
    """`busy` over an await declares no blocking: when another task blocks the loop meanwhile, that is a freeze."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        over = asyncio.Event()

        async def wait_long() -> None:
            with patient.busy("a long answer"):
                await over.wait()

        patient = monitor.watch(Named("patient"))
        monitor.watch(Named("victim"))
        waiting = asyncio.create_task(wait_long())
        await heard.comes("agent-healthy", "victim")
        spin(1.3)
        assert (await heard.comes("agent-disconnected", "victim")).type == "event-loop-freeze"
        over.set()
        await waiting


def test_a_loop_that_does_not_run_is_not_frozen_and_a_closed_one_has_left() -> None:
    """Between two runs nobody can answer and nobody should. A closed loop never will."""
    loop = asyncio.new_event_loop()
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        monitor.watch(loop, "loop")
        loop.run_until_complete(heard.comes("agent-healthy", "loop"))
        threading.Event().wait(0.9)
        assert monitor.health("loop") == "healthy"
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
        assert heard.wait("agent-left", "loop").reason == "its event loop was closed"


class CountingLoop(asyncio.SelectorEventLoop):
    calls = 0

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Any = None
    ) -> Any:
        self.calls += 1
        return super().call_soon_threadsafe(callback, *args, context=context)


def test_a_loop_is_asked_once_a_tick_however_many_agents_live_on_it() -> None:
    """Wake-ups cost, not work."""
    loop = CountingLoop()

    async def main() -> int:
        with Monitor(policy=QUICK) as monitor:
            monitor.watch_all(Named(f"agent-{n}") for n in range(200))
            await asyncio.sleep(0.5)
            before = loop.calls
            await asyncio.sleep(0.9)
            metrics = monitor.metrics("agent-7")
            assert metrics is not None
            assert metrics.total_heartbeats > 2
            return loop.calls - before

    try:
        assert (
            1 <= loop.run_until_complete(main()) <= 7
        )  # Five ticks of 0.3 s, and not one call for each agent.
    finally:
        loop.close()
