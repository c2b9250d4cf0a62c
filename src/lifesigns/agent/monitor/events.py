"""Events: a change of health as callbacks get it, by the names of the contract, with the evidence of that moment; and
the counts of an agent.

Each change is one event. A return from `disconnected` gives two, because two things happened: the agent is back
(`agent-reconnected`, with its downtime), and it is well or not quite (`agent-healthy`, `agent-degraded` ...). Times
are of the wall clock, in seconds since 1970; durations are seconds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from lifesigns.agent.monitor.processes import ProcessAttachment
from lifesigns.agent.monitor.watched import WatchedAgent
from lifesigns.agent.standstill import full_stack_of
from lifesigns.core.agent import Agent
from lifesigns.core.effects import Flip, Kind
from lifesigns.core.health import Cause, Health
from lifesigns.core.judgement import RANK

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

UNWELL: Final = frozenset({Health.DEGRADED, Health.STUCK, Health.FAILING, Health.DISCONNECTED})

TYPES: Final[Mapping[Cause, str]] = {
    Cause.CRASH: "process-crash",
    Cause.FREEZE: "event-loop-freeze",
    Cause.PARTITION: "network-partition",
}


SILENT: Final = "missed_heartbeats"
INACTIVE: Final = "inactivity"
CODES: Final[Mapping[Kind, str]] = {
    Kind.SILENCE: SILENT,
    Kind.FREEZE: SILENT,
    Kind.NEVER_STARTED: SILENT,
    Kind.NO_CHECKPOINT: INACTIVE,
    Kind.NO_TOOL_CALL: INACTIVE,
    Kind.NO_TOKENS: INACTIVE,
    Kind.NO_OUTPUT: INACTIVE,
    Kind.REPEATED_OUTPUT: INACTIVE,
    Kind.TASK_STALLED: INACTIVE,
}
"""Of findings, for programs: the two words of seed 000. Every other finding goes by the name of its kind."""


class AgentMetrics(Struct, frozen=True):
    """The counts of one agent. `uptime` is of this life, the counts are of all lives under this name."""

    agent_name: str
    status: Health
    uptime: float
    last_activity: float
    """When it last did something by itself, apart from answers and mere beats; its start, if it has done nothing yet."""
    last_heartbeat: float
    """When it last answered, or was seen alive."""
    missed_heartbeats: int
    """Missing answers or beats in a row; 0 while it is well."""
    total_heartbeats: int
    disconnection_count: int


class Event(Struct, frozen=True):
    """One change of an agent's health. What does not apply is None."""

    name: str
    """`agent-disconnected` and its like."""
    agent: str
    health: Health
    at: float
    reason: str
    """Why, as a sentence for people; `code` says it to programs."""
    metrics: AgentMetrics
    type: str | None = None
    """Of a disconnection: `event-loop-freeze`, `process-crash` or `network-partition`; None if unknown."""
    last_seen: float | None = None
    downtime: float | None = None
    """Of a reconnection: how long we saw nothing of it."""
    stack: str | None = None
    """Where it hangs (the frozen thread at that moment), or where it crashed."""
    code: str = "recovered"
    """`missed_heartbeats`, `inactivity`, `crashed`, `left`, `recovered`, or the kind of the gravest finding (`looping`,
    `errors`, `spending`, `overload` ...)."""
    idle_time: float | None = None
    """Of an agent that is unwell: seconds since it last did something by itself."""


def events_of(flip: Flip, watched: WatchedAgent, agent: Agent) -> list[Event]:
    """The event for a change of health; also updates the agent's own record."""
    watched.health = flip.now
    if flip.now is Health.STARTING:
        return []
    if flip.now is Health.DISCONNECTED:
        return [_disconnected(flip, watched, agent)]
    lost_at, watched.lost_at = watched.lost_at, None
    reason = flip.reason if watched.ending is None else watched.ending.reason
    counted = metrics(watched, agent, time.monotonic())
    news = [
        Event(
            NAMES[flip.now],
            watched.name,
            flip.now,
            wall(flip.at),
            reason,
            counted,
            code=_code_of(flip, watched),
            idle_time=_idle_time(flip, watched) if flip.now in UNWELL else None,
        )
    ]
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
    """When it came back; its loop knows that better than we, because we look once a tick."""
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
        code=_code_of(flip, watched),
        idle_time=_idle_time(flip, watched),
    )


def _code_of(flip: Flip, watched: WatchedAgent) -> str:
    """Why, in a word. Of several findings the gravest counts: it is the one that decided."""
    if watched.ending is not None:
        return "crashed" if watched.ending.crashed else "left"
    if flip.now not in UNWELL:
        return "recovered"
    gravest = max(flip.evidence, key=lambda finding: RANK[finding.severity], default=None)
    return SILENT if gravest is None else CODES.get(gravest.kind, gravest.kind)


def _idle_time(flip: Flip, watched: WatchedAgent) -> float:
    return max(0.0, flip.at - watched.acted_at)


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
    """The kind of disconnection. The silence of an agent in this process is a freeze: no network is between us."""
    if flip.cause is Cause.PARTITION and watched.attachment.here:
        return TYPES[Cause.FREEZE]
    if flip.cause is Cause.UNKNOWN and any(f.kind is Kind.SILENCE for f in flip.evidence):
        return None if isinstance(watched.attachment, ProcessAttachment) else TYPES[Cause.FREEZE]
    return None if flip.cause is None else TYPES.get(flip.cause)


# --- what is counted: read from any thread; whoever reads gets a moment's truth ------------------------------------


def wall(moment: float) -> float:
    """A time of the monotonic clock as wall-clock time: seconds since 1970."""
    return time.time() - time.monotonic() + moment


def last_heartbeat_at(watched: WatchedAgent) -> float:
    """When it last answered, or was seen alive; of the monotonic clock."""
    if watched.last_heartbeat_at is not None:
        return watched.last_heartbeat_at
    if watched.loop_watch is not None and not watched.by_itself:
        return max(watched.loop_watch.probe.answered_at or watched.since, watched.since)
    return max(watched.folded_at, watched.active_at)


def missed_heartbeats(watched: WatchedAgent, agent: Agent | None, now: float) -> int:
    """How many answers or beats in a row are missing: none while the agent is not in doubt. A sign counts from its
    arrival, not from when the engine heard of it."""
    if watched.ending is not None:
        return 0
    if watched.by_itself:
        if agent is None or agent.calm or not agent.interval:
            return 0
        return max(0, int((now - last_heartbeat_at(watched)) / agent.interval))
    return 0 if watched.loop_watch is None else watched.loop_watch.missed


def heartbeats(watched: WatchedAgent) -> int:
    """How often it answered, beat or was seen alive, in all its lives."""
    before = watched.heartbeats_before
    if watched.last_heartbeat_at is not None:
        return before
    if watched.loop_watch is not None and not watched.by_itself:
        return before + watched.loop_watch.answered - watched.beats_from
    return before + watched.beats


def metrics(watched: WatchedAgent, agent: Agent | None, now: float) -> AgentMetrics:
    """All counts, as of now."""
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
