"""Fleet: what holds for all agents together.

The mass brake: when many of a group (a host, a provider, the whole fleet) are unwell at once, the group has
one problem and not many. Interventions there freeze, one alert goes out, a person decides. And the speed
limits: so many nudges, terminations and respawns a minute, and never more than a share of the fleet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.effects import Brake, NeedsHuman, Rung
from lifesigns.core.health import UNWELL, Doing, Health
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import MINUTE, FleetPolicy

WHOLE: Final = "fleet"


@dataclass(slots=True)
class Group:
    """Agents that share a fate."""

    members: int = 0
    unwell: int = 0
    braked: bool = False
    lost: int = 0
    """Agents that were lost under its brake, whether they still count as members or not."""
    deserted: bool = False
    """Its brake went off because the lost stopped counting, not because anybody is well: they are left to a person."""
    released_until: float = -NEVER


@dataclass(slots=True)
class FleetState:
    """What the fleet remembers; part of the snapshot."""

    groups: dict[str, Group] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    acted: dict[Rung, list[float]] = field(default_factory=dict)
    agents: dict[str, float] = field(default_factory=dict)
    """Who was acted on in the last minute, and when last."""
    late: dict[str, dict[str, float]] = field(default_factory=dict)
    """By host: who was suspected lately and when, whether it was refuted since or not; the oldest first. Not stored: after a
    restart every silence starts anew."""
    witnesses: dict[str, dict[str, None]] = field(default_factory=dict)
    """By host: some of those who live there. Not stored: they are found again from the agents themselves."""


LATE_WITHIN: Final = 30.0
"""Agents of one host that are suspected within so many seconds are late together."""

OVERDUE: Final = 1.25
"""Who was not heard for so many of its own intervals is late, though not suspected yet: all of a starved host fall silent within
one interval, and the first of them is judged up to one before the last is suspected."""

WITNESSES_MAX: Final = 50
"""So many agents of a host are asked whether the host is late. More would tell nothing else, and cost more."""

RELEASED_FOR: Final = 60 * MINUTE
"""How long a person's word keeps the brake of a group off."""


