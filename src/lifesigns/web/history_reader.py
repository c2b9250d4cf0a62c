"""History reader: the past of a running hub, as far as screens ask for it again and again. What was read once is not read again."""

from __future__ import annotations

import asyncio
from typing import Final

from lifesigns.ports import Store
from lifesigns.views.interventions import REMEMBERED_MAX, TYPES, Interventions

AT_ONCE: Final = 1000


class HistoryReader:
    """What happened lately."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._interventions = Interventions()
        self._read_until: int | None = None
        self._reading = asyncio.Lock()

    async def interventions(self) -> Interventions:
        """The newest interventions, with everything that is kept by now."""
        async with self._reading:
            if self._read_until is None:
                events = await self._store.events(types=TYPES, newest_first=True, limit=REMEMBERED_MAX)
                self._interventions.note(reversed(events))
                self._read_until = events[0].id if events else 0
            while events := await self._store.events(after=self._read_until, types=TYPES, limit=AT_ONCE):
                self._interventions.note(events)
                self._read_until = events[-1].id
        return self._interventions
