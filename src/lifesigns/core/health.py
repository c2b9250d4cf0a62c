"""Health: the judged state of an agent, and the one table of its legal changes.

The law: an agent is always in exactly one state, a change is a Flip with a reason, and a change that
is not in `LEGAL` is our bug. `terminated` is left only by a new incarnation, which begins in `starting`.
What an agent is *doing* is a separate question: idle and waiting agents are healthy.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class Health(StrEnum):
    """The judged state of an agent."""

    STARTING = "starting"
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    STUCK = "stuck"
    FAILING = "failing"
    DISCONNECTED = "disconnected"
    TERMINATED = "terminated"


class Doing(StrEnum):
    """What an agent says it is doing, apart from how well it is."""

    UNKNOWN = "unknown"
    WORKING = "working"
    IDLE = "idle"
    WAITING_FOR_HUMAN = "waiting_for_human"
    RATE_LIMITED = "rate_limited"
    BUSY = "busy"
    DRAINING = "draining"


class Cause(StrEnum):
    """Why an agent is disconnected, as far as the evidence goes."""

    CRASH = "crash"
    FREEZE = "freeze"
    PARTITION = "partition"
    UNKNOWN = "unknown"


class FailureClass(StrEnum):
    """What a failure asks for: wait, mend, or replace after a person's approval."""

    TRANSIENT = "transient"
    RECOVERABLE = "recoverable"
    TERMINAL = "terminal"


_JUDGED = frozenset({Health.HEALTHY, Health.DEGRADED, Health.STUCK, Health.FAILING, Health.DISCONNECTED})

LEGAL: Final[Mapping[Health, frozenset[Health]]] = {
    Health.STARTING: _JUDGED | {Health.TERMINATED},
    Health.HEALTHY: _JUDGED - {Health.HEALTHY} | {Health.STARTING, Health.TERMINATED},
    Health.DEGRADED: _JUDGED - {Health.DEGRADED} | {Health.STARTING, Health.TERMINATED},
    Health.STUCK: _JUDGED - {Health.STUCK} | {Health.STARTING, Health.TERMINATED},
    Health.FAILING: _JUDGED - {Health.FAILING} | {Health.STARTING, Health.TERMINATED},
    Health.DISCONNECTED: _JUDGED - {Health.DISCONNECTED} | {Health.STARTING, Health.TERMINATED},
    Health.TERMINATED: frozenset({Health.STARTING}),
}

UNWELL: Final = frozenset({Health.STUCK, Health.FAILING, Health.DISCONNECTED})
"""States that need an intervention. `degraded` is a warning, not a call for help."""

BUSY_WORD: Final = "busy"
AILING_WORDS: Final = frozenset({"degraded", "unhealthy", "failing", "unresponsive"})
"""Statuses with which an agent itself says that something is wrong with it."""


class TaskStatus(StrEnum):
    """How a task with an expected end stands."""

    IN_PROGRESS = "in_progress"
    OVERDUE = "overdue"
    """It takes a multiple of its time, without a word."""
    STALLED = "stalled"
    """Its agent was asked about it, and has time to answer."""
    BLOCKED = "blocked"
    """Its agent did not answer, and beats."""


class Phase(StrEnum):
    """How far a lineage's current respawn has come."""

    IDLE = "idle"
    WAITING = "waiting"
    VERIFYING = "verifying"
    STARTING = "starting"
    PROBATION = "probation"
    REVIEW = "review"
    QUARANTINED = "quarantined"
