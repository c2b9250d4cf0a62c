"""History reader: the past of a running hub that screens ask for again and again. It reads the store once, and then
follows the feed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from lifesigns.hub.feed import Feed
from lifesigns.hub.http_receiver import NotLeader
from lifesigns.hub.hub import Hub
from lifesigns.ports import Event
from lifesigns.views.builders.interventions import REMEMBERED_MAX, TYPES, Interventions


class HistoryReader:
    """What happened lately."""

    def __init__(self, hub: Hub, feed: Feed) -> None:
        self._hub = hub
        self._interventions = Interventions()
        self._read = False
        self._reading = asyncio.Lock()
        self._told: list[Event] = []
        """The events since reading began."""
        feed.observe(self._note)

    async def interventions(self) -> Interventions:
        """The newest interventions, with everything stored by now. Raises `NotLeader` if another hub stores them: our
        feed does not have those."""
        if self._hub.committer.deposed:
            raise NotLeader
        if not self._read:
            async with self._reading:
                if not self._read:
                    await self._read_all()
        return self._interventions

    async def _read_all(self) -> None:
        self._told.clear()
        events = await self._hub.store.events(types=TYPES, newest_first=True, limit=REMEMBERED_MAX)
        read_until = events[0].id if events else 0
        self._interventions.note(reversed(events))
        self._interventions.note(event for event in self._told if event.id > read_until)
        self._read = True
        self._told.clear()

    def _note(self, events: Sequence[Event]) -> None:
        if self._read:
            self._interventions.note(events)
        elif self._reading.locked():
            self._told.extend(events)
