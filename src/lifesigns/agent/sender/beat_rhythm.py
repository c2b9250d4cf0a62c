"""Beat rhythm: how often an agent beats, within its policy.

Faster when somebody wonders about it or it is unwell, for then every beat is news; slower when it has been idle for
long, for then none is. Beats of all agents of a process with the same rhythm fall on one grid, so that they wake the
process once and go out as one message.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import Final

FASTER_FOR: Final = 60.0
"""How long a question or an ill turn keeps the pulse up."""
SLOWER_AFTER: Final = 600.0
FASTER: Final = 0.5
SLOWER: Final = 1.5
ROOM: Final = 1.5
"""A slow pulse leaves this factor up to the suspicion: one late beat of a resting agent must not raise one."""


@dataclass(frozen=True, slots=True)
class BeatRhythm:
    """The rhythm an agent promised, and how long its policy waits for a beat."""

    interval: float
    suspect_after: float

    def every(self, *, stirred_for: float | None, idle_for: float | None) -> float:
        """Seconds between two beats, by how long ago it was stirred (asked, nudged, unwell) and since when it idles."""
        if stirred_for is not None and stirred_for < FASTER_FOR:
            return self.interval * FASTER
        if idle_for is not None and idle_for >= SLOWER_AFTER:
            return max(self.interval, min(self.interval * SLOWER, self.suspect_after / ROOM))
        return self.interval


def next_on_grid(after: float, every: float, phase: float) -> float:
    """The first moment later than `after` on the grid of this rhythm; `phase` is the grid's place, 0 to 1."""
    beats = floor(after / every - phase) + 1
    at = (beats + phase) * every
    return at if at > after else at + every
