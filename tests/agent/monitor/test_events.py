"""Callbacks: told in order, in a thread of their own; none can delay or disturb the judging."""

from __future__ import annotations

import asyncio
import logging
import threading
import time

import pytest

from lifesigns.agent.monitor import Event, Monitor
from lifesigns.errors import UsageError
from tests.agent.monitor.heard import QUICK, WITHIN, Heard, until


class Named:
    def __init__(self, name: str) -> None:
        self.name = name


async def test_a_callback_that_raises_is_logged_and_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: Event) -> None:
        raise RuntimeError("callback trouble")

    async def fail_later(event: Event) -> None:
        raise RuntimeError("coroutine trouble")

    with caplog.at_level(logging.ERROR, "lifesigns.monitor"), Monitor(policy=QUICK) as monitor:
        monitor.on("agent-healthy", fail)
        monitor.on("agent-healthy", fail_later)
        heard = Heard(monitor)
        monitor.watch(Named("coder"))
        await heard.comes("agent-healthy", "coder")
        await asyncio.to_thread(until, lambda: "coroutine trouble" in caplog.text)
    assert "callback trouble" in caplog.text


async def test_a_coroutine_runs_on_the_loop_where_it_was_registered() -> None:
    told: asyncio.Queue[tuple[str, int]] = asyncio.Queue()

    async def note(event: Event) -> None:
        await told.put((event.agent, threading.get_ident()))

    with Monitor(policy=QUICK) as monitor:
        monitor.on("agent-healthy", note)
        monitor.watch(Named("coder"))
        async with asyncio.timeout(WITHIN):
            assert await told.get() == ("coder", threading.get_ident())


async def test_a_coroutine_that_was_registered_elsewhere_runs_on_the_agents_loop() -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    with Monitor(policy=QUICK) as monitor:

        async def note(event: Event) -> None:
            await told.put(event.agent)

        await asyncio.to_thread(monitor.on, "agent-healthy", note)
        monitor.watch(Named("coder"))
        async with asyncio.timeout(WITHIN):
            assert await told.get() == "coder"


def test_a_coroutine_without_any_loop_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def note(event: Event) -> None:
        """Never run."""

    with caplog.at_level(logging.ERROR, "lifesigns.monitor"), Monitor(policy=QUICK) as monitor:
        monitor.on("agent-healthy", note)
        monitor.watch(Named("coder"))
        until(lambda: "no event loop is known" in caplog.text)


def test_a_slow_callback_delays_no_verdict() -> None:
    """The other agent falls silent while a callback sleeps; it is judged at its time, and told after."""
    with Monitor(policy=QUICK) as monitor:
        slept = threading.Event()

        def sleep(event: Event) -> None:
            time.sleep(2.0)
            slept.set()

        monitor.on("agent-left", sleep)
        heard = Heard(monitor)
        first, second = (
            monitor.watch(Named("first"), beats_every=0.3),
            monitor.watch(Named("second"), beats_every=0.3),
        )
        heard.wait("agent-healthy", "second")
        second.beat()
        silent_from = time.time()
        first.leave()
        until(lambda: monitor.health("second") == "disconnected")
        assert not slept.is_set()
        event = heard.wait("agent-disconnected", "second")
        assert event.at - silent_from < 1.9
        assert time.time() - silent_from >= 2.0


def test_who_is_off_is_told_no_more() -> None:
    with Monitor(policy=QUICK) as monitor:
        told: list[Event] = []
        monitor.on_dead(told.append)
        monitor.off("agent-disconnected", told.append)
        heard = Heard(monitor)
        monitor.watch(Named("coder"))
        heard.wait("agent-disconnected", "coder")
        assert told == []


def test_only_known_events_can_be_asked_for() -> None:
    monitor = Monitor()
    with pytest.raises(UsageError, match="'agent-dead' is no event; there are"):
        monitor.on("agent-dead", print)
    with pytest.raises(UsageError, match="a callback is needed"):
        monitor.on("*", None)  # type: ignore[arg-type]
