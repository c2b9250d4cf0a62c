"""Each law of the simulation bites: for every one there is a broken engine that it catches.

    law -> what is broken -> the world in which that shows

An invariant that no broken engine can violate checks nothing. The list at the end names them all.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from lifesigns.core import judgement, rebalancing, second_opinion
from lifesigns.core import ladder as ladder_module
from lifesigns.core.agent import Agent
from lifesigns.core.awareness import Awareness
from lifesigns.core.claims import Claims
from lifesigns.core.detectors import looping, waits
from lifesigns.core.effects import Finding, Flip, Kind, Rung, Severity
from lifesigns.core.fleet import Fleet
from lifesigns.core.handlers.admission import Admission
from lifesigns.core.health import Cause, Health, Phase
from lifesigns.core.judgement import Judge
from lifesigns.core.ladder import Ladder
from lifesigns.core.outbox import Outbox
from lifesigns.core.pace import Pace
from lifesigns.core.policy import FleetPolicy, LadderPolicy, Policy, RespawnPolicy
from lifesigns.core.rebalancing import Rebalancing
from lifesigns.core.respawn import Lineage, Respawns
from lifesigns.core.watching import Watching
from lifesigns.simulation import Faults, Report, SimulationConfig, simulate
from lifesigns.simulation.invariants import LAWS, Invariants
from lifesigns.simulation.monitor import Monitor
from lifesigns.simulation.truth import Illness
from tests.simulation.sizes import size

Break = Callable[[pytest.MonkeyPatch], None]
HOUR = 3600.0
MOVED = (Illness.CRASH, Illness.FREEZE, Illness.ERRORS)
"""Illnesses in which workers lose their jobs, or are asked for them."""


@dataclass(frozen=True)
class Mutation:
    """A deliberately broken engine, and a world in which the law must notice."""

    law: str
    name: str
    breaks: Break
    ills: tuple[Illness, ...]
    faults: str = "none"
    agents: int = 12
    days: float = 0.3
    failure_every: float = 2 * HOUR
    seeds: tuple[int, ...] = (1, 2, 3)
    zones: int = 1
    moves: int = 0
    """Tasks that may be moved in a minute. With any, half the agents claim jobs."""

    def run(self, seed: int) -> Report:
        return simulate(
            SimulationConfig(
                agents=self.agents,
                days=self.days,
                seed=seed,
                faults=Faults.parse(self.faults),
                ills=self.ills,
                failure_every=self.failure_every,
                quiet_for=HOUR,
                zones=self.zones,
                fleet=FleetPolicy(moves_per_minute=self.moves),
            )
        )


# --- the broken engines -------------------------------------------------------------------------------


def a_stop_waits_for_who_returns(patch: pytest.MonkeyPatch) -> None:
    """As it once was: silence is evidence like any other, and a sign of life does not refute it."""
    patch.setattr(ladder_module, "_is_silent", lambda agent: False)


def the_ladder_does_not_let_go(patch: pytest.MonkeyPatch) -> None:
    """A case is not dropped when the agent is well again, and needs no evidence."""
    review = Ladder.review

    def keep(self: Ladder, agent: Agent, policy: LadderPolicy, now: float) -> None:
        if agent.case is None:
            review(self, agent, policy, now)

    patch.setattr(Ladder, "review", keep)
    patch.setattr(Ladder, "_may_end", lambda self, agent, case, policy: True)


def an_agents_word_for_its_own_crash_is_enough(patch: pytest.MonkeyPatch) -> None:
    """Nobody waits whether its process caught the error and goes on."""
    begin = Respawns.begin

    def at_once(self: Respawns, *told: Any, hesitate: bool = False) -> None:
        begin(self, *told)

    patch.setattr(Respawns, "begin", at_once)


def a_successor_is_taken_for_the_agent_that_never_named_its_life(patch: pytest.MonkeyPatch) -> None:
    """As it once was (chaos seed 477): what is told late of the end of the old life ends the new one."""
    patch.setattr(Admission, "_is_started", lambda self, agent, life: False)


def weak_evidence_is_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(judgement, "may_terminate", lambda findings, *, nudged, escalated: True)


def ids_are_reused(patch: pytest.MonkeyPatch) -> None:
    """The counter of orders forgets every third."""

    def number(self: Outbox) -> str:
        self.numbered += 1
        return f"{self.epoch}-{self.numbered % 50}"

    patch.setattr(Outbox, "number", number)


def a_life_gets_two_successors(patch: pytest.MonkeyPatch) -> None:
    """Two hands do what one should."""
    start = Respawns._start

    def twice(self: Respawns, lineage: Lineage, agent: Agent, policy: RespawnPolicy, now: float) -> None:
        start(self, lineage, agent, policy, now)
        start(self, lineage, agent, policy, now)

    patch.setattr(Respawns, "_start", twice)
    patch.setattr(Pace, "_limit", lambda self, agent, rung, now: None)


def a_killed_hub_forgets_its_orders(patch: pytest.MonkeyPatch) -> None:
    """What was kept and not carried out is not given again."""
    patch.setattr(Monitor, "_give_again", lambda self, now: None)


def retired_lives_are_believed(patch: pytest.MonkeyPatch) -> None:
    admit = Admission._admit

    def forget_retired(self: Admission, agent: Agent, signal: object, now: float) -> bool:
        agent.past = replace(agent.past, retired=())
        return admit(self, agent, signal, now)

    patch.setattr(Admission, "_admit", forget_retired)


def suspicion_is_conviction(patch: pytest.MonkeyPatch) -> None:
    """Nobody is asked."""

    def step(self: Watching, agent: Agent, policy: Policy, at: float, now: float) -> None:
        if agent.suspicion is None:
            self.suspect(agent, policy, "quiet", at, now)
        assert agent.suspicion is not None
        self._convict(agent, agent.suspicion, policy, at)

    patch.setattr(Watching, "_step_silence", step)


def answers_are_not_heard(patch: pytest.MonkeyPatch) -> None:
    """A suspicion, once begun, goes its way whatever the suspect says."""
    sign_of_life = Admission._sign_of_life

    def ignore(self: Admission, agent: Agent, now: float) -> None:
        if agent.suspicion is None:
            sign_of_life(self, agent, now)

    patch.setattr(Admission, "_sign_of_life", ignore)


def there_is_no_truce(patch: pytest.MonkeyPatch) -> None:
    """What we slept through counts against everybody."""
    slept = Awareness.slept

    def forget(self: Awareness, since: float, now: float, policy: FleetPolicy) -> None:
        slept(self, since, now, policy)
        self.lapses.clear()
        self.truce_until = -1e18

    patch.setattr(Awareness, "slept", forget)
    patch.setattr(Awareness, "resume", forget)


def lapses_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Awareness, "due", lambda self, start, wait: start + wait)


def facts_are_dated_ahead(patch: pytest.MonkeyPatch) -> None:
    note = Judge.note

    def ahead(self: Judge, agent: Agent, finding: Finding, at: float, cause: Cause | None = None) -> None:
        note(self, agent, finding, at + 60.0, cause)

    patch.setattr(Judge, "note", ahead)


def any_flip_goes(patch: pytest.MonkeyPatch) -> None:
    """The table of legal changes is not looked at, nor whether anything changes."""

    def flip(
        self: Judge, agent: Agent, to: Health, reason: str, at: float, cause: Cause | None = None
    ) -> None:
        was, agent.health, agent.since, agent.cause = agent.health, to, at, cause
        self._outbox.fact(Flip(at, agent.id, was, to, reason, cause, agent.findings))

    patch.setattr(Judge, "flip", flip)


def nobody_is_asked_before_the_end(patch: pytest.MonkeyPatch) -> None:
    """Conclusive evidence goes straight to the last rung."""
    patch.setattr(ladder_module, "_first_rung", lambda agent, policy: Rung.TERMINATE)


def the_brake_does_not_hold(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pace, "_share", lambda *_: None)
    patch.setattr(Fleet, "hold", lambda self, agent, rung, now: self._pace.hold(agent, rung, 0, 0, now))
    patch.setattr(Ladder, "_may_end", lambda self, agent, case, policy: True)


def there_are_no_limits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pace, "_limit", lambda self, agent, rung, now: None)
    patch.setattr(Pace, "_share", lambda *_: None)


def nobody_is_left_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ladder_module, "LEFT_ALONE", frozenset())


def a_life_that_was_ended_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """As it once was with an agent that obeyed: on record it had left by itself."""
    patch.setattr(Respawns, "begin", lambda *told, **more: None)


def who_waits_is_held_to_loop(patch: pytest.MonkeyPatch) -> None:
    """There is no polling and no waiting: the same question and the same answer are a loop."""
    patch.setattr(looping, "excused", lambda call_history, call, policy, now: False)
    patch.setattr(waits, "waits", lambda *told: False)


def what_is_left_stays_open(patch: pytest.MonkeyPatch) -> None:
    """The next step is taken, and the one before never ends on record."""
    patch.setattr(Ladder, "_drop_order", lambda *_: None)


def the_judge_trips(patch: pytest.MonkeyPatch) -> None:
    clear = Judge.clear

    def trip(self: Judge, agent: Agent, kind: Kind, at: float) -> None:
        if agent.findings and agent.findings[0].severity is Severity.DISCONNECTED:
            raise ZeroDivisionError
        clear(self, agent, kind, at)

    patch.setattr(Judge, "clear", trip)


def nothing_is_forgiven(patch: pytest.MonkeyPatch) -> None:
    """Who was silent once stays disconnected."""
    clear = Judge.clear

    def keep(self: Judge, agent: Agent, kind: Kind, at: float) -> None:
        if kind is not Kind.SILENCE:
            clear(self, agent, kind, at)

    patch.setattr(Judge, "clear", keep)


def nobody_waits_for_approval(patch: pytest.MonkeyPatch) -> None:
    """A lineage that was given up is tried again after a minute."""
    give_up, step = Respawns._give_up, Respawns.step

    def soon(self: Respawns, lineage: Lineage, now: float, why: str, phase: Phase = Phase.REVIEW) -> None:
        give_up(self, lineage, now, why, phase)
        self._wait(lineage, now, 60.0)

    def start(self: Respawns, lineage: Lineage, agent: Agent, policy: RespawnPolicy, now: float) -> None:
        (self._start if lineage.waits_for_a_person else partial(step, self))(lineage, agent, policy, now)

    patch.setattr(Respawns, "_give_up", soon)
    patch.setattr(Respawns, "step", start)


def nobody_else_is_asked(patch: pytest.MonkeyPatch) -> None:
    """No second opinion: what this hub does not hear is dead."""
    patch.setattr(second_opinion, "doubt", lambda suspicion, zones: second_opinion.NO_DOUBT)


def a_zone_that_cannot_be_asked_hears_nobody(patch: pytest.MonkeyPatch) -> None:
    doubt = second_opinion.doubt
    patch.setattr(
        second_opinion,
        "doubt",
        lambda suspicion, zones: second_opinion.Doubt(doubt(suspicion, zones).heard_in),
    )


def a_lease_is_not_renewed(patch: pytest.MonkeyPatch) -> None:
    """It runs from the claim on, whatever its holder says."""
    patch.setattr(Claims, "stale_at", lambda self, claim, agent, policy: claim.claimed_at + policy.lease)


def a_claim_is_granted_to_whoever_asks(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks whether the one who was offered a task is the only one that wants it: the last one has it."""
    closed = Rebalancing.closed

    def keep(self: Rebalancing, task_id: str) -> None:
        if task_id not in self._claims:
            closed(self, task_id)

    patch.setattr(Rebalancing, "closed", keep)
    patch.setattr(Rebalancing, "_goes_on", lambda self, offer: False)


