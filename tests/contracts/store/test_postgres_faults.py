"""PostgreSQL in trouble: it is said within a bound, nothing kept is lost, and the same store goes on afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import asyncpg
import pytest

from lifesigns.adapters.store.postgres import PostgresStore
from lifesigns.errors import AdapterError, UsageError
from lifesigns.ports import Commit
from tests.contracts.store.ground import all_ids, believed, event, fill
from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres_url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
async def hasty(postgres_url: str) -> AsyncIterator[PostgresStore]:
    """Waits for an answer only for a moment."""
    store = PostgresStore(postgres_url, answer_for=1.0)
    await store.open()
    yield store
    await store.close()


@contextlib.asynccontextmanager
async def stranger(url: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def cut(url: str) -> int:
    """End the connections of all stores; how many."""
    async with stranger(url) as connection:
        rows = await connection.fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'lifesigns'"
        )
        return len(rows)


async def keep(store: PostgresStore, page: Commit) -> int:
    """As a hub does it: again and again, as long as it may succeed later. How often it did not."""
    failures = 0
    async with asyncio.timeout(60):
        while True:
            try:
                await store.commit(page)
            except AdapterError as error:
                if not error.transient:
                    raise
                failures += 1
                await asyncio.sleep(0.02)
            else:
                return failures


def page_of(number: int) -> Commit:
    beliefs = [believed(f"{n}", b"%d" % number) for n in range(20)]
    return Commit(number, beliefs=beliefs, events=[event(2 * number - 1), event(2 * number)])


async def test_a_server_killed_under_load_loses_nothing_it_kept(
    store: PostgresStore, postgres_server: PostgresServer
) -> None:
    """Three crashes; every page is there, once and whole."""
    kept = failures = 0
    over, ten_more = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        nonlocal kept, failures
        while not over.is_set():
            failures += await keep(store, page_of(kept + 1))
            kept += 1
            if kept % 10 == 0:
                ten_more.set()

    writing = asyncio.create_task(write())
    for _ in range(3):
        ten_more.clear()
        await asyncio.wait_for(ten_more.wait(), 60)
        await asyncio.to_thread(postgres_server.kill)
        await asyncio.to_thread(postgres_server.start)
    over.set()
    await writing
    assert failures
    found = await store.open()
    assert found.commit == kept
    assert {belief.value for belief in found.beliefs} == {b"%d" % kept}
    assert await all_ids(store) == list(range(1, 2 * kept + 1))


async def test_while_the_server_is_away_it_is_said_at_once(
    hasty: PostgresStore, postgres_server: PostgresServer
) -> None:
    await asyncio.to_thread(postgres_server.kill)
    try:
        for futile in (
            hasty.commit(Commit(1)),
            hasty.commit(Commit(1)),
            hasty.events(),
            hasty.ping(),
            hasty.open(),
        ):
            with pytest.raises(AdapterError) as refused:
                await futile
            assert refused.value.transient
    finally:
        await asyncio.to_thread(postgres_server.start)
    await hasty.commit(Commit(1, events=[event(1)]))
    assert await all_ids(hasty) == [1]


async def test_a_connection_that_was_cut_is_made_anew(store: PostgresStore, postgres_url: str) -> None:
    """At most one call notices."""
    await fill(store, event(1))
    assert await all_ids(store) == [1]
    assert await cut(postgres_url) == 2
    await keep(store, Commit(2, events=[event(2)]))
    with contextlib.suppress(AdapterError):
        await store.events()
    assert await all_ids(store) == [1, 2]


async def test_connections_cut_again_and_again_lose_nothing(store: PostgresStore, postgres_url: str) -> None:
    """In the middle of a page, wherever that is."""
    over = asyncio.Event()

    async def cutting() -> None:
        while not over.is_set():
            await cut(postgres_url)
            await asyncio.sleep(0.2)  # Long enough for some pages even on a busy machine.

    harm = asyncio.create_task(cutting())
    kept = failures = 0
    async with asyncio.timeout(90):
        while failures < 5 or kept < 20:
            failures += await keep(store, page_of(kept + 1))
            kept += 1
    over.set()
    await harm
    found = await store.open()
    assert (found.commit, found.event) == (kept, 2 * kept)
    assert {belief.value for belief in found.beliefs} == {b"%d" % kept}


async def test_a_frozen_server_is_waited_for_within_a_bound(
    hasty: PostgresStore, postgres_server: PostgresServer
) -> None:
    """And the page it was given before it froze may be kept when it thaws: then it is skipped."""
    await fill(hasty, event(1))
    await hasty.events()
    postgres_server.freeze()
    try:
        for futile in (
            hasty.commit(page := Commit(2, events=[event(2)])),
            hasty.events(),
            hasty.ping(),
            hasty.open(),
        ):
            began = time.monotonic()
            with pytest.raises(AdapterError, match="did not answer in time") as refused:
                await futile
            assert refused.value.transient
            assert time.monotonic() - began < 10
        began = time.monotonic()
        waiting = asyncio.gather(*(hasty.commit(page) for _ in range(20)), return_exceptions=True)
        assert all(isinstance(outcome, AdapterError) for outcome in await waiting)
        assert time.monotonic() - began < 10, "those who wait for their turn wait no longer than the others"
    finally:
        postgres_server.thaw()
    await keep(hasty, page)
    assert await all_ids(hasty) == [1, 2]


async def test_a_store_can_be_closed_while_the_server_is_frozen(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    store = PostgresStore(postgres_url)
    await store.open()
    postgres_server.freeze()
    try:
        async with asyncio.timeout(5):
            await store.close()
    finally:
        postgres_server.thaw()


async def test_a_transaction_of_somebody_else_is_waited_for_within_a_bound(
    hasty: PostgresStore, postgres_url: str
) -> None:
    """A hub that was stopped in the middle of a page, perhaps."""
    async with stranger(postgres_url) as connection:
        async with connection.transaction():
            await connection.execute("SELECT * FROM lifesigns.hub FOR UPDATE")
            with pytest.raises(AdapterError, match="did not answer") as refused:
                await hasty.commit(page := Commit(1, events=[event(1)]))
            assert refused.value.transient
        await keep(hasty, page)
    assert await all_ids(hasty) == [1]


async def test_a_hub_takes_over_from_one_that_was_frozen_in_the_middle_of_a_commit(
    store: PostgresStore, postgres_url: str
) -> None:
    """While a statement of a transaction is prepared, the session is active to the server: no timeout of the server ends
    it, however long its client is frozen."""
    frozen = await asyncpg.connect(postgres_url, server_settings={"application_name": "lifesigns"})
    await frozen.execute("BEGIN")
    await frozen.execute("SELECT * FROM lifesigns.hub FOR UPDATE")
    await frozen.prepare("SELECT * FROM lifesigns.beliefs")  # The server waits for its values, as for ever.
    began = time.monotonic()
    await store.open()
    assert time.monotonic() - began < 5
    await store.commit(Commit(1, events=[event(1)]))
    assert frozen.is_closed()


async def test_a_transaction_of_another_program_is_not_ended(store: PostgresStore, postgres_url: str) -> None:
    """It is none of a hub: taking over waits for it, within a bound."""
    async with stranger(postgres_url) as connection, connection.transaction():
        await connection.execute("SELECT * FROM lifesigns.hub FOR UPDATE")
        with pytest.raises(AdapterError, match="lock timeout") as refused:
            await store.open()
        assert refused.value.transient
        assert await connection.fetchval("SELECT count(*) FROM lifesigns.hub") == 1


async def test_a_long_look_into_the_past_does_not_delay_a_page(
    store: PostgresStore, postgres_url: str
) -> None:
    """Here the look waits for a lock that a page does not need."""
    await fill(store, event(1))
    async with stranger(postgres_url) as connection:
        async with connection.transaction():
            await connection.execute("LOCK TABLE lifesigns.tokens IN ACCESS EXCLUSIVE MODE")
            look = asyncio.create_task(store.tokens())
            await store.commit(Commit(2, events=[event(2)]))
            assert not look.done()
        assert await look == []


@pytest.mark.parametrize(
    "url", ["mysql://127.0.0.1/x", "postgres://127.0.0.1:port/x", "nonsense", "postgres://h:99999999/x", ""]
)
async def test_what_is_no_address_is_your_mistake(url: str) -> None:
    with pytest.raises(UsageError, match="PostgreSQL"):
        await PostgresStore(url).open()


async def test_a_database_that_does_not_exist_is_said_without_secrets(
    postgres_server: PostgresServer,
) -> None:
    url = f"postgres://lifesigns:s3cret@127.0.0.1:{postgres_server.port}/nowhere"
    store = PostgresStore(url)
    with pytest.raises(AdapterError, match=r"127\.0\.0\.1.*/nowhere.*does not exist") as refused:
        await store.open()
    assert not refused.value.transient
    assert "s3cret" not in str(refused.value)
    await store.close()


async def test_where_nobody_listens_somebody_may_come() -> None:
    store = PostgresStore(f"postgres://lifesigns@127.0.0.1:{free_port()}/x")
    with pytest.raises(AdapterError, match="cannot be reached") as refused:
        await store.open()
    assert refused.value.transient
    await store.close()
