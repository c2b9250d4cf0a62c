"""HeartbeatMonitor: the worker's side of Task Sentinel's heartbeat protocol, over `Sender`.

For its users: same methods, same config keys, milliseconds as there, in snake_case or camelCase. The hub finds stale
locks, so the worker announces its config: after `stale_threshold` without a beat the worker is gone and its claims are
stale, and the hub checks a stale claim again after `detection_interval` before it releases it. A task that is added is
claimed at the hub, and every beat of the worker holds all its claims.

With `memory` (the file of an MCP memory server) each heartbeat is also written there, under the keys of the protocol
(`sentinel_memory.py`), from a thread of its own. Failures are retried, counted and told; the worker goes on.

A hub that rebalances (`fleet.moves_per_minute`) offers it tasks of others, and asks it for its own while it is unwell:
`accept_moves` says what it does then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from lifesigns.agent.memory_writer import WriteFailure
from lifesigns.agent.sender.session import Alert
from lifesigns.agent.sender.vitals import VitalSigns
from lifesigns.agent.sentinel_memory import SentinelMemory
from lifesigns.assembly.memories import memory_in
from lifesigns.assembly.senders import Sender
from lifesigns.core import signals as s
from lifesigns.core.effects import AskBack, OfferTask
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

STOPS_WITHIN: Final = 5.0
PING_WAIT_MAX: Final = 30.0
PING_SHARE: Final = 0.1
"""Of the stale threshold: two pings have to fit into it, however short it is."""


class HeartbeatMonitor:
    """Beats for one worker, every 5 minutes unless the config says otherwise. `hub` and `token` as for `Sender`.

    `capacity` is how many tasks it can work on at once; what is left of it goes with each beat. `on_alert` is called
    after three failures in a row of sending (an `Alert`) or of writing to the memory (a `WriteFailure`).
    """

    def __init__(
        self,
        worker_id: str,
        repo: str | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        hub: str | None = None,
        token: str | None = None,
        capacity: int | None = None,
        memory: str | Path | None = None,
        on_alert: Callable[[Alert | WriteFailure], object] | None = None,
    ) -> None:
        settings = _settings(config or {})
        self._every = settings["heartbeat_interval"] / 1000
        self._worker = _Worker(
            worker_id,
            hub,
            token=token,
            profile="fleet",
            interval=self._every,
            retries=int(settings["retry_attempts"]),
            retry_after=settings["retry_delay"] / 1000,
            metadata=None if repo is None else {"repo": repo},
            on_alert=on_alert,
        )
        self._worker.announce(
            {
                "silence": {
                    "timeout": settings["stale_threshold"] / 1000,
                    "ping_wait": min(PING_WAIT_MAX, PING_SHARE * settings["stale_threshold"] / 1000),
                },
                "claim": {
                    "lease": settings["stale_threshold"] / 1000,
                    "check_wait": settings["detection_interval"] / 1000,
                },
            }
        )
        self._worker_id = worker_id
        self._capacity = capacity
        self._vitals = VitalSigns()
        self._started_at = time.monotonic()
        self._tasks: dict[str, None] = {}
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._memory = (
            None
            if memory is None
            else SentinelMemory(
                worker_id,
                memory_in(memory),
                attempts=int(settings["retry_attempts"]),
                delay=settings["retry_delay"] / 1000,
                alert=on_alert,
            )
        )
        self._thread = threading.Thread(target=self._keep_current, name="lifesigns-worker", daemon=True)
        self._tell_capacity()

    # --- the seed's table -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to beat; the first beat goes out at once."""
        self._worker.status(self.get_health_status())
        self._worker.start()
        if self._memory is not None:
            self._memory.start()
        self._thread.start()

    def stop(self) -> None:
        """Report the end, and stop."""
        self._stopping.set()
        self._worker.close()
        if self._thread.is_alive():
            self._thread.join(STOPS_WITHIN)
        if self._memory is not None:
            self._memory.stop(STOPS_WITHIN)

    def add_task(self, task_id: str) -> None:
        """Claim a task and add it to the beats, which hold the claim."""
        self._worker.take(task_id)
        with self._lock:
            self._tasks[task_id] = None
        self._tell_capacity()
        if self._memory is not None:
            self._memory.locked(task_id)

    def remove_task(self, task_id: str) -> None:
        """Give the claim back and remove the task from the beats. `record_...` says whether it succeeded."""
        self._worker.put_down(task_id)
        self._forget(task_id)

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
        """`healthy`, `degraded` or `unhealthy`, by CPU and memory alone, as in Task Sentinel. Each beat declares it; the
        hub shows it beside its own verdict."""
        limits, metrics = OverloadPolicy(), self.get_metrics()
        cpu, memory = metrics["cpu_usage"], metrics["memory_usage"]
        if cpu > limits.cpu_unhealthy or memory > limits.memory_unhealthy_mb:
            return "unhealthy"
        return "degraded" if cpu >= limits.cpu_degraded or memory >= limits.memory_degraded_mb else "healthy"

    # --- beside it --------------------------------------------------------------------------------------------------

    def get_current_tasks(self) -> list[str]:
        """The tasks it works on, in the order it took them."""
        with self._lock:
            return list(self._tasks)

    def get_capacity_available(self) -> int | None:
        """How many more tasks it can take; None if nobody said how many it can work on."""
        return None if self._capacity is None else max(0, self._capacity - len(self.get_current_tasks()))

    def get_failures(self) -> list[WriteFailure]:
        """The last writes to the memory that were given up, the newest last."""
        return [] if self._memory is None else self._memory.failures()

    def accept_moves(
        self,
        *,
        take: Callable[[str], bool] | None = None,
        give_back: Callable[[str], bool] | None = None,
    ) -> None:
        """For a hub that rebalances. `take(task_id)`: whether the worker takes a task of another one that is unwell or
        gone; then it is added. `give_back(task_id)`: whether it gives one of its own back, because it is unwell and
        another has room; say no to a task that it has begun. Until this is called it takes and gives nothing."""

        def move(order: OfferTask | AskBack) -> None:
            if isinstance(order, OfferTask):
                if take is not None and take(order.task_id):
                    self.add_task(order.task_id)
            elif give_back is not None and give_back(order.task_id):
                self._worker.give_back(order.task_id, order.token)
                self._forget(order.task_id)

        self._worker.when_tasks_move(move)

    addTask = add_task  # noqa: N815 - the names of the protocol
    removeTask = remove_task  # noqa: N815
    recordTaskCompletion = record_task_completion  # noqa: N815
    recordTaskFailure = record_task_failure  # noqa: N815
    getMetrics = get_metrics  # noqa: N815
    getHealthStatus = get_health_status  # noqa: N815

    def _forget(self, task_id: str) -> None:
        with self._lock:
            self._tasks.pop(task_id, None)
        self._tell_capacity()
        if self._memory is not None:
            self._memory.unlocked(task_id)

    def _tell_capacity(self) -> None:
        if self._capacity is not None:
            self._worker.capacity(self.get_capacity_available())

    def _keep_current(self) -> None:
        """Once an interval: declare the health, and write the heartbeat to the memory."""
        while not self._stopping.is_set():
            health, metrics = self.get_health_status(), self.get_metrics()
            self._worker.status(health)
            if self._memory is not None:
                tasks, capacity = self.get_current_tasks(), self.get_capacity_available()
                self._memory.heartbeat(health, tasks, capacity or 0, metrics)
            self._stopping.wait(self._every)


