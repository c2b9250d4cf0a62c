"""SqliteStore: the embedded store, one file. One thread writes, another reads, so that a long look into the past
never delays a page.

A second hub on the same file takes over, as with every store: SQLite's own lock makes one of two writers wait, the
epoch, looked at inside the transaction, makes the older one stop.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import apsw

from lifesigns.adapters.store import forgetting
from lifesigns.adapters.store.event_filter import EventFilter
from lifesigns.adapters.store.ledger import Ledger, check_turn, turned
from lifesigns.adapters.store.rows import (
    Row,
    audit_query,
    audit_record_of,
    belief_of,
    chunk_of,
    event_of,
    hour_rows,
    order_of,
    page_rows,
    sample_of,
    seal_of,
    token_of,
    token_row,
)
from lifesigns.adapters.store.sampling import HOUR, MINUTE, numbers
from lifesigns.adapters.store.sql import queries
from lifesigns.adapters.store.sqlite_file import SqliteFile
from lifesigns.adapters.store.values import escaped
from lifesigns.errors import AdapterError
from lifesigns.ports import AuditRecord, Chunk, Commit, Event, Sample, Seal, StoredState, StoredToken
from lifesigns.ports.store import RAW_FOR

BUSY_FOR: Final = 5.0
"""Seconds to wait for another process that holds the file: a backup, somebody who looks by hand."""

LOOK_AGAIN_AFTER: Final = 60.0
"""Seconds between two looks at all of a damaged file: that takes a while for a large one."""

log: Final = logging.getLogger("lifesigns.hub")

_T = TypeVar("_T")


class SqliteStore:
    """Keeps everything in one SQLite file and the two that SQLite puts beside it. Implements `lifesigns.ports.Store`.

    Only `open` takes over: tokens can be changed and events read beside a hub that runs.
    """

    def __init__(self, path: str | Path, *, busy_for: float = BUSY_FOR) -> None:
        self.path = Path(path).absolute()
        self._name = f"the database {self.path}"
        self._sql = queries("sqlite")
        self._writing = SqliteFile(self.path, busy_for=busy_for)
        self._reading = SqliteFile(self.path, busy_for=busy_for, reads_only=True)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="lifesigns-store-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="lifesigns-store-reader")
        self._epoch: int | None = None
        self._damage = ""
        self._look_again_at = 0.0
        self._made = False
        self._closed = False

    async def open(self, *, epoch_min: int = 0) -> StoredState:
        """Make or migrate the file, and take over."""
        return await self._write(partial(self._take_over, epoch_min))

    async def commit(self, page: Commit) -> None:
        """Keep a page: on the disk when this returns, also after a power cut."""
        await self._write(partial(self._keep, page))

    async def events(
        self,
        *,
        after: int = 0,
        until: int | None = None,
        since: float | None = None,
        types: Sequence[str] = (),
        agent_id: str | None = None,
        newest_first: bool = False,
        limit: int = 1000,
    ) -> Sequence[Event]:
        """Events, read beside the writer."""
        asked = EventFilter(after, until, since, types, agent_id, newest_first, limit)
        sql, values = asked.query(
            "?", lambda words: ("type IN (SELECT value FROM json_each({}))", json.dumps(words))
        )
        return [event_of(row) for row in await self._read(sql, values)]

    async def samples(self, agent_id: str, since: float, until: float) -> Sequence[Sample]:
        """Hours, then minutes."""
        return await self._run(self._reader, partial(self._samples, escaped(agent_id), since, until))

    async def journal(self, since: float, until: float) -> AsyncIterator[Chunk]:
        """The journal, a few chunks at a time."""
        after, asked = 0, (since, until, forgetting.CHUNKS_AT_ONCE)
        while rows := [tuple(row) for row in await self._read(self._sql["chunks"], (after, *asked))]:
            for row in rows:
                yield chunk_of(row)
            after = rows[-1][0]

    async def forget(self, now: float, *, keep_for: float, raw_for: float = RAW_FOR) -> int:
        """Thin out and drop."""
        return await forgetting.forget(self, now, keep_for, raw_for)

    async def audit_records(
        self,
        *,
        after: int = -1,
        before: int | None = None,
        agent_id: str | None = None,
        who: str | None = None,
        newest_first: bool = False,
        limit: int = 1000,
    ) -> Sequence[AuditRecord]:
        """Entries of the audit log, read beside the writer."""
        query = self._sql["newest_audit_records" if newest_first else "audit_records"]
        return [
            audit_record_of(row)
            for row in await self._read(query, audit_query(after, before, agent_id, who, limit))
        ]

    async def seals(
        self, *, after: int = -1, newest_first: bool = False, limit: int = 1000
    ) -> Sequence[Seal]:
        """Signed checkpoints of the audit log."""
        query = self._sql["newest_seals" if newest_first else "seals"]
        return [seal_of(row) for row in await self._read(query, (after, limit))]

    async def retire(self, first: int, before: int) -> int:
        """Drop entries, keep their leaves."""
        return await forgetting.retire(self, first, before)

    async def tokens(self) -> Sequence[StoredToken]:
        """All of them, oldest first."""
        return [token_of(row) for row in await self._read(self._sql["tokens"])]

    async def keep_token(self, token: StoredToken) -> None:
        """Keep a token, or what has changed about it."""
        await self._write(partial(self._change, "keep_token", token_row(token)))

    async def drop_token(self, token_id: str) -> bool:
        """Whether there was one."""
        return await self._write(partial(self._change, "drop_token", (escaped(token_id),))) > 0

    @property
    def damage(self) -> str:
        """What a read said. While there is damage, all of the file is looked at again every minute, beside the writer."""
        return self._damage

    async def ping(self) -> None:
        """Writes, for only then it is known."""
        await self._write(self._touch)

    async def close(self) -> None:
        """Finish what was begun, and let go of the file."""
        if self._closed:
            return
        self._closed = True
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._reader, self._reading.close)
        await loop.run_in_executor(self._writer, self._writing.close)
        self._reader.shutdown()
        self._writer.shutdown()

    # The steps of forgetting.

    async def drop_some(self, query: str, beyond: float, count: int) -> int:
        return await self._write(partial(self._change, query, (beyond, count), in_turn=True))

    async def retire_some(self, first: int, before: int) -> int:
        return await self._write(partial(self._change, "retire_audit_records", (first, before), in_turn=True))

    async def oldest_minute(self) -> int | None:
        ((minute,),) = await self._read(self._sql["oldest_minute"])
        return None if minute is None else int(minute)

    async def agents_in_minute(self, minute: int) -> Sequence[str]:
        return [agent_id for (agent_id,) in await self._read(self._sql["agents_in_minute"], (minute,))]

    async def thin_out(self, hour: int, first: str, end: str) -> int:
        return await self._write(partial(self._thin_out, hour, first, end))

    # Between the event loop and the threads.

    async def _write(self, work: Callable[[], _T]) -> _T:
        if self._damage and time.monotonic() >= self._look_again_at and not self._closed:
            self._look_again_at = time.monotonic() + LOOK_AGAIN_AFTER
            self._reader.submit(self._look_again)
        return await self._run(self._writer, work)

    async def _read(self, sql: str, values: Row = ()) -> list[Row]:
        return await self._run(self._reader, partial(self._rows, sql, values))

    async def _run(self, thread: ThreadPoolExecutor, work: Callable[[], _T]) -> _T:
        if self._closed:
            raise AdapterError(f"{self._name} is closed", transient=False)
        loop = asyncio.get_running_loop()
        if not self._made:
            await loop.run_in_executor(self._writer, self._make)
        return await loop.run_in_executor(thread, work)

    # In the writer's thread.

    def _make(self) -> None:
        self._writing.create()
        with self._writing.connection():
            self._made = True

    def _take_over(self, epoch_min: int) -> StoredState:
        self._make()  # Also if it was there before: a damaged one may have been moved away since.
        with self._writing.transaction() as connection:
            ledger = _ledger(connection.execute(self._sql["take_over"], (epoch_min,)))
            beliefs = [belief_of(row) for row in connection.execute(self._sql["beliefs"])]
            orders = [order_of(row) for row in connection.execute(self._sql["orders"])]
        self._epoch = ledger.epoch
        return StoredState(ledger.epoch, ledger.page, ledger.event, beliefs, orders)

    def _keep(self, page: Commit) -> None:
        with self._writing.transaction() as connection:
            ledger = turned(self._name, _ledger(connection.execute(self._sql["ledger"])), self._epoch, page)
            if ledger is None:
                return
            for query, rows in page_rows(page):
                connection.executemany(self._sql[query], rows)
            connection.execute(self._sql["turn_page"], (ledger.page, ledger.event))

    def _touch(self) -> None:
        with self._writing.transaction() as connection:
            if self._epoch is not None:
                self._check_turn(connection)
            connection.execute(self._sql["touch"])

    def _change(self, query: str, values: Row, *, in_turn: bool = False) -> int:
        with self._writing.transaction() as connection:
            if in_turn:
                self._check_turn(connection)
            connection.execute(self._sql[query], values)
            return connection.changes()

    def _thin_out(self, hour: int, first: str, end: str) -> int:
        with self._writing.transaction() as connection:
            self._check_turn(connection)
            minutes = connection.execute(self._sql["minutes_to_thin"], (hour, first, end)).fetchall()
            if minutes:
                there = connection.execute(self._sql["hours_to_thin"], (hour, first, end))
                connection.executemany(self._sql["keep_hours"], hour_rows(hour, there, minutes))
                connection.executemany(
                    self._sql["drop_thinned"],
                    [(minute, first, end) for minute in range(hour * 60, hour * 60 + 60)],
                )
            return len(minutes)

    def _check_turn(self, connection: apsw.Connection) -> None:
        check_turn(self._name, _ledger(connection.execute(self._sql["ledger"])), self._epoch)

    # In the reader's thread.

    def _rows(self, sql: str, values: Row) -> list[Row]:
        with self._noticing_damage(), self._reading.connection() as connection:
            return list(connection.execute(sql, values))

    @contextmanager
    def _noticing_damage(self) -> Iterator[None]:
        try:
            yield
        except AdapterError as error:
            if isinstance(error.__cause__, (apsw.CorruptError, apsw.NotADBError)):
                self._notice(str(error))
            raise

    def _notice(self, damage: str) -> None:
        if not self._damage:
            log.error("%s", damage, extra={"action": "store_damaged"})
            self._look_again_at = time.monotonic() + LOOK_AGAIN_AFTER
        self._damage = damage

    def _look_again(self) -> None:
        try:
            with self._reading.connection() as connection:
                whole = connection.execute("PRAGMA quick_check(1)").get == "ok"
        except AdapterError:
            whole = False
        if whole:
            log.warning("%s is whole again", self._name, extra={"action": "store_mended"})
            self._damage = ""

    def _samples(self, agent_id: str, since: float, until: float) -> list[Sample]:
        found = []
        with (
            self._noticing_damage(),
            self._reading.connection() as connection,
            connection,
        ):  # One view of both tables.
            for query, every in (("hours_of", HOUR), ("minutes_of", MINUTE)):
                asked = (*numbers(since, until, every), agent_id)
                found += [sample_of(row, every) for row in connection.execute(self._sql[query], asked)]
        return found


def _ledger(found: Iterable[Row]) -> Ledger:
    ((epoch, page, event),) = found
    return Ledger(epoch, page, event)