class Fleet:
    """Counts by group, brakes, speed limits."""

    def __init__(
        self, policy: FleetPolicy, state: FleetState | None = None, agents: Mapping[str, Agent] | None = None
    ) -> None:
        self.policy = policy
        self.state = state or FleetState()
        self._agents = {} if agents is None else agents

    @property
    def size(self) -> int:
        """Agents that are neither terminated nor absent."""
        whole = self.state.groups.get(WHOLE)
        return whole.members if whole else 0

    # --- members ------------------------------------------------------------------------------------

    def may_join(self, source: str, agents: int) -> str | None:
        """Why a new agent from this source cannot be taken in, or None."""
        if agents >= self.policy.agents_max:
            return f"the limit of {self.policy.agents_max} agents is reached"
        if self.state.sources.get(source, 0) >= self.policy.agents_per_source:
            return f"the limit of {self.policy.agents_per_source} agents per source is reached"
        return None

    def join(self, agent: Agent) -> None:
        self.state.sources[agent.source] = self.state.sources.get(agent.source, 0) + 1
        self._count(agent, +1)
        self._call_witness(agent)

    def leave(self, agent: Agent, at: float, outbox: Outbox) -> None:
        """An agent is forgotten."""
        self.state.sources[agent.source] -= 1
        if not self.state.sources[agent.source]:
            del self.state.sources[agent.source]
        self._count(agent, -1)
        self._dismiss_witness(agent)
        self._forgive(agent)
        self._check_brakes(agent, at, outbox)

    def regroup(
        self, agent: Agent, host: str | None, provider: str | None, at: float, outbox: Outbox
    ) -> None:
        """An agent turned out to live elsewhere."""
        self._count(agent, -1)
        self._dismiss_witness(agent)
        self._check_brakes(agent, at, outbox)
        agent.host, agent.provider = host, provider
        self._count(agent, +1)
        self._call_witness(agent)
        self._check_brakes(agent, at, outbox)

    def flipped(self, agent: Agent, was: Health, at: float, outbox: Outbox) -> None:
        """An agent's health changed: count, and brake or release its groups."""
        if agent.health is not Health.DISCONNECTED:
            self._forgive(agent)
        if agent.absent:  # It is back, or known to have ended.
            agent.absent = False
            self._count(agent, +1)
        else:
            members = (agent.health is not Health.TERMINATED) - (was is not Health.TERMINATED)
            self._shift(agent, members, (agent.health in UNWELL) - (was in UNWELL))
        self._call_witness(agent)
        self._check_brakes(agent, at, outbox)

    def lose(self, agent: Agent, at: float, outbox: Outbox) -> None:
        """An agent was disconnected for so long that it is no part of the fleet any more."""
        braked = [(name, group) for name, group in self._groups(agent) if group.braked]
        for name, group in braked[:1]:
            _lose_under_brake(agent, name, group)
        self._count(agent, -1)
        agent.absent = True
        self._check_brakes(agent, at, outbox)
        for _, group in braked:
            group.deserted = not group.braked

    def _forgive(self, agent: Agent) -> None:
        """An agent that was lost under a brake is back, ended or forgotten. If it is back, so may be the others."""
        group = self.state.groups.get(agent.lost_with)
        if group is not None:
            group.lost -= 1
            group.deserted = group.deserted and not agent.alive
            if _is_empty(group):
                del self.state.groups[agent.lost_with]
        agent.lost_with = ""

    def _groups(self, agent: Agent) -> list[tuple[str, Group]]:
        groups = self.state.groups
        return [(name, groups[name]) for name in groups_of(agent) if name in groups]

    def silent_together(self, agent: Agent) -> bool:
        """Whether others in a group of this agent are unwell too: then the link is the likelier cause."""
        return any(
            (group := self.state.groups.get(name)) is not None
            and group.unwell >= self.policy.brake_count - 1
            and group.unwell >= self.policy.brake_share * (group.members - 1)
            for name in groups_of(agent)
        )

    # --- hosts that are late ------------------------------------------------------------------------

    def suspected(self, agent: Agent, at: float) -> None:
        """An agent is late."""
        if agent.host:
            late = self.state.late.setdefault(agent.host, {})
            late.pop(agent.id, None)
            late[agent.id] = at
            self._late_on(agent.host, at)

    def late_together(self, agent: Agent, at: float) -> bool:
        """Whether so many agents of its host were late just now that it is the host: starved, or cut off."""
        group = self.state.groups.get(f"host {agent.host}")
        if agent.host is None or group is None:
            return False
        suspected = self._late_on(agent.host, at)
        if suspected >= self.policy.brake_count and suspected >= self.policy.brake_share * group.members:
            return True
        known = self.state.late.get(agent.host, {})
        here = self._beside(agent)
        late = sum(other.id in known or at - other.heard_at > OVERDUE * other.interval for other in here)
        return agent.id in known and late > 0 and late + 1 >= self.policy.brake_share * (len(here) + 1)

    def host_is_silent(self, agent: Agent, since: float) -> bool:
        """Whether nobody else on its host was heard since then."""
        return all(other.heard_at < since for other in self._beside(agent))

    def _beside(self, agent: Agent) -> list[Agent]:
        """Others on its host whose beats are expected."""
        here = (self._agents[name] for name in self.state.witnesses.get(agent.host or "", ()))
        return [other for other in here if other is not agent and other.doing is not Doing.BUSY]

    def _call_witness(self, agent: Agent) -> None:
        """Who lives can tell whether its host does."""
        if not agent.alive:
            self._dismiss_witness(agent)
        elif agent.host:
            here = self.state.witnesses.setdefault(agent.host, {})
            if len(here) < WITNESSES_MAX:
                here[agent.id] = None

    def _dismiss_witness(self, agent: Agent) -> None:
        here = self.state.witnesses.get(agent.host or "", {})
        here.pop(agent.id, None)
        if agent.host and not here:
            self.state.witnesses.pop(agent.host, None)

    def _late_on(self, host: str, at: float) -> int:
        """How many agents of a host were late just now."""
        late = self.state.late.get(host, {})
        while late and late[oldest := next(iter(late))] < at - LATE_WITHIN:
            del late[oldest]
        if not late:
            self.state.late.pop(host, None)
        return len(late)

    # --- brake and limits ---------------------------------------------------------------------------

    def hold(self, agent: Agent, rung: Rung, now: float) -> tuple[str, float] | None:
        """Why this agent cannot be acted on now and when to ask again, or None."""
        for name, group in self._groups(agent):
            if group.braked and agent.health is Health.DISCONNECTED:
                _lose_under_brake(agent, name, group)
            left = group.deserted and agent.lost_with == name and now >= group.released_until
            if group.braked or left:
                return f"too many in {name} are unwell at once; a person decides", now + MINUTE
        if self.late_together(agent, now):
            return f"host {agent.host} is late as a whole", now + LATE_WITHIN / 3
        return self._limit(rung, now) or self._share(agent, rung, now)

    def acted(self, agent: Agent, rung: Rung, now: float) -> None:
        """Somebody was acted on automatically."""
        self.state.acted.setdefault(rung, []).append(now)
        self.state.agents[agent.id] = now

    def release(self, name: str, by: str, now: float, outbox: Outbox) -> None:
        """A person lets interventions in a group go on."""
        group = self.state.groups.get(name)
        if group is not None:
            group.released_until = now + RELEASED_FOR
            self._check_brake(name, now, outbox, by)

    def _limit(self, rung: Rung, now: float) -> tuple[str, float] | None:
        acted = self.state.acted
        for times in acted.values():
            while times and times[0] <= now - MINUTE:
                del times[0]
        caps = {
            Rung.NUDGE: self.policy.nudges_per_minute,
            Rung.TERMINATE: self.policy.terminations_per_minute,
            Rung.RESPAWN: self.policy.respawns_per_minute,
        }
        if rung not in caps:
            return None
        mine = acted.get(rung, [])
        if len(mine) >= caps[rung]:
            return f"{caps[rung]} a minute is the limit for {rung}", (mine[0] if mine else now) + MINUTE
        return None

    def _share(self, agent: Agent, rung: Rung, now: float) -> tuple[str, float] | None:
        """Whether too large a part of the fleet was acted on within a minute. An agent that was just ended and is started
        again counts once: otherwise a fleet of one would wait a minute for its respawn, and no other agent would gain."""
        if rung is Rung.ESCALATE:
            return None
        agents = self.state.agents
        for name in [name for name, at in agents.items() if at <= now - MINUTE]:
            del agents[name]
        others = [at for name, at in agents.items() if name != agent.id]
        # An agent that was just ended is no member for a moment. That does not make the fleet smaller.
        share = max(1, int(self.policy.acted_share * max(self.size, len(others) + 1)))
        if len(others) >= share:
            return f"{share} agents a minute is the limit for the fleet", min(others) + MINUTE
        return None

    def _check_brakes(self, agent: Agent, at: float, outbox: Outbox) -> None:
        for name in groups_of(agent):
            self._check_brake(name, at, outbox)

    def _check_brake(self, name: str, at: float, outbox: Outbox, by: str = "") -> None:
        group = self.state.groups.get(name)
        if group is None:
            return
        braked = (
            group.unwell >= self.policy.brake_count
            and group.unwell >= self.policy.brake_share * group.members
            and at >= group.released_until
        )
        if braked != group.braked:
            group.braked = braked
            outbox.fact(Brake(at, name, braked, group.unwell, group.members, by))
            if braked:
                text = (
                    f"{group.unwell} of {group.members} agents in {name} are unwell at once. "
                    "Nothing is done to them automatically until you decide."
                )
                outbox.fact(NeedsHuman(at, name, "mass brake", text))
        if _is_empty(group):
            del self.state.groups[name]

    # --- counting -----------------------------------------------------------------------------------

    def _count(self, agent: Agent, by: int) -> None:
        if agent.health is not Health.TERMINATED and not agent.absent:
            self._shift(agent, by, by * (agent.health in UNWELL))

    def _shift(self, agent: Agent, members: int, unwell: int) -> None:
        groups = self.state.groups
        for name in groups_of(agent):
            group = groups.get(name)
            if group is None:
                group = groups[name] = Group()
            group.members += members
            group.unwell += unwell
            if _is_empty(group):
                del groups[name]


