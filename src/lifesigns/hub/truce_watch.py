"""Truce watch: for how much of the last minutes the hub convicted no agent of silence, because it doubted itself.

A truce lasts half a minute at most, and is no news. But a hub whose machine stops it for a second again and again, or that is
behind and catches up and is behind again, lives from one truce to the next: it is never blind, and finds no death.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from lifesigns.core.awareness import Awareness
from lifesigns.core.words import duration

WINDOW: Final = 300.0
LONG: Final = 150.0
"""Seconds of the last `WINDOW` in a truce from which on people are told: no single truce is as long."""
SHORT: Final = 60.0
"""So few that it is over."""
LOOK_MAX: Final = 5.0
"""A look counts for no more than this: how long the hub slept itself is in the log, and a laptop that slept is no trouble."""


class TruceWatch:
    """Adds the truces up; it is asked once a second."""

    def __init__(self) -> None:
        self._looked_at: float | None = None
        self._truces: deque[tuple[float, float]] = deque()
        """When a look fell into a truce, and how long it counts."""
        self._total = 0.0
        self._long = False

    def look(self, awareness: Awareness, now: float) -> str:
        """What to tell about them; empty unless they are long, or while the hub is blind to everybody, which is told itself."""
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
