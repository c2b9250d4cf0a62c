"""Events: a change of health as it is told to callbacks, by the names of the contract, with the evidence of this moment; and
what is counted of an agent.

Each change is told once. Who comes back from `disconnected` is told twice, as two things happened: it is back
(`agent-reconnected`, with its downtime), and it is well or not quite (`agent-healthy`, `agent-degraded` ...).
Moments are of the wall clock, in seconds since 1970; durations are seconds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from lifesigns.agent.monitor.processes import ProcessAttachment
from lifesigns.agent.monitor.watched import WatchedAgent
from lifesigns.agent.standstill import full_stack_of
from lifesigns.core.agent import Agent
from lifesigns.core.effects import Flip, Kind
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


def events_of(flip: Flip, watched: WatchedAgent, agent: Agent) -> list[Event]:
    """What is told about a change of health; the agent's own record is brought up to date by the way."""
    watched.health = flip.now
    if flip.now is Health.STARTING:
        return []
    if flip.now is Health.DISCONNECTED:
        return [_disconnected(flip, watched, agent)]
    lost_at, watched.lost_at = watched.lost_at, None
    reason = flip.reason if watched.ending is None else watched.ending.reason
    counted = metrics(watched, agent, time.monotonic())
    news = [Event(NAMES[flip.now], watched.name, flip.now, wall(flip.at), reason, counted)]
    if lost_at is not None and flip.now is not Health.TERMINATED:
        back = Event(
            RECONNECTED,
            watched.name,
            flip.now,
            wall(flip.at),
            reason,
            counted,
            last_seen=wall(lost_at),
            downtime=max(0.0, _back_at(flip, watched) - lost_at),
        )
        news.insert(0, back)
    return news


def _back_at(flip: Flip, watched: WatchedAgent) -> float:
    """When it came back; a loop knows better than we, who look once a tick."""
    if watched.loop_watch is None or watched.by_itself:
        return flip.at
    return min(flip.at, watched.loop_watch.probe.answered_at or flip.at)


def _disconnected(flip: Flip, watched: WatchedAgent, agent: Agent) -> Event:
    watched.disconnections += 1
    watched.lost_at = last_heartbeat_at(watched)
    reason, stack = _evidence(flip, watched)
    return Event(
        NAMES[flip.now],
        watched.name,
        flip.now,
        wall(flip.at),
        reason,
        metrics(watched, agent, time.monotonic()),
        type=_type_of(flip, watched),
        last_seen=wall(watched.lost_at),
        stack=stack,
    )


def _evidence(flip: Flip, watched: WatchedAgent) -> tuple[str, str | None]:
    """Why, and where it hangs or crashed."""
    if watched.ending is not None:
        return watched.ending.reason, watched.ending.stack
    loop_watch = watched.loop_watch
    if flip.cause is Cause.FREEZE and loop_watch is not None:
        culprit, stack = loop_watch.evidence()
        return f"{flip.reason} {culprit}", stack
    reason = (
        f"{flip.reason} Its last sign of life: {watched.active_by}." if watched.active_by else flip.reason
    )
    return reason, full_stack_of(watched.attachment.thread_id() or watched.thread_id)


def _type_of(flip: Flip, watched: WatchedAgent) -> str | None:
    """What kind of disconnection. Silence of one that can only be here is a freeze: no network is between us."""
    if flip.cause is Cause.PARTITION and watched.attachment.here:
        return TYPES[Cause.FREEZE]
    if flip.cause is Cause.UNKNOWN and any(f.kind is Kind.SILENCE for f in flip.evidence):
        return None if isinstance(watched.attachment, ProcessAttachment) else TYPES[Cause.FREEZE]
    return None if flip.cause is None else TYPES.get(flip.cause)


# --- what is counted: read from any thread; whoever reads gets a moment's truth ------------------------------------


def wall(moment: float) -> float:
    """A moment of the monotonic clock as people have it: seconds since 1970."""
    return time.time() - time.monotonic() + moment


def last_heartbeat_at(watched: WatchedAgent) -> float:
    """When it last answered, or was seen alive; of the monotonic clock."""
    if watched.last_heartbeat_at is not None:
        return watched.last_heartbeat_at
    if watched.loop_watch is not None and not watched.by_itself:
        return max(watched.loop_watch.probe.answered_at or watched.since, watched.since)
    return max(watched.folded_at, watched.active_at)


def missed_heartbeats(watched: WatchedAgent, agent: Agent | None, now: float) -> int:
    """How many answers or beats in a row should have come and did not: none while nobody doubts it. What came counts
    from when it came, not from when the engine was told."""
    if watched.ending is not None:
        return 0
    if watched.by_itself:
        if agent is None or agent.calm or not agent.interval:
            return 0
        return max(0, int((now - last_heartbeat_at(watched)) / agent.interval))
    return 0 if watched.loop_watch is None else watched.loop_watch.missed


def heartbeats(watched: WatchedAgent) -> int:
    """How often it answered, was seen alive or beat, in all its lives."""
    before = watched.heartbeats_before
    if watched.last_heartbeat_at is not None:
        return before
    if watched.loop_watch is not None and not watched.by_itself:
        return before + watched.loop_watch.answered - watched.beats_from
    return before + watched.beats


def metrics(watched: WatchedAgent, agent: Agent | None, now: float) -> AgentMetrics:
    """Everything that is counted, as of now."""
    seen_at = last_heartbeat_at(watched)
    ended_at = now if watched.ending is None else seen_at
    return AgentMetrics(
        agent_name=watched.name,
        status=watched.health,
        uptime=max(0.0, ended_at - watched.since),
        last_activity=wall(watched.acted_at),
        last_heartbeat=wall(seen_at),
        missed_heartbeats=missed_heartbeats(watched, agent, now),
        total_heartbeats=heartbeats(watched),
        disconnection_count=watched.disconnections,
    )
