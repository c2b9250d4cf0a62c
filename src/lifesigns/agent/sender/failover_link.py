"""Failover link: the connection to the one of several hubs that takes our beats.

It uses one at a time. When that hub no longer takes beats (it is gone, cut off, or deposed and answers 503), the next
try goes to the next one, round and round. Unsent messages go there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from lifesigns.core.effects import Order
from lifesigns.core.signals import Beat, Report
from lifesigns.errors import AdapterError
from lifesigns.ports import Link, SavedState

CLOSE_FOR: Final = 1.0

T = TypeVar("T")

log: Final = logging.getLogger("lifesigns.sender")


class FailoverLink:
    """A `Link` over several, each made anew when its turn comes."""

    def __init__(self, ways: Sequence[tuple[str, Callable[[], Link]]]) -> None:
        self._ways = ways
        self._turn = 0
        self._link = ways[0][1]()
        self._open = False
        self._obey: Callable[[Order], bool] = lambda _: False
        self._followed: dict[str, None] = {}
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def tells_stopping(self) -> bool:
        return self._link.tells_stopping

    async def open(self, obey: Callable[[Order], bool]) -> None:
        self._obey = obey
        await self._with_failover(self._reach())

    async def follow(self, agent_id: str) -> None:
        self._followed[agent_id] = None
        if self._open:
            await self._link.follow(agent_id)

    async def unfollow(self, agent_id: str) -> None:
        self._followed.pop(agent_id, None)
        if self._open:
            await self._link.unfollow(agent_id)

    async def carry_beats(self, beats: Sequence[Beat]) -> bool:
        return await self._with_failover(self._carry_beats(beats))

    async def carry_reports(self, number: int, reports: Sequence[Report]) -> None:
        await self._reached().carry_reports(number, reports)

    async def upload(self, state: SavedState) -> bool:
        return await self._reached().upload(state)

    async def close(self) -> None:
        await self._link.close()
        for closing in self._closing:
            closing.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)

    # --- which of them --------------------------------------------------------------------------------------------

    async def _carry_beats(self, beats: Sequence[Beat]) -> bool:
        await self._reach()
        return await self._link.carry_beats(beats)

    async def _reach(self) -> None:
        if not self._open:
            await self._link.open(self._obey)
            for agent_id in self._followed:
                await self._link.follow(agent_id)
            self._open = True

    def _reached(self) -> Link:
        if not self._open:
            raise AdapterError("none of the hubs has been reached yet")
        return self._link

    async def _with_failover(self, work: Coroutine[Any, Any, T]) -> T:
        """Beats show which hub is there: when they fail, everything goes to the next one from now on."""
        try:
            return await work
        except (AdapterError, OSError, asyncio.CancelledError):  # A try that takes too long is cancelled.
            self._move_on()
            raise

    def _move_on(self) -> None:
        closing = asyncio.get_running_loop().create_task(_close(self._link))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        before, self._turn = self._ways[self._turn][0], (self._turn + 1) % len(self._ways)
        name, make = self._ways[self._turn]
        log.info("%s takes no beats: %s is tried next", before, name)
        self._link, self._open = make(), False


async def _close(link: Link) -> None:
    with suppress(AdapterError, TimeoutError, OSError):
        async with asyncio.timeout(CLOSE_FOR):
            await link.close()
