"""Builds the view of one agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lifesigns.core import recovery_breaker
from lifesigns.core.agent import Agent, Case
from lifesigns.core.beliefs import Beliefs, ReportedBreaker
from lifesigns.core.detectors import silence
from lifesigns.core.effects import Finding, Rung, Stage
from lifesigns.core.health import UNWELL, Cause, Doing, Health
from lifesigns.core.judgement import RANK
from lifesigns.core.signals import BreakerState
from lifesigns.views.agents import NEED, AgentHealth, AgentMetrics, BreakerView, FindingView, InterventionView
from lifesigns.views.builders.evidence import evidence
from lifesigns.views.moments import moment, moment_or_none


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
        moment(case.waited_from),
        moment_or_none(next_at),
        case.said.partition(" ")[2] if case.rung is Rung.ESCALATE and Stage.ANSWERED in case.reached else "",
    )
