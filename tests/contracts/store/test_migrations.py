"""Migrations: in order, each once, never backwards."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import apsw
import asyncpg
import pytest

from lifesigns.adapters.store.postgres import PostgresStore
from lifesigns.adapters.store.postgres_line import migrate_once
from lifesigns.adapters.store.sql import Dialect, Migration, in_words_of, migrations, queries
from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.adapters.store.sqlite_file import migrate
from lifesigns.errors import AdapterError
from tests.contracts.store.ground import event, fill

STEPS = [
    Migration(1, "first", "CREATE TABLE one (n bigint); INSERT INTO one VALUES (1)"),
    Migration(2, "second", "ALTER TABLE one ADD COLUMN m bigint; INSERT INTO one VALUES (2, 2)"),
    Migration(3, "third", "UPDATE one SET m = 3 WHERE n = 1"),
]
BROKEN = Migration(4, "fourth", "INSERT INTO one VALUES (4, 4); INSERT INTO no_such_table VALUES (1)")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(tmp_path / "x.db"))
    yield connection
    connection.close()


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_migrations_are_numbered_from_one_without_a_gap(dialect: Dialect) -> None:
    known = migrations(dialect)
    assert [migration.number for migration in known] == list(range(1, len(known) + 1))


def test_both_databases_have_the_same_queries_and_migrations() -> None:
    """Where they differ, it is for a reason: several hubs use one server, ask whether it is the same one, renew their
    rows there twice a second, and may be frozen in the middle of a commit."""
    only_postgres = {
        *("lock_migrations", "has_schema", "make_schema", "has_migrations"),
        *("made_at", "renew_and_list_hubs", "keep_commit", "ledger_seen", "end_blockers"),
        *("make_slot_summaries", "keep_slot_summaries", "renew_in_slot", "hubs_of_slot"),
    }
    assert set(queries("postgres")) - set(queries("sqlite")) == only_postgres
    assert not set(queries("sqlite")) - set(queries("postgres"))
    assert [one.name for one in migrations("sqlite")] == [one.name for one in migrations("postgres")]


def test_a_query_is_written_once_for_both() -> None:
    """A row whose values have types is a batch: row by row for SQLite, by columns for PostgreSQL."""
    batch = "INSERT INTO t (a, b) VALUES ($1::text, $2::float8) ON CONFLICT (a) DO UPDATE SET b = excluded.b"
    assert in_words_of("sqlite", batch) == (
        "INSERT INTO t (a, b) VALUES (?1, ?2) ON CONFLICT (a) DO UPDATE SET b = excluded.b"
    )
    assert in_words_of("postgres", batch) == (
        "INSERT INTO t (a, b) SELECT * FROM unnest($1::text[], $2::float8[]) ON CONFLICT (a) DO UPDATE SET b = excluded.b"
    )
    single = "INSERT INTO t VALUES ($1, $2)"
    assert in_words_of("postgres", single) == single


def test_an_older_file_is_brought_to_the_newest_shape(connection: apsw.Connection) -> None:
    migrate(connection, "it", STEPS[:1])
    migrate(connection, "it", STEPS[:1])
    migrate(connection, "it", STEPS)
    migrate(connection, "it", STEPS)
    assert connection.execute("SELECT n, m FROM one ORDER BY n").fetchall() == [(1, 3), (2, 2)]
    assert connection.execute("SELECT name FROM migrations ORDER BY number").fetchall() == [
        ("first",),
        ("second",),
        ("third",),
    ]


def test_a_migration_that_fails_leaves_the_file_as_it_was(connection: apsw.Connection) -> None:
    migrate(connection, "it", STEPS)
    with pytest.raises(apsw.SQLError):
        migrate(connection, "it", [*STEPS, BROKEN])
    assert connection.execute("SELECT max(n), (SELECT max(number) FROM migrations) FROM one").fetchall() == [
        (2, 3)
    ]


async def test_an_older_database_is_brought_to_the_newest_shape(postgres_url: str) -> None:
    """And one migration that fails leaves it as it was."""
    connection = await asyncpg.connect(postgres_url, server_settings={"search_path": "lifesigns"})

    async def step(known: list[Migration]) -> bool:
        async with connection.transaction():
            return await migrate_once(connection, "it", known)

    try:
        assert [await step(STEPS[:1]), await step(STEPS[:1])] == [True, False]
        assert [await step(STEPS), await step(STEPS), await step(STEPS)] == [True, True, False]
        with pytest.raises(asyncpg.UndefinedTableError):
            await step([*STEPS, BROKEN])
        assert [tuple(row) for row in await connection.fetch("SELECT n, m FROM one ORDER BY n")] == [
            (1, 3),
            (2, 2),
        ]
        assert await connection.fetchval("SELECT max(number) FROM migrations") == 3
    finally:
        await connection.close()


async def test_the_file_of_a_newer_lifesigns_is_left_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "x.db")
    await store.open()
    await fill(store, event(1))
    await store.close()
    with apsw.Connection(str(store.path)) as connection:
        connection.execute("INSERT INTO migrations VALUES (99, 'of the future', 0)")
    connection.close()
    later = SqliteStore(store.path)
    for futile in (later.open(), later.open(), later.events()):
        with pytest.raises(
            AdapterError, match=r"x\.db was made by a newer lifesigns .*99.*update"
        ) as refused:
            await futile
        assert not refused.value.transient
    await later.close()


async def test_the_database_of_a_newer_lifesigns_is_left_alone(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    await store.open()
    connection = await asyncpg.connect(postgres_url)
    await connection.execute("INSERT INTO lifesigns.migrations VALUES (99, 'of the future')")
    await connection.close()
    await store.close()
    later = PostgresStore(postgres_url)
    with pytest.raises(AdapterError, match=r"newer lifesigns .*99.*update") as refused:
        await later.open()
    assert not refused.value.transient
    await later.close()


async def test_somebody_elses_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with apsw.Connection(str(path)) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    store = SqliteStore(path)
    with pytest.raises(AdapterError, match=r"belongs to something else.*bookmarks") as refused:
        await store.open()
    assert not refused.value.transient
    await store.close()


async def test_other_tables_in_the_same_database_do_not_matter(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    try:
        await connection.execute(
            "DROP TABLE IF EXISTS public.events; CREATE TABLE public.events (theirs text)"
        )
        stores = [PostgresStore(postgres_url) for _ in range(3)]
        await asyncio.gather(*(store.ping() for store in stores))
        await stores[0].open()
        await fill(stores[0], event(1))
        assert len(await stores[1].events()) == 1
        for store in stores:
            await store.close()
        assert await connection.fetchval("SELECT count(*) FROM public.events") == 0
        await connection.execute("DROP TABLE public.events")
    finally:
        await connection.close()
