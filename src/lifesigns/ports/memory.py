"""The memory: values by key, which others look up. Unlike the other ports it blocks: it has a thread of its own.

The keys are those of Task Sentinel's protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

WORKERS: Final = "task-sentinel/workers/"
HEARTBEAT: Final = "/heartbeat"
SAMPLES: Final = "task-sentinel/metrics/heartbeats/"
RECOVERIES: Final = "task-sentinel/metrics/lock-recoveries/"
TASKS: Final = "task-sentinel/tasks/"
LOCK: Final = "/lock"


def heartbeat_key(worker_id: str) -> str:
    """Of its last heartbeat."""
    return f"{WORKERS}{worker_id}{HEARTBEAT}"


def sample_key(worker_id: str, at_ms: int | str) -> str:
    """Of its numbers at that moment."""
    return f"{SAMPLES}{worker_id}/{at_ms}"


def recovery_key(at_ms: int) -> str:
    """Of a lock that was released at that moment."""
    return f"{RECOVERIES}{at_ms}"


def lock_key(task_id: str) -> str:
    """Of who holds a task."""
    return f"{TASKS}{task_id}{LOCK}"


class Memory(Protocol):
    """Values by key. Every call may wait for seconds and raises `AdapterError`."""

    def put(self, key: str, value: str) -> None: ...
    def get(self, key: str) -> str | None: ...
    def keys(self, pattern: str = "*") -> list[str]: ...
    def delete(self, keys: Sequence[str]) -> None: ...
    def close(self) -> None: ...
