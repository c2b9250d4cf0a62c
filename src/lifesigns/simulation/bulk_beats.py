"""Bulk beats: the beats of every agent that just lives. Nearly all messages come from here.

Time is cut into slots of one interval. In every slot each agent beats once, at its own phase; the list of a slot is
made and sorted at once, and every agent reuses one beat object (the engine keeps none). This costs a fraction of a
microsecond per beat, where an event of its own would cost several.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from lifesigns.core.signals import BeatReceived
from lifesigns.simulation.bus import Bus

if TYPE_CHECKING:
    from lifesigns.simulation.simulated_agent import SimulatedAgent


class BulkBeats:
    """Which agent beats, when in the slot, and with which beat."""

    def __init__(self, interval: float, count: int) -> None:
        self.interval = interval
        self.beats: list[BeatReceived] = [BeatReceived("")] * count
        self.mute_from = [inf] * count
        """Beats of the current slot that would arrive later than this are not sent."""
        self.heard_at = [-inf] * count
        """When the monitor last heard each agent, in the world's time."""
        self._phases: dict[int, float] = {}
        self._order: list[int] = []
        self._sorted_phases: list[float] = []
        self._skews: dict[int, float] = {}
        self._changed = False

    def join(self, agent: SimulatedAgent) -> None:
        """Beat from the next slot on; in the current slot alone, if its time is still to come."""
        index = agent.index
        if index not in self._phases:
            moment = agent.now // self.interval * self.interval + agent.phase
            if moment > agent.now + 0.1 * self.interval:
                agent.world.at(moment, _beat_once, (agent, agent.incarnation))
        self._phases[index] = agent.phase
        self.beats[index] = agent.beat
        if agent.skew:
            self._skews[index] = agent.skew
        self._changed = True

    def leave(self, index: int, now: float) -> None:
        """Stop beating."""
        if self._phases.pop(index, None) is not None:
            self._changed = True
        self.mute_from[index] = min(now, self.mute_from[index])

    def slot(self, start: float, bus: Bus) -> list[tuple[float, int]]:
        """Arrivals of the slot that begins at `start`, in order; odd ones (see `bus`) at the end."""
        if self._changed:
            self._arrange()
        for index, skew in self._skews.items():
            self.beats[index].sent_at = start + skew
        fates: Sequence[float] = bus.fates(len(self._order))
        arrivals = [
            (start + phase + fate, index)
            for phase, fate, index in zip(self._sorted_phases, fates, self._order, strict=False)
        ]
        arrivals.sort()
        return arrivals

    def _arrange(self) -> None:
        self._changed = False
        self._order = sorted(self._phases, key=self._phases.__getitem__)
        self._sorted_phases = [self._phases[index] for index in self._order]
        for index in self._order:
            self.mute_from[index] = inf


def _beat_once(whose: tuple[SimulatedAgent, str]) -> None:
    agent, life = whose
    if agent.speaking and not agent.cuts and agent.incarnation == life:
        agent.send_beat()
