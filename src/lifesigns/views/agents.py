"""One agent, as the contract shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from lifesigns.core import recovery_breaker
from lifesigns.core.agent import Agent, Case
from lifesigns.core.beliefs import Beliefs, ReportedBreaker
from lifesigns.core.detectors import silence
from lifesigns.core.effects import Finding, Kind, Rung, Severity, Stage
from lifesigns.core.health import UNWELL, Cause, Doing, FailureClass, Health
from lifesigns.core.judgement import RANK
from lifesigns.core.signals import BreakerState
from lifesigns.views.evidence import Measure, evidence
from lifesigns.views.moments import Moment, moment, moment_or_none


class FindingView(Struct, frozen=True):
    """What one detector noticed."""

    kind: Kind
    since: Moment
    severity: Severity
    text: str
    numbers: Mapping[str, int | float | str]
    evidence: tuple[Measure, ...]
    """The same numbers in words, for people."""
    conclusive: bool


class AgentMetrics(Struct, frozen=True):
    """An agent in numbers."""

    uptime_seconds: float
    token_count: int
    cost_usd: float
    error_count: int
    tool_call_count: int
    intervention_count: int
    missed_heartbeats: int
    total_heartbeats: int
    disconnection_count: int


class BreakerView(Struct, frozen=True):
    """A circuit breaker as its agent reports it."""

    agent_id: str
    name: str
    state: BreakerState
    failures: int
    """In a row, at the last report."""
    since: Moment
    """When this state was first reported."""
    half_open_at: Moment | None
    """When an open one tries a call again; None if it is not open, or stays open until somebody closes it."""
    half_open_in_s: float | None
    """The same in seconds from now; 0 if the next call is tried."""


class InterventionView(Struct, frozen=True):
    """The step of the ladder an agent is on."""

    id: str
    rung: Rung
    attempt: int
    reason: str
    since: Moment
    next_at: Moment | None
    decided: str = ""
    """The decision about an escalation; empty while people are asked."""


class AgentHealth(Struct, frozen=True):
    """Everything that the hub believes about an agent."""

    agent_id: str
    task_id: str | None
    state: Health
    doing: Doing
    doing_since: Moment | None
    doing_note: str
    """In the agent's words: its question to a human, or what it is busy with."""
    cause: Cause | None
    failure_class: FailureClass | None
    """None if it has not failed. After a terminal failure it is replaced only with a person's approval."""
    class_reason: str
    """Why its failure is of this class."""
    state_changed_at: Moment
    last_heartbeat: Moment | None
    last_checkpoint: Moment | None
    since_heartbeat_s: float | None
    findings: tuple[FindingView, ...]
    why: str
    """What is wrong with it, or what is done about it, in a sentence; empty if it is well."""
    unwell: bool
    """Whether somebody should look: it is stuck, failing or disconnected, or no longer judged."""
    need: int
    """How much it needs a person: the lower, the more. The order of `sort=need`."""
    role: str | None
    host: str | None
    incarnation: str | None
    load: float | None
    capacity_available: int | None
    phi: float
    paused: bool
    """Whether the hub leaves it alone."""
    paused_until: Moment | None
    """None if it is not paused, or paused until somebody resumes it."""
    set_aside: bool
    """A bug of ours: the engine ignores its signals, and its state is the last known one, until somebody clears it."""
    metrics: AgentMetrics
    circuit_breakers: tuple[BreakerView, ...]
    intervention: InterventionView | None


def agent_health(agent: Agent, beliefs: Beliefs, now: float) -> AgentHealth:
    """An agent as it is now."""
    work = agent.work
    heard_at = agent.heard_at if agent.beats else None
    return AgentHealth(
        agent_id=agent.id,
        task_id=agent.task_id,
        state=agent.health,
        doing=agent.doing,
        doing_since=None if agent.doing is Doing.UNKNOWN else moment(agent.doing_from),
        doing_note=agent.doing_note,
        cause=agent.cause if agent.health is Health.DISCONNECTED else None,
        failure_class=agent.failure_class,
        class_reason="" if agent.failure is None else agent.failure.reason,
        state_changed_at=moment(agent.since),
        last_heartbeat=moment_or_none(heard_at),
        last_checkpoint=moment_or_none(work.checkpoint_at if work else None),
        since_heartbeat_s=None if heard_at is None else round(max(0.0, now - heard_at), 3),
        findings=tuple(map(_finding, agent.findings)),
        why=_why(agent),
        unwell=agent.past.poisoned or agent.health in UNWELL,
        need=need(agent),
        role=agent.role,
        host=agent.host,
        incarnation=agent.incarnation,
        load=agent.load,
        capacity_available=agent.capacity,
        phi=round(silence.phi(agent, now), 3) if agent.alive else 0.0,
        paused=agent.past.paused_until > now,
        paused_until=moment_or_none(agent.past.paused_until if agent.past.paused_until > now else None),
        set_aside=agent.past.poisoned,
        metrics=_metrics(agent, now),
        circuit_breakers=breakers_of(agent.id, beliefs, now),
        intervention=None if agent.case is None else _intervention(agent.case),
    )


