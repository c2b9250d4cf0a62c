"""Stopping: ask a child to end, give it time to save, then force it. Pure: the caller passes the time."""

from __future__ import annotations

import math
import signal
from typing import Final

from lifesigns.core.effects import StopStranger, Terminate

UNKILLABLE_AFTER: Final = 10.0
"""A process that is there this long after SIGKILL hangs in the kernel: a dead disk, a dead network file system."""


EXTENDED_FOR: Final = 300.0
"""How much longer a child may take that asks for time again and again."""


class Stopping:
    """One decided end. `due` says what to send; it returns no signal twice."""

    def __init__(
        self,
        reason: str,
        now: float,
        save_for: float,
        *,
        ask_at: float | None = None,
        order: Terminate | StopStranger | None = None,
    ) -> None:
        self.reason = reason
        self.order = order
        self.forced = False
        self.begun = False
        """Whether a signal was sent."""
        self._ask_at = now if ask_at is None else ask_at
        self._force_at = self._ask_at + save_for
        self._force_last = self._force_at + EXTENDED_FOR
        self._overdue_at = math.inf

    def wake_at(self) -> float:
        return min(self._ask_at, self._force_at, self._overdue_at)

    def due(self, now: float) -> signal.Signals | None:
        """The signal that is due, once."""
        if now >= self._force_at:
            self._ask_at = self._force_at = math.inf
            self.forced = self.begun = True
            self._overdue_at = now + UNKILLABLE_AFTER
            return signal.SIGKILL
        if now >= self._ask_at:
            self._ask_at = math.inf
            self.begun = True
            return signal.SIGTERM
        return None

    def overdue(self, now: float) -> bool:
        """Whether even force did not help; True once."""
        if now < self._overdue_at:
            return False
        self._overdue_at = math.inf
        return True

    def extend(self, seconds: float, now: float) -> None:
        """The child needs more time to save; in all at most `EXTENDED_FOR` more than it had."""
        if self.begun and not self.forced:
            self._force_at = min(max(self._force_at, now + seconds), self._force_last)

    def hurry(self, now: float) -> None:
        """The user lost patience: no more time to save."""
        self._force_at = min(self._force_at, now)
