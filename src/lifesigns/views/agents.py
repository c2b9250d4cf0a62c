"""One agent, as the contract shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from lifesigns.core.effects import Kind, Rung, Severity
from lifesigns.core.health import Cause, Doing, FailureClass, Health
from lifesigns.core.signals import BreakerState
from lifesigns.views.evidence import Measure
from lifesigns.views.moments import Moment


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
    """Empty until the step is taken, at `next_at`."""
    rung: Rung
    attempt: int
    reason: str
    since: Moment
    """When this step was taken, or was granted more time."""
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


NEED: Final[Mapping[Health, int]] = {
    Health.DISCONNECTED: 0,
    Health.FAILING: 1,
    Health.STUCK: 2,
    Health.DEGRADED: 4,
    Health.STARTING: 5,
    Health.HEALTHY: 6,
    Health.TERMINATED: 7,
}
