"""Recovery memory: the hub's recoveries of locks in an MCP memory, under the keys of Task Sentinel's protocol.

    task-sentinel/metrics/lock-recoveries/TIMESTAMP    one a recovery; the last `KEPT_MAX` of this hub are kept
    task-sentinel/tasks/TASK/lock                      removed: nobody holds that task any more

It hears the hub's events after they are stored, and a thread of its own writes: a memory that is slow or away holds
nothing up. After three writes that failed in a row people are told (`hub_memory_lost`).
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from lifesigns.agent.memory_writer import ALERT_AFTER, MemoryWriter, WriteFailure
from lifesigns.assembly.memories import memory_in
from lifesigns.hub.service import Service
from lifesigns.ports import Event
from lifesigns.ports.memory import Memory, lock_key, recovery_key
from lifesigns.views.builders import worker_keys
from lifesigns.views.builders.claims import recovered_claims
from lifesigns.views.claims import RecoveredClaim

KEPT_MAX: Final = 1000
"""The server reads and writes all of it each time."""
STOPS_WITHIN: Final = 5.0


class RecoveryMemory:
    """Writes each recovery once. No call waits but `stop`."""

    def __init__(self, memory: Memory) -> None:
        self._writer = MemoryWriter(memory, on_failure=self._failed)
        self._kept: deque[str] = deque()
        self._newest = 0
        self._why = ""

    def start(self) -> None:
        self._writer.start()

    def stop(self) -> None:
        self._writer.stop(STOPS_WITHIN)

    def hear(self, events: Sequence[Event]) -> None:
        """What the hub tells."""
        for claim in recovered_claims(events):
            self._keep(claim)

    def why_lost(self, now: float) -> str:
        """Why nothing can be written; empty if it can."""
        return self._why if self._writer.consecutive >= ALERT_AFTER else ""

    def _keep(self, claim: RecoveredClaim) -> None:
        self._newest = max(
            worker_keys.recovered_at(claim), self._newest + 1
        )  # Two in one millisecond are two.
        key = recovery_key(self._newest)
        self._writer.delete(lock_key(claim.task_id))
        self._writer.put(key, json.dumps(worker_keys.recovery(claim)))
        self._kept.append(key)
        if len(self._kept) > KEPT_MAX:
            self._writer.delete(self._kept.popleft())

    def _failed(self, failure: WriteFailure) -> None:
        self._why = failure.error


@asynccontextmanager
async def recoveries_kept(service: Service, file: Path | None) -> AsyncIterator[None]:
    """Keep the recoveries of a hub in the memory of this file, if there is one."""
    if file is None:
        yield
        return
    memory = RecoveryMemory(memory_in(file))
    service.feed.observe(memory.hear)
    service.watch_memory(memory.why_lost)
    memory.start()
    try:
        yield
    finally:
        await asyncio.to_thread(memory.stop)
