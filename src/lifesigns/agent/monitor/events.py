"""Events: a change of health as it is told to callbacks, by the names of the contract.

Each change is told once. Who comes back from `disconnected` is told twice, as two things happened: it is back
(`agent-reconnected`, with its downtime), and it is well or not quite (`agent-healthy`, `agent-degraded` ...).
Moments are of the wall clock, in seconds since 1970; durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lifesigns.core.health import Cause, Health

RECONNECTED: Final = "agent-reconnected"
EVERYTHING: Final = "*"

NAMES: Final[Mapping[Health, str]] = {
    Health.HEALTHY: "agent-healthy",
    Health.DEGRADED: "agent-degraded",
    Health.STUCK: "agent-stuck",
    Health.FAILING: "agent-failing",
    Health.DISCONNECTED: "agent-disconnected",
    Health.TERMINATED: "agent-left",
}
"""`starting` has none: nothing has happened yet."""

KNOWN: Final = frozenset({*NAMES.values(), RECONNECTED, EVERYTHING})

TYPES: Final[Mapping[Cause, str]] = {
    Cause.CRASH: "process-crash",
    Cause.FREEZE: "event-loop-freeze",
    Cause.PARTITION: "network-partition",
}


@dataclass(frozen=True, slots=True)
class AgentMetrics:
    """What is counted of one agent. `uptime` is of this life, the counts of all lives under this name."""

    agent_name: str
    status: Health
    uptime: float
    last_activity: float
    """The last thing it did by itself, an answer to a question or a mere beat apart; its begin, if it has done nothing yet."""
    last_heartbeat: float
    """When it last answered, or was seen alive."""
    missed_heartbeats: int
    """Answers or beats in a row that should have come and did not; 0 while it is well."""
    total_heartbeats: int
    disconnection_count: int


@dataclass(frozen=True, slots=True)
class Event:
    """One change of an agent's health. What does not apply is None."""

    name: str
    """`agent-disconnected` and its like."""
    agent: str
    health: Health
    at: float
    reason: str
    metrics: AgentMetrics
    type: str | None = None
    """Of a disconnection: `event-loop-freeze`, `process-crash` or `network-partition`; None if nothing tells."""
    last_seen: float | None = None
    downtime: float | None = None
    """Of a reconnection: how long nothing was seen of it."""
    stack: str | None = None
    """Where it hangs (the frozen thread at that moment), or where it crashed."""
