"""PostgresStore: a server that several hubs can reach. One connection writes, another reads, so that a long look into
the past never delays a page.

A page that was interrupted, nobody knows where, is written again by the hub; if the server had kept it, it is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from lifesigns.adapters.store import forgetting
from lifesigns.adapters.store.event_filter import EventFilter
from lifesigns.adapters.store.ledger import Ledger, check_turn, turned
from lifesigns.adapters.store.postgres_line import Connection, PostgresLine, migrate_once
from lifesigns.adapters.store.rows import (
    Found,
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
from lifesigns.adapters.store.sql import migrations, queries
from lifesigns.adapters.store.values import escaped
from lifesigns.errors import AdapterError
from lifesigns.ports import AuditRecord, Chunk, Commit, Event, Sample, Seal, StoredState, StoredToken
from lifesigns.ports.store import RAW_FOR

ANSWER_FOR: Final = 10.0
"""Seconds for one transaction, the connection included: enough for the largest page on a busy server."""
LOAD_FOR: Final = 60.0
"""Seconds to migrate and to read everything that is believed."""

_T = TypeVar("_T")


class PostgresStore:
    """Keeps everything in the schema `lifesigns` of a PostgreSQL database. Implements `lifesigns.ports.Store`.

    Only `open` takes over: tokens can be changed and events read beside a hub that runs.
    """

    def __init__(self, url: str, *, answer_for: float = ANSWER_FOR) -> None:
        self._sql = queries("postgres")
        self._writing = PostgresLine(url, answer_for=answer_for)
        self._reading = PostgresLine(url, answer_for=answer_for)
        self._name = self._writing.name
        self._making = asyncio.Lock()
        self._made = False
        self._epoch: int | None = None
        self._closed = False

    async def open(self, *, epoch_min: int = 0) -> StoredState:
        """Make or migrate the tables, and take over."""
        remembered = await self._use(self._writing, partial(self._take_over, epoch_min), within=LOAD_FOR)
        self._epoch = remembered.epoch
        return remembered

    async def commit(self, page: Commit) -> None:
        """Keep a page: on the server's disk when this returns."""

        async def keep(connection: Connection) -> None:
            ledger = turned(self._name, await self._ledger(connection), self._epoch, page)
            if ledger is None:
                return
            for query, rows in page_rows(page):
                await self._change_all(connection, query, rows)
            await connection.execute(self._sql["turn_page"], ledger.page, ledger.event)

        await self._use(self._writing, keep)

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
        sql, values = asked.query("$", lambda words: ("type = ANY ({}::text[])", words))
        return [event_of(row) for row in await self._read(sql, values)]

    async def samples(self, agent_id: str, since: float, until: float) -> Sequence[Sample]:
        """Hours, then minutes."""
        asked = (escaped(agent_id), *numbers(since, until, HOUR), *numbers(since, until, MINUTE))
        return [sample_of(row, every) for every, *row in await self._read(self._sql["samples_of"], asked)]

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
        await self._change("keep_token", token_row(token))

    async def drop_token(self, token_id: str) -> bool:
        """Whether there was one."""
        return await self._change("drop_token", (escaped(token_id),)) > 0

    @property
    def damage(self) -> str:
        """The server looks after its own pages, and says so with each read."""
        return ""

    async def ping(self) -> None:
        """Writes, for only then it is known."""
        await self._change("touch", (), in_turn=self._epoch is not None)

    async def close(self) -> None:
        """Finish what was begun, and let go of the server."""
        self._closed = True
        await self._reading.close()
        await self._writing.close()

    # The steps of forgetting.

    async def drop_some(self, query: str, beyond: float, count: int) -> int:
        return await self._change(query, (beyond, count), in_turn=True)

    async def retire_some(self, first: int, before: int) -> int:
        return await self._change("retire_audit_records", (first, before), in_turn=True)

    async def oldest_minute(self) -> int | None:
        ((minute,),) = await self._read(self._sql["oldest_minute"])
        return None if minute is None else int(minute)

    async def agents_in_minute(self, minute: int) -> Sequence[str]:
        return [agent_id for (agent_id,) in await self._read(self._sql["agents_in_minute"], (minute,))]

    async def thin_out(self, hour: int, first: str, end: str) -> int:
        async def thin(connection: Connection) -> int:
            check_turn(self._name, await self._ledger(connection), self._epoch)
            minutes = await connection.fetch(self._sql["thin_minutes"], hour, first, end)
            if minutes:
                there = await connection.fetch(self._sql["hours_to_thin"], hour, first, end)
                await self._change_all(
                    connection, "keep_hours", hour_rows(hour, map(tuple, there), map(tuple, minutes))
                )
            return len(minutes)

        return await self._use(self._writing, thin)

    # Between us and the server.

    async def _use(
        self, line: PostgresLine, work: Callable[[Connection], Awaitable[_T]], *, within: float | None = None
    ) -> _T:
        if self._closed:
            raise AdapterError(f"{self._name} is closed", transient=False)
        await self._make()
        return await line.use(work, within=within)

    async def _make(self) -> None:
        if self._made:
            return
        async with self._making:
            while not self._made:
                self._made = not await self._writing.use(
                    lambda connection: migrate_once(connection, self._name, migrations("postgres")),
                    within=LOAD_FOR,
                )

    async def _take_over(self, epoch_min: int, connection: Connection) -> StoredState:
        ledger = await self._ledger(connection, "take_over", epoch_min)
        beliefs = [belief_of(row) for row in await connection.fetch(self._sql["beliefs"])]
        orders = [order_of(row) for row in await connection.fetch(self._sql["orders"])]
        return StoredState(ledger.epoch, ledger.page, ledger.event, beliefs, orders)

    async def _ledger(self, connection: Connection, query: str = "ledger", *values: int) -> Ledger:
        ((epoch, page, event),) = await connection.fetch(self._sql[query], *values)
        return Ledger(epoch, page, event)

    async def _change_all(self, connection: Connection, query: str, rows: Sequence[Row]) -> None:
        await connection.execute(self._sql[query], *(list(column) for column in zip(*rows, strict=True)))

    async def _change(self, query: str, values: Row, *, in_turn: bool = False) -> int:
        async def change(connection: Connection) -> int:
            if in_turn:
                check_turn(self._name, await self._ledger(connection), self._epoch)
            done = await connection.execute(self._sql[query], *values)
            return int(done.split()[-1])  # "DELETE 3"

        return await self._use(self._writing, change)

    async def _read(self, sql: str, values: Row = ()) -> Sequence[Found]:
        return await self._use(self._reading, lambda connection: connection.fetch(sql, *values))
