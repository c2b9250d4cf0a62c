"""Ordered calls: callbacks in a thread of their own, one after the other, in the order in which things happened.

A slow callback delays only those behind it; one that raises is logged. A coroutine function runs on the loop that runs
where `start` is called, and the next callback does not wait for it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import queue
import threading
from typing import Any, Final

from lifesigns.agent.sender.callbacks import Callback

log: Final = logging.getLogger("lifesigns.monitor")

WAITING_MAX: Final = 100_000
"""Calls that wait for a slow callback. Beyond that they are dropped, and that is logged."""


class OrderedCalls:
    """The queue and its thread."""

    def __init__(self, name: str) -> None:
        self._waiting: queue.SimpleQueue[tuple[Callback[Any], Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dropped = 0

    def start(self) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None
        self._thread.start()

    def put(self, callback: Callback[Any], what: object) -> None:
        """Call it when its turn comes. Never waits."""
        if self._waiting.qsize() < WAITING_MAX:
            self._waiting.put((callback, what))
            return
        self._dropped += 1
        if self._dropped % WAITING_MAX == 1:
            log.error("callbacks are too slow: %d were not called", self._dropped)

    def stop(self, within: float) -> None:
        """Call what waits, then end."""
        self._waiting.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join(within)

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            callback, what = item
            try:
                if self._loop is not None and inspect.iscoroutinefunction(callback):
                    asyncio.run_coroutine_threadsafe(self._logged(callback, what), self._loop)
                elif inspect.isawaitable(result := callback(what)):
                    asyncio.run(_finish(result))
            except Exception:
                log.exception("a callback failed for %s", what)

    async def _logged(self, callback: Callback[Any], what: object) -> None:
        try:
            await callback(what)  # type: ignore[misc]
        except Exception:
            log.exception("a callback failed for %s", what)


async def _finish(result: Any) -> None:
    await result
