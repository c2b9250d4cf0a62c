"""Moving: everything a store keeps goes into another, empty one; SQLite and PostgreSQL in either direction.

The target has a mark from the first row to the last: no hub opens a store with that mark, so a move that was broken off
leaves a store that is refused, never half of a history. At the end every row is read back and compared, and the mark
goes in the same transaction that says how far the store is written. The source is only read.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from math import inf
from typing import Any, Final, NamedTuple

from lifesigns.adapters.store.rows import Row
from lifesigns.adapters.store.sql_store import MOVING, Batch, Script, SqlStore, Statement
from lifesigns.adapters.store.values import INT_MAX
from lifesigns.errors import AdapterError, UsageError

ROWS: Final = 2000
"""Copied in one transaction."""
CHUNKS: Final = 20
"""The same of the journal, whose rows are large."""
_MARK: Final = (MOVING, "", b"1")


class Table(NamedTuple):
    """How a table is read a page at a time, and written."""

    name: str
    read: str
    """The query that reads it."""
    keep: str
    """The query that stores its rows."""
    after: tuple[Any, ...] = ()
    """The key before the first; without one, the query returns all rows at once."""
    key: slice = slice(0, 1)
    """Its columns in a row."""
    between: tuple[Any, ...] = ()
    """What the query needs between key and limit."""
    limit: int = ROWS
    first: int = 0
    """The first column that is stored."""


TABLES: Final = (
    Table("beliefs", "beliefs_after", "keep_beliefs", ("", ""), slice(0, 2)),
    Table("events", "events_after", "keep_events", (-1,)),
    Table("orders", "orders", "keep_orders"),
    Table("minutes", "minutes_after", "keep_minutes", (-1, ""), slice(0, 2)),
    Table("hours", "hours_after", "keep_hours", (-1, ""), slice(0, 2)),
    Table("journal", "chunks", "keep_chunks", (-1,), between=(-inf, inf), limit=CHUNKS, first=1),
    Table("deeds", "audit_records", "keep_audit_records", (-1,), between=(INT_MAX, None, None)),
    Table("seals", "seals", "keep_seals", (-1,)),
    Table("tokens", "tokens", "keep_token"),
)
"""Everything but `hubs`, which is about the hubs that use a store now."""


async def move(source: SqlStore, target: SqlStore, progress: Callable[[float], None]) -> dict[str, int]:
    """Copy everything and compare it; returns the rows of each table. Nobody may write to the source meanwhile."""
    counts = await count(source)
    await target.transact(_mark(target))
    total, done = 2 * max(1, sum(counts.values())), 0
    digests: dict[str, str] = {}
    for table in TABLES:
        digest = hashlib.sha256()
        async for rows in _pages(source, table):
            await target.transact(_keep(target, table, [row[table.first :] for row in rows]))
            _add(digest, table, rows)
            done += len(rows)
            progress(done / total)
        digests[table.name] = digest.hexdigest()
    for table in TABLES:
        digest, found = hashlib.sha256(), 0
        async for rows in _pages(target, table):
            rows = [row for row in rows if table.name != "beliefs" or row[0] != MOVING]
            _add(digest, table, rows)
            found += len(rows)
            progress((done := done + len(rows)) / total)
        if found != counts[table.name] or digest.hexdigest() != digests[table.name]:
            raise AdapterError(
                f"{table.name}: {counts[table.name]:,} rows were copied and {found:,} others found in {target.name}; "
                "did a hub write to the old store meanwhile? The new one is refused by hubs; move into another one",
                transient=False,
            )
    await target.transact(_finish(target, await source.rows_of("ledger")))
    return counts


async def count(store: SqlStore) -> dict[str, int]:
    """The rows of each table."""
    ((*counts,),) = await store.rows_of("count_rows")
    return dict(zip((table.name for table in TABLES), counts, strict=True))


async def _pages(store: SqlStore, table: Table) -> AsyncIterator[Sequence[Row]]:
    if not table.after:
        if rows := await store.rows_of(table.read):
            yield rows
        return
    after: Row = table.after
    while rows := await store.rows_of(table.read, (*after, *table.between, table.limit)):
        yield rows
        after = rows[-1][table.key]


def _add(digest: Any, table: Table, rows: Sequence[Row]) -> None:
    for row in rows:
        digest.update(repr(tuple(row[table.first :])).encode())


def _mark(store: SqlStore) -> Script[None]:
    """Refuse a store with something in it; of two moves at once, the second."""
    ((epoch, page, _),) = yield Statement(store.sql["ledger"])
    ((*counts,),) = yield Statement(store.sql["count_rows"])
    filled: Mapping[str, int] = {table.name: n for table, n in zip(TABLES, counts, strict=True) if n}
    if (yield Statement(store.sql["belief"], _MARK[:2])):
        raise UsageError(_half(store))
    if filled or epoch or page:
        what = ", ".join(f"{n:,} {name}" for name, n in filled.items()) or "a hub has used it"
        raise UsageError(f"{store.name} is not empty ({what}); move into a store that no hub has used yet")
    yield Batch(store.sql["keep_beliefs"], [_MARK])


def _half(store: SqlStore) -> str:
    return (
        f"{store.name} has a part of a move that was broken off, or is being moved into; drop what is there (the file, or "
        "the schema lifesigns) and move again, or choose another target"
    )


def _keep(store: SqlStore, table: Table, rows: Sequence[Row]) -> Script[None]:
    if table.keep == "keep_token":
        for row in rows:
            yield Statement(store.sql["keep_token"], row)
    else:
        yield Batch(store.sql[table.keep], rows)


def _finish(store: SqlStore, ledger: Sequence[Row]) -> Script[None]:
    yield Batch(store.sql["drop_beliefs"], [_MARK[:2]])
    yield Statement(store.sql["continue_ledger"], ledger[0])