NEED: Final[Mapping[Health, int]] = {
    Health.DISCONNECTED: 0,
    Health.FAILING: 1,
    Health.STUCK: 2,
    Health.DEGRADED: 4,
    Health.STARTING: 5,
    Health.HEALTHY: 6,
    Health.TERMINATED: 7,
}
WAITING_FOR_HUMAN: Final = 3
"""An agent that waits for a human comes before one that is merely degraded."""
SET_ASIDE: Final = -1
"""An agent that is not judged may be in any state."""


def need(agent: Agent) -> int:
    """How much a person is needed there: the lower, the more."""
    if agent.past.poisoned:
        return SET_ASIDE
    rank = NEED[agent.health]
    return min(rank, WAITING_FOR_HUMAN) if agent.doing is Doing.WAITING_FOR_HUMAN else rank


def _why(agent: Agent) -> str:
    if agent.past.poisoned:
        return "Not judged any more, by a bug of lifesigns, until it is cleared."
    if agent.findings:
        return max(agent.findings, key=lambda finding: RANK[finding.severity]).text
    if agent.health is Health.DISCONNECTED:
        return "Lost." if agent.cause in (None, Cause.UNKNOWN) else f"Lost: {agent.cause}."
    if agent.health is Health.TERMINATED:
        return agent.doing_note and f"{agent.doing_note[0].upper()}{agent.doing_note[1:]}."
    if agent.doing is Doing.WAITING_FOR_HUMAN:
        return agent.doing_note
    return "" if agent.case is None else f"{_STEPS[agent.case.rung]}: {agent.case.reason}"


_STEPS: Final[Mapping[Rung, str]] = {
    Rung.NUDGE: "Nudge",
    Rung.ESCALATE: "Escalation",
    Rung.TERMINATE: "Termination",
    Rung.RESPAWN: "Respawn",
    Rung.BREAKER: "Breaker turned",
    Rung.CLEANUP: "Clean-up",
}


def breakers_of(agent_id: str, beliefs: Beliefs, now: float) -> tuple[BreakerView, ...]:
    """The breakers an agent has reported, and the one of its recoveries."""
    breakers, lineage = beliefs.breakers.get(agent_id) or {}, beliefs.lineages.get(agent_id)
    of_recoveries = None if lineage is None else recovery_breaker.seen_as_breaker(lineage)
    if of_recoveries is not None:
        breakers = {recovery_breaker.NAME: of_recoveries, **breakers}
    return tuple(_breaker(agent_id, name, one, now) for name, one in breakers.items())


def _breaker(agent_id: str, name: str, breaker: ReportedBreaker, now: float) -> BreakerView:
    at = breaker.half_open_at if breaker.state is BreakerState.OPEN else None
    return BreakerView(
        agent_id,
        name,
        breaker.state,
        breaker.failures,
        moment(breaker.since),
        moment_or_none(at),
        None if at is None else round(max(0.0, at - now), 3),
    )


def _finding(finding: Finding) -> FindingView:
    return FindingView(
        finding.kind,
        moment(finding.since),
        finding.severity,
        finding.text,
        finding.numbers,
        evidence(finding.numbers),
        finding.conclusive,
    )


def _metrics(agent: Agent, now: float) -> AgentMetrics:
    work, spent, outcomes = agent.work, agent.spending, agent.outcomes
    gone = agent.health in (Health.STARTING, Health.TERMINATED)
    return AgentMetrics(
        uptime_seconds=round(now - agent.started_at, 3) if agent.alive and agent.started_at else 0.0,
        token_count=spent.tokens if spent else 0,
        cost_usd=round(spent.cost, 6) if spent else 0.0,
        error_count=outcomes.errors if outcomes else 0,
        tool_call_count=work.tool_calls if work else 0,
        intervention_count=agent.past.interventions,
        missed_heartbeats=silence.missed(agent, now) if agent.beats and not gone else 0,
        total_heartbeats=agent.beats,
        disconnection_count=agent.past.disconnections,
    )


def _intervention(case: Case) -> InterventionView:
    next_at = case.waited_from + case.wait if case.wait else None
    return InterventionView(
        case.order_id,
        case.rung,
        case.attempt,
        case.reason,
        moment(case.opened_at),
        moment_or_none(next_at),
        case.said.partition(" ")[2] if case.rung is Rung.ESCALATE and Stage.ANSWERED in case.reached else "",
    )
