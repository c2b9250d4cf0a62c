"""Fleet: what concerns all agents together.

The mass brake: when many agents of a group (a host, a provider, the whole fleet) are unwell at once, the group has one
problem and not many. Interventions there freeze, one alert goes out, a person decides. Each source (a token, the bus)
has its own view of a group (`source_counts.py`), so one source's made-up agents do not brake or release the agents of another.
`late_hosts.py` knows which hosts are late, and `pace.py` has the speed limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from math import inf
from typing import Final

from msgspec.structs import replace

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.effects import Brake, NeedsHuman, Rung
from lifesigns.core.fleet_summary import KNOWN_FOR, ActElsewhere, CountsBySource, FleetSummary
from lifesigns.core.health import UNWELL, Doing, Health
from lifesigns.core.late_hosts import LATE_WITHIN, LateAgents, LateHosts, Witnesses
from lifesigns.core.outbox import Outbox
from lifesigns.core.pace import Act, Pace
from lifesigns.core.policy import MINUTE, FleetPolicy
from lifesigns.core.source_counts import CORROBORATED, NONE, Count, SourceCounts

WHOLE: Final = "fleet"


@dataclass(slots=True)
class Group:
    """Agents that share a fate."""

    members: int = 0
    unwell: int = 0
    braked: bool = False
    """For the agents of one source at least."""
    braked_sources: int = 0
    released_until: float = -NEVER
    lost_by: dict[str, int] = field(default_factory=dict)
    """By source: agents that were lost under its brake, whether they still count as members or not."""
    deserted_by: dict[str, None] = field(default_factory=dict)
    """Sources whose brake was released because lost agents stopped counting, not because any agent is well: a person
    decides about their lost agents."""
    back: dict[str, None] = field(default_factory=dict)
    """Sources with a lost agent that is back, while others are deserted."""

    @property
    def lost(self) -> int:
        """The number of agents lost under its brake."""
        return sum(self.lost_by.values())


@dataclass(slots=True)
class FleetState:
    """What the fleet remembers; part of the snapshot."""

    groups: dict[str, Group] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    acts: list[Act] = field(default_factory=list)
    late: dict[str, LateAgents] = field(default_factory=dict)
    """By host. Not stored: after a restart every silence starts anew."""
    witnesses: dict[str, Witnesses] = field(default_factory=dict)
    """By host: some of its living agents. Not stored: derived from the agents."""


HOST: Final = "host "
"""The name of a host's group begins so."""

NOT_ALL_SEEN: Final = "several hubs judge, and how many agents are unwell elsewhere is not known right now"

RELEASED_FOR: Final = 60 * MINUTE
"""How long a person's decision keeps the brake of a group off."""


