"""Bus: the path between agents and monitor. It delays, loses, duplicates and reorders messages; it can be cut.

Beats come by the million, so we draw their fates beforehand: a table of delays, read from a random place every time.
A number too large for a delay stands for any other fate; sorted by arrival such beats come at the end of the list,
where `odd` takes them off.
"""

from __future__ import annotations

from random import Random
from typing import Final

from lifesigns.simulation.faults import Faults

TABLE: Final = 65_536
"""How many fates we draw beforehand; fewer for a small fleet."""
LOST: Final = 1e12
TWICE: Final = 1e10
LATE: Final = 1e11
"""Added to the delay of a beat that arrives twice, or after its successor."""

RESEND_AFTER: Final = 1.0
DELAY_MAX: Final = 25.0
"""The longest delay, in mean delays: a bus with a tail, but no bus keeps a message for ever."""


class Bus:
    """Decides the fate of messages."""

    def __init__(self, faults: Faults, chance: Random, agents: int) -> None:
        self._faults = faults
        self._chance = chance
        self.cut = False
        """For everybody."""
        self._size = min(TABLE, 1024 * agents)
        table = [self._fate() for _ in range(self._size)]
        self._delays = table + table[: agents + 1]
        self._ways = [self._way() for _ in range(self._size)]
        self._next = 0

    def fates(self, count: int) -> list[float]:
        """The delays of that many beats."""
        start = int(self._chance.random() * self._size)
        return self._delays[start : start + count]

    def way(self) -> float:
        """How long a report takes: a lost one is sent again. Odd ones as for beats."""
        self._next = number = (self._next + 1) % self._size
        return self._ways[number]

    def delay(self) -> float:
        mean = self._faults.delay
        return min(self._chance.expovariate(1.0) * mean, DELAY_MAX * mean)

    def loses(self) -> bool:
        return self._chance.random() < self._faults.loss

    def _fate(self) -> float:
        return LOST if self.loses() else self.delay() + self._oddity()

    def _way(self) -> float:
        way = self.delay()
        while self.loses():
            way += RESEND_AFTER + self.delay()
        return way + self._oddity()

    def _oddity(self) -> float:
        chance = self._chance.random()
        if chance < self._faults.duplicate:
            return TWICE
        return LATE if chance < self._faults.duplicate + self._faults.reorder else 0.0


def odd(arrival: float) -> tuple[float, float]:
    """The meaning of an arrival too large to be one: the fate, and the arrival without it."""
    for fate in (LOST, LATE, TWICE):
        if arrival >= fate:
            return fate, arrival - fate
    return 0.0, arrival
