"""Pages: what the engine wants kept, written one page after the other.

While one page is on its way to the disk the next one fills up: under load pages grow and commits do not become more.
A page that could not be written is tried again, the same page, for as long as it takes; the hub watches on meanwhile,
and nothing that is not kept is carried out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final

from lifesigns.core.effects import Order
from lifesigns.errors import AdapterError
from lifesigns.ports import Belief, Event, KeptOrder, Page, Sample, Store

EVENTS_MAX: Final = 200_000
"""Events kept in memory while the store is away, about 100 MB. Then the oldest unkept ones are lost, and counted."""

RETRY_AFTER: Final = (0.1, 0.5, 1.0, 2.0)

log = logging.getLogger("lifesigns.hub")


class Pages:
    """Writes pages; carries out what they hold when they are kept."""

    def __init__(
        self,
        store: Store,
        number: int,
        *,
        beliefs: Callable[[], Sequence[Belief]],
        kept: Callable[[Sequence[Event], Sequence[Order]], None],
        encode: Callable[[Order], KeptOrder],
    ) -> None:
        self._store = store
        self._number = number
        self._beliefs = beliefs
        self._kept = kept
        self._encode = encode
        self._events: list[Event] = []
        self._orders: list[Order] = []
        self._settled: list[str] = []
        self._samples: list[Sample] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._wanted = asyncio.Event()
        self._finishing = False
        self.lost = 0
        """Events that had no place any more."""
        self.trouble: AdapterError | None = None
        """Why the last attempt failed; None if it did not."""

    # --- what is to be written ------------------------------------------------------------------------

    def add(self, events: Sequence[Event] = (), orders: Sequence[Order] = ()) -> None:
        self._events.extend(events)
        self._orders.extend(orders)
        if len(self._events) > EVENTS_MAX:
            over = len(self._events) - EVENTS_MAX
            del self._events[:over]
            self.lost += over
        self._wanted.set()

    def settle(self, order_id: str) -> None:
        """The outcome of an order came back: it is not given again after a restart."""
        self._settled.append(order_id)
        self._wanted.set()

    def sample(self, samples: Sequence[Sample]) -> None:
        self._samples.extend(samples)
        self._wanted.set()

    async def kept(self) -> None:
        """Return when everything said so far is kept; fails if nothing ever will be any more."""
        if self.trouble is not None and not self.trouble.transient:
            raise self.trouble
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        self._wanted.set()
        await waiting

    # --- writing --------------------------------------------------------------------------------------

    async def write_on(self) -> None:
        """One page after the other, until it is told to finish."""
        while not self._finishing:
            await self._wanted.wait()
            await self.write()

    def finish(self) -> None:
        """Let `write_on` end after one more page: a page that is on its way must not be cut off."""
        self._finishing = True
        self._wanted.set()

    async def write(self) -> None:
        """One page with everything there is now."""
        self._wanted.clear()
        events, self._events = self._events, []
        orders, self._orders = self._orders, []
        settled, self._settled = self._settled, []
        samples, self._samples = self._samples, []
        waiting, self._waiting = self._waiting, []
        page = Page(
            self.next_number(), self._beliefs(), events, [self._encode(o) for o in orders], settled, samples
        )
        try:
            await self._commit(page)
        except AdapterError as error:
            for one in waiting:
                if not one.done():
                    one.set_exception(error)
            raise
        self._kept(events, orders)
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def next_number(self) -> int:
        self._number += 1
        return self._number

    async def _commit(self, page: Page) -> None:
        attempt = 0
        while True:
            try:
                await self._store.commit(page)
            except AdapterError as error:
                if self.trouble is None:
                    log.error("the store takes nothing: %s", error, extra={"action": "store_failed"})
                self.trouble = error
                if not error.transient:
                    raise
                await asyncio.sleep(RETRY_AFTER[min(attempt, len(RETRY_AFTER) - 1)])
                attempt += 1
            else:
                if self.trouble is not None:
                    log.warning("the store takes pages again", extra={"action": "store_back"})
                self.trouble = None
                return
