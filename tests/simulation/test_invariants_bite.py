"""Each law of the simulation bites: for every one there is a broken engine that it catches.

    law -> what is broken -> the world in which that shows

An invariant that no broken engine can violate checks nothing. The list at the end names them all.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from lifesigns.core import judgement
from lifesigns.core import ladder as ladder_module
from lifesigns.core.agent import Agent
from lifesigns.core.awareness import Awareness
from lifesigns.core.effects import Finding, Flip, Rung, SendNudge, SendPing, Severity
from lifesigns.core.fleet import Fleet
from lifesigns.core.health import Health
from lifesigns.core.hearing.admission import Admission
from lifesigns.core.judgement import Judge
from lifesigns.core.ladder import Ladder
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.respawn import Lineage, Phase, Respawns
from lifesigns.core.watching import Watching
from lifesigns.simulation import Faults, Report, SimulationConfig, simulate
from lifesigns.simulation.invariants import LAWS
from lifesigns.simulation.truth import Ill

Break = Callable[[pytest.MonkeyPatch], None]
HOUR = 3600.0


@dataclass(frozen=True)
class Mutation:
    """A deliberately broken engine, and a world in which the law must notice."""

    law: str
    name: str
    breaks: Break
    ills: tuple[Ill, ...]
    faults: str = "none"
    agents: int = 12
    days: float = 0.3
    failure_every: float = 2 * HOUR
    seeds: tuple[int, ...] = (1, 2, 3)

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
            )
        )


# --- the broken engines -------------------------------------------------------------------------------


def any_degraded_agent_may_be_ended(patch: pytest.MonkeyPatch) -> None:
    """Silence is held to be conclusive at the first suspicion, and the ladder begins at its end."""
    patch.setattr(ladder_module, "_first_rung", lambda agent, policy: Rung.TERMINATE)
    patch.setattr(Ladder, "_may_end", lambda self, agent, case, policy: True)


def weak_evidence_is_enough(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(judgement, "may_terminate", lambda findings, *, nudged, escalated: True)


def ids_are_reused(patch: pytest.MonkeyPatch) -> None:
    """The counter of orders forgets every third."""

    def number(self: Outbox) -> str:
        self.numbered += 1
        return f"{self.epoch}-{self.numbered % 50}"

    patch.setattr(Outbox, "number", number)


def a_life_gets_two_successors(patch: pytest.MonkeyPatch) -> None:
    """The successor that is on its way is forgotten."""
    begin = Respawns.begin

    def twice(self: Respawns, lineage: Lineage, agent: Agent, why: str, policy: object, now: float) -> None:
        begin(self, lineage, agent, why, policy, now)  # type: ignore[arg-type]
        lineage.ended, lineage.phase = None, Phase.IDLE

    start = Respawns._start

    def restart(self: Respawns, lineage: Lineage, agent: Agent, policy: object, now: float) -> None:
        start(self, lineage, agent, policy, now)  # type: ignore[arg-type]
        start(self, lineage, agent, policy, now)  # type: ignore[arg-type]

    patch.setattr(Respawns, "_start", restart)
    del twice


def retired_lives_are_believed(patch: pytest.MonkeyPatch) -> None:
    admit = Admission._admit

    def forget_retired(self: Admission, agent: Agent, signal: object, now: float) -> bool:
        agent.retired = ()
        return admit(self, agent, signal, now)

    patch.setattr(Admission, "_admit", forget_retired)


def suspicion_is_conviction(patch: pytest.MonkeyPatch) -> None:
    """Nobody is asked."""

    def step(self: Watching, agent: Agent, policy: object, at: float, now: float) -> None:
        if agent.suspicion is None:
            self.suspect(agent, policy, "quiet", at, now)  # type: ignore[arg-type]
        if agent.suspicion is not None:
            self._convict(agent, agent.suspicion, policy, at)  # type: ignore[arg-type]

    patch.setattr(Watching, "_step_silence", step)


def pings_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    """The answer has no time to come: every lost beat is a death."""
    patch.setattr(Awareness, "factor", lambda self, now, policy: 0)


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

    def ahead(self: Judge, agent: Agent, finding: Finding, at: float, cause: object = None) -> None:
        note(self, agent, finding, at + 60.0, cause)  # type: ignore[arg-type]

    patch.setattr(Judge, "note", ahead)


def terminated_agents_come_back_to_life(patch: pytest.MonkeyPatch) -> None:
    """The table of legal changes is not looked at."""

    def flip(self: Judge, agent: Agent, to: Health, reason: str, at: float, cause: object = None) -> None:
        was = agent.health
        if was is not to or to is Health.DISCONNECTED:
            agent.health, agent.since = to, at
            self._outbox.fact(Flip(at, agent.id, was, to, reason, None, agent.findings))
            self._outbox.fact(Flip(at, agent.id, was, to, reason, None, agent.findings))

    patch.setattr(Judge, "flip", flip)


def nobody_is_asked_before_the_end(patch: pytest.MonkeyPatch) -> None:
    """Conclusive evidence goes straight to the last rung."""
    patch.setattr(ladder_module, "_first_rung", lambda agent, policy: Rung.TERMINATE)


def the_brake_does_not_hold(patch: pytest.MonkeyPatch) -> None:
    limit = Fleet._limit
    patch.setattr(Fleet, "hold", lambda self, agent, rung, now: limit(self, rung, now))
    patch.setattr(Ladder, "_may_end", lambda self, agent, case, policy: True)


def there_are_no_limits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Fleet, "_limit", lambda self, rung, now: None)


def nobody_is_left_alone(patch: pytest.MonkeyPatch) -> None:
    """Whoever says something is nudged."""
    patch.setattr(ladder_module, "LEFT_ALONE", frozenset())
    do = Judge.settle

    def accuse(self: Judge, agent: Agent, kind: object, finding: Finding | None, at: float) -> None:
        do(self, agent, kind, finding, at)  # type: ignore[arg-type]

    patch.setattr(Judge, "settle", accuse)


def the_judge_trips(patch: pytest.MonkeyPatch) -> None:
    clear = Judge.clear

    def trip(self: Judge, agent: Agent, kind: object, at: float) -> None:
        if agent.findings and agent.findings[0].severity is Severity.DISCONNECTED:
            raise ZeroDivisionError
        clear(self, agent, kind, at)  # type: ignore[arg-type]

    patch.setattr(Judge, "clear", trip)


def the_silent_are_never_suspected(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Watching, "_step_silence", lambda self, agent, policy, at, now: None)


MUTATIONS = [
    Mutation("harm", "ended before it is asked", any_degraded_agent_may_be_ended, (Ill.CUT,)),
    Mutation("twice", "order ids are reused", ids_are_reused, (Ill.CRASH, Ill.FREEZE)),
    Mutation("twice", "a life gets two successors", a_life_gets_two_successors, (Ill.CRASH_SEEN,)),
    Mutation(
        "stale",
        "retired lives are believed",
        retired_lives_are_believed,
        (Ill.CRASH, Ill.CUT),
        days=1.0,
        faults="duplicate=0.02,reorder=0.02",
    ),
    Mutation("heard", "pings do not wait", pings_do_not_wait, (Ill.CUT,), faults="loss=0.2"),
    Mutation("unasked", "suspicion is conviction", suspicion_is_conviction, (Ill.CRASH,)),
    Mutation("truce", "there is no truce", there_is_no_truce, (Ill.CRASH,), faults="stall=20"),
    Mutation("downtime", "lapses are ignored", lapses_are_ignored, (Ill.CUT,), faults="clock=6", days=1.0),
    Mutation("backwards", "facts are dated ahead", facts_are_dated_ahead, (Ill.CRASH, Ill.LOOP)),
    Mutation("illegal", "any flip goes", terminated_agents_come_back_to_life, (Ill.CRASH,)),
    Mutation("evidence", "weak evidence is enough", weak_evidence_is_enough, (Ill.HUNG_CALL, Ill.ERRORS)),
    Mutation("ladder", "nobody is asked before the end", nobody_is_asked_before_the_end, (Ill.CRASH,)),
    Mutation("brake", "the brake does not hold", the_brake_does_not_hold, (Ill.CRASH,), faults="half=12"),
    Mutation("speed", "there are no limits", there_are_no_limits, (Ill.LOOP, Ill.HANG), failure_every=HOUR),
    Mutation("left_alone", "nobody is left alone", nobody_is_left_alone, (Ill.HANG,)),
    Mutation("poison", "the judge trips", the_judge_trips, (Ill.CUT,)),
    Mutation("converged", "the silent are never suspected", the_silent_are_never_suspected, (Ill.CRASH,)),
]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.law}: {m.name}")
def test_a_broken_engine_is_caught(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.breaks(monkeypatch)
    caught: set[str] = set()
    for seed in mutation.seeds:
        caught |= {violation.law for violation in mutation.run(seed).violations}
        if mutation.law in caught:
            return
    pytest.fail(f"{mutation.law} did not notice; caught were: {sorted(caught) or 'none'}")


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda m: f"{m.law}: {m.name}")
def test_the_whole_engine_is_not_accused(mutation: Mutation) -> None:
    """The same worlds, and nothing broken: it is the mutation that is caught, not the world."""
    report = replace(mutation, days=0.2).run(1)
    assert report.violations == ()


def test_every_law_has_its_broken_engine() -> None:
    assert {mutation.law for mutation in MUTATIONS} == set(LAWS)


_ = (SendNudge, SendPing)
