"""Counting: what is known of an agent in numbers. Read from any thread; whoever reads gets a moment's truth."""

from __future__ import annotations

import time

from lifesigns.agent.monitor.events import AgentMetrics
from lifesigns.agent.monitor.watched import WatchedAgent
from lifesigns.core.agent import Agent


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