class Fleet:
    """Counts by group, brakes, speed limits."""

    def __init__(
        self, policy: FleetPolicy, state: FleetState | None = None, agents: Mapping[str, Agent] | None = None
    ) -> None:
        self.policy = policy
        self.state = state or FleetState()
        agents = {} if agents is None else agents
        self._source_counts: dict[str, SourceCounts] = {}
        """By group."""
        for agent, members, unwell in _counted_alike(agents.values()):
            self._speak_up(agent, members, unwell)
        self._hosts = LateHosts(policy, self.state.late, self.state.witnesses, agents)
        self._pace = Pace(policy, self.state.acts)
        self.sees_all = True
        """Whether all agents are here: else other engines know how the rest of each group is, and this one is careful."""
        self._elsewhere: Mapping[str, CountsBySource] = {}
        """Agents of other engines, by group and source."""
        self._in_trouble_elsewhere: Set[str] = frozenset()
        self._elsewhere_known_until = -NEVER

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
        self._hosts.call_witness(agent)

    def join_all(self, agents: Collection[Agent]) -> None:
        """As `join` for each; of a large fleet in a tenth of the time."""
        sources = Counter(agent.source for agent in agents)
        self.state.sources = dict(Counter(self.state.sources) + sources)
        for agent, members, unwell in _counted_alike(agents):
            self._shift(agent, members, unwell)
        for agent in agents:
            if agent.host:
                self._hosts.call_witness(agent)

    def leave(self, agent: Agent, at: float, outbox: Outbox) -> None:
        """Remove an agent that the engine forgets."""
        self.state.sources[agent.source] -= 1
        if not self.state.sources[agent.source]:
            del self.state.sources[agent.source]
        self._count(agent, -1)
        self._hosts.dismiss_witness(agent)
        self._forgive(agent)
        self._check_brakes(agent, at, outbox)

    def regroup(
        self, agent: Agent, host: str | None, provider: str | None, at: float, outbox: Outbox
    ) -> None:
        """Move an agent to another host or provider."""
        self._count(agent, -1)
        self._hosts.dismiss_witness(agent)
        self._check_brakes(agent, at, outbox)
        agent.host, agent.provider = host, provider
        self._count(agent, +1)
        self._hosts.call_witness(agent)
        self._check_brakes(agent, at, outbox)

    def flipped(self, agent: Agent, was: Health, at: float, outbox: Outbox) -> None:
        """An agent's health changed: count, and brake or release its groups."""
        if agent.health is not Health.DISCONNECTED:
            self._forgive(agent)
        if agent.past.absent:  # It is back, or has surely ended.
            agent.past = replace(agent.past, absent=False)
            self._count(agent, +1)
        else:
            members = (agent.health is not Health.TERMINATED) - (was is not Health.TERMINATED)
            self._shift(agent, members, (agent.health in UNWELL) - (was in UNWELL))
        self._hosts.call_witness(agent)
        self._check_brakes(agent, at, outbox)

    def heard_again(self, agent: Agent, at: float, outbox: Outbox) -> None:
        """A lost agent is heard, but disconnected all the same: it beats and is frozen, say. It counts again."""
        if agent.past.absent and agent.health is Health.DISCONNECTED:
            agent.past = replace(agent.past, absent=False)
            self._count(agent, +1)
            self._check_brakes(agent, at, outbox)

    def lose(self, agent: Agent, at: float, outbox: Outbox) -> None:
        """Remove an agent that has been disconnected for too long."""
        braked = [(name, group) for name, group in self._groups(agent) if self._is_braked(name, agent.source)]
        for name, group in braked[:1]:
            _lose_under_brake(agent, name, group)
        before = {name: self._braked_counts(name) for name, _ in braked}
        self._count(agent, -1)
        agent.past = replace(agent.past, absent=True)
        self._check_brakes(agent, at, outbox)
        for name, group in braked:
            self._desert(name, group, before[name], agent.source)

    def _desert(self, name: str, group: Group, before: set[Count], source: str) -> None:
        """Mark the sources whose brake was released because an agent of this source stopped counting."""
        group.deserted_by.pop(source, None)
        if not self._is_braked(name, source):
            group.deserted_by[source] = None
        if went_off := before - self._braked_counts(name):
            source_counts = self._sources_in(name)
            group.deserted_by |= dict.fromkeys(
                one for one in group.lost_by if source_counts.of(one) in went_off
            )

    def _forgive(self, agent: Agent) -> None:
        """An agent lost under a brake is back, ended or forgotten. If it is back, the others of its source may be; if
        agents of several sources are back, all may be."""
        if not agent.past.lost_with:
            return
        group, source = self.state.groups.get(agent.past.lost_with), agent.source
        if group is not None:
            group.lost_by[source] = group.lost_by.get(source, 0) - 1
            if agent.alive and group.deserted_by:
                group.deserted_by.pop(source, None)
                group.back[source] = None
                if len(group.back) >= CORROBORATED:
                    group.deserted_by.clear()
            if group.lost_by[source] <= 0:
                del group.lost_by[source]
                group.deserted_by.pop(source, None)
            if not group.deserted_by:
                group.back.clear()
            if _is_empty(group):
                del self.state.groups[agent.past.lost_with]
        agent.past = replace(agent.past, lost_with="")

    def _groups(self, agent: Agent) -> list[tuple[str, Group]]:
        groups = self.state.groups
        return [(name, groups[name]) for name in groups_of(agent) if name in groups]

    def silent_together(self, agent: Agent) -> bool:
        """Whether others in a group of this agent are unwell too: then the link is the likelier cause."""
        return any(
            unwell >= self.policy.brake_count - 1 and unwell >= self.policy.brake_share * (members - 1)
            for members, unwell in (self._seen_by(agent, name) for name in groups_of(agent))
        )

    def suspected(self, agent: Agent, at: float) -> None:
        """Note a suspected agent."""
        self._hosts.suspected(agent, at)

    def late_together(self, agent: Agent, at: float) -> bool:
        """Whether so many agents of its host were late just now that the host is the cause: starved, or cut off."""
        return self._hosts.is_late(agent, self._sources_in(f"{HOST}{agent.host}"), at)

    def may_be_late_together(self, agent: Agent) -> bool:
        """Whether its host could be late without our knowing: other agents on it are judged by other engines."""
        return not self.sees_all and bool(agent.host)

    def host_is_silent(self, agent: Agent, since: float) -> bool:
        """Whether no other agent on its host was heard since then."""
        return self._hosts.is_silent(agent, since)

    # --- brake and limits ---------------------------------------------------------------------------

    def hold(self, agent: Agent, rung: Rung, now: float) -> tuple[str, float] | None:
        """Why this agent cannot be acted on now and when to ask again, or None."""
        if (
            not self.sees_all
            and now >= self._elsewhere_known_until
            and rung in (Rung.TERMINATE, Rung.RESPAWN)
        ):
            return NOT_ALL_SEEN, now + KNOWN_FOR
        for name, group in self._groups(agent):
            braked = self._is_braked(name, agent.source)
            if braked and agent.health is Health.DISCONNECTED:
                _lose_under_brake(agent, name, group)
            deserted = agent.past.lost_with == name and agent.source in group.deserted_by
            if braked or (deserted and now >= group.released_until):
                return f"too many in {name} are unwell at once; a person decides", now + MINUTE
        if self.late_together(agent, now):
            return f"host {agent.host} is late as a whole", now + LATE_WITHIN / 3
        return self._pace.hold(agent, rung, *self.sources_beside(agent), now)

    def acted(self, agent: Agent, rung: Rung, now: float) -> None:
        """Note an automatic act."""
        self._pace.acted(agent, rung, now)

    def release(self, name: str, by: str, now: float, outbox: Outbox) -> None:
        """A person lets interventions in a group go on."""
        group = self.state.groups.get(name)
        if group is not None:
            group.released_until = now + RELEASED_FOR
            self._check_brake(name, now, outbox, by)

    def _check_brakes(self, agent: Agent, at: float, outbox: Outbox) -> None:
        for name in groups_of(agent):
            self._check_brake(name, at, outbox, source=agent.source)

    def _check_brake(self, name: str, at: float, outbox: Outbox, by: str = "", source: str = "") -> None:
        """Brake a group, or release it. People get an alert for every source newly braked, and when none is any
        more."""
        group, source_counts = self.state.groups.get(name), self._sources_in(name)
        if group is None:
            return
        braked = self._braked_counts(name) if at >= group.released_until else set()
        sources, before = sum(source_counts.counts.get(count, 0) for count in braked), group.braked_sources
        group.braked, group.braked_sources = sources > 0, sources
        if sources > before:
            own = source_counts.of(source)
            members, unwell = max(source_counts.seen_by(one) for one in ([own] if own in braked else braked))
            outbox.fact(Brake(at, name, True, unwell, members, by))
            text = (
                f"{unwell} of {members} agents in {name} are unwell at once. "
                "Nothing is done to them automatically until you decide."
            )
            outbox.fact(NeedsHuman(at, name, "mass brake", text))
        elif before and not sources:
            outbox.fact(Brake(at, name, False, group.unwell, group.members, by))
        if _is_empty(group):
            del self.state.groups[name]

    def _is_braked(self, name: str, source: str) -> bool:
        """Whether a group is braked for the agents of this source."""
        group, source_counts = self.state.groups.get(name), self._sources_in(name)
        return (
            group is not None
            and group.braked
            and self._is_too_many(source_counts.seen_by(source_counts.of(source)))
        )

    def _braked_counts(self, name: str) -> set[Count]:
        """The counts whose sources see a group as braked."""
        source_counts = self._sources_in(name)
        return {
            count
            for count in (*source_counts.counts, NONE)
            if self._is_too_many(source_counts.seen_by(count))
        }

    def _is_too_many(self, seen: Count) -> bool:
        members, unwell = seen
        return unwell >= self.policy.brake_count and unwell >= self.policy.brake_share * members

    # --- one of several -----------------------------------------------------------------------------

    def judges_a_part(self, share: float) -> None:
        """Other engines judge the rest of the fleet; of each speed limit this part is ours."""
        self.sees_all, self._pace.share = False, share

    def summary(self, now: float) -> FleetSummary:
        """This part of the fleet, for the other engines."""
        suspected = self._hosts.suspected_now(now)
        in_trouble = {*suspected}
        groups: dict[str, CountsBySource] = {}
        for name, counts in self._source_counts.items():
            elsewhere = self._elsewhere.get(name, {})
            own: CountsBySource = {}
            for source, (members, unwell) in counts.items():
                there = elsewhere.get(source, NONE)
                if members > there[0]:
                    own[source] = (members - there[0], unwell - there[1])
            if own:
                groups[name] = own
                if name.startswith(HOST) and any(unwell for _, unwell in own.values()):
                    in_trouble.add(name.removeprefix(HOST))
        told = in_trouble | self._in_trouble_elsewhere
        groups = {
            name: own
            for name, own in groups.items()
            if not name.startswith(HOST) or name.removeprefix(HOST) in told
        }
        acts = [
            ActElsewhere(now - act.at, act.rung, act.agent_id, act.source)
            for act in self.state.acts
            if act.at > now - MINUTE
        ]
        heard_ago = self._hosts.heard_ago(told, now)
        return FleetSummary(groups, sorted(in_trouble), suspected, heard_ago, acts, self._pace.wishes(now))

    def hear_of_others(self, others: FleetSummary, age: float, now: float, outbox: Outbox) -> None:
        """What the other engines know: their parts together, the oldest of which is so old."""
        before, self._elsewhere = self._elsewhere, others.groups
        self._in_trouble_elsewhere = {*others.in_trouble}
        for name in [*dict.fromkeys([*before, *others.groups])]:
            was, there = before.get(name, {}), others.groups.get(name, {})
            if was != there:
                self._count_elsewhere(name, was, there)
                self._check_brake(name, now, outbox)
        self._hosts.suspected_elsewhere = others.suspected
        # They say when they heard of it, and not when they said so.
        self._hosts.heard_elsewhere = {host: now - ago - KNOWN_FOR for host, ago in others.heard_ago.items()}
        self._pace.elsewhere = [Act(now - act.ago, act.rung, act.agent_id, act.source) for act in others.acts]
        self._pace.wishes_elsewhere = others.wishes
        self._elsewhere_known_until = now + KNOWN_FOR - age

    def _count_elsewhere(self, name: str, was: CountsBySource, there: CountsBySource) -> None:
        counts = self._source_counts.get(name)
        if counts is None:
            counts = self._source_counts[name] = SourceCounts(self.policy.brake_share)
        for source in [*dict.fromkeys([*was, *there])]:
            members, unwell = there.get(source, NONE)
            less = was.get(source, NONE)
            counts.shift(source, members - less[0], unwell - less[1])
        if not len(counts):
            del self._source_counts[name]

    def heard_elsewhere(self, host: str) -> float:
        """When another engine last heard an agent on this host, or later; long ago if none did."""
        return self._hosts.heard_elsewhere.get(host, -NEVER)

    # --- counting -----------------------------------------------------------------------------------

    def sources_beside(self, agent: Agent) -> tuple[int, int]:
        """The members of its own source, and how many other sources there are."""
        source_counts = self._sources_in(WHOLE)
        own = source_counts.of(agent.source)[0]
        return own, len(source_counts) - (own > 0)

    def _seen_by(self, agent: Agent, name: str) -> Count:
        source_counts = self._sources_in(name)
        return source_counts.seen_by(source_counts.of(agent.source))

    def _sources_in(self, name: str) -> SourceCounts:
        return self._source_counts.get(name) or SourceCounts(self.policy.brake_share)

    def _count(self, agent: Agent, by: int) -> None:
        if _is_member(agent):
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
        self._speak_up(agent, members, unwell)

    def _speak_up(self, agent: Agent, members: int, unwell: int) -> None:
        for name in groups_of(agent):
            source_counts = self._source_counts.get(name)
            if source_counts is None:
                source_counts = self._source_counts[name] = SourceCounts(self.policy.brake_share)
            source_counts.shift(agent.source, members, unwell)
            if not len(source_counts):
                del self._source_counts[name]


