"""Asyncio tasks: how one ends is known at once."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

import pytest

from lifesigns.agent.monitor import Monitor
from lifesigns.errors import UsageError
from tests.agent.monitor.heard import Heard


async def test_a_task_that_raises_has_crashed_and_its_exception_is_the_reason() -> None:
    """Told at once, not at the next tick; with the traceback."""
    with Monitor() as monitor:
        heard = Heard(monitor)
        go = asyncio.Event()

        async def work() -> None:
            await go.wait()
            raise ValueError("no such file")

        task = asyncio.create_task(work(), name="coder")
        monitor.watch(task)
        await heard.comes("agent-healthy", "coder")
        go.set()
        began = time.monotonic()
        event = await heard.comes("agent-disconnected", "coder")
        assert time.monotonic() - began < 1.0
        assert event.type == "process-crash"
        assert "ValueError: no such file" in event.reason
        assert "test_tasks.py:" in event.reason
        assert event.stack is not None
        assert "in work" in event.stack
        assert not monitor.is_alive("coder")
        with pytest.raises(ValueError, match="no such file"):
            await task


async def test_a_task_that_ends_or_is_cancelled_has_left() -> None:
    """An end without an exception is no failure."""
    with Monitor() as monitor:
        heard = Heard(monitor)
        go = asyncio.Event()
        finished = asyncio.create_task(go.wait(), name="finished")
        cancelled = asyncio.create_task(asyncio.sleep(60), name="cancelled")
        monitor.watch_all([finished, cancelled])
        await heard.comes("agent-healthy", "cancelled")
        go.set()
        cancelled.cancel()
        assert (await heard.comes("agent-left", "finished")).reason == "finished"
        assert (await heard.comes("agent-left", "cancelled")).reason == "cancelled"
        assert monitor.all() == {"finished": "terminated", "cancelled": "terminated"}


async def test_asyncio_still_complains_about_an_exception_that_nobody_looked_at() -> None:
    """To be watched takes nothing away: the exception counts as unseen until its owner sees it."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    with Monitor() as monitor:
        heard = Heard(monitor)

        async def work() -> None:
            raise ValueError("unseen")

        monitor.watch(asyncio.create_task(work(), name="coder"))
        await heard.comes("agent-disconnected", "coder")
        monitor.unwatch("coder")
    heard.events.clear()
    del heard, monitor
    gc.collect()
    await asyncio.sleep(0)
    assert [str(context["exception"]) for context in complaints] == ["unseen"]


async def test_a_new_task_under_the_name_of_a_crashed_one_is_its_return() -> None:
    """Restarting is reconnecting: the counts go on, the downtime is told."""
    with Monitor() as monitor:
        heard = Heard(monitor)

        async def fail() -> None:
            raise RuntimeError("first life")

        first = asyncio.create_task(fail(), name="coder")
        monitor.watch(first)
        await heard.comes("agent-disconnected", "coder")
        second = asyncio.create_task(asyncio.sleep(60), name="coder")
        monitor.watch(second)
        back = await heard.comes("agent-reconnected", "coder")
        assert back.downtime is not None
        assert back.downtime >= 0
        assert back.metrics.disconnection_count == 1
        assert monitor.health("coder") == "healthy"
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)


async def test_a_task_can_be_watched_from_another_thread() -> None:
    """The task's loop is told in its own thread."""
    with Monitor() as monitor:
        heard = Heard(monitor)
        task = asyncio.create_task(asyncio.sleep(0.2), name="coder")
        await asyncio.to_thread(monitor.watch, task)
        await heard.comes("agent-left", "coder")


async def test_a_task_that_is_done_already_is_told_as_it_ended() -> None:
    with Monitor() as monitor:
        heard = Heard(monitor)
        task = asyncio.create_task(asyncio.sleep(0), name="coder")
        await task
        monitor.watch(task)
        await heard.comes("agent-left", "coder")


async def test_a_coroutine_is_no_task() -> None:
    """It does not run, so there is nothing to watch; the message says what would be right."""
    with Monitor() as monitor, pytest.raises(UsageError, match=r"asyncio.create_task"):
        monitor.watch(asyncio.sleep(1), "coder")
