"""Belief copy: the beliefs of the hub that judges, in the memory of one that stands by.

It reads all of them once and then, every few seconds, what changed. So a takeover does not wait until a large fleet is
read and decoded: the hub reads what changed last, and goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from lifesigns.errors import AdapterError
from lifesigns.hub.memory import Recall
from lifesigns.ports import Belief, Store
from lifesigns.ports.store import BeliefMark

FOLLOW_EVERY: Final = 5.0
SHARE_MAX: Final = 0.05
"""The share of its time that following takes, at most. With 100,000 agents PostgreSQL needs about 0.1 s to find what
changed; a store that needs longer is asked more rarely ..."""
FOLLOW_AT_LEAST_EVERY: Final = 30.0
"""... but often enough that what is left to read at a takeover is little."""

log: Final = logging.getLogger("lifesigns.hub")


class BeliefCopy:
    """Follows the beliefs in a store. The hub that takes over catches up for the last time when nobody else can write."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.recall = Recall()
        """What was read."""
        self._mark: BeliefMark | None = None
        """Up to where; None: from nowhere."""
        self._hurried = asyncio.Event()
        """The next look is wanted now."""

    @property
    def commit(self) -> int:
        """The last commit of which everything is here; -1: of none."""
        return -1 if self._mark is None else self._mark.commit

    def hurry(self) -> None:
        """Look again now, or as soon as the look in progress is over."""
        self._hurried.set()

    async def follow(self) -> None:
        """Catch up again and again, for ever. A store that is away is read anew when it is back."""
        loop = asyncio.get_running_loop()
        while True:
            began_at = loop.time()
            begins = self._mark is None
            try:
                await self.catch_up()
            except AdapterError as error:
                log.debug("the beliefs of the hub that judges are not read: %s", error)
            else:
                if begins:
                    log.info("following %d beliefs", len(self.recall), extra={"action": "following"})
            rest_for = (loop.time() - began_at) / SHARE_MAX
            with suppress(TimeoutError):
                async with asyncio.timeout(min(max(FOLLOW_EVERY, rest_for), FOLLOW_AT_LEAST_EVERY)):
                    await self._hurried.wait()
            self._hurried.clear()

    async def catch_up(self) -> None:
        """Read what changed. If this is cancelled, the next call reads the same again: the order does not matter."""
        try:
            mark = await self._store.belief_mark()
            if self._mark is None or not mark.follows(self._mark):
                self.recall, self._mark = Recall(), None
            await self._store.read_beliefs(self._mark, self._take)
            if len(self.recall) > mark.count:
                self.recall.keep_only(await self._store.read_belief_keys())
        except AdapterError:
            self._mark = None
            raise
        self._mark = mark

    async def _take(self, rows: Sequence[Belief]) -> None:
        self.recall.take(rows)
        await asyncio.sleep(0)  # The store may have had the rows at hand.