def _is_member(agent: Agent) -> bool:
    return agent.health is not Health.TERMINATED and not agent.past.absent


def _counted_alike(agents: Iterable[Agent]) -> Iterator[tuple[Agent, int, int]]:
    """For all members of the same groups and source: one of them, how many they are, and how many of them are unwell."""
    alike: dict[tuple[str, str | None, str | None], list[Agent]] = {}
    for agent in agents:
        if _is_member(agent):
            alike.setdefault((agent.source, agent.host, agent.provider), []).append(agent)
    for members in alike.values():
        yield members[0], len(members), sum(agent.health in UNWELL for agent in members)


def _is_empty(group: Group) -> bool:
    return not group.members and not group.braked and not group.lost


def _lose_under_brake(agent: Agent, name: str, group: Group) -> None:
    if not agent.past.lost_with:
        agent.past = replace(agent.past, lost_with=name)
        group.lost_by[agent.source] = group.lost_by.get(agent.source, 0) + 1


WELL: Final = (Health.HEALTHY, Health.DEGRADED)
UNKNOWN_LOAD: Final = 0.95
"""The rank of an agent that does not say its load: behind all that say they have room, before those that are full. As
the least loaded it would get all work just because it says nothing."""
TAKES_NO_WORK: Final = (Doing.DRAINING, Doing.RATE_LIMITED, Doing.WAITING_FOR_HUMAN)