def _is_empty(group: Group) -> bool:
    return not group.members and not group.braked and not group.lost


def _lose_under_brake(agent: Agent, name: str, group: Group) -> None:
    if not agent.lost_with:
        agent.lost_with = name
        group.lost += 1


WELL: Final = (Health.HEALTHY, Health.DEGRADED)
TAKES_NO_WORK: Final = (Doing.DRAINING, Doing.RATE_LIMITED, Doing.WAITING_FOR_HUMAN)


Place = tuple[bool, float, int]
"""Ailing, loaded, and without room: the less of each, the better."""


def groups_of(agent: Agent) -> tuple[str, ...]:
    """The groups whose fate an agent shares."""
    names = [WHOLE]
    if agent.host:
        names.append(f"host {agent.host}")
    if agent.provider:
        names.append(f"provider {agent.provider}")
    return tuple(names)


def least_loaded(agents: Iterable[Agent], count: int = 1) -> list[Agent]:
    """The agents best placed for more work: well, taking work, the least load and most room first; of equals who comes
    first.

    Of 100,000 agents nearly all are passed over by one comparison: they have no less load than the worst of the best.
    """
    best: list[tuple[Place, Agent]] = []
    load_max, taken_max = inf, 0
    for agent in agents:
        load = agent.load or 0.0
        if load >= load_max and (load > load_max or -(agent.capacity or 0) >= taken_max):
            continue
        if agent.capacity == 0 or agent.health not in WELL or agent.doing in TAKES_NO_WORK or agent.poisoned:
            continue
        place = (agent.health is not Health.HEALTHY, load, -(agent.capacity or 0))
        if len(best) < count or place < best[-1][0]:
            best.append((place, agent))
            best.sort(key=lambda ranked: ranked[0])
            del best[count:]
            if len(best) == count and not best[-1][0][0]:
                _, load_max, taken_max = best[-1][0]
    return [agent for _, agent in best]
