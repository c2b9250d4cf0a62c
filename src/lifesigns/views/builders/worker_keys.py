"""Worker keys: what a hub knows of workers, under the keys of Task Sentinel's protocol and in its words.

    task-sentinel/workers/WORKER/heartbeat                  the last heartbeat
    task-sentinel/metrics/heartbeats/WORKER/TIMESTAMP       its numbers, once a minute; of days before the last, once an hour
    task-sentinel/metrics/lock-recoveries/TIMESTAMP         one a recovery
    task-sentinel/tasks/TASK/lock                           who holds a task

Times are Unix times in milliseconds, as there.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from lifesigns.core.agent import Agent
from lifesigns.core.claims import Claim
from lifesigns.core.health import Health
from lifesigns.core.signals import Beat
from lifesigns.ports import Sample
from lifesigns.views.claims import RecoveredClaim

HEALTH_WORDS: Final = ("healthy", "degraded", "unhealthy")
"""What a worker may say of itself."""

Value = dict[str, Any]


def heartbeat(agent: Agent, beat: Beat, at: float, tasks: set[str]) -> Value:
    """The last heartbeat of a worker. What it says of itself, or else how we judge it."""
    metrics = beat.metrics
    declared = agent.status if agent.status in HEALTH_WORDS else None
    return {
        "worker_id": agent.id,
        "timestamp": round(at * 1000),
        "health_status": declared or _judged(agent.health),
        "current_tasks": sorted(tasks),
        "capacity_available": agent.capacity,
        "metrics": _metrics(
            agent.cpu_percent,
            agent.memory_mb,
            None if metrics is None else metrics.tasks_completed,
            None if metrics is None else metrics.tasks_failed,
            None if metrics is None else metrics.uptime_s,
        ),
    }


def sample(of: Sample) -> Value:
    """The numbers of a worker's minute or hour."""
    return {
        "timestamp": round(of.at * 1000),
        "health_status": of.status,
        "task_count": of.tasks,
        "capacity_available": of.capacity,
        "metrics": _metrics(of.cpu_percent, of.memory_mb, of.tasks_completed, of.tasks_failed, of.uptime_s),
    }


def lock(claim: Claim) -> Value:
    """Who holds a task."""
    return {
        "worker_id": claim.agent_id,
        "task_id": claim.task_id,
        "claimed_at": round(claim.claimed_at * 1000),
    }


def recovery(claim: RecoveredClaim) -> Value:
    """A task of a lost worker that was released."""
    return {
        "timestamp": recovered_at(claim),
        "task_id": claim.task_id,
        "worker_id": claim.agent_id,
        "stale_duration": round(claim.silent_for_s * 1000),
        **({"issue": claim.lock, "comment": claim.comment_url} if claim.lock else {}),
    }


def recovered_at(claim: RecoveredClaim) -> int:
    """When it was released, in milliseconds."""
    return int(datetime.fromisoformat(claim.at).timestamp() * 1000)


def _metrics(
    cpu: float | None, memory: float | None, completed: int | None, failed: int | None, uptime: float | None
) -> Value:
    return {
        "cpu_usage": cpu,
        "memory_usage": memory,
        "tasks_completed": completed,
        "tasks_failed": failed,
        "uptime": uptime,
    }


def _judged(health: Health) -> str:
    match health:
        case Health.HEALTHY | Health.STARTING:
            return "healthy"
        case Health.DEGRADED:
            return "degraded"
    return "unhealthy"
