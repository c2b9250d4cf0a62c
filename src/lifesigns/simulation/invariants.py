"""Invariants: what must hold at every moment, whatever happens. Checked on every effect, against the truth.

Nothing here asks the engine what it believes or shares a table with it: an error in both places would look right.
`tests/simulation/test_invariants_bite.py` proves that each law can fail.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.core.health import Doing, FailureClass, Health
from lifesigns.core.policy import HOUR, MINUTE

if TYPE_CHECKING:
    from lifesigns.simulation.simulated_agent import SimulatedAgent
    from lifesigns.simulation.world import World

LAWS: Final = {
    "harm": "no healthy agent is ended or replaced without a person's word",
    "twice": "nothing is ordered twice: ids are unique, one termination and one successor per life",
    "lost": "what was ordered reaches whom it is for, whatever crashes in between, as long as it is waited for",
    "stale": "an order is for the life that was heard last, and a retired life stays retired",
    "heard": "nobody is convicted of silence who was heard a moment ago",
    "unasked": "nobody is convicted of silence without all their pings, and time to answer each",
    "truce": "nobody is convicted of silence while we slept, were away or blind, or right after it",
    "downtime": "our own absence accuses nobody of anything",
    "backwards": "the facts about an agent never run backwards, nor ahead of the clock",
    "illegal": "health changes only as its table says, from where it was",
    "evidence": "weak evidence ends nobody unless nudges and an escalation stayed unanswered",
    "ladder": "nobody is ended by silence or stillness before an escalation had its time",
    "brake": "in a group where too many are unwell nothing is done automatically",
    "speed": "no more than the fleet's limits are acted on in a minute",
    "orphaned": "who is ended has a successor, or a person was told that there is none",
    "approval": "every failure has a class, and a terminal one is mended only with a person's word",
    "nudged": "nobody is nudged who has been well for long, whatever it waits for",
    "left_alone": "who waits for a human or is rate-limited is not nudged",
    "open": "an agent has one step of the ladder open on record, and none when nothing is done about it",
    "taken": "no task is taken from a worker that lives: its claim ends by its word, its end, or a lease in silence",
    "moves": "a free task is offered to one healthy worker at a time, and no more are moved in a minute than allowed",
    "poison": "the engine never trips over an agent",
    "converged": "when the world is quiet again the sick are found, and the well are believed well",
}

ALIVE: Final = frozenset("healthy degraded stuck failing disconnected".split())
LEGAL: Final = {
    "starting": ALIVE | {"terminated"},
    **{state: ALIVE - {state} | {"starting", "terminated"} for state in ALIVE},
    "terminated": frozenset({"starting"}),
}
UNWELL: Final = frozenset("stuck failing disconnected".split())
GONE: Final = frozenset({e.Kind.SILENCE, e.Kind.NEVER_STARTED, e.Kind.EXIT})

ON_ITS_WAY: Final = 5.0
"""How long a sign of recovery may take to arrive: a loss or two, and the bus's tail."""

SUCCESSOR_WITHIN: Final = 5 * MINUTE
"""How long a successor may be waited for: the longest backoff, and a limit of the fleet."""

_OVER: Final = frozenset({e.Stage.ANSWERED, e.Stage.DONE, e.Stage.DROPPED})
ENDED: Final = {
    e.Rung.NUDGE: _OVER | {e.Stage.FAILED},
    e.Rung.ESCALATE: _OVER | {e.Stage.FAILED},
    e.Rung.TERMINATE: _OVER,  # A failed termination is tried again.
}
"""The steps of the ladder, and the stages that end each of them."""

WELL_FOR_LONG: Final = 2 * HOUR
"""After so long in health nothing recalls its last illness: not even failures among its last calls."""

MOMENT: Final = 0.001
VIOLATIONS_MAX: Final = 100
RELEASED_FOR: Final = 60 * MINUTE

TELLING: Final = frozenset(
    {
        s.AgentRegistered,
        s.DoingChanged,
        s.ConnectionClosed,
        s.RespawnFailed,
        s.RecoveryRequested,
        s.ClearRequested,
    }
)
"""Signals that change what the engine may do to an agent."""

