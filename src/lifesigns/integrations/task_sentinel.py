"""HeartbeatMonitor: the worker's side of Task Sentinel's heartbeat protocol, over `Sender`.

For its users: same methods, same config keys, milliseconds as there. The hub finds stale locks, so the worker announces
its config: after `stale_threshold` without a beat the worker is gone and its claims are stale, and the hub checks a
stale claim again after `detection_interval` before it releases it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

from lifesigns.agent.sender.vitals import VitalSigns
from lifesigns.assembly.senders import Sender
from lifesigns.core.policy import OverloadPolicy, Policy
from lifesigns.core.signals import Metrics
from lifesigns.errors import PolicyError, UsageError

DEFAULTS: Final[Mapping[str, float]] = {
    "heartbeat_interval": 300_000.0,
    "stale_threshold": 600_000.0,
    "detection_interval": 60_000.0,
    "retry_attempts": 3.0,
    "retry_delay": 5_000.0,
}


class HeartbeatMonitor:
    """Beats for one worker, every 5 minutes unless the config says otherwise. `hub` and `token` as for `Sender`."""

    def __init__(
        self,
        worker_id: str,
        repo: str | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        hub: str | None = None,
        token: str | None = None,
    ) -> None:
        unknown = set(config or {}) - set(DEFAULTS)
        if unknown:
            raise UsageError(f"config has {', '.join(sorted(unknown))}; known are {', '.join(DEFAULTS)}")
        settings = {**DEFAULTS, **(config or {})}
        self._worker = _Worker(
            worker_id,
            hub,
            token=token,
            profile="fleet",
            interval=settings["heartbeat_interval"] / 1000,
            retries=int(settings["retry_attempts"]),
            retry_after=settings["retry_delay"] / 1000,
            metadata=None if repo is None else {"repo": repo},
        )
        self._worker.announce(
            {
                "silence": {"timeout": settings["stale_threshold"] / 1000},
                "claim": {
                    "lease": settings["stale_threshold"] / 1000,
                    "check_wait": settings["detection_interval"] / 1000,
                },
            }
        )
        self._vitals = VitalSigns()
        self._started_at = time.monotonic()

    def start(self) -> None:
        """Begin to beat; the first beat goes out at once."""
        self._worker.start()

    def stop(self) -> None:
        """Report the end, and stop."""
        self._worker.close()

    def add_task(self, task_id: str) -> None:
        """Add a task to the beats."""
        self._worker.take(task_id)

    def remove_task(self, task_id: str) -> None:
        """Remove a task from the beats. `record_...` says whether it succeeded."""
        self._worker.put_down(task_id)

    def record_task_completion(self) -> None:
        """Count a successful task."""
        self._worker.count_task(done=True)

    def record_task_failure(self) -> None:
        """Count a failed task."""
        self._worker.count_task(done=False)

    def get_metrics(self) -> dict[str, float]:
        """`cpu_usage` (percent), `memory_usage` (MB), `tasks_completed`, `tasks_failed`, `uptime` (seconds)."""
        vitals, counted = self._vitals.measure(), self._worker.counted()
        return {
            "cpu_usage": vitals.cpu_percent or 0.0,
            "memory_usage": vitals.memory_mb or 0.0,
            "tasks_completed": counted.tasks_completed or 0,
            "tasks_failed": counted.tasks_failed or 0,
            "uptime": time.monotonic() - self._started_at,
        }

    def get_health_status(self) -> str:
        """`healthy`, `degraded` or `unhealthy`, by CPU and memory alone, as in Task Sentinel."""
        limits, metrics = OverloadPolicy(), self.get_metrics()
        cpu, memory = metrics["cpu_usage"], metrics["memory_usage"]
        if cpu > limits.cpu_unhealthy or memory > limits.memory_unhealthy_mb:
            return "unhealthy"
        return "degraded" if cpu >= limits.cpu_degraded or memory >= limits.memory_degraded_mb else "healthy"


class _Worker(Sender):
    """A sender that counts tasks apart from taking them, as that protocol does."""

    def announce(self, changes: Mapping[str, Mapping[str, float]]) -> None:
        """Add to the policy that this worker registers with."""
        policy: dict[str, Any] = dict(self._orders.policy or {})
        for section, values in changes.items():
            policy[section] = {**policy.get(section, {}), **values}
        try:
            Policy().but(policy)
        except PolicyError as error:
            raise UsageError(
                f"config: {error} (heartbeat_interval, stale_threshold and detection_interval)"
            ) from None
        self._orders.policy = policy

    def take(self, task_id: str) -> None:
        self.task(task_id).__enter__()

    def put_down(self, task_id: str) -> None:
        self._builder.puts_down(task_id, done=None)

    def count_task(self, *, done: bool) -> None:
        self._builder.counts(done=done)

    def counted(self) -> Metrics:
        statement = self._builder
        return Metrics(tasks_completed=statement.tasks_completed, tasks_failed=statement.tasks_failed)
