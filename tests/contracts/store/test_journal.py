"""The journal: chunks of what was heard, in order, for a short while."""

from pathlib import Path

import asyncpg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from lifesigns.adapters.store import memory, sql_store
from lifesigns.adapters.store.postgres import PostgresStore
from lifesigns.adapters.store.postgres_line import migrate_once
from lifesigns.adapters.store.sql import migrations
from lifesigns.errors import AdapterError
from lifesigns.ports import Chunk, Commit
from tests.contracts.store.ground import AnyStore, Ground, event, fill, old_file

HOUR, DAY = 3600.0, 86400.0
NOW = 400 * DAY


def chunk(from_at: float, to_at: float, data: bytes = b"\0x\xff") -> Chunk:
    return Chunk(from_at, to_at, 7, data)


async def read(store: AnyStore, since: float = 0.0, until: float = 1e12) -> list[Chunk]:
    return [one async for one in store.journal(since, until)]


async def test_chunks_come_back_as_they_were_in_the_order_they_were_kept(ground: Ground) -> None:
    """Also after the clock was set back between two hubs: what was heard later comes later."""
    store = await ground.store()
    first, second = chunk(10.0, 20.25), Chunk(20.25, 1 / 3 + 30, 2**40, bytes(range(256)) * 300)
    before = chunk(5.0, 6.0)
    await store.commit(Commit(1, journal=[first, second]))
    await store.commit(Commit(2, journal=[before]))
    assert await read(store) == [first, second, before]
    assert await read(ground.make()) == [first, second, before]


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [
        (20.0, 30.0, [10.0, 20.0]),
        (20.1, 30.1, [20.0, 30.0]),
        (40.0, 99.0, [30.0]),
        (40.1, 99.0, []),
        (0.0, 10.0, []),
        (25.0, 26.0, [20.0]),
        (float("-inf"), float("inf"), [10.0, 20.0, 30.0]),
    ],
)
async def test_a_range_has_every_chunk_that_touches_it(
    ground: Ground, since: float, until: float, found: list[float]
) -> None:
    store = await ground.store()
    await store.commit(Commit(1, journal=[chunk(at, at + 10) for at in (10.0, 20.0, 30.0)]))
    assert [one.from_at for one in await read(store, since, until)] == found


async def test_a_page_that_is_kept_already_brings_its_chunks_once(ground: Ground) -> None:
    store = await ground.store()
    page = Commit(1, journal=[chunk(1.0, 2.0)])
    await store.commit(page)
    await store.commit(page)
    assert len(await read(store)) == 1


async def test_many_chunks_are_read_while_others_are_written_and_dropped(ground: Ground) -> None:
    """Nothing is read twice, what stays is read, and what goes meanwhile may be missing."""
    store, many = await ground.store(), 3 * sql_store.CHUNKS_AT_ONCE + 1
    await store.commit(Commit(1, journal=[chunk(NOW - DAY + at, NOW - DAY + at) for at in range(many)]))
    found = []
    async for one in store.journal(0.0, NOW + 1):
        found.append(one.from_at - NOW + DAY)
        if len(found) == 1:
            await store.commit(Commit(2, journal=[chunk(NOW, NOW)]))
            await store.forget(NOW + many - 5, keep_for=30 * DAY)
    assert found == sorted(set(found))
    assert many - 1 in found


async def test_the_journal_is_forgotten_sooner_than_history(ground: Ground) -> None:
    """On the boundary it stays; and never is it kept longer than history is."""
    store = await ground.store()
    chunks = [chunk(at - 10, at) for at in (NOW - DAY - 0.1, NOW - DAY, NOW - HOUR)]
    await store.commit(Commit(1, events=[event(1, at=NOW - 2 * DAY)], journal=chunks))
    assert await store.forget(NOW, keep_for=30 * DAY) == 1
    assert await read(store) == chunks[1:]
    assert await store.forget(NOW, keep_for=30 * DAY, raw_for=HOUR) == 1
    assert await read(store) == chunks[2:]
    assert await store.forget(NOW + 1, keep_for=HOUR, raw_for=DAY) == 2
    assert await read(store) == []


async def test_a_journal_that_grows_too_large_loses_its_beginning(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than one step can take."""
    monkeypatch.setattr(sql_store, "RAW_MAX", 1000)
    monkeypatch.setattr(memory, "RAW_MAX", 1000)
    store, many = await ground.store(), 2 * sql_store.CHUNKS_AT_ONCE
    await store.commit(
        Commit(1, journal=[chunk(NOW + n, NOW + n, bytes(10 if n % 2 else 90)) for n in range(many)])
    )
    assert await store.forget(NOW, keep_for=30 * DAY) == many - 20
    left = await read(store)
    assert [one.from_at for one in left] == [NOW + n for n in range(many - 20, many)]
    assert await store.forget(NOW, keep_for=30 * DAY) == 0


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pages=some.lists(
        some.lists(some.tuples(some.integers(0, 50), some.integers(0, 9)), max_size=4), max_size=5
    ),
    since=some.integers(-5, 60),
    lasts=some.integers(0, 60),
    raw_for=some.integers(0, 60),
)
async def test_whatever_was_kept_and_forgotten_the_right_chunks_are_found(
    ground: Ground, pages: list[list[tuple[int, int]]], since: int, lasts: int, raw_for: int
) -> None:
    await ground.move()
    store, model = await ground.store(), list[Chunk]()
    for number, told in enumerate(pages, 1):
        page = [chunk(NOW + at, NOW + at + long) for at, long in told]
        await store.commit(Commit(number, journal=page))
        model += page
    await store.forget(NOW + 60, keep_for=DAY, raw_for=raw_for)
    model = [one for one in model if one.to_at >= NOW + 60 - raw_for]
    begin, end = NOW + since, NOW + since + lasts
    assert await read(store, begin, end) == [one for one in model if one.to_at >= begin and one.from_at < end]


async def test_a_closed_store_has_no_journal(ground: Ground) -> None:
    store = await ground.store()
    await store.close()
    with pytest.raises(AdapterError, match="closed"):
        await read(store)


async def test_a_file_of_the_first_version_is_migrated_with_all_it_has(tmp_path: Path) -> None:
    store = old_file(tmp_path / "old.db", 1)
    try:
        assert (await store.open()).epoch == 5
        await store.commit(Commit(2, journal=[chunk(1.0, 2.0)]))
        assert await read(store) == [chunk(1.0, 2.0)]
        assert [one.id for one in await store.events()] == [1]
    finally:
        await store.close()


async def test_a_server_of_the_first_version_is_migrated_with_all_it_has(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url, server_settings={"search_path": "lifesigns"})
    async with connection.transaction():
        await migrate_once(connection, "it", migrations("postgres")[:1])
        await connection.execute("UPDATE hub SET epoch = 4")
    await connection.close()
    store = PostgresStore(postgres_url)
    try:
        assert (await store.open()).epoch == 5
        await fill(store, event(1))
        await store.commit(Commit(2, journal=[chunk(1.0, 2.0)]))
        assert await read(store) == [chunk(1.0, 2.0)]
    finally:
        await store.close()