def _settings(config: Mapping[str, Any]) -> dict[str, float]:
    """The config, its names in either spelling."""
    settings = dict(DEFAULTS)
    for key, value in config.items():
        name = "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in key)
        if name not in DEFAULTS:
            raise UsageError(f"config has {key}; known are {', '.join(DEFAULTS)}, also in camelCase")
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            raise UsageError(f"config: {key} is {value!r}, but has to be a number greater than 0")
        settings[name] = value
    return settings


class _Worker(Sender):
    """A sender that counts tasks apart from taking them, as that protocol does."""

    def announce(self, changes: Mapping[str, Mapping[str, float]]) -> None:
        """Add to the policy that this worker registers with."""
        policy: dict[str, Any] = dict(self._orders.policy or {})
        for section, values in changes.items():
            policy[section] = {**policy.get(section, {}), **values}
        try:
            Policy().with_changes(policy)
        except PolicyError as error:
            raise UsageError(
                f"config: {error} (heartbeat_interval, stale_threshold and detection_interval)"
            ) from None
        self._orders.policy = policy

    def take(self, task_id: str) -> None:
        task = self.task(task_id)
        task.__enter__()
        self._scope.tell(s.TaskClaimed, task_id=task.id)

    def put_down(self, task_id: str) -> None:
        self._builder.end_task(task_id, done=None)
        self._scope.tell(s.TaskDone, task_id=task_id)

    def give_back(self, task_id: str, token: int) -> None:
        self._builder.end_task(task_id, done=None)
        self._scope.tell(s.TaskReleased, task_id=task_id, token=token)

    def when_tasks_move(self, callback: Callable[[OfferTask | AskBack], None]) -> None:
        self._orders.on_task_order = callback

    def count_task(self, *, done: bool) -> None:
        self._builder.count_task(done=done)

    def counted(self) -> Metrics:
        statement = self._builder
        return Metrics(tasks_completed=statement.tasks_completed, tasks_failed=statement.tasks_failed)
