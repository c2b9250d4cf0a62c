"""Truce watch: for how much of the last minutes the hub convicted no agent of silence, because it doubted itself.

A truce lasts half a minute at most, and is not worth an alert. But a hub that its machine stops for a second again and
again, or that falls behind and catches up over and over, lives from one truce to the next: it is never blind, and
detects no death.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from lifesigns.core.awareness import Awareness
from lifesigns.core.words import duration

WINDOW: Final = 300.0
LONG: Final = 150.0
"""Seconds of truce in the last `WINDOW` from which on people get an alert: no single truce is as long."""
SHORT: Final = 60.0
"""Seconds below which the alert is over."""
LOOK_MAX: Final = 5.0
"""Upper bound of one step: the log says how long the hub itself stood still, and a laptop that slept is no trouble."""


class TruceWatch:
    """Adds truces up; called once a second."""

    def __init__(self) -> None:
        self._looked_at: float | None = None
        self._truces: deque[tuple[float, float]] = deque()
        """When a call fell into a truce, and how long it counts."""
        self._total = 0.0
        self._long = False

    def look(self, awareness: Awareness, now: float) -> str:
        """Describe the truces for people; empty unless they are long, or while the hub is blind, which has an alert of
        its own."""
        last, self._looked_at = self._looked_at, now
        in_truce = now < awareness.truce_until or awareness.behind_since is not None
        if last is not None and last < now and in_truce and not awareness.overloaded:
            self._truces.append((now, min(now - last, LOOK_MAX)))
            self._total += self._truces[-1][1]
        while self._truces and self._truces[0][0] <= now - WINDOW:
            self._total -= self._truces.popleft()[1]
        self._long = self._total >= (SHORT if self._long else LONG)
        if not self._long:
            return ""
        return (
            f"for {duration(self._total)} of the last {duration(WINDOW)} no agent was convicted of silence: the hub stands still "
            "or is behind again and again, and gives every agent time to come back. A death is found late or not at all"
        )
