"""Sentinel memory: a worker's heartbeats in a memory, under the keys of Task Sentinel's protocol.

    task-sentinel/workers/WORKER/heartbeat                  the last heartbeat
    task-sentinel/workers/WORKER/heartbeat-failures         the last writes that were given up
    task-sentinel/metrics/heartbeats/WORKER/TIMESTAMP       one a heartbeat; the last `SERIES_MAX` are kept
    task-sentinel/tasks/TASK/lock                           who holds a task

Times are Unix times in milliseconds, as there.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import asdict

from lifesigns.agent.memory_writer import ALERT_AFTER, MemoryWriter, WriteFailure
from lifesigns.ports.memory import Memory, heartbeat_key, lock_key, sample_key

SERIES_MAX: Final = 288
"""A day of heartbeats every five minutes: the server reads and writes all of it each time."""


class SentinelMemory:
    """What one worker keeps. No call waits."""

    def __init__(
        self,
        worker_id: str,
        memory: Memory,
        *,
        attempts: int,
        delay: float,
        alert: Callable[[WriteFailure], object] | None,
    ) -> None:
        self._worker_id = worker_id
        self._alert = alert
        self._writer = MemoryWriter(memory, attempts=attempts, delay=delay, on_failure=self._failed)
        self._series: deque[str] = deque()
        self._told: WriteFailure | None = None
        """The last failure that is written down, or about to be."""

    def start(self) -> None:
        self._writer.start()

    def stop(self, within: float) -> None:
        self._writer.stop(within)

    def heartbeat(
        self, health: str, tasks: Sequence[str], capacity: int, metrics: Mapping[str, float]
    ) -> None:
        now = time.time_ns() // 1_000_000
        heartbeat = {
            "worker_id": self._worker_id,
            "timestamp": now,
            "health_status": health,
            "current_tasks": list(tasks),
            "capacity_available": capacity,
            "metrics": dict(metrics),
        }
        self._writer.put(heartbeat_key(self._worker_id), json.dumps(heartbeat))
        sample = {
            "timestamp": now,
            "health_status": health,
            "task_count": len(tasks),
            "capacity_available": capacity,
            "metrics": dict(metrics),
        }
        key = sample_key(self._worker_id, now)
        self._writer.put(key, json.dumps(sample))
        self._series.append(key)
        while len(self._series) > SERIES_MAX:
            self._writer.delete(self._series.popleft())
        self._tell_failures()

    def locked(self, task_id: str) -> None:
        lock = {"worker_id": self._worker_id, "task_id": task_id, "claimed_at": time.time_ns() // 1_000_000}
        self._writer.put(lock_key(task_id), json.dumps(lock))

    def unlocked(self, task_id: str) -> None:
        self._writer.delete(lock_key(task_id))

    def failures(self) -> list[WriteFailure]:
        return list(self._writer.failures)

    def _tell_failures(self) -> None:
        """Write down what is not yet. If that fails, too, it is a failure itself: the next heartbeat brings all of them."""
        failures = self.failures()
        if failures and failures[-1] is not self._told:
            self._told = failures[-1]
            kept = [{**asdict(one), "timestamp": int(one.timestamp * 1000)} for one in failures]
            self._writer.put(f"{heartbeat_key(self._worker_id)}-failures", json.dumps(kept))

    def _failed(self, failure: WriteFailure) -> None:
        if self._alert is not None and failure.consecutive_failures == ALERT_AFTER:
            self._alert(failure)
