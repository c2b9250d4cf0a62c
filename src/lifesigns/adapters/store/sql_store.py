"""SqlStore: everything the SQL stores share except the connection.

A transaction is a script: a generator that yields statements and receives their rows. SQLite runs it in a thread and
PostgreSQL on the event loop, and both run the same one.

Forgetting goes in small steps: each is a transaction of its own, with commits in between.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from itertools import pairwise
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from lifesigns.adapters.store.event_filter import EventFilter
from lifesigns.adapters.store.ledger import Ledger, check_turn, next_ledger, taken_over
from lifesigns.adapters.store.rows import (
    Row,
    audit_query,
    audit_record_of,
    belief_of,
    chunk_of,
    commit_rows,
    event_of,
    hour_rows,
    hub_of,
    order_of,
    sample_of,
    seal_of,
    token_of,
    token_row,
)
from lifesigns.adapters.store.sampling import HOUR, MINUTE, first_kept_hour, numbers
from lifesigns.adapters.store.sql import Dialect, in_words_of, queries
from lifesigns.adapters.store.values import escaped, unescaped
from lifesigns.errors import AdapterError
from lifesigns.ports import AuditRecord, Chunk, Commit, Event, HubRow, Sample, Seal, StoredState, StoredToken
from lifesigns.ports.store import RAW_FOR, RAW_MAX, SEALS_FOR, BeliefMark, TakeBeliefs, first_event_since

AGENTS_AT_ONCE: Final = 100
"""Thinned out in one step: 6,000 rows, about 20 ms for which a commit waits."""
ROWS_AT_ONCE: Final = 2000
"""Dropped in one step."""
CHUNKS_AT_ONCE: Final = 20
"""The same for the journal, whose rows are large: a few megabytes. One read returns so many, too."""

BELIEFS_AT_ONCE: Final = 500
"""Passed on in one step: whoever decodes them blocks the event loop for less than ten milliseconds."""

SLOTS: Final = "slots"
"""The kind of the row that marks a store whose fleet is divided into slots (`hub/slots.py`): no hub may judge all of it."""

MOVING: Final = "moving"
"""The kind of the row that marks a store into which another one is being moved: see `moving.py`."""

_TEXT_END: Final = chr(0x10FFFF)
"""No id reaches it."""

_T = TypeVar("_T")


class Statement(NamedTuple):
    """One query and its values, answered with its rows."""

    sql: str
    values: Row = ()


class Batch(NamedTuple):
    """One query for many rows, without an answer."""

    sql: str
    rows: Sequence[Row]


Script: TypeAlias = Generator[Statement | Batch, Any, _T]


class ScriptRun(Generic[_T]):
    """A script in progress: execute `step`, then `advance` with its rows, until `step` is None; then there is `result`."""

    step: Statement | Batch | None
    result: _T

    def __init__(self, script: Script[_T]) -> None:
        self._script = script
        self.advance(None)

    def advance(self, rows: Sequence[Row] | None) -> None:
        try:
            self.step = self._script.send(rows)
        except StopIteration as end:
            self.step, self.result = None, end.value


class SqlStore(ABC):
    """Keeps everything in a database. Implements `lifesigns.ports.Store`.

    Only `open` takes over: changing tokens and reading events works beside a running hub.
    """

    def __init__(self, name: str, dialect: Dialect) -> None:
        self._name = name
        self._dialect = dialect
        self._sql = queries(dialect)
        self._epoch: int | None = None
        self._hub = ""
        """The name by which this hub renews its row; empty if it has none."""
        self._epoch_seen: int | None = None
        """The epoch of the store when it did so last."""
        self._closed = False

    @abstractmethod
    async def _write(self, script: Script[_T], *, loads: bool = False) -> _T:
        """Run this in one transaction of the writer: everything or nothing, and on disk when it returns. `loads` allows
        more time to read all beliefs."""

    @abstractmethod
    async def _write_beside(self, script: Script[_T]) -> _T:
        """The same, but never behind a long commit."""

    @abstractmethod
    async def _read(self, sql: str, values: Row = ()) -> Sequence[Row]:
        """The rows of a query, read beside the writer."""

    @abstractmethod
    async def _stream(self, sql: str, values: Row, take: Callable[[Sequence[Row]], Awaitable[None]]) -> None:
        """Pass on the rows of a query, `BELIEFS_AT_ONCE` at a time."""

    @property
    @abstractmethod
    def shared(self) -> bool:
        """Whether hubs on several machines can use it."""

    @abstractmethod
    async def identity(self) -> str:
        """The same for all hubs on this store; empty if there can be only one."""

    @property
    @abstractmethod
    def damage(self) -> str:
        """The damage that reads have found; empty if there is none."""

    @abstractmethod
    async def _disconnect(self) -> None:
        """Finish what was begun, and disconnect."""

    async def close(self) -> None:
        """Delete the row of this hub, so that the next one need not wait, and disconnect."""
        if self._closed:
            return
        with suppress(AdapterError):
            if self._hub:
                await self.release(self._hub)
        self._closed = True
        await self._disconnect()

    @property
    def name(self) -> str:
        """The store for people, without secrets."""
        return self._name

    @property
    def sql(self) -> Mapping[str, str]:
        """The queries, by name, in the words of this database."""
        return self._sql

    async def rows_of(self, query: str, values: Row = ()) -> Sequence[Row]:
        """The rows of a named query."""
        return await self._read(self._sql[query], values)

    async def transact(self, script: Script[_T]) -> _T:
        """Run this in one transaction, without taking over."""
        return await self._write(script)

    async def open(self, *, epoch_min: int = 0, beliefs: bool = True) -> StoredState:
        """Create or migrate the tables, and take over."""
        stored = await self._write(self._take_over(epoch_min, beliefs), loads=True)
        self._epoch = stored.epoch
        return stored

    async def renew(
        self, name: str, url: str, version: str, zone: str = "", copied: int = -1
    ) -> Sequence[HubRow]:
        """Raise the beat of this hub, and see the others."""
        self._epoch_seen, rows = await self._write_beside(
            self._renewal((escaped(name), escaped(url), version, zone, copied))
        )
        self._hub = name
        return rows

    async def drain(self, name: str, *, drained: bool = True) -> None:
        """Tell a hub to hand over, and not to judge; or that it may."""
        await self._write_beside(self._change("drain_hub", (escaped(name), drained)))

    async def release(self, name: str) -> None:
        """Delete the row of a hub."""
        await self._write_beside(self._change("release_hub", (escaped(name),)))

    async def commit(self, commit: Commit) -> None:
        """Store a commit: on disk when this returns, also after a power cut."""
        await self._write(self._keep(commit))

    async def belief(self, kind: str, key: str) -> bytes | None:
        """One of them."""
        rows = await self._read(self._sql["belief"], (escaped(kind), escaped(key)))
        return rows[0][0] if rows and isinstance(rows[0][0], bytes) else None

    async def belief_mark(self) -> BeliefMark:
        """The mark of this moment."""
        ((server, commit, position, count),) = await self._read(self._sql["belief_mark"])
        return BeliefMark(server, commit, position, count)

    async def read_beliefs(self, since: BeliefMark | None, take: TakeBeliefs) -> None:
        """Pass on what changed since a mark, or everything."""

        async def take_rows(rows: Sequence[Row]) -> None:
            await take([belief_of(row) for row in rows])

        position = None if since is None else since.position
        await self._stream(self._sql["beliefs_since"], (position,), take_rows)

    async def read_belief_keys(self) -> Collection[tuple[str, str]]:
        """Kind and key of all beliefs."""
        keys: set[tuple[str, str]] = set()

        async def take_rows(rows: Sequence[Row]) -> None:
            keys.update((unescaped(kind), unescaped(key)) for kind, key in rows)

        await self._stream(self._sql["belief_keys"], (), take_rows)
        return keys

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
        """The events that match."""
        sql, values = EventFilter(after, until, since, types, agent_id, newest_first, limit).query()
        return [event_of(row) for row in await self._read(in_words_of(self._dialect, sql), values)]

    async def samples(self, agent_id: str, since: float, until: float) -> Sequence[Sample]:
        """Hours, then minutes."""
        parameters = (escaped(agent_id), *numbers(since, until, HOUR), *numbers(since, until, MINUTE))
        return [
            sample_of(row, every) for every, *row in await self._read(self._sql["samples_of"], parameters)
        ]

    async def journal(self, since: float, until: float) -> AsyncIterator[Chunk]:
        """A few chunks at a time."""
        after = 0
        while rows := await self._read(self._sql["chunks"], (after, since, until, CHUNKS_AT_ONCE)):
            for row in rows:
                yield chunk_of(row)
            after = rows[-1][0]

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
        """Entries of the audit log."""
        query = self._sql["newest_audit_records" if newest_first else "audit_records"]
        parameters = audit_query(after, before, agent_id, who, limit)
        return [audit_record_of(row) for row in await self._read(query, parameters)]

    async def seals(
        self, *, after: int = -1, newest_first: bool = False, limit: int = 1000
    ) -> Sequence[Seal]:
        """Signed checkpoints of the audit log."""
        query = self._sql["newest_seals" if newest_first else "seals"]
        return [seal_of(row) for row in await self._read(query, (after, limit))]

    async def tokens(self) -> Sequence[StoredToken]:
        """All of them, oldest first."""
        return [token_of(row) for row in await self._read(self._sql["tokens"])]

    async def keep_token(self, token: StoredToken) -> None:
        """Store a new or changed token."""
        await self._write(self._change("keep_token", token_row(token)))

    async def drop_token(self, token_id: str) -> bool:
        """Delete a token; whether there was one."""
        return await self._write(self._change("drop_token", (escaped(token_id),))) > 0

    async def ping(self) -> None:
        """Writes, because only a write shows whether it can."""
        await self._write(self._change("touch", (), in_turn=self._epoch is not None))

    async def forget(self, now: float, *, keep_for: float, raw_for: float = RAW_FOR) -> int:
        """Drop what is older than `keep_for`, of the journal what is older than `raw_for` or too much, and make hours
        of minutes older than a day; returns the number of rows."""
        before = now - keep_for
        gone = await self._drop("drop_events", await first_event_since(self, before, now))
        gone += await self._drop("drop_minutes", numbers(before, before, MINUTE)[0])
        gone += await self._drop("drop_hours", numbers(before, before, HOUR)[0])
        gone += await self._drop("drop_chunks", now - min(raw_for, keep_for), CHUNKS_AT_ONCE)
        gone += await self._drop("drop_chunks_beyond", RAW_MAX, CHUNKS_AT_ONCE)
        gone += await self._drop("drop_seals", now - SEALS_FOR)
        while (oldest := await self._oldest_minute()) is not None and oldest // 60 < first_kept_hour(now):
            agent_ids = [
                agent_id for (agent_id,) in await self._read(self._sql["agents_in_minute"], (oldest,))
            ]
            for first, end in _slices(agent_ids):
                gone += await self._write(self._thin_out(oldest // 60, first, end))
        return gone

    async def retire(self, first: int, before: int) -> int:
        """Drop entries of the audit log and keep their leaves; returns their number."""
        gone = 0
        for some in range(first, before, ROWS_AT_ONCE):
            parameters = (some, min(some + ROWS_AT_ONCE, before))
            gone += await self._write(self._change("retire_audit_records", parameters, in_turn=True))
        return gone

    async def _drop(self, query: str, beyond: float, count: int = ROWS_AT_ONCE) -> int:
        """Drop what is beyond this moment, or this size, up to `count` in a step."""
        gone = some = await self._write(self._change(query, (beyond, count), in_turn=True))
        while some == count:
            some = await self._write(self._change(query, (beyond, count), in_turn=True))
            gone += some
        return gone

    async def _oldest_minute(self) -> int | None:
        ((minute,),) = await self._read(self._sql["oldest_minute"])
        return None if minute is None else int(minute)

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise AdapterError(f"{self._name} is closed", transient=False)

    # Scripts.

    def _take_over(self, epoch_min: int, with_beliefs: bool) -> Script[StoredState]:
        seen = -1 if self._epoch_seen is None else self._epoch_seen
        ledger = taken_over(self._name, (yield Statement(self._sql["take_over"], (epoch_min, seen))))
        if self._hub:
            yield Statement(self._sql["lead"], (ledger.epoch, escaped(self._hub)))
        if (yield Statement(self._sql["belief"], (MOVING, ""))):
            raise AdapterError(
                f"{self._name} has a part of a move that was broken off or still goes on (lifesigns store move): "
                "wait for it, or drop what is there and move again",
                transient=False,
            )
        if (yield Statement(self._sql["belief"], (SLOTS, ""))):
            raise AdapterError(
                f"several hubs judge on {self._name}, each its own slots (hubs.judge: all); a hub that judges alone needs "
                "another database",
                transient=False,
            )
        rows = (yield Statement(self._sql["beliefs"])) if with_beliefs else ()
        beliefs = [belief_of(row) for row in rows]
        orders = [order_of(row) for row in (yield Statement(self._sql["orders"]))]
        return StoredState(ledger.epoch, ledger.commit, ledger.event, beliefs, orders)

    def _renewal(self, values: Row) -> Script[tuple[int, list[HubRow]]]:
        yield Statement(self._sql["renew_hub"], values)
        rows = yield Statement(self._sql["hubs"])
        return rows[0][0], [hub_of(row) for row in rows]

    def _keep(self, commit: Commit) -> Script[None]:
        ledger = next_ledger(self._name, (yield from self._ledger()), self._epoch, commit)
        if ledger is None:
            return
        for query, rows in commit_rows(commit):
            if rows:
                yield Batch(self._sql[query], rows)
        yield Statement(self._sql["turn_page"], (ledger.commit, ledger.event))

    def _change(self, query: str, values: Row, *, in_turn: bool = False) -> Script[int]:
        """One query; the number of rows it returned."""
        if in_turn:
            check_turn(self._name, (yield from self._ledger()), self._epoch)
        return len((yield Statement(self._sql[query], values)))

    def _thin_out(self, hour: int, first: str, end: str) -> Script[int]:
        """Make hours of this hour's minutes, for the agents in [first, end); the number of minutes dropped."""
        check_turn(self._name, (yield from self._ledger()), self._epoch)
        minutes = yield Statement(self._sql["thin_minutes"], (hour, first, end))
        if minutes:
            there = yield Statement(self._sql["hours_to_thin"], (hour, first, end))
            yield Batch(self._sql["keep_hours"], hour_rows(hour, there, minutes))
        return len(minutes)

    def _ledger(self, query: str = "ledger", *values: int) -> Script[Ledger]:
        ((epoch, commit, event),) = yield Statement(self._sql[query], values)
        return Ledger(epoch, commit, event)


def _slices(agent_ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Ranges [first, end) that together cover every id, each with about `AGENTS_AT_ONCE` of these."""
    return pairwise(["", *agent_ids[AGENTS_AT_ONCE::AGENTS_AT_ONCE], _TEXT_END])
