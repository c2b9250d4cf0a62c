"""Witnesses: store every checkpoint elsewhere, without delaying the hub.

Each witness has a task of its own, and gets the seals of the store one after the other, from the last one it took. So
nothing waits in memory for one that is away, and one that comes back gets all it missed, also after a restart of the
hub; as far back as the store has them (`SEALS_FOR`), and the newest in any case.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from lifesigns.errors import AdapterError
from lifesigns.ports import Seal, Store, Witness

SEND_FOR: Final = 15.0
"""Seconds a witness may take."""
RETRY_AFTER: Final = 2.0
"""Before the second try; each later one waits twice as long, up to `RETRY_MAX`."""
RETRY_MAX: Final = 60.0
BEHIND_AFTER: Final = 300.0
"""How long a witness may fail before people get an alert."""
LAST_FOR: Final = 3.0
"""How long the hub waits for them when it stops."""

log: Final = logging.getLogger("lifesigns.hub")


class _WitnessState:
    """The state of one witness."""

    def __init__(self, name: str, witness: Witness) -> None:
        self.name = name
        self.witness = witness
        self.news = asyncio.Event()
        self.failing_since: float | None = None
        self.why = ""


class Witnesses:
    """All witnesses."""

    def __init__(self, store: Store, witnesses: Sequence[Witness], clock: Callable[[], float]) -> None:
        self._store = store
        self._clock = clock
        # Two may have the same name, because addresses are secret.
        self._all = [
            _WitnessState(f"{one.name}#{n}" if n else one.name, one) for n, one in enumerate(witnesses)
        ]
        self._sizes: dict[str, int] = {}
        """For each the size of the log up to which it has the seals; removed witnesses are left out."""
        self._newest: Seal | None = None
        self._ending = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def continue_from(self, sizes: dict[str, int]) -> None:
        """Continue from these sizes, and update them in place. A new witness begins with the newest seal."""
        self._sizes = sizes
        for name in sizes.keys() - {one.name for one in self._all}:
            del sizes[name]

    def rewind_to(self, size: int) -> None:
        """A person lets the log continue from this size: seals above it are new, even for witnesses that had more."""
        for name, known in self._sizes.items():
            self._sizes[name] = min(known, size)

    def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._run(one), name=f"lifesigns witness {one.name}") for one in self._all
        ]
        for one in self._all:
            one.news.set()  # For what it missed.

    def send(self, seal: Seal) -> None:
        """Send a new checkpoint."""
        self._newest = seal
        for one in self._all:
            one.news.set()

    def why_behind(self, now: float) -> str:
        """Which of them fail, and why; empty if none."""
        behind = [
            f"{one.witness.name}: {one.why}"
            for one in self._all
            if one.failing_since is not None and now - one.failing_since >= BEHIND_AFTER
        ]
        return "; ".join(behind)

    async def stop(self) -> None:
        """Send the last seal, as far as that works within a moment. The store is closed by now."""
        self._ending.set()
        for one in self._all:
            one.news.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LAST_FOR)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for one in self._all:
            await one.witness.close()

    async def _run(self, one: _WitnessState) -> None:
        wait_for = RETRY_AFTER
        while True:
            await one.news.wait()
            one.news.clear()
            try:
                while (seal := await self._next(one.name)) is not None:
                    async with asyncio.timeout(SEND_FOR):
                        await one.witness.keep(seal.note)
                    self._took(one, seal)
                    wait_for = RETRY_AFTER
            except (AdapterError, TimeoutError) as error:
                self._failed(one, str(error) or f"no answer within {SEND_FOR:g} s")
                if not self._ending.is_set():
                    await self._pause(wait_for)
                    wait_for = min(2 * wait_for, RETRY_MAX)
                    one.news.set()
            if self._ending.is_set():
                return

    async def _next(self, name: str) -> Seal | None:
        """The next seal for this witness."""
        known = self._sizes.get(name)
        if self._ending.is_set():
            return self._newest if self._newest is not None and self._newest.size > (known or 0) else None
        if known is None:
            found = await self._store.seals(newest_first=True, limit=1)
        else:
            found = await self._store.seals(after=known, limit=1)
        return found[0] if found else None

    async def _pause(self, wait_for: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_for):
                await self._ending.wait()

    def _took(self, one: _WitnessState, seal: Seal) -> None:
        self._sizes[one.name] = seal.size
        if one.failing_since is not None:
            log.warning(
                "the witness %s takes checkpoints again", one.name, extra={"action": "audit_witness_back"}
            )
        one.failing_since = None

    def _failed(self, one: _WitnessState, why: str) -> None:
        if one.failing_since is None:
            log.warning(
                "the witness %s did not take a checkpoint, and is asked again: %s",
                one.name,
                why,
                extra={"action": "audit_not_witnessed"},
            )
            one.failing_since = self._clock()
        one.why = why
