"""A store that stands still, fails or breaks when it is told to."""

from __future__ import annotations

import asyncio

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.errors import AdapterError
from lifesigns.ports import Commit


class FaultyStore(MemoryStore):
    """Keeps what a memory store keeps; `error` is raised instead, `hold` makes pages wait."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.error: Exception | None = None
        self.pages: list[Commit] = []
        """What was kept."""
        self._open = asyncio.Event()
        self._open.set()
        self.arrived = asyncio.Event()
        """A page stands at the door."""

    def hold(self) -> None:
        self._open.clear()
        self.arrived.clear()

    def go_on(self) -> None:
        self._open.set()

    def fail(self, text: str = "it is away", *, transient: bool = True) -> None:
        self.error = AdapterError(text, transient=transient)

    def heal(self) -> None:
        self.error = None

    async def commit(self, page: Commit) -> None:
        self.arrived.set()
        await self._open.wait()
        if self.error is not None:
            raise self.error
        await super().commit(page)
        self.pages.append(page)

    async def ping(self) -> None:
        if self.error is not None:
            raise self.error
        await super().ping()
