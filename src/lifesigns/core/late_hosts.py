"""Late hosts: when many agents of a host are late at once, the host is the cause: starved, or cut off.

The engine then judges its agents later. How much the agents of other sources count: `source_counts.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from lifesigns.core.agent import Agent
from lifesigns.core.health import Doing
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.source_counts import Count, SourceCounts, seen_from

LATE_WITHIN: Final = 30.0
"""Agents of one host that are suspected within so many seconds are late together."""

OVERDUE: Final = 1.25
"""An agent silent for so many of its own intervals is late, though not suspected yet: all agents of a starved host fall
silent within one interval, and the first is judged up to one interval before the last is suspected."""

WITNESSES_MAX: Final = 50
"""At most so many agents of a source, and so many sources of a host, are checked. More would add cost and no
knowledge."""


@dataclass(slots=True)
class LateAgents:
    """The agents of a host that were suspected lately, and when, refuted since or not; the oldest first."""

    suspected: dict[str, tuple[float, str]] = field(default_factory=dict)
    """With the source of each."""
    by_source: dict[str, int] = field(default_factory=dict)

    def note(self, agent: Agent, at: float) -> None:
        self._drop(agent.id)
        self.suspected[agent.id] = (at, agent.source)
        self.by_source[agent.source] = self.by_source.get(agent.source, 0) + 1

    def forget_before(self, at: float) -> None:
        while self.suspected and self.suspected[oldest := next(iter(self.suspected))][0] < at:
            self._drop(oldest)

    def _drop(self, agent_id: str) -> None:
        known = self.suspected.pop(agent_id, None)
        if known is not None:
            self.by_source[known[1]] -= 1
            if not self.by_source[known[1]]:
                del self.by_source[known[1]]


Witnesses = dict[str, dict[str, None]]
"""By source: some agents of a host."""


class LateHosts:
    """Which hosts are late."""

    def __init__(
        self,
        policy: FleetPolicy,
        late: dict[str, LateAgents],
        witnesses: dict[str, Witnesses],
        agents: Mapping[str, Agent],
    ) -> None:
        self._policy = policy
        self._late = late
        self._witnesses = witnesses
        self._agents = agents
        self.suspected_elsewhere: Mapping[str, Mapping[str, int]] = {}
        """By host and source: agents of other engines that were suspected just now."""
        self.heard_elsewhere: Mapping[str, float] = {}
        """By host: when another engine last heard an agent on it."""

    def suspected(self, agent: Agent, at: float) -> None:
        """Note a suspected agent."""
        if agent.host:
            self._late.setdefault(agent.host, LateAgents()).note(agent, at)
            self._late_on(agent.host, at)

    def is_late(self, agent: Agent, source_counts: SourceCounts, at: float) -> bool:
        """Whether so many agents of its host were late just now that the host is the cause."""
        if agent.host is None:
            return False
        late = self._late_on(agent.host, at)
        by_source = self._suspected_on(agent.host, late)
        own = (source_counts.of(agent.source)[0], by_source.get(agent.source, 0))
        others = sum(
            source_counts.is_unwell((members, count))
            for source, count in by_source.items()
            if source != agent.source and (members := source_counts.of(source)[0])
        )
        members, suspected = seen_from(own, len(source_counts) - (own[0] > 0), others)
        if suspected >= self._policy.brake_count and suspected >= self._policy.brake_share * members:
            return True
        here, late_here = self._beside(agent, source_counts, late, at)
        return (
            agent.id in late.suspected
            and late_here > 0
            and late_here + 1 >= self._policy.brake_share * (here + 1)
        )

    def is_silent(self, agent: Agent, since: float) -> bool:
        """Whether no other agent on its host was heard since then. To claim that one was heard needs no second
        source."""
        if self.heard_elsewhere.get(agent.host or "", since - 1.0) >= since:
            return False
        return all(other.heard_at < since for mine in self._asked(agent).values() for other in mine)

    def call_witness(self, agent: Agent) -> None:
        """A living agent shows whether its host lives."""
        if not agent.alive:
            self.dismiss_witness(agent)
        elif agent.host:
            here = self._witnesses.setdefault(agent.host, {}).setdefault(agent.source, {})
            if len(here) < WITNESSES_MAX:
                here[agent.id] = None

    def dismiss_witness(self, agent: Agent) -> None:
        """Drop an agent that is gone, or on another host."""
        here = self._witnesses.get(agent.host or "", {})
        mine = here.get(agent.source, {})
        mine.pop(agent.id, None)
        if not mine:
            here.pop(agent.source, None)
        if agent.host and not here:
            self._witnesses.pop(agent.host, None)

    def _beside(self, agent: Agent, source_counts: SourceCounts, late: LateAgents, at: float) -> Count:
        """Other agents on its host whose beats are expected, and how many of them are late."""
        own, others, others_late = (0, 0), 0, 0
        for source, asked in self._asked(agent).items():
            count = sum(
                other.id in late.suspected or at - other.heard_at > OVERDUE * other.interval
                for other in asked
            )
            if source == agent.source:
                own = (len(asked), count)
            elif asked:
                others += 1
                others_late += source_counts.is_unwell((len(asked), count))
        return seen_from(own, others, others_late)

    def _asked(self, agent: Agent) -> dict[str, list[Agent]]:
        """By source: other agents on its host whose beats are expected."""
        here = self._witnesses.get(agent.host or "", {})
        sources = [agent.source, *(one for one in here if one != agent.source)][:WITNESSES_MAX]
        return {
            source: [
                other
                for other in map(self._agents.__getitem__, here.get(source, ()))
                if other is not agent and other.doing is not Doing.BUSY
            ]
            for source in sources
        }

    def _suspected_on(self, host: str, late: LateAgents) -> Mapping[str, int]:
        """How many of each source, here and elsewhere."""
        elsewhere = self.suspected_elsewhere.get(host)
        if elsewhere is None:
            return late.by_source
        here = late.by_source
        return {source: here.get(source, 0) + elsewhere.get(source, 0) for source in {**here, **elsewhere}}

    def suspected_now(self, now: float) -> dict[str, dict[str, int]]:
        """Of each host: how many of each source were suspected just now."""
        return {
            host: dict(late.by_source)
            for host in [*self._late]
            if (late := self._late_on(host, now)).suspected
        }

    def heard_ago(self, hosts: Iterable[str], now: float) -> dict[str, float]:
        """Of each of these hosts: how long ago a living agent of it was heard."""
        agents = self._agents
        return {
            host: now - max(agents[agent_id].heard_at for here in by_source.values() for agent_id in here)
            for host in hosts
            if (by_source := self._witnesses.get(host))
        }

    def _late_on(self, host: str, at: float) -> LateAgents:
        """The agents of a host that were late just now."""
        late = self._late.get(host) or LateAgents()
        late.forget_before(at - LATE_WITHIN)
        if not late.suspected:
            self._late.pop(host, None)
        return late
