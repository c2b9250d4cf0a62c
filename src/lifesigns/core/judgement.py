"""Judgement: from findings to health, and how far the evidence lets us go.

The law: health is the worst that any open finding argues for, nothing else. Evidence decides how far we may go:
anything may degrade, nudge and escalate; ending an agent by ourselves needs conclusive evidence, or two independent
kinds of weak evidence together with unanswered nudges and an unanswered escalation.

One cause is one family of evidence. When a call fails and the agent retries it and waits in between, we see errors, a
loop, no tool call and no checkpoint, but it is one problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from lifesigns.core.agent import Agent
from lifesigns.core.effects import (
    Finding,
    FindingClosed,
    FindingOpened,
    Flip,
    Kind,
    Severity,
)
from lifesigns.core.failures import Failures
from lifesigns.core.fleet import Fleet
from lifesigns.core.health import LEGAL, Cause, Health
from lifesigns.core.outbox import Outbox
from lifesigns.errors import Bug

RANK: Final[Mapping[Severity, int]] = {severity: rank for rank, severity in enumerate(Severity)}

ARGUES_FOR: Final[Mapping[Severity, Health]] = {
    Severity.NOTICE: Health.HEALTHY,
    Severity.DEGRADED: Health.DEGRADED,
    Severity.STUCK: Health.STUCK,
    Severity.FAILING: Health.FAILING,
    Severity.DISCONNECTED: Health.DISCONNECTED,
}

FAMILY: Final[Mapping[Kind, str]] = {
    Kind.SILENCE: "silence",
    Kind.NEVER_STARTED: "silence",
    Kind.EXIT: "exit",
    Kind.FREEZE: "freeze",
    Kind.NO_CHECKPOINT: "progress",
    Kind.TASK_STALLED: "progress",
    Kind.NO_TOOL_CALL: "activity",
    Kind.NO_TOKENS: "activity",
    Kind.NO_OUTPUT: "activity",
    Kind.REPEATED_OUTPUT: "activity",
    Kind.LONG_CALL: "activity",
    Kind.LOOPING: "calls",
    Kind.ERRORS: "calls",
    Kind.CONTEXT: "calls",
    Kind.SPENDING: "spending",
    Kind.SPINNING: "overload",
    Kind.OVERLOAD: "overload",
    Kind.SELF_REPORTED: "its own word",
    Kind.FORECAST: "forecast",
}
"""Kinds of one family repeat one observation: no tool call and no tokens are the same, as are all kinds that rest on
CPU use, or on the same calls."""

WORK: Final = frozenset({"progress", "activity", "calls"})
"""Families of one cause while the agent waits."""


def worst(findings: Iterable[Finding]) -> Finding | None:
    """The finding that decides; of equals the oldest."""
    return min(findings, key=lambda f: (-RANK[f.severity], f.since), default=None)


def may_terminate(findings: Iterable[Finding], *, nudged: bool, escalated: bool) -> bool:
    """Whether this evidence is enough to end an agent without a person's decision."""
    findings = tuple(findings)
    if any(f.conclusive for f in findings):
        return True
    return len(independent(findings)) >= 2 and nudged and escalated


def independent(findings: Iterable[Finding]) -> frozenset[str]:
    """The families of evidence that do not follow from one another."""
    findings = tuple(findings)
    families = {FAMILY[f.kind] for f in findings if RANK[f.severity] >= RANK[Severity.DEGRADED]}
    families.discard(FAMILY[Kind.SELF_REPORTED])  # We end no agent for reporting its own trouble.
    if any(map(_is_wait, findings)) and families & WORK:
        families = families - WORK | {"waiting"}
    elif "calls" in families:
        families.discard("activity")  # The lack of calls follows from the last of those calls.
    return frozenset(families)


def _is_wait(finding: Finding) -> bool:
    """Whether the finding shows a waiting agent: between its calls, for the world, or in a declared call."""
    if finding.kind is Kind.LOOPING:
        return "waiting" in finding.numbers
    if finding.kind is Kind.ERRORS:
        return "world_run" in finding.numbers or "tripped" in finding.numbers
    return finding.kind is Kind.LONG_CALL


class Judge:
    """Keeps an agent's findings and health in step, and records every change of either."""

    def __init__(self, outbox: Outbox, fleet: Fleet, failures: Failures) -> None:
        self._outbox = outbox
        self._failures = failures
        self._fleet = fleet
        self._judging = fleet.policy.judging

    def note(self, agent: Agent, finding: Finding, at: float, cause: Cause | None = None) -> None:
        """A detector found something. Record it if it is new or its weight changed; otherwise only keep it current."""
        if not self._judging:
            return
        known = agent.finding(finding.kind)
        if known is not None and finding.since >= at:
            finding = replace(finding, since=known.since)  # The detector only knows about now.
        agent.findings = (*(f for f in agent.findings if f is not known), finding)
        if known is None or _weight(known) != _weight(finding):
            self._outbox.fact(FindingOpened(at, agent.id, finding))
            self._review(agent, at, cause)

    def clear(self, agent: Agent, kind: Kind, at: float) -> None:
        """A finding is over."""
        known = agent.finding(kind)
        if known is not None:
            agent.findings = tuple(f for f in agent.findings if f is not known)
            self._outbox.fact(FindingClosed(at, agent.id, kind, known.since))
            self._review(agent, at, None)

    def settle(self, agent: Agent, kind: Kind, finding: Finding | None, at: float) -> None:
        """A detector's current result for its kind: a finding, or none."""
        if finding is not None:
            self.note(agent, finding, at)
        elif agent.findings:
            self.clear(agent, kind, at)

    def clear_all(self, agent: Agent, at: float) -> None:
        """A life is over: drop its findings, without a change of health."""
        for finding in agent.findings:
            self._outbox.fact(FindingClosed(at, agent.id, finding.kind, finding.since))
        agent.findings = ()

    def hear(self, agent: Agent, at: float) -> None:
        """A first sign of life: no longer starting."""
        if agent.health is Health.STARTING:
            self._review(agent, at, None)

    def flip(self, agent: Agent, to: Health, reason: str, at: float, cause: Cause | None = None) -> None:
        """Change an agent's health by a legal step, with its evidence."""
        was = agent.health
        if was is to:
            return
        if to not in LEGAL[was]:
            raise Bug(f"agent {agent.id!r} cannot go from {was} to {to} ({reason})")
        agent.health, agent.since, agent.cause = to, at, cause
        if to is Health.DISCONNECTED:
            agent.past = replace(agent.past, disconnections=agent.past.disconnections + 1)
        failure = self._failures.flipped(agent, at)
        classified = (None, "") if failure is None else (failure.failure_class, failure.reason)
        self._outbox.fact(Flip(at, agent.id, was, to, reason, cause, agent.findings, *classified))
        self._fleet.flipped(agent, was, at, self._outbox)

    def _review(self, agent: Agent, at: float, cause: Cause | None) -> None:
        if agent.health is Health.TERMINATED:
            return
        decisive = worst(agent.findings)
        to = Health.HEALTHY if decisive is None else ARGUES_FOR[decisive.severity]
        reason = "well again" if decisive is None else decisive.text
        if agent.health is Health.STARTING and decisive is None:
            reason = "heard for the first time"
        if to is not Health.DISCONNECTED:
            cause = None
        self.flip(agent, to, reason, at, cause)


def _weight(finding: Finding) -> tuple[Severity, bool]:
    return finding.severity, finding.conclusive