def moves_have_no_limit(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Rebalancing, "_full_until", lambda self, now: now)


def anybody_is_offered_a_task(patch: pytest.MonkeyPatch) -> None:
    """The unwell as well, if they have room."""

    def any_taker(
        agents: Iterable[Agent], role: str | None, exclude: Collection[str], promised: Mapping[str, int]
    ) -> Agent | None:
        fit = (agent for agent in agents if agent.capacity and agent.id not in exclude)
        return max(fit, key=lambda agent: agent.health is not Health.HEALTHY, default=None)

    patch.setattr(rebalancing, "taker", any_taker)


MUTATIONS = [
    Mutation("harm", "the ladder does not let go", the_ladder_does_not_let_go, (Illness.CUT,)),
    Mutation("harm", "a stop waits for who returns", a_stop_waits_for_who_returns, (Illness.CUT,)),
    Mutation(
        "harm",
        "an agent's word for its own crash is enough",
        an_agents_word_for_its_own_crash_is_enough,
        (Illness.CRASH_SEEN,),
    ),
    Mutation(
        "harm",
        "a successor is taken for the agent that never named its life",
        a_successor_is_taken_for_the_agent_that_never_named_its_life,
        (Illness.CRASH,),
        agents=14,
        failure_every=HOUR,
        seeds=(2, 1, 3),
    ),
    Mutation(
        "harm",
        "nobody else is asked",
        nobody_else_is_asked,
        (Illness.CRASH,),
        faults="split=48,zone=12",
        zones=3,
    ),
    Mutation(
        "harm",
        "a zone that cannot be asked hears nobody",
        a_zone_that_cannot_be_asked_hears_nobody,
        (Illness.CRASH,),
        faults="split=48,zone=12",
        seeds=(3, 1, 2),
        zones=2,
    ),
    Mutation("twice", "order ids are reused", ids_are_reused, (Illness.CRASH, Illness.FREEZE)),
    Mutation("twice", "a life gets two successors", a_life_gets_two_successors, (Illness.CRASH_SEEN,)),
    Mutation(
        "lost",
        "a killed hub forgets its orders",
        a_killed_hub_forgets_its_orders,
        (Illness.LOOP, Illness.CRASH_SEEN),
        faults="crash=48",
        days=0.1,
    ),
    Mutation(
        "stale",
        "retired lives are believed",
        retired_lives_are_believed,
        (Illness.CRASH, Illness.CUT),
        days=1.0,
        seeds=(2, 1, 3),
    ),
    Mutation("heard", "answers are not heard", answers_are_not_heard, (Illness.CUT,), faults="loss=0.2"),
    Mutation("unasked", "suspicion is conviction", suspicion_is_conviction, (Illness.CRASH,)),
    Mutation("truce", "there is no truce", there_is_no_truce, (Illness.CRASH,), faults="stall=60"),
    Mutation(
        "downtime", "lapses are ignored", lapses_are_ignored, (Illness.CUT,), faults="clock=6", days=1.0
    ),
    Mutation("backwards", "facts are dated ahead", facts_are_dated_ahead, (Illness.CRASH, Illness.LOOP)),
    Mutation("illegal", "any flip goes", any_flip_goes, (Illness.CRASH,), seeds=(2, 1, 3)),
    Mutation(
        "evidence", "weak evidence is enough", weak_evidence_is_enough, (Illness.HUNG_CALL, Illness.ERRORS)
    ),
    Mutation("ladder", "nobody is asked before the end", nobody_is_asked_before_the_end, (Illness.CRASH,)),
    Mutation("brake", "the brake does not hold", the_brake_does_not_hold, (Illness.CRASH,), faults="half=12"),
    Mutation(
        "speed", "there are no limits", there_are_no_limits, (Illness.LOOP, Illness.HANG), failure_every=HOUR
    ),
    Mutation(
        "orphaned",
        "who was ended is forgotten",
        a_life_that_was_ended_is_forgotten,
        (Illness.LOOP, Illness.FREEZE),
        days=0.1,
    ),
    Mutation(
        "approval",
        "nobody waits for approval",
        nobody_waits_for_approval,
        (Illness.CRASH_SEEN,),
        failure_every=600.0,
    ),
    Mutation(
        "nudged", "who waits is held to loop", who_waits_is_held_to_loop, (Illness.CRASH_SEEN,), days=0.6
    ),
    Mutation("left_alone", "nobody is left alone", nobody_is_left_alone, (Illness.LOOP, Illness.ERRORS)),
    Mutation("open", "what is left stays open", what_is_left_stays_open, (Illness.LOOP, Illness.ERRORS)),
    Mutation("taken", "a lease is not renewed", a_lease_is_not_renewed, (Illness.CRASH,), moves=6),
    Mutation("moves", "what is held is offered", a_claim_is_granted_to_whoever_asks, MOVED, moves=6),
    Mutation("moves", "moves have no limit", moves_have_no_limit, MOVED, moves=1),
    Mutation("moves", "anybody is offered a task", anybody_is_offered_a_task, MOVED, moves=6),
    Mutation("poison", "the judge trips", the_judge_trips, (Illness.CUT,)),
    Mutation("converged", "nothing is forgiven", nothing_is_forgiven, (Illness.CUT,), days=0.1),
]


