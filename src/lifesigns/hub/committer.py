"""Committer: writes what the engine wants stored, one commit after the other.

While one commit is on its way to the disk the next one fills: under load commits grow larger, not more. The committer
retries a failed commit, the same one, until it succeeds; the hub watches on meanwhile, and carries out nothing that is
not stored. When there is nothing to write it pings the store now and then, to learn of a failure before the next
commit.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from lifesigns.core.effects import Order
from lifesigns.errors import AdapterError, Deposed
from lifesigns.hub.audit.log import AuditLog
from lifesigns.hub.counters import COMMIT_UP_TO, Histogram
from lifesigns.hub.order_ledger import stored_order
from lifesigns.ports import Belief, Chunk, Commit, Event, Sample, Store

EVENTS_MAX: Final = 200_000
"""Events held in memory while the store is away, about 100 MB. Beyond, the oldest are dropped and counted."""

SAMPLES_MAX: Final = 200_000
"""The same for samples: two minutes of the largest fleet, a day and more of a small one."""

CHUNKS_MAX: Final = 100
"""The same for the journal: a few megabytes, or a quarter of an hour."""

RETRY_AFTER: Final = (0.1, 0.5, 1.0, 2.0)

PING_EVERY: Final = 10.0
"""How long an idle store may be away before the hub notices."""

SLOW_AFTER: Final = 5.0
"""A commit takes milliseconds, a very large one a second. A store that needs longer does not work now, whatever it will
answer."""

log = logging.getLogger("lifesigns.hub")


class Committer:
    """Writes commits. Its caller carries out what they contain, once they are stored."""

    def __init__(self, store: Store, audit: AuditLog) -> None:
        self._store = store
        self._audit = audit
        """Its entries go into the same commit."""
        self.number = 0
        """Of the last commit."""
        self._event = 0
        """The id of the last event in it."""
        self._events: list[Event] = []
        self._orders: list[Order] = []
        self._settled: list[str] = []
        self._samples: list[Sample] = []
        self._journal: list[Chunk] = []
        self._waiting: list[asyncio.Future[None]] = []
        self._wanted = asyncio.Event()
        self._finishing = False
        self._writing: Sequence[Event] = ()
        """The events of the commit in progress."""
        self._began_at: float | None = None
        """When the commit in progress began."""
        self.lost = 0
        """Events that were dropped because the queue was full."""
        self.took = Histogram(COMMIT_UP_TO)
        """How long each commit took, in seconds."""
        self.events = 0
        """Events stored so far."""
        self.trouble: AdapterError | None = None
        """Why the last attempt failed; None if it did not."""

    @property
    def late_for(self) -> float:
        """How long the commit in progress has taken so far."""
        return 0.0 if self._began_at is None else time.monotonic() - self._began_at

    @property
    def closed(self) -> bool:
        """Whether the store will take nothing more: another hub has taken it over, or it is unusable."""
        return self.trouble is not None and not self.trouble.transient

    @property
    def deposed(self) -> bool:
        """Whether another hub has taken over the store."""
        return isinstance(self.trouble, Deposed)

    @property
    def state(self) -> str:
        """`ok`, or why the store takes no commits, or cannot return what it took."""
        if self.trouble is not None:
            return str(self.trouble)
        if self._store.damage:
            return self._store.damage
        return (
            "ok" if self.late_for < SLOW_AFTER else f"a commit has been on its way for {self.late_for:.0f} s"
        )

    @property
    def unstored(self) -> list[Event]:
        """Events not yet stored, in their order."""
        return [*self._writing, *self._events]

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
        """Record the outcome of an order: the next hub does not repeat it."""
        self._settled.append(order_id)
        self._wanted.set()

    def sample(self, samples: Sequence[Sample]) -> None:
        self._samples.extend(samples)
        del self._samples[:-SAMPLES_MAX]
        self._wanted.set()

    def journal(self, chunks: Sequence[Chunk]) -> None:
        """Add chunks. While the store is away the oldest are dropped; a gap in the numbers shows it."""
        self._journal.extend(chunks)
        del self._journal[:-CHUNKS_MAX]
        if chunks:
            self._wanted.set()

    def request_commit(self) -> None:
        """A belief changed without an event: write a commit for it."""
        self._wanted.set()

    async def wait_until_stored(self) -> None:
        """Return when everything added so far is stored; raises if the store will take nothing more."""
        if self.trouble is not None and self.closed:
            raise self.trouble
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        self._wanted.set()
        await waiting

    # --- writing --------------------------------------------------------------------------------------

    def continue_from(self, number: int, event: int) -> None:
        """Continue after the last commit and the last event of the store."""
        self.number, self._event = number, event

    async def wait_until_due(self) -> bool:
        """Return when there is something to write; False after `finish`, when everything is written."""
        while not self._wanted.is_set():
            if self._finishing:
                return False
            if not await self._something_to_write():
                await self._ping()
        return True

    def give_up(self, error: AdapterError) -> None:
        """The store will take nothing more: fail all waiters."""
        self.trouble = error
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(error)

    async def _something_to_write(self) -> bool:
        """Wait for it, until the next ping is due."""
        try:
            async with asyncio.timeout(PING_EVERY if self.trouble is None else RETRY_AFTER[-1]):
                await self._wanted.wait()
        except TimeoutError:
            return False
        return True

    def finish(self) -> None:
        """Make the next commit the last: neither the one in progress nor what came since may be cut off."""
        self._finishing = True
        self._wanted.set()

    async def write(self, beliefs: Sequence[Belief]) -> tuple[Sequence[Event], Sequence[Order]]:
        """Commit everything there is now; returns the stored events and orders."""
        self._wanted.clear()
        events, self._events = self._events, []
        orders, self._orders = self._orders, []
        settled, self._settled = self._settled, []
        samples, self._samples = self._samples, []
        journal, self._journal = self._journal, []
        waiting = len(self._waiting)
        events = self._numbered(events)
        recorded = self._audit.record(events)
        commit = Commit(
            self.next_number(),
            [*beliefs, *recorded.beliefs],
            events,
            [stored_order(order) for order in orders],
            settled,
            samples,
            journal,
            audit_records=recorded.audit_records,
            seals=recorded.seals,
        )
        self._writing, self._began_at = events, time.monotonic()
        try:
            await self._commit(commit)
        finally:
            self._writing, self._began_at = (), None
        self._audit.commit_stored()
        for waiter in self._waiting[:waiting]:
            if not waiter.done():
                waiter.set_result(None)
        del self._waiting[:waiting]
        return events, orders

    def next_number(self) -> int:
        self.number += 1
        return self.number

    def _numbered(self, events: list[Event]) -> list[Event]:
        """Event ids have no gaps, even if the full queue dropped some: no event was published before it was stored."""
        first = self._event + 1
        self._event += len(events)
        if not events or events[0].id == first:
            return events
        return [replace(event, id=number) for number, event in enumerate(events, first)]

    async def _commit(self, commit: Commit) -> None:
        attempt = 0
        while True:
            began_at = time.monotonic()
            try:
                await self._store.commit(commit)
            except AdapterError as error:
                self._failed(error)
                if not error.transient:
                    raise
                await asyncio.sleep(RETRY_AFTER[min(attempt, len(RETRY_AFTER) - 1)])
                attempt += 1
            except Exception as error:
                bug = AdapterError(f"a bug of lifesigns: {type(error).__name__}: {error}", transient=False)
                self._failed(bug)
                raise bug from error
            else:
                self.took.add(time.monotonic() - began_at)
                self.events += len(commit.events)
                self._succeeded()
                return

    async def _ping(self) -> None:
        try:
            await self._store.ping()
        except AdapterError as error:
            self._failed(error)
            if not error.transient:
                raise
        else:
            self._succeeded()

    def _failed(self, error: AdapterError) -> None:
        if self.trouble is None:
            log.error("the store takes nothing: %s", error, extra={"action": "store_failed"})
        self.trouble = error

    def _succeeded(self) -> None:
        if self.trouble is not None:
            log.warning("the store takes commits again", extra={"action": "store_back"})
        self.trouble = None
