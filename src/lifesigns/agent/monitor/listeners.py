"""Listeners: callbacks, in a thread of theirs, one after the other, in the order in which things happened.

Not in the thread that judges: a callback that takes a minute would make it blind for that minute. So a slow one
delays only the callbacks behind it; verdict and evidence were taken at their time.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import queue
import threading
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from msgspec import Struct

from lifesigns.agent.monitor.events import EVERYTHING, KNOWN, Event
from lifesigns.agent.monitor.tasks import running_loop
from lifesigns.errors import UsageError

log: Final = logging.getLogger("lifesigns.monitor")

Callback = Callable[[Event], Any]

WAITING_MAX: Final = 100_000
"""Events that wait for a slow callback (ten for each of ten thousand agents on a loop that froze). Beyond that they
are dropped, and that is logged."""


class Listener(Struct, frozen=True):
    """A callback, and the loop it belongs to if it was registered on one."""

    event: str
    callback: Callback
    loop: asyncio.AbstractEventLoop | None


class Listeners:
    """The callbacks, by event."""

    def __init__(self, loop_of: Callable[[str], asyncio.AbstractEventLoop | None]) -> None:
        self._loop_of = loop_of
        self._listeners: tuple[Listener, ...] = ()
        self._waiting: queue.SimpleQueue[tuple[Listener, Event] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._dropped = 0

    def on(self, event: str, callback: Callback) -> None:
        _check(event)
        if not callable(callback):
            raise UsageError(f"a callback is needed for {event!r}, not {callback!r}")
        with self._lock:
            self._listeners = (*self._listeners, Listener(event, callback, running_loop()))

    def off(self, event: str, callback: Callback) -> None:
        """Remove a callback; it still gets the events that already wait."""
        _check(event)
        with self._lock:
            self._listeners = tuple(
                known for known in self._listeners if (known.event, known.callback) != (event, callback)
            )

    def tell(self, news: Iterable[Event]) -> None:
        """Queue events for the callbacks. Never waits."""
        for event in news:
            for listener in self._listeners:
                if listener.event not in (event.name, EVERYTHING):
                    continue
                if self._waiting.qsize() >= WAITING_MAX:
                    self._dropped += 1
                    if self._dropped % WAITING_MAX == 1:
                        log.error("callbacks are too slow: %d events were not told", self._dropped)
                    return
                self._waiting.put((listener, event))
                self._start()

    def stop(self, within: float) -> None:
        """Deliver what waits, then end."""
        self._waiting.put(None)
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(within)

    def mute(self) -> None:
        """In a forked child."""
        self._listeners, self._lock = (), threading.Lock()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="lifesigns-callbacks", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            listener, event = item
            try:
                told = listener.callback(event)
                if inspect.isawaitable(told):
                    self._schedule(listener, event, told)
            except Exception:
                log.exception("a callback for %s of %s failed", event.name, event.agent)

    def _schedule(self, listener: Listener, event: Event, told: Awaitable[Any]) -> None:
        """A coroutine runs on the loop it was registered on, else on the agent's."""
        loop = listener.loop or self._loop_of(event.agent)

        async def finish() -> None:
            try:
                await told
            except Exception:
                log.exception("a callback for %s of %s failed", event.name, event.agent)

        finishing = finish()
        try:
            if loop is None:
                raise RuntimeError("no event loop is known for it; register it on one")
            asyncio.run_coroutine_threadsafe(finishing, loop)
        except RuntimeError as error:
            finishing.close()
            if inspect.iscoroutine(told):
                told.close()
            log.error("a callback for %s of %s cannot run: %s", event.name, event.agent, error)


def _check(event: str) -> None:
    if event not in KNOWN:
        raise UsageError(f"{event!r} is no event; there are {', '.join(sorted(KNOWN))}")