WEAK_FAMILIES: Final = {
    e.Kind.NO_CHECKPOINT: "progress",
    e.Kind.TASK_STALLED: "progress",
    e.Kind.NO_TOOL_CALL: "activity",
    e.Kind.NO_TOKENS: "activity",
    e.Kind.NO_OUTPUT: "activity",
    e.Kind.REPEATED_OUTPUT: "activity",
    e.Kind.SPINNING: "overload",
    e.Kind.LONG_CALL: "activity",
    e.Kind.LOOPING: "calls",
    e.Kind.CONTEXT: "calls",
    e.Kind.ERRORS: "calls",
}


class Violation(Struct, frozen=True):
    """A law was broken."""

    law: str
    at: float
    text: str

    def __str__(self) -> str:
        days, rest = divmod(self.at, 86_400)
        hours, rest = divmod(rest, 3600)
        return f"[{self.law}] day {days:.0f} {hours:02.0f}:{rest // 60:02.0f}:{rest % 60:06.3f}: {self.text}"


@dataclass(slots=True)
class Record:
    """What we remember of one agent, to judge what the engine does to it."""

    health: str = "starting"
    fact_at: float = -inf
    gone_from: float = inf
    """Since when it counts as gone: silent, ended or never heard. A frozen agent is not gone."""
    life: str | None = ""
    """The youngest life the engine heard."""
    doing: Doing = Doing.UNKNOWN
    doing_until: float = inf
    known: bool = False
    closed_at: float = -inf
    """When its connection closed."""
    pings: int = 0
    pinged_from: float = -inf
    pinged_at: float = -inf
    lives: int = 0
    """Lives the engine heard, and lives it began: never more of the latter."""
    starts: int = 0
    nudges: int = 0
    escalated_at: float = inf
    terminated: str = ""
    """The order that ends the current life."""
    respawned: str = ""
    respawned_at: float = -inf
    respawn_open: bool = False
    requested: bool = False
    """A person wants it respawned."""
    terminal: bool = False
    """Its failure is terminal, and no person has decided anything about it."""
    step: str = ""
    """The step of the ladder that is open on record."""
    orphaned: str = ""
    """The order that really ended its last life, until the engine does something about a next one."""
    orphaned_at: float = 0.0


