"""Witnesses: every checkpoint goes to those who keep it elsewhere, beside the hub and never in its way.

Each has a queue and a task of its own. A checkpoint that is not taken is tried again a few times, then the next one has
its turn: that one says everything the lost one said.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from lifesigns.errors import AdapterError
from lifesigns.ports import Witness

QUEUE_MAX: Final = 100
TRIES: Final = 5
KEEP_FOR: Final = 15.0
"""Seconds a witness may take."""
RETRY_AFTER: Final = 2.0
"""Before the second try; twice that before the next."""
LAST_FOR: Final = 3.0
"""Seconds that the hub waits for them when it stops."""

log: Final = logging.getLogger("lifesigns.hub")


class Witnesses:
    """Those who keep checkpoints elsewhere."""

    def __init__(self, witnesses: Sequence[Witness] = ()) -> None:
        self._witnesses = witnesses
        self._queues: list[deque[str]] = [deque(maxlen=QUEUE_MAX) for _ in witnesses]
        self._bells = [asyncio.Event() for _ in witnesses]
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._tell_on(*one), name=f"lifesigns witness {one[0].name}")
            for one in zip(self._witnesses, self._queues, self._bells, strict=True)
        ]

    def tell(self, note: str) -> None:
        """There is a new checkpoint."""
        for queue, bell in zip(self._queues, self._bells, strict=True):
            queue.append(note)
            bell.set()

    async def stop(self) -> None:
        """Tell the last ones, as far as they can be told in a moment."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_FOR):
                while any(self._queues):  # noqa: ASYNC110 -- at the end of a hub, for a moment
                    await asyncio.sleep(0.02)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for witness in self._witnesses:
            await witness.close()

    async def _tell_on(self, witness: Witness, queue: deque[str], bell: asyncio.Event) -> None:
        while True:
            await bell.wait()
            bell.clear()
            while queue:
                note = queue[0]
                await _keep(witness, note)
                if queue and queue[0] == note:
                    queue.popleft()


async def _keep(witness: Witness, note: str) -> None:
    wait_for = RETRY_AFTER
    for n in range(TRIES):
        try:
            async with asyncio.timeout(KEEP_FOR):
                await witness.keep(note)
        except (AdapterError, TimeoutError) as error:
            why = str(error) or f"no answer within {KEEP_FOR:g} s"
            transient = not isinstance(error, AdapterError) or error.transient
            if n + 1 == TRIES or not transient:
                extra = {"action": "audit_not_witnessed"}
                log.error("the witness %s did not take a checkpoint: %s", witness.name, why, extra=extra)
                return
            await asyncio.sleep(wait_for)
            wait_for *= 2
        else:
            return
