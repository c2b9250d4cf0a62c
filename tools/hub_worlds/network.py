"""The network: who reaches whom. Links are cut in one direction or both, by several faults at once."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Final

STORE: Final = "store"
STORE_ZONE: Final = "a"
"""The store stands in the first zone."""


class Network:
    """Links between hubs, agents, the servers of the bus and the store, by their names and zones."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._zones: dict[str, str] = {STORE: STORE_ZONE}
        self._cuts: Counter[tuple[str, str]] = Counter()
        """From and to; `zone:x` stands for all in a zone, `bus:x` for the server of the bus there."""

    def place(self, node: str, zone: str) -> None:
        self._zones[node] = zone

    def zone(self, node: str) -> str:
        return self._zones[node]

    def reaches(self, source: str, target: str) -> bool:
        """Whether a message sent now would arrive."""
        cuts = self._cuts
        if not cuts:
            return True
        if (source, target) in cuts or (source, "*") in cuts or ("*", target) in cuts:
            return False
        return self.joins(self._zones[source], self._zones[target])

    def joins(self, one: str, other: str) -> bool:
        """Whether there is a way from this zone to that."""
        return one == other or (f"zone:{one}", f"zone:{other}") not in self._cuts

    def is_silent(self, node: str) -> bool:
        """Whether nothing that it says arrives anywhere."""
        return (node, "*") in self._cuts

    def cut(self, source: str, target: str) -> None:
        self._cuts[source, target] += 1

    def mend(self, source: str, target: str) -> None:
        self._cuts[source, target] -= 1
        if not self._cuts[source, target]:
            del self._cuts[source, target]

    def delay(self) -> float:
        """How long a message takes: a millisecond or two, and now and then much longer."""
        return self._chance.expovariate(1000.0) + (0.2 if self._chance.random() < 0.002 else 0.0005)
