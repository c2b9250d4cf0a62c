"""WriteBudget: at most so many writes in any minute and in any hour. Pure: it takes `now`.

Windows slide: a bucket that refills would let twice its size through around a full minute, and the tracker counts as well.
"""

from __future__ import annotations

from collections import deque
from typing import Final

MINUTE: Final = 60.0
HOUR: Final = 3600.0


class WriteBudget:
    """Counts writes."""

    def __init__(self, per_minute: int, per_hour: int) -> None:
        self._per_minute = per_minute
        self._per_hour = per_hour
        self._written: deque[float] = deque(maxlen=per_hour)

    def room(self, now: float) -> int:
        """How many may be written now."""
        while self._written and now - self._written[0] >= HOUR:
            self._written.popleft()
        lately = sum(1 for at in self._written if now - at < MINUTE)
        return max(0, min(self._per_minute - lately, self._per_hour - len(self._written)))

    def take(self, now: float) -> bool:
        """Take one; False if there is none."""
        if self.room(now) < 1:
            return False
        self._written.append(now)
        return True
