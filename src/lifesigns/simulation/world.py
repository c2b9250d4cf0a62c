"""World: virtual time, seeded chance, and all agents.

One heap holds all future events, except routine beats: `bulk_beats` makes them slot by slot, and the loop merges both
in the order of time. The engine is woken at the times it asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from random import Random
from typing import Any, Final

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.core.awareness import TRUCE_MAX
from lifesigns.core.fleet import Fleet
from lifesigns.core.judgement import RANK
from lifesigns.core.policy import HOUR, MINUTE, FleetPolicy
from lifesigns.core.profiles import PolicyBook
from lifesigns.simulation.bulk_beats import BulkBeats
from lifesigns.simulation.bus import LATE, TWICE, Bus, odd
from lifesigns.simulation.counts import Counts
from lifesigns.simulation.faults import MILD, Faults
from lifesigns.simulation.invariants import TELLING, Invariants
from lifesigns.simulation.lives import biography
from lifesigns.simulation.lives.failing import AT_ANY_TIME, FAILURES
from lifesigns.simulation.lives.healthy import send_what_a_document_lists
from lifesigns.simulation.monitor import SHAKEN_FOR, Monitor
from lifesigns.simulation.operators import Operators
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.truth import AT_ONCE, REPORTED_BY, SHOWS_AS, SILENT, Failure, Illness, bound

DAY: Final = 86_400.0

TIMER_LATE: Final = 0.01
"""How late our timer may fire, in intervals. The next beat is usually closer, and processing it does what was due."""
TIMER_LATE_MAX: Final = 0.05
"""And in seconds: with intervals of minutes, a monitor that is late by a hundredth of one would doubt itself all day.
"""

TAIL: Final = 2 * MINUTE
"""After a failure has ended a finding may still come: it is late, not false. Silence may take its timeout."""

ERRORS_TAIL: Final = 2 * HOUR
"""A detector that counts failed calls still remembers those of a recovered agent; and a rate limit may park it for an
hour before its next call."""

OUTAGE_TAIL: Final = 45 * MINUTE
"""For so long after an outage of ours we blame it for a false finding."""

CUT_FOR_LONG: Final = 0.3
"""The share of cut-off agents and sleeping laptops that stay away longer than the hub waits for an answer."""

LAPTOPS: Final = 4
"""Every fourth agent is the only one on its host: no other agent shows whether the host is there."""

RESTARTED_FOR: Final = (10.0, 300.0)

WORLDS_VOICE: Final = frozenset({s.ProcessExited, s.ConnectionClosed, s.AgentRegistered, s.TaskAssigned})


@dataclass(frozen=True, slots=True)
class SimulationConfig:
    """What to simulate. The same values give the same run, event for event."""

    agents: int = 40
    days: float = 7.0
    seed: int = 0
    policies: PolicyBook | None = None
    fleet: FleetPolicy | None = None
    faults: Faults = MILD
    failure_every: float = 3 * DAY
    """The mean time between two failures of one agent."""
    ills: tuple[Illness, ...] = (*FAILURES, Illness.CUT)
    """The ways agents fail here. The others occur in `trials/` only."""
    first: Callable[[SimulatedAgent], Life] | None = None
    """The life of the first agent, instead of a biography."""
    trials: bool = False
    """Whether to run also the pairs that every detector must tell apart (`trials/`), in worlds of their own."""
    answered: bool = True
    """Whether people answer escalations and calls."""
    quiet_for: float = 4 * HOUR
    """Appended at the end: nothing new goes wrong, and everything must come to rest."""
    on_progress: Callable[[float], None] | None = field(default=None, compare=False)
    """Called now and then with the finished part of the run."""


def chance(seed: int, name: str) -> Random:
    """Each agent has its own chance: another agent does not change the lives of the others."""
    return Random(f"{seed}/{name}")


class World:
    """Everything that exists while a simulation runs."""

    def __init__(self, config: SimulationConfig) -> None:
        self.config = config
        self.policies = config.policies or PolicyBook()
        self.fleet = config.fleet or FleetPolicy()
        self.chance = chance(config.seed, "world")
        self._cuts = chance(config.seed, "cuts")
        self.now = 0.0
        self.truce_until = -inf
        self.outage_until = -inf
        self.cut_since = inf
        self._anew_from = -inf
        """When every silence last began anew, because a canary was lost."""
        self.heap: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._events = 0
        self.beats = 0
        self.bus = Bus(config.faults, chance(config.seed, "bus"), config.agents)
        self.failures: list[Failure] = []
        self.counts = Counts()
        self.invariants = Invariants(self)
        self.witnesses: list[Callable[[Sequence[e.Effect]], None]] = [self.invariants.see]
        """Observers of all effects of the engine."""
        self.operators = Operators(self, chance(config.seed, "people"))
        self.monitor = Monitor(self)
        self._parked: list[s.Signal] = []
        self.agents = list(self._populate())
        self._by_id = {agent.id: agent for agent in self.agents}
        self.bulk_beats = BulkBeats(min(agent.interval for agent in self.agents), len(self.agents))
        self._timer_late = min(TIMER_LATE * self.bulk_beats.interval, TIMER_LATE_MAX)
        self.end = config.days * DAY
        self.at(inf, lambda _: None)  # The heap is never empty.
        self._schedule()

    @property
    def monitor_now(self) -> float:
        """The monitor's clock, which never runs backwards."""
        return max(self.now + self.monitor.offset, self.monitor.never_before)

    def agent(self, agent_id: str) -> SimulatedAgent:
        return self._by_id[agent_id]

    # --- time ---------------------------------------------------------------------------------------

    def at(self, when: float, do: Callable[[Any], None], what: Any = None) -> None:
        """Schedule something; among equal times the first scheduled comes first."""
        self._events += 1
        heappush(self.heap, (when, self._events, do, what))

    @property
    def events(self) -> int:
        """The number of events so far, with beats."""
        return self._events + self.beats

    def run(self) -> None:
        """Run to the end, with the quiet time."""
        last = self.end + self.config.quiet_for
        interval, slot = self.bulk_beats.interval, 0
        told_at = 0.0
        while (start := slot * interval) < last:
            arrivals = self.bulk_beats.slot(start, self.bus)
            while arrivals and arrivals[-1][0] >= start + interval:
                self._odd_beat(*arrivals.pop(), slot)
            self._live_through(arrivals, slot)
            self._happen(start + interval)
            slot += 1
            if self.config.on_progress is not None and start - told_at >= last / 200:
                told_at = start
                self.config.on_progress(start / last)
        self.now = last
        self.invariants.converge()

    def _live_through(self, arrivals: list[tuple[float, int]], slot: int) -> None:
        """The beats of one slot, and everything else between them. This is the hot loop.

        It wakes the engine (in `_happen`) only if its wake-up is well before the next beat: processing a beat does
        everything that was due before it.
        """
        heap, monitor, bulk_beats = self.heap, self.monitor, self.bulk_beats
        beats, mute_from, heard_at = bulk_beats.beats, bulk_beats.mute_from, bulk_beats.heard_at
        hear, wake_at, offset = monitor.engine.hear, monitor.engine.wake_at, monitor.offset
        late = self._timer_late - offset
        deaf = self.bus.cut or not monitor.listening
        self.beats += len(arrivals)
        for arrival, index in arrivals:
            if heap[0][0] <= arrival or wake_at() < arrival - late:
                self._happen(arrival)
                hear, wake_at, offset = monitor.engine.hear, monitor.engine.wake_at, monitor.offset
                late = self._timer_late - offset
                deaf = self.bus.cut or not monitor.listening
            if arrival > mute_from[index]:
                continue
            beat = beats[index]
            beat.seq = slot
            if deaf:
                self._beat_unheard(beat, arrival, index)
                continue
            effects = hear(beat, arrival + offset)
            if effects:
                self.now = arrival
                monitor.take(effects)
            heard_at[index] = arrival

    def _beat_unheard(self, beat: s.BeatReceived, arrival: float, index: int) -> None:
        """A beat that the monitor cannot take now. A stalled monitor will read it later."""
        if not self.bus.cut and self.monitor.stalled:
            self.now = arrival
            self.monitor.hear(beat)
            self.bulk_beats.heard_at[index] = arrival

    def _happen(self, until: float) -> None:
        """Everything up to a moment: the heap, and what is due for the engine, in order."""
        heap, monitor, late = self.heap, self.monitor, self._timer_late
        while True:
            due_at = inf if monitor.stalled or monitor.down else monitor.engine.wake_at()
            wake = due_at - monitor.offset
            planned = heap[0][0]
            if wake < (planned if planned < until else until) - late:
                self.now = max(self.now, wake)
                effects = monitor.engine.advance(max(due_at, self.now + monitor.offset))
                if effects:
                    monitor.take(effects)
            elif planned <= until:
                self.now, _, do, what = heappop(heap)
                do(what)
            else:
                self.now = until
                return

    # --- to the monitor -----------------------------------------------------------------------------

    def carry(self, agent: SimulatedAgent, signal: s.Signal) -> None:
        """Send a signal. It is repeated until it arrives, and in order, unless the bus reorders."""
        if agent.cuts or self.bus.cut:
            agent.spool.append(signal)
            return
        way = self.bus.way()
        if way >= TWICE:
            self._carry_oddly(agent, signal, *odd(way))
            return
        when = self.now + way
        if when < agent.line_at:
            when = agent.line_at
        agent.line_at = when
        self._events += 1
        heappush(self.heap, (when, self._events, self._arrive, (agent, signal)))

    def _carry_oddly(self, agent: SimulatedAgent, signal: s.Signal, fate: float, way: float) -> None:
        when = max(self.now + way, agent.line_at)
        late = self.chance.uniform(0.1, 5.0)
        if fate == TWICE:
            agent.line_at = when
            self.at(when, self._arrive, (agent, signal))
        self.at(when + late, self._arrive, (agent, signal))

    def _arrive(self, what: tuple[SimulatedAgent, s.Signal]) -> None:
        agent, signal = what
        if self.monitor.down:
            agent.spool.append(signal)
            return
        kind, current = type(signal), getattr(signal, "incarnation", None) == agent.incarnation
        if kind in TELLING:
            self.invariants.heard(agent, signal)
        if agent.failure is not None and REPORTED_BY.get(agent.failure.illness) is kind:
            self._begins_to_count(agent, agent.failure)
        if current and agent.incarnation != agent.heard_life:
            self._new_life(agent)
        self.monitor.hear(signal)
        if current and kind not in WORLDS_VOICE:
            self.bulk_beats.heard_at[agent.index] = self.now
            self._silent_from_now(agent)

    def _begins_to_count(self, agent: SimulatedAgent, failure: Failure) -> None:
        """The report may have been lost and sent again; silence shows an end, too."""
        due_at = self.now + bound(failure.illness, agent.policy)
        if failure.illness is Illness.CRASH_SEEN:
            due_at = min(due_at, failure.since + bound(Illness.CRASH, agent.policy))
        failure.due_at = max(failure.due_at, due_at)

    def _new_life(self, agent: SimulatedAgent) -> None:
        agent.heard_life = agent.incarnation
        self.invariants.new_life(agent)

    def carry_beat(self, agent: SimulatedAgent, beat: s.BeatReceived) -> None:
        """Send a beat of its own; a lost one is lost."""
        if not (self.bus.cut or agent.cuts):
            self.at(self.now + self.bus.delay(), self._beat_arrives, (agent, beat))

    def _beat_arrives(self, what: tuple[SimulatedAgent, s.BeatReceived]) -> None:
        agent, beat = what
        if self.monitor.down or self.bus.cut:
            return
        current = beat.incarnation == agent.incarnation
        if current and beat.incarnation != agent.heard_life:
            self._new_life(agent)
        self.monitor.hear(beat)
        if current:
            self.bulk_beats.heard_at[agent.index] = self.now

    def _odd_beat(self, arrival: float, index: int, slot: int) -> None:
        """A beat that is lost, comes twice, or too late for its slot."""
        fate, when = odd(arrival)
        agent = self.agents[index]
        if fate != TWICE:
            agent.unlucky_at = self.now
        if fate > LATE or self.bus.cut:
            return
        beat = s.BeatReceived(agent.id, slot, agent.incarnation, loop_lag_ms=2.0, load=0.4, host=agent.host)
        if fate == LATE:
            late = self.chance.uniform(0.5, 2.5) * self.bulk_beats.interval
            self.at(when + late, self._straggle, (agent, beat))
        else:
            self.at(when, self._beat_arrives, (agent, beat))
        if fate == TWICE:
            self.at(when + self.chance.uniform(0.0, 6.0), self._straggle, (agent, beat))

    def _straggle(self, what: tuple[SimulatedAgent, s.BeatReceived]) -> None:
        """A beat that comes too late to tell anything, except that an agent sent it."""
        agent, beat = what
        if not self.monitor.down and not self.bus.cut:
            self.monitor.hear(beat)
            if beat.incarnation == agent.incarnation:
                self._silent_from_now(agent)

    def _silent_from_now(self, agent: SimulatedAgent) -> None:
        """What was under way when an agent fell silent is the last that is heard of it."""
        for failure in (agent.failure, agent.unreachable):
            if failure is not None and failure.illness in SILENT:
                failure.due_at = max(failure.due_at, self.now + bound(failure.illness, agent.policy))

    def linger(self, agent: SimulatedAgent, life: str | None, how_long: float) -> None:
        """The last beats of an ended life are still on their way."""
        for number in range(int(how_long // agent.interval) + 1):
            seq = int((self.now + how_long) // agent.interval) + number
            beat = s.BeatReceived(agent.id, seq, life, loop_lag_ms=2.0, load=0.4, host=agent.host)
            self.at(self.now + number * agent.interval + self.bus.delay(), self._straggle, (agent, beat))

    def tell(self, signal: s.Signal, after: float = 0.0) -> None:
        """Deliver the outcome of an order, or a person's act, directly to the monitor."""
        self.at(self.now + after, self._deliver, signal)

    def tell_by_bus(self, agent: SimulatedAgent, signal: s.Signal, after: float) -> None:
        """Send what a process beside the agent saw."""
        self.at(self.now + after, lambda _: self.carry(agent, signal))

    def _deliver(self, signal: s.Signal) -> None:
        if self.monitor.down:
            self._parked.append(signal)
            return
        if isinstance(signal, s.AgentSignal) and type(signal) in TELLING:
            self.invariants.heard(self.agent(signal.agent_id), signal)
        self.monitor.hear(signal)

    # --- from the monitor ---------------------------------------------------------------------------

    def dispatch(self, order: e.Order) -> None:
        agent = self.agent(order.agent_id)
        self.counts.ordered(order)
        if isinstance(order, e.SendPing):
            self._asked_in_doubt(agent)
            self._asked_on_a_late_host(agent)
        if isinstance(order, e.SendNudge | e.Escalate | e.Terminate | e.Respawn):
            for failure in (agent.failure, agent.unreachable):
                if failure is not None and failure.acted_at is None:
                    failure.acted_at = self.now
        self.hand_over(order)

    def hand_over(self, order: e.Order) -> None:
        """Send an order to its receiver; again, if the monitor was away."""
        if isinstance(order, e.Escalate):
            self.operators.decide(order)
        else:
            self.at(self.now + self.bus.delay(), self.agent(order.agent_id).obey, order)

    def send_canary(self, order: e.SendCanary) -> None:
        if not self.bus.cut and not self.bus.loses():
            way = self.bus.delay() + self.bus.delay()
            self.at(self.now + way, self._canary_returns, order.seq)

    def _canary_returns(self, seq: int) -> None:
        if self.monitor.down or self.bus.cut:
            return
        aware = self.monitor.engine.beliefs.awareness
        carried_from = aware.carried_from
        self.monitor.hear(s.CanaryReturned(seq=seq))
        if aware.carried_from != carried_from:
            self._silence_begins_anew()

    def check_finding(self, fact: e.FindingOpened) -> None:
        """Check a finding against the truth."""
        if fact.finding.severity is e.Severity.NOTICE:
            return
        agent = self.agent(fact.agent_id)
        agent.accused_of.add(fact.finding.kind)
        for failure in (agent.failure, agent.unreachable):
            if failure is None or failure.found_at is not None:
                continue
            if fact.finding.kind in SHOWS_AS[failure.illness]:
                failure.found_at = self.now
        worst = agent.suspicious.get(fact.finding.kind)
        if worst is not None and RANK[fact.finding.severity] <= RANK[worst]:
            self.counts.reasoned_findings += agent.failure is None
            return
        wronged = agent.failure is None and not agent.cuts
        if wronged and not self._is_of_the_past(agent, fact.finding) and not self._died_down(agent):
            self.counts.false_findings.append((self.now, agent.id, fact.finding))
            unheard = self.bulk_beats.heard_at[agent.index] < agent.unlucky_at
            by_chance = unheard and fact.finding.kind is e.Kind.SILENCE
            if self.now < self.outage_until + OUTAGE_TAIL and not by_chance:
                self.invariants.violate("downtime", f"{agent.id}: {fact.finding.text}")

    def _is_of_the_past(self, agent: SimulatedAgent, finding: e.Finding) -> bool:
        """Whether it is about an illness, or a wait, that is over: late, not false."""
        since = finding.since - self.monitor.offset
        if finding.kind is e.Kind.LOOPING and since <= agent.remembered_until:
            return True  # The same calls are still among the last ones, and it says since when.
        if finding.kind is e.Kind.ERRORS:
            return self.now <= max(agent.ill_until, agent.suspicious_until) + ERRORS_TAIL
        return self.now <= agent.ill_until + max(TAIL, agent.policy.silence.timeout)

    def _died_down(self, agent: SimulatedAgent) -> bool:
        """Stopped on purpose, and the report of it is still on its way."""
        return not agent.running and bool(agent.spool)

    # --- deadlines ----------------------------------------------------------------------------------

    def failing(self, agent: SimulatedAgent, illness: Illness) -> Failure:
        """A failure begins now; an agent that already counts as silent has died in silence."""
        wait = bound(illness, agent.policy, shaken=self.now < self.monitor.shaken_until)
        due_at = self.now + wait + max(0.0, self.truce_until - self.now)
        failure = Failure(agent.id, illness, self.now, due_at)
        if agent.accused_of & SHOWS_AS[illness]:
            failure.found_at = self.now
        self.failures.append(failure)
        return failure

    def _asked_in_doubt(self, agent: SimulatedAgent) -> None:
        """A monitor that doubts itself waits longer for an answer."""
        if self.monitor.engine.beliefs.awareness.score:
            for failure in (agent.failure, agent.unreachable):
                if failure is not None and failure.found_at is None:
                    stretched = bound(failure.illness, agent.policy, shaken=True)
                    failure.due_at = max(failure.due_at, self._counts_from(agent, failure) + stretched)

    def _counts_from(self, agent: SimulatedAgent, failure: Failure) -> float:
        """When a failure began; one that shows as silence with the last thing heard, which may have been under way, or
        when every silence began anew."""
        belief = self.monitor.engine.agent(agent.id)
        if belief is None or failure.illness not in SILENT:
            return failure.since
        return max(failure.since, belief.heard_at - self.monitor.offset, self._anew_from)

    def _asked_on_a_late_host(self, agent: SimulatedAgent) -> None:
        """Where a whole host is late, the monitor waits longer for each of its agents."""
        beliefs = self.monitor.engine.beliefs
        fleet = Fleet(self.fleet, beliefs.fleet, beliefs.agents)
        belief = self.monitor.engine.agent(agent.id)
        if belief is None or not fleet.late_together(belief, self.now):
            return
        shaken = beliefs.awareness.score > 0
        for other in self.agents:
            for failure in (other.failure, other.unreachable):
                if other.host == agent.host and failure is not None and failure.found_at is None:
                    wait = bound(failure.illness, other.policy, shaken=shaken, late_host=True)
                    failure.due_at = max(failure.due_at, self._counts_from(other, failure) + wait)

    def _silence_begins_anew(self) -> None:
        """A canary was lost: signals of agents may have been lost with it."""
        shaken = self.now < self.monitor.shaken_until
        self._anew_from = self.now
        for failure in self.failures:
            if failure.found_at is not None or failure.ended_at is not None:
                continue
            policy = self.agent(failure.agent_id).policy
            if failure.illness in SILENT:
                wait = bound(failure.illness, policy, shaken=shaken)
                failure.due_at = max(failure.due_at, self.now + wait)
            elif failure.illness is Illness.NEVER_STARTED:  # Its first signal may have been lost then.
                again = min(policy.silence.grace, policy.silence.timeout) + AT_ONCE
                failure.due_at = max(failure.due_at, self.now + again)

    def deaf_since(self) -> float:
        """Since when the monitor hears nobody at all; `inf` if it does."""
        if not self.monitor.listening:
            return self.monitor.deaf_since
        return self.cut_since if self.bus.cut else inf

    def cannot_see(self, agent: SimulatedAgent) -> bool:
        """Whether the bus is cut, for all agents and so for one that is otherwise well."""
        late = self.fleet.canary_late_after + 2 * self.fleet.canary_every + 1.0
        return self.bus.cut and (agent.failure is None or self.now - self.cut_since > late)

    def excuse(self, gone_for: float, *, asleep: bool) -> None:
        """The monitor could not see for a while: it can find nothing in that time, nor in the truce after it.

        An unnoticed sleep needs a truce of the same length; where every silence starts again, a moment will do.
        """
        truce = min(max(self.fleet.truce_min, gone_for), TRUCE_MAX) if asleep else self.fleet.truce_min
        self.truce_until = max(self.truce_until, self.now + truce - 2.0)
        self.outage_until = self.now
        self.monitor.shaken_until = self.now + truce + SHAKEN_FOR
        for agent in self.agents:
            for failure in (agent.failure, agent.unreachable):
                if failure is not None and failure.found_at is None:
                    failure.due_at += gone_for + truce + SHAKEN_FOR

    def monitor_changed(self) -> None:
        """The monitor came back: send again what waited for it."""
        if not self.monitor.down:
            parked, self._parked = self._parked, []
            for signal in parked:
                self.tell(signal, 0.5)
            if not self.bus.cut:
                for agent in self.agents:
                    if agent.spool and not agent.cuts:
                        agent.flush()

    # --- setup and faults ---------------------------------------------------------------------------

    def _populate(self) -> Iterator[SimulatedAgent]:
        chances = chance(self.config.seed, "hosts")
        index = host = 0
        while index < self.config.agents:
            host += 1
            for _ in range(chances.randint(8, 12)):
                if index < self.config.agents:
                    where = f"laptop-{index}" if index % LAPTOPS == LAPTOPS - 1 else f"ws-{host}"
                    yield SimulatedAgent(self, index, where, chance(self.config.seed, f"agent {index}"))
                    index += 1

    def _schedule(self) -> None:
        for agent in self.agents:
            self.at(agent.chance.uniform(0, 60), self._begin, agent)
            self._plan_strike(agent)
        faults = self.config.faults
        plans: tuple[tuple[float, Callable[[], None]], ...] = (
            (faults.partition, self.partition),
            (faults.stall, self.stall),
            (faults.restart, self.restart),
            (faults.crash, self.monitor.doom),
            (faults.blind, self.blind),
            (faults.clock, self.jump_clock),
            (faults.host, self.lose_host),
            (faults.half, self.lose_half),
        )
        for a_day, fault in plans:
            self._plan_fault(a_day, fault)

    def _begin(self, agent: SimulatedAgent) -> None:
        if self.config.first is not None and agent.index == 0:
            agent.live(self.config.first(agent))
            return
        if agent.index % 13 == 6:
            agent.live(send_what_a_document_lists(agent))
            return
        agent.born()
        agent.register()
        agent.live(biography(agent, start_in=agent.chance.uniform(1, 20)))

    def _plan_strike(self, agent: SimulatedAgent) -> None:
        when = self.now + agent.chance.expovariate(1 / self.config.failure_every)
        if when < self.end:
            self.at(max(when, 10 * MINUTE), self._strike, agent)

    def _strike(self, agent: SimulatedAgent) -> None:
        """Make one agent fail, if it has not failed already."""
        self._plan_strike(agent)
        ills = [illness for illness in self.config.ills if agent.capped or illness is not Illness.SPENDING]
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
            self.at(self.now + how_long, lambda one: one.reconnect(), agent)

    def _plan_fault(self, a_day: float, fault: Callable[[], None]) -> None:
        if not a_day:
            return
        when = self.now + self.chance.expovariate(a_day / DAY)
        if when < self.end:
            self.at(max(when, 30 * MINUTE), self._fault, (a_day, fault))

    def _fault(self, what: tuple[float, Callable[[], None]]) -> None:
        self._plan_fault(*what)
        if self.monitor.listening and not self.bus.cut:
            what[1]()

    def partition(self) -> None:
        """Cut a host's link for a while."""
        host = self.chance.choice(self.agents).host
        self.cut([b for b in self.agents if b.host == host], self.chance.uniform(5, 600))

    def lose_host(self) -> None:
        """Let a host vanish, with half of its agents dead."""
        host = self.chance.choice(self.agents).host
        self._vanish([b for b in self.agents if b.host == host], self.chance.uniform(60, 600), 0.5)

    def lose_half(self) -> None:
        """Let half of the fleet vanish at once, some of it dead."""
        half = self.chance.sample(self.agents, len(self.agents) // 2)
        self._vanish(half, 300.0, 0.1)

    def _vanish(self, agents: list[SimulatedAgent], how_long: float, dead: float) -> None:
        for agent in agents:
            if agent.speaking and agent.failure is None and self.chance.random() < dead:
                agent.live(FAILURES[Illness.CRASH](agent))
        self.cut(agents, how_long)

    def stall(self, how_long: float = 60.0) -> None:
        """Let the monitor stall."""
        self.monitor.stall()
        self.at(self.now + how_long, self.monitor.wake, how_long)

    def restart(self) -> None:
        """End the monitor within the next second, and restore it from its snapshot."""
        self.monitor.save()
        self.at(self.now + self.chance.random(), self.go_down, RESTARTED_FOR)

    def go_down(self, how_long: tuple[float, float]) -> None:
        """End the monitor, and start it again after a while."""
        if not self.monitor.listening:
            return
        self.monitor.go_down()
        away = self.chance.uniform(*how_long)
        self.at(self.now + away, self.monitor.come_back, away)

    def blind(self, how_long: float = 600.0) -> None:
        """Cut the bus for all agents."""
        self.bus.cut, self.cut_since = True, self.now
        self.at(self.now + how_long, self._see_again, how_long)

    def _see_again(self, blind_for: float) -> None:
        self.bus.cut = False
        self.excuse(blind_for, asleep=False)
        self.monitor_changed()

    def jump_clock(self, by: float | None = None) -> None:
        """Let every wall clock jump, by an hour by default, and restart the monitor: before that it notices nothing."""
        by = by or self.chance.choice((-HOUR, HOUR))
        for agent in self.agents:
            agent.skew += by
            agent.keep_beating()
        self.monitor.jump(by)
        self.restart()
