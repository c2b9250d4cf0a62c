"""Loop probe: whether an event loop still turns, asked from outside.

The law: one question at a time. We do not ask a loop again before it has answered, so a frozen loop collects no
questions; the wait for its answer is its lag. Read `lag` first and `ask` after it: a new question says nothing yet.
Both belong to one thread, the answer comes on the loop's own; only single attributes are written, so no lock is
needed.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable


class LoopProbe:
    """Asks one loop, however many callers want to know. All times are of `clock`."""

    __slots__ = ("_clock", "_last_lag", "answered_at", "asked_at", "loop", "thread_id")

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float] = time.monotonic) -> None:
        self.loop = loop
        self._clock = clock
        self._last_lag = 0.0
        self.asked_at: float | None = None
        """When we asked the open question; None if none is open."""
        self.answered_at: float | None = None
        """When the loop last answered; None if it never did."""
        self.thread_id: int | None = None
        """The thread it last answered in."""

    def ask(self, now: float) -> bool:
        """Ask, unless a question is open. False if the loop is closed and cannot answer."""
        if self.asked_at is not None:
            return not self.loop.is_closed()
        self.asked_at = now
        try:
            self.loop.call_soon_threadsafe(self._answer)
        except (
            RuntimeError
        ):  # Closed; between a check and the call it could still be closed, so there is no check.
            self.asked_at = None
            return False
        return True

    def lag(self, now: float) -> float:
        """Seconds the loop is behind: how long the open question has waited, or how long the last one did."""
        asked_at = self.asked_at
        if asked_at is None:
            return self._last_lag
        if not self.loop.is_running():
            return 0.0  # The loop does not run at the moment: that is no freeze.
        return max(0.0, now - asked_at)

    def forgive(self, now: float) -> None:
        """Count anew: the caller itself was asleep, so the time meanwhile is not the loop's fault."""
        self._last_lag = 0.0
        if self.asked_at is not None:
            self.asked_at = now

    def _answer(self) -> None:
        now, asked_at = self._clock(), self.asked_at
        self._last_lag = 0.0 if asked_at is None else max(0.0, now - asked_at)
        self.answered_at = now
        self.thread_id = threading.get_ident()
        self.asked_at = None