class Invariants:
    """Watches everything the engine says."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.violations: list[Violation] = []
        self._records: dict[str, Record] = defaultdict(Record)
        self._orders: dict[str, e.Order] = {}
        self._acted: dict[str, float] = {}
        self._under_way: dict[str, e.Order] = {}
        """Orders that have not reached their target."""
        self._released_until: dict[str, float] = {}
        self._braked: set[str] = set()
        self._wanted: set[str] = set()
        """Respawns by a person's wish."""

    def violate(self, law: str, text: str) -> None:
        assert law in LAWS
        if len(self.violations) < VIOLATIONS_MAX:
            self.violations.append(Violation(law, self._world.now, text))

    def health_of(self, agent_id: str) -> str:
        """As it was last told."""
        return self._records[agent_id].health

    # --- what goes in -------------------------------------------------------------------------------

    def heard(self, agent: SimulatedAgent, signal: s.Signal) -> None:
        """The engine hears one of the `TELLING` signals."""
        record = self._records[agent.id]
        match signal:
            case s.AgentRegistered():
                record.known = True
            case s.DoingChanged() if signal.incarnation == agent.incarnation:
                record.doing = signal.doing
                record.doing_until = inf if signal.until is None else signal.until
            case s.ConnectionClosed():
                record.closed_at = self._world.now
            case s.RespawnFailed():
                record.respawn_open = False
            case s.RecoveryRequested() | s.ClearRequested():
                record.respawn_open, record.terminated = False, ""
                record.requested = isinstance(signal, s.RecoveryRequested)
                record.terminal = False
            case _:
                pass

    def released(self, group: str) -> None:
        """A person released a group."""
        self._released_until[group] = self._world.monitor_now + RELEASED_FOR
        self._braked.discard(group)

    def new_life(self, agent: SimulatedAgent) -> None:
        """The engine heard a new life for the first time: orders for the old one no longer matter."""
        record = self._records[agent.id]
        record.life = agent.incarnation
        record.known = True
        record.lives += 1
        record.doing, record.doing_until = Doing.UNKNOWN, inf
        record.nudges, record.escalated_at = 0, inf
        record.terminated, record.respawned, record.respawn_open, record.orphaned = "", "", False, ""

    # --- what comes out -----------------------------------------------------------------------------

    def see(self, effects: Sequence[e.Effect]) -> None:
        for effect in effects:
            if isinstance(effect, e.Order):
                self._order(effect)
            elif isinstance(effect, e.Flip):
                self._dated(effect.agent_id, effect)
                self._flip(effect)
            elif isinstance(effect, e.FindingOpened | e.FindingClosed):
                self._dated(effect.agent_id, effect)
                self._gone(effect)
            elif isinstance(effect, e.FailureClassified):
                self._dated(effect.agent_id, effect)
                self._records[effect.agent_id].terminal = effect.now is FailureClass.TERMINAL
            elif isinstance(effect, e.Intervention):
                self._intervention(effect)
            elif isinstance(effect, e.NeedsHuman):
                self._records[effect.agent_id].orphaned = ""
            elif isinstance(effect, e.Poisoned):
                self.violate("poison", f"{effect.agent_id}: {effect.error}")

    def _intervention(self, fact: e.Intervention) -> None:
        """A withdrawn termination, on record, may be ordered anew for a new reason."""
        record = self._records[fact.agent_id]
        if fact.stage is e.Stage.DROPPED and fact.id == record.terminated:
            record.terminated = ""
        if fact.rung not in ENDED:
            return
        if fact.stage is e.Stage.ORDERED:
            if record.step not in ("", fact.id):
                self.violate(
                    "open", f"{fact.agent_id} has {record.step} open, and now {fact.id} ({fact.rung})"
                )
            record.step = fact.id
        elif fact.id == record.step and fact.stage in ENDED[fact.rung]:
            record.step = ""

    def _gone(self, fact: e.FindingOpened | e.FindingClosed) -> None:
        record = self._records[fact.agent_id]
        if isinstance(fact, e.FindingClosed):
            record.gone_from = inf if fact.kind in GONE else record.gone_from
        elif fact.finding.kind in GONE and fact.finding.severity is e.Severity.DISCONNECTED:
            # One that was disconnected before it fell silent, as frozen, is gone since it was last heard.
            gone_from = fact.finding.since if record.health == "disconnected" else fact.at
            record.gone_from = min(record.gone_from, gone_from)

    def _dated(self, agent_id: str, fact: e.Fact) -> None:
        record = self._records[agent_id]
        if fact.at < record.fact_at - MOMENT:
            self.violate("backwards", f"{fact} came after a fact of {record.fact_at:.3f}")
        if fact.at > self._world.monitor_now + MOMENT:
            self.violate("backwards", f"{fact} is of the future: it is {self._world.monitor_now:.3f}")
        record.fact_at = max(record.fact_at, fact.at)

    def _flip(self, flip: e.Flip) -> None:
        record = self._records[flip.agent_id]
        if flip.was != record.health or flip.now not in LEGAL[record.health]:
            self.violate(
                "illegal", f"{flip.agent_id} went from {flip.was} to {flip.now}, was {record.health}"
            )
        record.health = str(flip.now)
        if flip.now is not Health.TERMINATED:
            record.terminal = flip.failure_class is FailureClass.TERMINAL
            if (flip.failure_class is not None) != (record.health in UNWELL):
                self.violate("approval", f"{flip.agent_id} is {flip.now}, its failure {flip.failure_class}")
        if flip.now is Health.STARTING:
            record.starts += 1
            if record.starts > record.lives:
                self.violate("stale", f"{flip.agent_id} began a new life, and none was heard")
        if flip.now is Health.DISCONNECTED:
            self._disconnected(flip, record)
        elif flip.now is Health.HEALTHY:
            record.nudges, record.escalated_at = 0, inf
        self._count(flip)

    def _disconnected(self, flip: e.Flip, record: Record) -> None:
        worst = [f for f in flip.evidence if f.severity is e.Severity.DISCONNECTED]
        kinds = {f.kind for f in worst}
        if not kinds & {e.Kind.SILENCE, e.Kind.NEVER_STARTED} or e.Kind.EXIT in kinds:
            return
        world, agent = self._world, self._world.agent(flip.agent_id)
        if world.now < world.scorer.truce_until - MOMENT or world.cannot_see(agent):
            self.violate("truce", f"{agent.id} was convicted: {flip.reason}")
        if e.Kind.SILENCE not in kinds:
            return
        silence, heard_at = agent.policy.silence, world.bulk_beats.heard_at[agent.index]
        least = silence.pings * silence.ping_wait
        if record.closed_at < heard_at:
            least += 0.9 * silence.interval
        if world.now - heard_at < least - MOMENT:
            self.violate("heard", f"{agent.id} was heard {world.now - heard_at:.3f} s ago: {flip.reason}")
        if record.pinged_from < heard_at or record.pings < silence.pings:
            asked = record.pings if record.pinged_from >= heard_at else 0
            self.violate("unasked", f"{agent.id} was convicted after {asked} of {silence.pings} pings")
        elif world.now - record.pinged_at < silence.ping_wait - MOMENT:
            waited = world.now - record.pinged_at
            self.violate("unasked", f"{agent.id} had {waited:.3f} s to answer its last ping")

    def _count(self, flip: e.Flip) -> None:
        """Whether an agent's groups must be braked, now that its health has changed."""
        for group in self._groups(self._world.agent(flip.agent_id)):
            if self._too_many(group) and flip.at >= self._released_until.get(group, -inf):
                self._braked.add(group)
            else:
                self._braked.discard(group)

    def _groups(self, agent: SimulatedAgent) -> Sequence[str]:
        """An agent whose beats name no host has no known host."""
        return ("fleet",) if agent.plain is not None else (f"host {agent.host}", "fleet")

    def _too_many(self, group: str) -> bool:
        """Whether too many of a group are unwell at once. An agent that has been gone for long no longer counts."""
        limits, now = self._world.fleet, self._world.monitor_now
        mine = [self._records[b.id] for b in self._world.agents if group in self._groups(b)]
        members = [
            record
            for record in mine
            if record.known and record.health != "terminated" and now < record.gone_from + limits.lost_after
        ]
        unwell = sum(record.health in UNWELL for record in members)
        return unwell >= limits.brake_count and unwell >= limits.brake_share * len(members)

    # --- orders -------------------------------------------------------------------------------------

    def arrived(self, order: e.Order) -> None:
        """An order arrived, perhaps not for the first time."""
        self._under_way.pop(order.order_id, None)

    def withdrawn(self, order: e.Order) -> None:
        """The monitor came back and dropped this order."""
        self._under_way.pop(order.order_id, None)

    def _order(self, order: e.Order) -> None:
        record, agent = self._records[order.agent_id], self._world.agent(order.agent_id)
        first = self._orders.setdefault(order.order_id, order)
        if not isinstance(order, e.SendPing | e.SetInterval | e.AskSecondOpinion):
            self._under_way[order.order_id] = order
        if first is not order:
            again = isinstance(order, e.Terminate) and isinstance(first, e.Terminate)
            if not again or first.agent_id != order.agent_id:
                self.violate(
                    "twice", f"{order.order_id} is {type(first).__name__} and {type(order).__name__}"
                )
        # A release is told to whoever keeps the queue: it is about the life that held the task.
        if record.life and order.incarnation != record.life and not isinstance(order, e.ReleaseClaim):
            self.violate("stale", f"{type(order).__name__} for {order.incarnation}, but {record.life} lives")
        match order:
            case e.SendPing():
                self._ping(record, agent)
            case e.SendNudge():
                record.nudges += 1
                self._nudge(order, record)
            case e.Escalate():
                record.escalated_at = min(record.escalated_at, self._world.monitor_now)
            case e.Terminate():
                self._terminate(order, record, agent)
            case e.Respawn():
                self._respawn(order, record, agent)
            case _:
                pass

    def _ping(self, record: Record, agent: SimulatedAgent) -> None:
        if record.pinged_from < self._world.bulk_beats.heard_at[agent.index]:
            record.pings, record.pinged_from = 0, self._world.now
        record.pings += 1
        record.pinged_at = self._world.now

    def _nudge(self, order: e.SendNudge, record: Record) -> None:
        self._act(order)
        waits = record.doing is Doing.WAITING_FOR_HUMAN
        parked = record.doing is Doing.RATE_LIMITED and self._world.monitor_now < record.doing_until
        if waits or parked:
            self.violate("left_alone", f"{order.agent_id} was nudged, and is {record.doing}")
        agent, now = self._world.agent(order.agent_id), self._world.now
        well_from = max(agent.ill_until, agent.suspicious_until)
        if agent.well and now > well_from + WELL_FOR_LONG and not agent.gives_reason:
            self.violate("nudged", f"{agent.id} was nudged, and is well: {order.text}")

    def _terminate(self, order: e.Terminate, record: Record, agent: SimulatedAgent) -> None:
        if record.terminated and record.terminated != order.order_id:
            self.violate("twice", f"{agent.id} is ended by {record.terminated} and {order.order_id}")
        again = record.terminated == order.order_id
        record.terminated = order.order_id
        if order.by:
            record.terminal = False
            return
        if not again:
            self._act(order)
        self._evidence(order, record, agent)

    def _evidence(self, order: e.Terminate, record: Record, agent: SimulatedAgent) -> None:
        findings = [f for f in order.findings if f.severity is not e.Severity.NOTICE]
        conclusive = [f for f in findings if f.conclusive]
        families = {WEAK_FAMILIES.get(f.kind, str(f.kind)) for f in findings}
        ladder = agent.policy.ladder
        if not conclusive and (len(families) < 2 or record.nudges < ladder.nudge_max):
            kinds = ", ".join(sorted(f.kind for f in findings)) or "nothing"
            self.violate("evidence", f"{agent.id} is ended for {kinds} after {record.nudges} nudges")
        if any(f.kind is e.Kind.SPENDING for f in conclusive):
            return  # With a cap the user has decided.
        waited = self._world.monitor_now - record.escalated_at
        if waited < ladder.escalation_timeout - 1.0:
            self.violate("ladder", f"{agent.id} is ended {max(waited, 0):.0f} s after an escalation")

    def _respawn(self, order: e.Respawn, record: Record, agent: SimulatedAgent) -> None:
        waited = self._world.monitor_now - record.respawned_at
        if record.respawn_open and waited < agent.policy.respawn.start_timeout - MOMENT:
            self.violate("twice", f"{agent.id} gets two successors: {record.respawned}, {order.order_id}")
        record.respawned, record.respawned_at = order.order_id, self._world.monitor_now
        record.orphaned = ""
        record.respawn_open = True
        if record.terminal and not record.requested:
            self.violate("approval", f"{agent.id} is respawned after a terminal failure: {order.handoff}")
        if not record.requested:
            self._act(order)
        else:
            self._wanted.add(order.order_id)
        record.requested = False

    def _act(self, order: e.Order) -> None:
        """The engine acts by itself: is the group braked, is it too much at once?"""
        agent, limits, now = self._world.agent(order.agent_id), self._world.fleet, self._world.monitor_now
        for group in self._groups(agent):
            if group in self._braked and self._too_many(group):
                self.violate("brake", f"{type(order).__name__} for {agent.id} in {group}")
        self._acted[agent.id] = now
        self._acted = {name: at for name, at in self._acted.items() if at > now - MINUTE}
        most = max(1, int(limits.acted_share * len(self._world.agents)))
        if len(self._acted) > most:
            self.violate("speed", f"{len(self._acted)} agents were acted on in a minute, {most} are allowed")

    def reached(self, order: e.Order, agent: SimulatedAgent) -> None:
        """An order reached its agent's side: now it can harm."""
        if isinstance(order, e.Terminate):
            harmed = order.incarnation == agent.incarnation and not order.by
        elif isinstance(order, e.Respawn):
            harmed = True
        else:
            return
        # A successor that starts cut off is started again: of the two, the one heard first stays.
        replaced = isinstance(order, e.Respawn) and order.incarnation == agent.incarnation
        if replaced and self._is_alone(agent) and order.order_id not in self._wanted:
            self._world.counts.false_terminations += 1
            self.violate("harm", f"{agent.id} is replaced, and may be asleep or cut off with its host")
        if harmed and agent.goes_on:
            self.violate("harm", f"{type(order).__name__} reached {agent.id}, whose process goes on")
        # An agent that only beats sends nothing when its link is back, until its next beat.
        unheard_for = ON_ITS_WAY + (agent.interval if agent.plain is not None else 0.0)
        if harmed and agent.well_since is not None and agent.well_since < order.at - unheard_for:
            self._world.counts.false_terminations += 1
            self.violate("harm", f"{type(order).__name__} reached {agent.id}, which is well")

    def _is_alone(self, agent: SimulatedAgent) -> bool:
        """Whether it lives and is not sick, and the engine heard nothing of its host lately: it only knows the silence."""
        if not agent.running or agent.leaving or agent.failure is not None:
            return False
        heard_at, lately = self._world.bulk_beats.heard_at, self._world.now - 3 * agent.policy.silence.timeout
        beside = (b for b in self._world.agents if b is not agent and b.host == agent.host)
        return all(heard_at[b.index] < lately for b in beside)

    def ended_by(self, order: e.Terminate, agent: SimulatedAgent) -> None:
        """An agent's process really ended by an order. An agent that was only cut off or asleep then was not sick."""
        record = self._records[agent.id]
        record.orphaned, record.orphaned_at = order.order_id, self._world.now
        if not order.by and agent.failure is None and agent.sick_until < order.at:
            self._world.counts.false_terminations += 1
            self.violate("harm", f"{agent.id} was ended, and was never sick: {order.reason}")

    # --- the end ------------------------------------------------------------------------------------

    def converge(self) -> None:
        """The world has been quiet for a while: the engine must believe every agent's true state."""
        engine = self._world.monitor.engine
        for agent in self._world.agents:
            belief = engine.agent(agent.id)
            believed = str(belief.health) if belief else "forgotten"
            right = believed in ("healthy", "degraded") or agent.gives_reason or self._remembers(agent)
            if agent.well and agent.speaking and not agent.leaving and not right:
                self.violate("converged", f"{agent.id} is well and believed {believed}")
            orphaned = self._records[agent.id].orphaned
            waited = self._world.now - self._records[agent.id].orphaned_at
            if orphaned and not agent.running and waited > SUCCESSOR_WITHIN:
                self.violate("orphaned", f"{agent.id} was ended by {orphaned}, and nobody was told")
            step = self._records[agent.id].step
            if step and belief is not None and belief.case is None:
                self.violate("open", f"nothing is done about {agent.id} any more, and {step} is open")
            if agent.failure is not None and agent.failure.found_at is None:
                since = self._world.now - agent.failure.since
                if self._world.now > agent.failure.due_at:
                    text = f"{agent.id} has had {agent.failure.illness} for {since:.0f} s and is believed {believed}"
                    self.violate("converged", text)
        self._nothing_lost()
        if engine.beliefs.awareness.blind:
            self.violate("converged", "the monitor is blind, and everything can be seen")

    def _remembers(self, agent: SimulatedAgent) -> bool:
        """Whether the engine only remembers a loop that is over: its calls are still among the last ones."""
        belief = self._world.monitor.engine.agent(agent.id)
        looping = None if belief is None else belief.finding(e.Kind.LOOPING)
        return looping is not None and looping.since - self._world.monitor.offset <= agent.remembered_until

    def _nothing_lost(self) -> None:
        for order in self._under_way.values():
            if order.at < self._world.monitor_now - MINUTE:
                self.violate(
                    "lost", f"{type(order).__name__} {order.order_id} never reached {order.agent_id}"
                )
