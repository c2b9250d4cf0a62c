"""Strikes: what goes wrong in a simulated world, and when. Agents fail, links and hosts vanish, the monitor stalls,
restarts, goes blind, and clocks jump.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from lifesigns.core.policy import HOUR, MINUTE
from lifesigns.simulation.lives.failing import AT_ANY_TIME, FAILURES
from lifesigns.simulation.simulated_agent import SimulatedAgent
from lifesigns.simulation.truth import Illness

if TYPE_CHECKING:
    from lifesigns.simulation.world import World

DAY: Final = 86_400.0

CUT_FOR_LONG: Final = 0.3
"""The share of cut-off agents and sleeping laptops that stay away longer than the hub waits for an answer."""

RESTARTED_FOR: Final = (10.0, 300.0)


class Strikes:
    """Schedules failures of agents and faults of the world, and carries them out."""

    def __init__(self, world: World, cuts: Random) -> None:
        self._world = world
        self._cuts = cuts
        """How long agents are cut off: its own chance, so that it does not change the others."""

    def schedule(self) -> None:
        for agent in self._world.agents:
            self._world.at(agent.chance.uniform(0, 60), self._world.begin, agent)
            self._plan_strike(agent)
        faults = self._world.config.faults
        plans: tuple[tuple[float, Callable[[], None]], ...] = (
            (faults.partition, self.partition),
            (faults.stall, self.stall),
            (faults.restart, self.restart),
            (faults.crash, self._world.monitor.doom),
            (faults.blind, self.blind),
            (faults.clock, self.jump_clock),
            (faults.host, self.lose_host),
            (faults.half, self.lose_half),
            (faults.split, self._world.zones.split),
            (faults.zone, self._world.zones.lose_hub),
        )
        for a_day, fault in plans:
            self._plan_fault(a_day, fault)

    def _plan_strike(self, agent: SimulatedAgent) -> None:
        when = self._world.now + agent.chance.expovariate(1 / self._world.config.failure_every)
        if when < self._world.end:
            self._world.at(max(when, 10 * MINUTE), self._strike, agent)

    def _strike(self, agent: SimulatedAgent) -> None:
        """Make one agent fail, if it has not failed already."""
        self._plan_strike(agent)
        ills = [
            illness for illness in self._world.config.ills if agent.capped or illness is not Illness.SPENDING
        ]
        if agent.plain is not None:  # Its beats can only stop, or not get through.
            ills = [illness for illness in ills if illness in (Illness.CRASH, Illness.CUT)] or [Illness.CRASH]
        illness = agent.chance.choice(ills)
        if agent.failure is not None or not agent.speaking or agent.leaving or agent.doom is not None:
            return
        if illness is Illness.CUT:
            how_long = agent.chance.uniform(5, 180)
            if self._cuts.random() < CUT_FOR_LONG:
                how_long = self._cuts.uniform(15 * MINUTE, HOUR)
            self.cut([agent], how_long)
        elif illness in AT_ANY_TIME:
            agent.live(FAILURES[illness](agent))
        else:
            agent.doom = illness

    def cut(self, agents: list[SimulatedAgent], how_long: float) -> None:
        """Break links, and restore them after a while."""
        for agent in agents:
            agent.cut_off()
            self._world.at(self._world.now + how_long, lambda one: one.reconnect(), agent)

    def _plan_fault(self, a_day: float, fault: Callable[[], None]) -> None:
        if not a_day:
            return
        when = self._world.now + self._world.chance.expovariate(a_day / DAY)
        if when < self._world.end:
            self._world.at(max(when, 30 * MINUTE), self._fault, (a_day, fault))

    def _fault(self, what: tuple[float, Callable[[], None]]) -> None:
        self._plan_fault(*what)
        if self._world.monitor.listening and not self._world.bus.cut:
            what[1]()

    def partition(self) -> None:
        """Cut a host's link for a while."""
        host = self._world.chance.choice(self._world.agents).host
        self.cut([b for b in self._world.agents if b.host == host], self._world.chance.uniform(5, 600))

    def lose_host(self) -> None:
        """Let a host vanish, with half of its agents dead."""
        host = self._world.chance.choice(self._world.agents).host
        self._vanish(
            [b for b in self._world.agents if b.host == host], self._world.chance.uniform(60, 600), 0.5
        )

    def lose_half(self) -> None:
        """Let half of the fleet vanish at once, some of it dead."""
        half = self._world.chance.sample(self._world.agents, len(self._world.agents) // 2)
        self._vanish(half, 300.0, 0.1)

    def _vanish(self, agents: list[SimulatedAgent], how_long: float, dead: float) -> None:
        for agent in agents:
            if agent.speaking and agent.failure is None and self._world.chance.random() < dead:
                agent.live(FAILURES[Illness.CRASH](agent))
        self.cut(agents, how_long)

    def stall(self, how_long: float = 60.0) -> None:
        """Let the monitor stall."""
        self._world.monitor.stall()
        self._world.at(self._world.now + how_long, self._world.monitor.wake, how_long)

    def restart(self) -> None:
        """End the monitor within the next second, and restore it from its snapshot."""
        self._world.monitor.save()
        self._world.at(self._world.now + self._world.chance.random(), self.go_down, RESTARTED_FOR)

    def go_down(self, how_long: tuple[float, float]) -> None:
        """End the monitor, and start it again after a while."""
        if not self._world.monitor.listening:
            return
        self._world.monitor.go_down()
        away = self._world.chance.uniform(*how_long)
        self._world.at(self._world.now + away, self._world.monitor.come_back, away)

    def blind(self, how_long: float = 600.0) -> None:
        """Cut the bus for all agents."""
        self._world.bus.cut, self._world.cut_since = True, self._world.now
        self._world.at(self._world.now + how_long, self._see_again, how_long)

    def _see_again(self, blind_for: float) -> None:
        self._world.bus.cut = False
        self._world.scorer.excuse(blind_for, asleep=False)
        self._world.monitor_changed()

    def jump_clock(self, by: float | None = None) -> None:
        """Let every wall clock jump, by an hour by default, and restart the monitor: before that it notices nothing."""
        by = by or self._world.chance.choice((-HOUR, HOUR))
        for agent in self._world.agents:
            agent.skew += by
            agent.keep_beating()
        self._world.monitor.jump(by)
        self.restart()
