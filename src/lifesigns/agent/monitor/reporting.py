"""Reporting: from a flip of the engine to the events people hear, with the evidence of this moment."""

from __future__ import annotations

from time import monotonic

from lifesigns.agent.monitor.counting import last_heartbeat_at, metrics, wall
from lifesigns.agent.monitor.events import NAMES, RECONNECTED, TYPES, Event
from lifesigns.agent.monitor.processes import ProcessAttachment
from lifesigns.agent.monitor.watched import WatchedAgent
from lifesigns.agent.standstill import full_stack_of
from lifesigns.core.agent import Agent
from lifesigns.core.effects import Flip, Kind
from lifesigns.core.health import Cause, Health


def events_of(flip: Flip, watched: WatchedAgent, agent: Agent) -> list[Event]:
    """What is told about a change of health; the agent's own record is brought up to date by the way."""
    watched.health = flip.now
    if flip.now is Health.STARTING:
        return []
    if flip.now is Health.DISCONNECTED:
        return [_disconnected(flip, watched, agent)]
    lost_at, watched.lost_at = watched.lost_at, None
    reason = flip.reason if watched.ending is None else watched.ending.reason
    counted = metrics(watched, agent, monotonic())
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
        metrics(watched, agent, monotonic()),
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
