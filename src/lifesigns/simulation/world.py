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
from lifesigns.core.policy import HOUR, FleetPolicy
from lifesigns.core.profiles import PolicyBook
from lifesigns.simulation.bulk_beats import BulkBeats
from lifesigns.simulation.bus import LATE, TWICE, Bus, odd
from lifesigns.simulation.claim_laws import ClaimLaws
from lifesigns.simulation.counts import Counts
from lifesigns.simulation.faults import MILD, Faults
from lifesigns.simulation.invariants import TELLING, Invariants
from lifesigns.simulation.lives import biography
from lifesigns.simulation.lives.failing import FAILURES
from lifesigns.simulation.lives.healthy import send_what_a_document_lists
from lifesigns.simulation.monitor import Monitor
from lifesigns.simulation.operators import Operators
from lifesigns.simulation.scorer import Scorer
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.simulated_claims import SimulatedClaims
from lifesigns.simulation.strikes import DAY, Strikes
from lifesigns.simulation.truth import REPORTED_BY, SILENT, Illness, bound
from lifesigns.simulation.zones import Zones

TIMER_LATE: Final = 0.01
"""How late our timer may fire, in intervals. The next beat is usually closer, and processing it does what was due."""
TIMER_LATE_MAX: Final = 0.05
"""And in seconds: with intervals of minutes, a monitor that is late by a hundredth of one would doubt itself all day.
"""

LAPTOPS: Final = 4
"""Every fourth agent is the only one on its host: no other agent shows whether the host is there."""

WORKERS: Final = 2
"""Every second agent claims jobs, where tasks are moved."""

FROM_THE_WORLD: Final = frozenset({s.ProcessExited, s.ConnectionClosed, s.AgentRegistered, s.TaskAssigned})


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
    zones: int = 1
    """How many there are; each but the monitor's own has a hub that is asked before a verdict of silence."""
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
        self.now = 0.0
        self.cut_since = inf
        self.heap: list[tuple[float, int, Callable[[Any], None], Any]] = []
        self._events = 0
        self.beats = 0
        self.bus = Bus(config.faults, chance(config.seed, "bus"), config.agents)
        self.scorer = Scorer(self)
        self.strikes = Strikes(self, chance(config.seed, "cuts"))
        self.counts = Counts()
        self.invariants = Invariants(self)
        self.claim_laws = ClaimLaws(self)
        self.witnesses: list[Callable[[Sequence[e.Effect]], None]] = [
            self.invariants.see,
            self.claim_laws.see,
        ]
        """Observers of all effects of the engine."""
        self.operators = Operators(self, chance(config.seed, "people"))
        self.zones = Zones(self, config.zones, chance(config.seed, "zones"))
        self.monitor = Monitor(self)
        self._parked: list[s.Signal] = []
        self.agents = list(self._populate())
        self._by_id = {agent.id: agent for agent in self.agents}
        self.bulk_beats = BulkBeats(min(agent.interval for agent in self.agents), len(self.agents))
        self._timer_late = min(TIMER_LATE * self.bulk_beats.interval, TIMER_LATE_MAX)
        self.end = config.days * DAY
        self.at(inf, lambda _: None)  # The heap is never empty.
        self.strikes.schedule()

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
            self.scorer.report_sent(agent, agent.failure)
        if current and agent.incarnation != agent.heard_life and kind is not s.ConnectionClosed:
            self._new_life(agent)
        self.monitor.hear(signal)
        if current and kind not in FROM_THE_WORLD:
            self.bulk_beats.heard_at[agent.index] = self.now
            self._silent_from_now(agent)

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
        beat = s.BeatReceived(
            *(agent.id, slot, agent.incarnation),
            loop_lag_ms=2.0,
            load=0.4,
            host=agent.host,
            capacity_available=agent.room,
        )
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
            self.scorer.pinged_in_doubt(agent)
            self.scorer.pinged_on_late_host(agent)
        if isinstance(order, e.SendNudge | e.Escalate | e.Terminate | e.Respawn):
            for failure in (agent.failure, agent.unreachable):
                if failure is not None and failure.acted_at is None:
                    failure.acted_at = self.now
        if isinstance(order, e.AskSecondOpinion):
            self.zones.ask(order)
        else:
            self.hand_over(order)

    def hand_over(self, order: e.Order) -> None:
        """Send an order to its receiver; again, if the monitor was away."""
        if isinstance(order, e.Escalate):
            self.operators.decide(order)
        else:
            self.at(self.now + self.bus.delay(), self.agent(order.agent_id).orders.obey, order)

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
            self.scorer.silences_begin_anew()

    # --- what the monitor can see ----------------------------------------------------------------------------------

    def deaf_since(self) -> float:
        """Since when the monitor hears nobody at all; `inf` if it does."""
        if not self.monitor.listening:
            return self.monitor.deaf_since
        return self.cut_since if self.bus.cut else inf

    def cannot_see(self, agent: SimulatedAgent) -> bool:
        """Whether the bus is cut, for all agents and so for one that is otherwise well."""
        late = self.fleet.canary_late_after + 2 * self.fleet.canary_every + 1.0
        well = agent.failure is None and agent.unreachable is None
        return self.bus.cut and (well or self.now - self.cut_since > late)

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

    # --- setup --------------------------------------------------------------------------------------

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

    def begin(self, agent: SimulatedAgent) -> None:
        if self.config.first is not None and agent.index == 0:
            agent.live(self.config.first(agent))
            return
        if agent.index % 13 == 6:
            agent.live(send_what_a_document_lists(agent))
            return
        if self.fleet.moves_per_minute and agent.index % WORKERS == 0:
            agent.claims = SimulatedClaims(agent, chance(self.config.seed, f"claims {agent.index}"))
        agent.start()
        agent.register()
        agent.live(biography(agent, start_in=agent.chance.uniform(1, 20)))