Place = tuple[bool, float, int]
"""Degraded, load, negative room: the lower, the better."""


def groups_of(agent: Agent) -> tuple[str, ...]:
    """The groups of an agent."""
    names = [WHOLE]
    if agent.host:
        names.append(f"{HOST}{agent.host}")
    if agent.provider:
        names.append(f"provider {agent.provider}")
    return tuple(names)


def least_loaded(agents: Iterable[Agent], count: int = 1) -> list[Agent]:
    """The agents best placed for more work: well, taking work, the least load and most room first; of equals the first
    one.

    Of 100,000 agents one comparison skips nearly all: they have no less load than the worst of the best.
    """
    best: list[tuple[Place, Agent]] = []
    load_max, taken_max = inf, 0
    for agent in agents:
        load = UNKNOWN_LOAD if agent.load is None else agent.load
        if load >= load_max and (load > load_max or -(agent.capacity or 0) >= taken_max):
            continue
        if (
            agent.capacity == 0
            or agent.health not in WELL
            or agent.doing in TAKES_NO_WORK
            or agent.past.poisoned
        ):
            continue
        place = (agent.health is not Health.HEALTHY, load, -(agent.capacity or 0))
        if len(best) < count or place < best[-1][0]:
            best.append((place, agent))
            best.sort(key=lambda ranked: ranked[0])
            del best[count:]
            if len(best) == count and not best[-1][0][0]:
                _, load_max, taken_max = best[-1][0]
    return [agent for _, agent in best]
