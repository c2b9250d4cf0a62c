"""A store moves into another one: every table, every row, compared; and no hub opens the half of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

from lifesigns.adapters.store.moving import TABLES, count, move
from lifesigns.adapters.store.postgres import PostgresStore
from lifesigns.adapters.store.sql_store import SqlStore
from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.errors import AdapterError, UsageError
from lifesigns.ports import AuditRecord, Chunk, Commit, Seal, StoredToken
from tests.contracts.store.conftest import wipe
from tests.contracts.store.ground import believed, event, order, sample

HOURS_AGO = 2 * 86400.0
NOW = 10 * 86400.0


@pytest.fixture
async def source(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """With something in every table, also what a database cannot take unchanged."""
    store = SqliteStore(tmp_path / "source.db")
    await store.open(epoch_min=7)
    await store.commit(
        Commit(
            1,
            [believed("a"), believed("b\0", b"\xff")],
            [event(1), event(2, agent_id="x\\y")],
            [order("o-1"), order("o-2", at=2.0)],
            samples=[sample("a", NOW - HOURS_AGO, load=0.5), sample("a", NOW - 60.0, beats=3)],
            journal=[Chunk(NOW - 2, NOW - 1, 3, b"\x00\x01"), Chunk(NOW - 1, NOW, 1, b"")],
            audit_records=[AuditRecord(0, 1, 1.0, "a", "me", b"leaf", b"{}")],
            seals=[Seal(1, 1.0, "note")],
        )
    )
    await store.forget(NOW, keep_for=NOW)  # The older minute becomes an hour.
    await store.keep_token(StoredToken("t", b"digest", "admin", "me", "", 1.0, None, 2.0, b"mac"))
    yield store
    await store.close()


@pytest.fixture(params=["sqlite", "postgres"])
async def target(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[SqlStore]:
    if request.param == "sqlite":
        store: SqlStore = SqliteStore(tmp_path / "target.db")
    else:
        url = request.getfixturevalue("postgres_server").url
        await wipe(url)
        store = PostgresStore(url)
    yield store
    await store.close()


async def contents(store: SqlStore) -> dict[str, Sequence[Any]]:
    """All rows of all tables, but for numbers that each database gives by itself."""
    queries = {
        "beliefs": ("beliefs", ()),
        "events": ("events_after", (0, 1000)),
        "orders": ("orders", ()),
        "minutes": ("minutes_after", (-1, "", 1000)),
        "hours": ("hours_after", (-1, "", 1000)),
        "journal": ("chunks", (0, 0.0, NOW, 1000)),
        "deeds": ("audit_records", (-1, 1000, None, None, 1000)),
        "seals": ("seals", (-1, 1000)),
        "tokens": ("tokens", ()),
        "ledger": ("ledger", ()),
    }
    found = {name: await store.rows_of(query, values) for name, (query, values) in queries.items()}
    return {
        name: sorted(tuple(row[1:] if name == "journal" else row) for row in rows)
        for name, rows in found.items()
    }


def tell_nobody(_share: float) -> None:
    """As `--quiet`."""


def changed_by(path: Path, table: str, what: str) -> None:
    """Have the database of this file change every row that comes into a table, as a broken disk or a driver might."""
    with apsw.Connection(str(path)) as connection:
        connection.execute(f"CREATE TRIGGER harm AFTER INSERT ON {table} BEGIN {what}; END")


async def test_every_row_of_every_table_goes_along(source: SqliteStore, target: SqlStore) -> None:
    before = await contents(source)
    assert {name: bool(rows) for name, rows in before.items()} == dict.fromkeys(before, True)
    shares: list[float] = []
    counts = await move(source, target, shares.append)
    assert await contents(target) == before == await contents(source)
    assert counts == {table.name: len(before[table.name]) for table in TABLES} == await count(target)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    state = await target.open()
    assert (state.epoch, state.commit, state.event) == (8, 1, 2)


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE events SET data = x'00' WHERE id = NEW.id AND id = 2",
        "DELETE FROM events WHERE id = NEW.id AND id = 2",
    ],
)
async def test_a_row_that_is_not_what_it_was_fails_the_move(
    source: SqliteStore, tmp_path: Path, harm: str
) -> None:
    """And no hub opens what came of it, and nobody moves into it again."""
    target = SqliteStore(tmp_path / "target.db")
    await target.ping()  # Makes the tables.
    changed_by(target.path, "events", harm)
    with pytest.raises(AdapterError, match=r"events: 2 rows were copied and \d others found"):
        await move(source, target, tell_nobody)
    with pytest.raises(AdapterError, match="a part of a move that was broken off"):
        await target.open()
    with pytest.raises(UsageError, match="a part of a move that was broken off"):
        await move(source, target, tell_nobody)
    await target.close()


async def test_a_store_that_a_hub_has_opened_is_not_empty(source: SqliteStore, target: SqlStore) -> None:
    """Though nothing is in it yet: that hub may go on."""
    await target.open()
    with pytest.raises(UsageError, match=r"is not empty \(a hub has used it\)"):
        await move(source, target, tell_nobody)
    assert (await target.open()).commit == 0, "and it is as it was"


async def test_a_store_with_something_in_it_says_what(source: SqliteStore, target: SqlStore) -> None:
    await target.keep_token(StoredToken("t", b"digest", "admin", "me", "", 1.0))
    with pytest.raises(UsageError, match=r"is not empty \(1 tokens\)"):
        await move(source, target, tell_nobody)
