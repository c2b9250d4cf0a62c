"""World: virtual time, seeded chance, and everybody in it.

One heap holds everything that will happen, except the beats of those who just live: `voices` makes them
slot by slot, and the loop merges both in the order of time. The engine is woken when it wants to be.
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
from lifesigns.simulation.being import Being, Life
from lifesigns.simulation.bus import LATE, TWICE, Bus, odd
from lifesigns.simulation.faults import MILD, Faults
from lifesigns.simulation.invariants import TELLING, Invariants
from lifesigns.simulation.lives import biography
from lifesigns.simulation.lives.failing import AT_ANY_TIME, FAILURES
from lifesigns.simulation.lives.healthy import send_what_a_document_lists
from lifesigns.simulation.monitor import SHAKEN_FOR, Monitor
from lifesigns.simulation.people import People
from lifesigns.simulation.tally import Tally
from lifesigns.simulation.truth import SHOWS_AS, SILENT, TOLD_BY, Failure, Ill, bound
from lifesigns.simulation.voices import Voices

DAY: Final = 86_400.0

TIMER_LATE: Final = 0.01
"""How late our timer may fire, in intervals. The next beat is usually closer, and hearing it does what was due."""
TIMER_LATE_MAX: Final = 0.05
"""And in seconds: at intervals of minutes, a monitor that looks a hundredth of one too late would doubt itself all day."""

TAIL: Final = 2 * MINUTE
"""After a failure has ended a finding may still come: it is late, not false. Silence may take its timeout."""

ERRORS_TAIL: Final = 2 * HOUR
"""What counts the failures of the last calls remembers those of an agent that has recovered; and it may be parked by a rate
limit for an hour before it makes the next one."""

OUTAGE_TAIL: Final = 45 * MINUTE
"""For so long after an outage of ours a false finding is held to be its work."""

CUT_FOR_LONG: Final = 0.3
"""How many who are cut off, or asleep with their laptop, are so for longer than anybody waits for an answer about them."""

LAPTOPS: Final = 4
"""Every so manyth agent is the only one on its host: nobody beside it tells whether that is there."""

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
    ills: tuple[Ill, ...] = (*FAILURES, Ill.CUT)
    """The ways agents fail here. The others are lived through in `trials/` only."""
    first: Callable[[Being], Life] | None = None
    """What the first agent lives through, instead of a biography."""
    trials: bool = False
    """Whether every detector is also shown the pairs it must tell apart (`trials/`), in worlds of their own."""
    answered: bool = True
    """Whether anybody answers an escalation, or comes when a person is called."""
    quiet_for: float = 4 * HOUR
    """Appended at the end: nothing new goes wrong, and everything must come to rest."""
    on_progress: Callable[[float], None] | None = field(default=None, compare=False)
    """Called now and then with the part of the run that is done."""


def chance(seed: int, name: str) -> Random:
    """Everybody has chance of their own: one agent more does not change the lives of the others."""
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
        self.heap: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._events = 0
        self.beats = 0
        self.bus = Bus(config.faults, chance(config.seed, "bus"), config.agents)
        self.failures: list[Failure] = []
        self.tally = Tally()
        self.invariants = Invariants(self)
        self.witnesses: list[Callable[[Sequence[e.Effect]], None]] = [self.invariants.see]
        """Whoever looks at everything the engine says."""
        self.people = People(self, chance(config.seed, "people"))
        self.monitor = Monitor(self)
        self._parked: list[s.Signal] = []
        self.beings = list(self._populate())
        self._by_id = {being.id: being for being in self.beings}
        self.voices = Voices(min(being.interval for being in self.beings), len(self.beings))
        self._timer_late = min(TIMER_LATE * self.voices.interval, TIMER_LATE_MAX)
        self.end = config.days * DAY
        self.at(inf, lambda _: None)  # The heap is never empty.
        self._schedule()

    @property
    def monitor_now(self) -> float:
        """The monitor's clock; set back, it stands still until it is as late as it was."""
        return max(self.now + self.monitor.offset, self.monitor.never_before)

    def being(self, agent_id: str) -> Being:
        return self._by_id[agent_id]

    # --- time ---------------------------------------------------------------------------------------

    def at(self, when: float, do: Callable[[Any], None], what: Any = None) -> None:
        """Let something happen at a moment; of equals the one that was planned first."""
        self._events += 1
        heappush(self.heap, (when, self._events, do, what))

    @property
    def events(self) -> int:
        """Everything that has happened so far, beats included."""
        return self._events + self.beats

    def run(self) -> None:
        """To the end, the quiet time included."""
        last = self.end + self.config.quiet_for
        interval, slot = self.voices.interval, 0
        told_at = 0.0
        while (start := slot * interval) < last:
            arrivals = self.voices.slot(start, self.bus)
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
        """The beats of one slot, and everything else that happens between them. The hot loop of it all.

        The engine is woken (in `_happen`) only if its wake-up lies well before the next beat: hearing a beat
        does everything that fell due before it.
        """
        heap, monitor, voices = self.heap, self.monitor, self.voices
        beats, mute_from, heard_at = voices.beats, voices.mute_from, voices.heard_at
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
        """A beat that cannot be heard now. A stalled monitor will read it later."""
        if not self.bus.cut and self.monitor.stalled:
            self.now = arrival
            self.monitor.hear(beat)
            self.voices.heard_at[index] = arrival

    def _happen(self, until: float) -> None:
        """Everything up to a moment: what is on the heap, and what falls due for the engine, in order."""
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

    # --- the way to the monitor ---------------------------------------------------------------------

    def carry(self, being: Being, signal: s.Signal) -> None:
        """A signal sets out. It is sent until it is there, and in order, unless the bus reorders."""
        if being.cuts or self.bus.cut:
            being.spool.append(signal)
            return
        way = self.bus.way()
        if way >= TWICE:
            self._carry_oddly(being, signal, *odd(way))
            return
        when = self.now + way
        if when < being.line_at:
            when = being.line_at
        being.line_at = when
        self._events += 1
        heappush(self.heap, (when, self._events, self._arrive, (being, signal)))

    def _carry_oddly(self, being: Being, signal: s.Signal, fate: float, way: float) -> None:
        when = max(self.now + way, being.line_at)
        late = self.chance.uniform(0.1, 5.0)
        if fate == TWICE:
            being.line_at = when
            self.at(when, self._arrive, (being, signal))
        self.at(when + late, self._arrive, (being, signal))

    def _arrive(self, what: tuple[Being, s.Signal]) -> None:
        being, signal = what
        if self.monitor.down:
            being.spool.append(signal)
            return
        kind, current = type(signal), getattr(signal, "incarnation", None) == being.incarnation
        if kind in TELLING:
            self.invariants.heard(being, signal)
        if being.failure is not None and TOLD_BY.get(being.failure.ill) is kind:
            self._begins_to_count(being, being.failure)
        if current and being.incarnation != being.heard_life:
            self._new_life(being)
        self.monitor.hear(signal)
        if current and kind not in WORLDS_VOICE:
            self.voices.heard_at[being.index] = self.now
            self._silent_from_now(being)

    def _begins_to_count(self, being: Being, failure: Failure) -> None:
        """The word may have been lost on its way and sent again; an end is told by silence too."""
        due_at = self.now + bound(failure.ill, being.policy)
        if failure.ill is Ill.CRASH_SEEN:
            due_at = min(due_at, failure.since + bound(Ill.CRASH, being.policy))
        failure.due_at = max(failure.due_at, due_at)

    def _new_life(self, being: Being) -> None:
        being.heard_life = being.incarnation
        self.invariants.new_life(being)

    def carry_beat(self, being: Being, beat: s.BeatReceived) -> None:
        """A beat of its own sets out; if it is lost, it is lost."""
        if not (self.bus.cut or being.cuts):
            self.at(self.now + self.bus.delay(), self._beat_arrives, (being, beat))

    def _beat_arrives(self, what: tuple[Being, s.BeatReceived]) -> None:
        being, beat = what
        if self.monitor.down or self.bus.cut:
            return
        current = beat.incarnation == being.incarnation
        if current and beat.incarnation != being.heard_life:
            self._new_life(being)
        self.monitor.hear(beat)
        if current:
            self.voices.heard_at[being.index] = self.now

    def _odd_beat(self, arrival: float, index: int, slot: int) -> None:
        """A beat that is lost, comes twice, or too late for its slot."""
        fate, when = odd(arrival)
        being = self.beings[index]
        if fate != TWICE:
            being.unlucky_at = self.now
        if fate > LATE or self.bus.cut:
            return
        beat = s.BeatReceived(being.id, slot, being.incarnation, loop_lag_ms=2.0, load=0.4, host=being.host)
        if fate == LATE:
            late = self.chance.uniform(0.5, 2.5) * self.voices.interval
            self.at(when + late, self._straggle, (being, beat))
        else:
            self.at(when, self._beat_arrives, (being, beat))
        if fate == TWICE:
            self.at(when + self.chance.uniform(0.0, 6.0), self._straggle, (being, beat))

    def _straggle(self, what: tuple[Being, s.BeatReceived]) -> None:
        """A beat that comes too late to say anything, but that there was somebody to send it."""
        being, beat = what
        if not self.monitor.down and not self.bus.cut:
            self.monitor.hear(beat)
            if beat.incarnation == being.incarnation:
                self._silent_from_now(being)

    def _silent_from_now(self, being: Being) -> None:
        """What was still under way when somebody fell silent is the last that is heard of them."""
        for failure in (being.failure, being.unreachable):
            if failure is not None and failure.ill in SILENT:
                failure.due_at = max(failure.due_at, self.now + bound(failure.ill, being.policy))

    def linger(self, being: Being, life: str | None, how_long: float) -> None:
        """The last beats of a life that is over are still on their way."""
        for number in range(int(how_long // being.interval) + 1):
            seq = int((self.now + how_long) // being.interval) + number
            beat = s.BeatReceived(being.id, seq, life, loop_lag_ms=2.0, load=0.4, host=being.host)
            self.at(self.now + number * being.interval + self.bus.delay(), self._straggle, (being, beat))

    def tell(self, signal: s.Signal, after: float = 0.0) -> None:
        """The outcome of an order, or a person's word: it is told at the monitor's own door."""
        self.at(self.now + after, self._told, signal)

    def tell_by_bus(self, being: Being, signal: s.Signal, after: float) -> None:
        """What somebody beside the agent saw."""
        self.at(self.now + after, lambda _: self.carry(being, signal))

    def _told(self, signal: s.Signal) -> None:
        if self.monitor.down:
            self._parked.append(signal)
            return
        if isinstance(signal, s.AgentSignal) and type(signal) in TELLING:
            self.invariants.heard(self.being(signal.agent_id), signal)
        self.monitor.hear(signal)

    # --- what the monitor wants ---------------------------------------------------------------------

    def dispatch(self, order: e.Order) -> None:
        being = self.being(order.agent_id)
        self.tally.ordered(order)
        if isinstance(order, e.SendPing):
            self._asked_in_doubt(being)
            self._asked_on_a_late_host(being)
        if isinstance(order, e.SendNudge | e.Escalate | e.Terminate | e.Respawn):
            for failure in (being.failure, being.unreachable):
                if failure is not None and failure.acted_at is None:
                    failure.acted_at = self.now
        self.hand_over(order)

    def hand_over(self, order: e.Order) -> None:
        """An order sets out to whom it is for; not for the first time, if the monitor was away."""
        if isinstance(order, e.Escalate):
            self.people.asked(order)
        else:
            self.at(self.now + self.bus.delay(), self.being(order.agent_id).obey, order)

    def send_canary(self, order: e.SendCanary) -> None:
        if not self.bus.cut and not self.bus.loses():
            way = self.bus.delay() + self.bus.delay()
            self.at(self.now + way, self._canary_returns, order.seq)

    def _canary_returns(self, seq: int) -> None:
        if not self.monitor.down and not self.bus.cut:
            self.monitor.hear(s.CanaryReturned(seq=seq))

    def found(self, fact: e.FindingOpened) -> None:
        """A detector says something: is it true?"""
        if fact.finding.severity is e.Severity.NOTICE:
            return
        being = self.being(fact.agent_id)
        being.accused_of.add(fact.finding.kind)
        for failure in (being.failure, being.unreachable):
            if failure is None or failure.found_at is not None:
                continue
            if fact.finding.kind in SHOWS_AS[failure.ill]:
                failure.found_at = self.now
        worst = being.suspicious.get(fact.finding.kind)
        if worst is not None and RANK[fact.finding.severity] <= RANK[worst]:
            self.tally.reasoned_findings += being.failure is None
            return
        wronged = being.failure is None and not being.cuts
        if wronged and not self._is_of_the_past(being, fact.finding) and not self._died_down(being):
            self.tally.false_findings.append((self.now, being.id, fact.finding))
            unheard = self.voices.heard_at[being.index] < being.unlucky_at
            by_chance = unheard and fact.finding.kind is e.Kind.SILENCE
            if self.now < self.outage_until + OUTAGE_TAIL and not by_chance:
                self.invariants.violate("downtime", f"{being.id}: {fact.finding.text}")

    def _is_of_the_past(self, being: Being, finding: e.Finding) -> bool:
        """Whether it tells of an illness, or of a wait, that is over: late, not false."""
        since = finding.since - self.monitor.offset
        if finding.kind is e.Kind.LOOPING and since <= being.remembered_until:
            return True  # The same calls are still among the last ones, and it says since when.
        if finding.kind is e.Kind.ERRORS:
            return self.now <= max(being.ill_until, being.suspicious_until) + ERRORS_TAIL
        return self.now <= being.ill_until + max(TAIL, being.policy.silence.timeout)

    def _died_down(self, being: Being) -> bool:
        """Stopped on purpose, and the word of it is still on its way."""
        return not being.running and bool(being.spool)

    # --- what is due when ---------------------------------------------------------------------------

    def failing(self, being: Being, ill: Ill) -> Failure:
        """A failure begins now; somebody who is held to be silent already has died in silence."""
        wait = bound(ill, being.policy, shaken=self.now < self.monitor.shaken_until)
        due_at = self.now + wait + max(0.0, self.truce_until - self.now)
        failure = Failure(being.id, ill, self.now, due_at)
        if being.accused_of & SHOWS_AS[ill]:
            failure.found_at = self.now
        self.failures.append(failure)
        return failure

    def _asked_in_doubt(self, being: Being) -> None:
        """A monitor that doubts itself waits longer for an answer."""
        if self.monitor.engine.beliefs.awareness.score:
            for failure in (being.failure, being.unreachable):
                if failure is not None and failure.found_at is None:
                    stretched = failure.since + bound(failure.ill, being.policy, shaken=True)
                    failure.due_at = max(failure.due_at, stretched)

    def _asked_on_a_late_host(self, being: Being) -> None:
        """Where a whole host is late, each of its agents is waited for longer."""
        fleet = Fleet(self.fleet, self.monitor.engine.beliefs.fleet)
        agent = self.monitor.engine.agent(being.id)
        if agent is None or not fleet.late_together(agent, self.now):
            return
        for other in self.beings:
            for failure in (other.failure, other.unreachable):
                if other.host == being.host and failure is not None and failure.found_at is None:
                    due_at = failure.since + bound(failure.ill, other.policy, late_host=True)
                    failure.due_at = max(failure.due_at, due_at)

    def cannot_see(self, being: Being) -> bool:
        """Whether the bus is cut for everybody, and so for somebody who is otherwise well."""
        late = self.fleet.canary_late_after + 2 * self.fleet.canary_every + 1.0
        return self.bus.cut and (being.failure is None or self.now - self.cut_since > late)

    def excuse(self, gone_for: float, *, asleep: bool) -> None:
        """The monitor could not see for a while: nobody can be found in that time, nor in the truce after.

        Who slept without noticing owes a truce as long as that; where every silence starts anew, a moment will do.
        """
        truce = min(max(self.fleet.truce_min, gone_for), TRUCE_MAX) if asleep else self.fleet.truce_min
        self.truce_until = max(self.truce_until, self.now + truce - 2.0)
        self.outage_until = self.now
        self.monitor.shaken_until = self.now + truce + SHAKEN_FOR
        for being in self.beings:
            for failure in (being.failure, being.unreachable):
                if failure is not None and failure.found_at is None:
                    failure.due_at += gone_for + truce + SHAKEN_FOR

    def monitor_changed(self) -> None:
        """The monitor came back: what waited for it is sent again."""
        if not self.monitor.down:
            parked, self._parked = self._parked, []
            for signal in parked:
                self.tell(signal, 0.5)
            if not self.bus.cut:
                for being in self.beings:
                    if being.spool and not being.cuts:
                        being.flush()

    # --- how it all begins, and what goes wrong -----------------------------------------------------

    def _populate(self) -> Iterator[Being]:
        chances = chance(self.config.seed, "hosts")
        index = host = 0
        while index < self.config.agents:
            host += 1
            for _ in range(chances.randint(8, 12)):
                if index < self.config.agents:
                    where = f"laptop-{index}" if index % LAPTOPS == LAPTOPS - 1 else f"ws-{host}"
                    yield Being(self, index, where, chance(self.config.seed, f"agent {index}"))
                    index += 1

    def _schedule(self) -> None:
        for being in self.beings:
            self.at(being.chance.uniform(0, 60), self._begin, being)
            self._plan_strike(being)
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

    def _begin(self, being: Being) -> None:
        if self.config.first is not None and being.index == 0:
            being.live(self.config.first(being))
            return
        if being.index % 13 == 6:
            being.live(send_what_a_document_lists(being))
            return
        being.born()
        being.register()
        being.live(biography(being, start_in=being.chance.uniform(1, 20)))

    def _plan_strike(self, being: Being) -> None:
        when = self.now + being.chance.expovariate(1 / self.config.failure_every)
        if when < self.end:
            self.at(max(when, 10 * MINUTE), self._strike, being)

    def _strike(self, being: Being) -> None:
        """Something goes wrong with one agent, if it is not wrong already."""
        self._plan_strike(being)
        ills = [ill for ill in self.config.ills if being.capped or ill is not Ill.SPENDING]
        if being.plain is not None:  # Its beats stop, or do not get through: more cannot be told by them.
            ills = [ill for ill in ills if ill in (Ill.CRASH, Ill.CUT)] or [Ill.CRASH]
        ill = being.chance.choice(ills)
        if being.failure is not None or not being.speaking or being.leaving or being.doom is not None:
            return
        if ill is Ill.CUT:
            how_long = being.chance.uniform(5, 180)
            if self._cuts.random() < CUT_FOR_LONG:
                how_long = self._cuts.uniform(15 * MINUTE, HOUR)
            self.cut([being], how_long)
        elif ill in AT_ANY_TIME:
            being.live(FAILURES[ill](being))
        else:
            being.doom = ill

    def cut(self, beings: list[Being], how_long: float) -> None:
        """Break links, and mend them after a while."""
        for being in beings:
            being.cut_off()
            self.at(self.now + how_long, lambda one: one.reconnect(), being)

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
        """A host's link is cut for a while."""
        host = self.chance.choice(self.beings).host
        self.cut([b for b in self.beings if b.host == host], self.chance.uniform(5, 600))

    def lose_host(self) -> None:
        """A host vanishes, and half of its agents are dead."""
        host = self.chance.choice(self.beings).host
        self._vanish([b for b in self.beings if b.host == host], self.chance.uniform(60, 600), 0.5)

    def lose_half(self) -> None:
        """Half of the fleet vanishes at once, and some of it is dead."""
        half = self.chance.sample(self.beings, len(self.beings) // 2)
        self._vanish(half, 300.0, 0.1)

    def _vanish(self, beings: list[Being], how_long: float, dead: float) -> None:
        for being in beings:
            if being.speaking and being.failure is None and self.chance.random() < dead:
                being.live(FAILURES[Ill.CRASH](being))
        self.cut(beings, how_long)

    def stall(self, how_long: float = 60.0) -> None:
        """The monitor stands still."""
        self.monitor.stall()
        self.at(self.now + how_long, self.monitor.wake, how_long)

    def restart(self) -> None:
        """The monitor ends within the next second, and comes back from its snapshot."""
        self.monitor.save()
        self.at(self.now + self.chance.random(), self.go_down, RESTARTED_FOR)

    def go_down(self, how_long: tuple[float, float]) -> None:
        """The monitor ends, and comes back after a while."""
        if not self.monitor.listening:
            return
        self.monitor.go_down()
        away = self.chance.uniform(*how_long)
        self.at(self.now + away, self.monitor.come_back, away)

    def blind(self, how_long: float = 600.0) -> None:
        """The bus is cut for everybody."""
        self.bus.cut, self.cut_since = True, self.now
        self.at(self.now + how_long, self._see_again, how_long)

    def _see_again(self, blind_for: float) -> None:
        self.bus.cut = False
        self.excuse(blind_for, asleep=False)
        self.monitor_changed()

    def jump_clock(self, by: float | None = None) -> None:
        """Every wall clock jumps, by an hour if nothing else is said."""
        by = by or self.chance.choice((-HOUR, HOUR))
        for being in self.beings:
            being.skew += by
            being.keep_beating()
        self.monitor.jump(by)