def end_when_caught(law: str, patch: pytest.MonkeyPatch) -> None:
    """What comes after is not needed."""
    violate = Invariants.violate

    def interrupt(self: Invariants, broken: str, text: str) -> None:
        violate(self, broken, text)
        if broken == law:
            raise KeyboardInterrupt  # `simulate` reports what it has seen.

    patch.setattr(Invariants, "violate", interrupt)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.law}: {m.name}")
def test_a_broken_engine_is_caught(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.breaks(monkeypatch)
    end_when_caught(mutation.law, monkeypatch)
    caught: set[str] = set()
    for seed in mutation.seeds:
        caught |= {violation.law for violation in mutation.run(seed).violations}
        if mutation.law in caught:
            return
    pytest.fail(f"{mutation.law} did not notice; caught were: {sorted(caught) or 'none'}")


WORLDS = {(m.ills, m.faults, m.agents, m.failure_every, m.zones, m.moves): m for m in MUTATIONS}
"""Each world once, whatever is broken in it."""


@pytest.mark.parametrize("mutation", WORLDS.values(), ids=lambda m: f"{m.law}: {m.name}")
def test_the_whole_engine_is_not_accused(mutation: Mutation) -> None:
    """The same worlds, and nothing broken: it is the mutation that is caught, not the world."""
    report = dataclasses.replace(mutation, days=size(0.06, 0.1)).run(1)
    assert report.violations == ()


def test_every_law_has_its_broken_engine() -> None:
    assert {mutation.law for mutation in MUTATIONS} == set(LAWS)
