"""Callbacks: how an agent's own functions are called, so that they disturb nobody.

A coroutine function runs on the agent's loop, a plain one in a thread of its own: neither can hold up the beats. One
that raises is logged; its error goes to whoever waits for the result, and to nobody else.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar

log: Final = logging.getLogger("lifesigns.sender")

T = TypeVar("T")
Callback = Callable[[T], object]
"""Plain or a coroutine function."""


def call(callback: Callback[T], what: T, loop: asyncio.AbstractEventLoop | None) -> Future[Any]:
    """Call it there where it may take its time. `loop` is the agent's, if it has one."""
    outcome: Future[Any] = Future()
    if loop is not None and inspect.iscoroutinefunction(callback):
        coroutine: Coroutine[Any, Any, Any] = callback(what)
        try:
            outcome = asyncio.run_coroutine_threadsafe(coroutine, loop)
        except RuntimeError as error:  # The loop is closed: the agent is gone.
            coroutine.close()
            outcome.set_exception(error)
    else:
        name = f"lifesigns-{getattr(callback, '__name__', 'callback')}"
        threading.Thread(target=_run, args=(callback, what, outcome), name=name, daemon=True).start()
    outcome.add_done_callback(_log_failure)
    return outcome


async def until_done(future: Future[Any], wait_for: float | None) -> bool:
    """Wait in a coroutine for what another thread does; False if it was not done in time.

    Not `asyncio.wrap_future`: who stops waiting there cancels it for everybody.
    """
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def ring(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # The loop was closed; nobody waits any more.
            loop.call_soon_threadsafe(done.set)

    future.add_done_callback(ring)
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_for):
            await done.wait()
    return future.done()


def _run(callback: Callback[T], what: T, outcome: Future[Any]) -> None:
    try:
        result = callback(what)
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        outcome.set_result(result)
    except BaseException as error:  # noqa: BLE001 -- a stranger's code; it is handed on, not swallowed
        outcome.set_exception(error)


def _log_failure(outcome: Future[Any]) -> None:
    if not outcome.cancelled() and (error := outcome.exception()) is not None:
        log.error("a callback of the agent failed", exc_info=error)
