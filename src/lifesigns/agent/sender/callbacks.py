"""Callbacks: how we call an agent's own functions, so that they disturb nothing else.

A coroutine function runs on the agent's loop, a plain one in a thread of its own: neither can delay the beats. An
error is logged and goes only to the code that waits for the result.
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
    """Call it where it may take its time. `loop` is the agent's, if it has one."""
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
    """Wait in a coroutine for another thread's work; False on a timeout.

    Not `asyncio.wrap_future`: a waiter that stops waiting there cancels it for all.
    """
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def ring(_: Future[Any]) -> None:
        with suppress(RuntimeError):  # The loop was closed; nothing waits any more.
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
