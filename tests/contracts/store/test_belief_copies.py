"""A copy of the beliefs that follows them, beside the hub that writes."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg
import pytest

from lifesigns.adapters.store.postgres import PostgresStore
from lifesigns.hub.belief_copy import BeliefCopy
from lifesigns.ports import Belief, Commit
from lifesigns.ports.store import BeliefMark
from tests.contracts.store.ground import AnyStore, Ground, believed

OTHER = "alert"
"""A kind that is copied as it is."""


async def copied(copy: BeliefCopy) -> dict[str, bytes | None]:
    await copy.catch_up()
    return {row.key: row.value for row in copy.recall.others}


async def passed_on(store: AnyStore, since: BeliefMark | None) -> set[str]:
    keys: set[str] = set()

    async def take(rows: Sequence[Belief]) -> None:
        keys.update(row.key for row in rows)

    await store.read_beliefs(since, take)
    return keys


async def test_a_copy_follows_what_is_written_changed_and_deleted(ground: Ground) -> None:
    """Also keys that a database cannot take unchanged."""
    store, copy = await ground.store(), BeliefCopy(ground.make())
    assert await copied(copy) == {}
    await store.commit(Commit(1, [believed(key, b"1", OTHER) for key in ("a", "b", "c\0\\")]))
    assert await copied(copy) == {"a": b"1", "b": b"1", "c\0\\": b"1"}
    await store.commit(Commit(2, [believed("a", b"2", OTHER), believed("c\0\\", None, OTHER)]))
    await store.commit(Commit(3, [believed("d", b"3", OTHER)]))
    assert await copied(copy) == {"a": b"2", "b": b"1", "d": b"3"}


async def test_a_copy_of_many_comes_in_several_parts(ground: Ground) -> None:
    store, copy = await ground.store(), BeliefCopy(ground.make())
    many = [believed(f"{n}", b"1", OTHER) for n in range(1201)]
    await store.commit(Commit(1, many))
    assert len(await copied(copy)) == 1201
    await store.commit(Commit(2, [believed(f"{n}", None, OTHER) for n in range(600)]))
    assert len(await copied(copy)) == 601


async def test_a_hub_with_a_copy_takes_over_without_reading_all(ground: Ground) -> None:
    store = await ground.store()
    await store.commit(Commit(1, [believed("a", b"1", OTHER)]))
    state = await ground.make().open(beliefs=False)
    assert (list(state.beliefs), state.commit) == ([], 1)


@pytest.mark.parametrize(
    ("later", "follows"),
    [
        (BeliefMark("s", 7, "2", 1), True),
        (BeliefMark("s", 8, "3", 0), True),
        (BeliefMark("s", 6, "9", 1), False),
        (BeliefMark("another", 8, "3", 1), False),
    ],
)
def test_a_mark_follows_on_the_same_server_unless_it_was_set_back(later: BeliefMark, follows: bool) -> None:
    """A replica that was promoted, or a backup that was restored, has another history."""
    assert later.follows(BeliefMark("s", 7, "1", 1)) is follows


async def test_postgres_passes_on_only_what_changed(postgres_url: str) -> None:
    store = PostgresStore(postgres_url)
    await store.open()
    await store.commit(Commit(1, [believed(f"{n}", b"1", OTHER) for n in range(100)]))
    mark = await store.belief_mark()
    assert (mark.commit, mark.count) == (1, 100)
    assert await passed_on(store, mark) == set()
    await store.commit(Commit(2, [believed("7", b"2", OTHER), believed("new", b"2", OTHER)]))
    assert await passed_on(store, mark) == {"7", "new"}
    assert len(await passed_on(store, None)) == 101
    await store.close()


async def test_a_change_that_was_on_its_way_at_the_mark_is_not_missed(postgres_url: str) -> None:
    """Its transaction began before the mark and ended after it; others that began later ended before."""
    store = PostgresStore(postgres_url)
    await store.open()
    await store.commit(Commit(1, [believed(key, b"1", OTHER) for key in ("slow", "quick")]))
    connection = await asyncpg.connect(postgres_url)
    try:
        slow = connection.transaction()
        await slow.start()
        await connection.execute("UPDATE lifesigns.beliefs SET value = '2' WHERE key = 'slow'")
        await store.commit(Commit(2, [believed("quick", b"2", OTHER)]))
        copy = BeliefCopy(store)
        assert await copied(copy) == {"slow": b"1", "quick": b"2"}
        await slow.commit()
        assert await copied(copy) == {"slow": b"2", "quick": b"2"}
    finally:
        await connection.close()
        await store.close()


async def test_a_restart_of_postgres_is_seen(postgres_url: str) -> None:
    store, connection = PostgresStore(postgres_url), await asyncpg.connect(postgres_url)
    try:
        await store.open()
        started = str(await connection.fetchval("SELECT pg_postmaster_start_time()::text"))
        assert (await store.belief_mark()).server == started
    finally:
        await connection.close()
        await store.close()
