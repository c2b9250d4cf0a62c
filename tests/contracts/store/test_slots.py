"""Stores of slots in one database, beside each other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from lifesigns.adapters.store.postgres import PostgresStore, SlotStore
from lifesigns.adapters.store.rows import Row
from lifesigns.errors import AdapterError, Deposed, UsageError
from lifesigns.hub.slots import divide
from lifesigns.ports import Belief, Commit, Event, StoredToken


@asynccontextmanager
async def opened(url: str, *slots: int) -> AsyncIterator[tuple[PostgresStore, list[SlotStore]]]:
    whole = PostgresStore(url)
    stores = [whole.of_slot(slot) for slot in slots]
    try:
        yield whole, stores
    finally:
        for store in stores:
            await store.close()
        await whole.close()


def commit(number: int, event_id: int) -> Commit:
    return Commit(number, [Belief("agent", "a", b"1")], [Event(event_id, 1.0, "T", "a", b"{}")])


async def test_each_slot_has_its_own_epoch_numbers_and_beliefs(postgres_url: str) -> None:
    async with opened(postgres_url, 1, 2) as (_, (one, two)):
        first = await one.open()
        await one.commit(commit(1, 1))
        await one.commit(commit(2, 2))
        assert (await two.open()).commit == 0
        await two.commit(commit(1, 1))
        assert len(await one.events()) == 2
        assert len(await two.events()) == 1
        again = await one.open()
        assert (again.commit, again.event, len(again.beliefs)) == (2, 2, 1)
        assert again.epoch > first.epoch


async def test_a_hub_that_lost_one_slot_commits_on_in_the_others(postgres_url: str) -> None:
    async with opened(postgres_url, 1, 2) as (_, (one, two)), opened(postgres_url, 1) as (_, (other,)):
        await one.open()
        await two.open()
        await other.open()
        with pytest.raises(Deposed):
            await one.commit(commit(1, 1))
        await two.commit(commit(1, 1))
        assert await other.events() == []


async def test_tokens_are_of_all_slots(postgres_url: str) -> None:
    async with opened(postgres_url, 1, 2) as (whole, (one, two)):
        token = StoredToken("id", b"digest", "viewer", "v", "", 1.0)
        await one.keep_token(token)
        assert await two.tokens() == await whole.tokens() == [token]
        assert await two.drop_token("id")
        assert await one.tokens() == []


async def test_no_hub_judges_all_of_a_fleet_that_is_divided(postgres_url: str) -> None:
    """It would judge nobody, and its orders would have a lower epoch than those of the slots."""
    async with opened(postgres_url) as (whole, _):
        await divide(whole, 1.0)
        await divide(whole, 1.0)
    async with opened(postgres_url) as (whole, _):
        with pytest.raises(AdapterError, match="several hubs judge") as refused:
            await whole.open()
        assert not refused.value.transient


async def test_a_fleet_that_one_hub_judges_is_not_divided(postgres_url: str) -> None:
    async with opened(postgres_url) as (whole, _):
        await whole.open()
        await whole.commit(commit(1, 1))
        with pytest.raises(UsageError, match="one of its own"):
            await divide(whole, 1.0)
        await whole.commit(commit(2, 2))  # And goes on.


async def test_slots_hear_of_each_other_and_see_what_is_new(postgres_url: str) -> None:
    """Also if two hubs make the table at once."""
    async with opened(postgres_url) as (one, _), opened(postgres_url) as (two, _):
        await asyncio.gather(one.exchange({1: b"a"}), two.exchange({2: b"b", 3: b"c"}))
        before = {row.slot: (row.beat, row.data) for row in await one.exchange({})}
        assert before == {1: (1, b"a"), 2: (1, b"b"), 3: (1, b"c")}
        after = {row.slot: (row.beat, row.data) for row in await two.exchange({2: b"b"})}
        assert after == {**before, 2: (2, b"b")}


async def test_rows_of_several_slots_are_renewed_together_and_seen_apart(postgres_url: str) -> None:
    """Also the same one twice at once, and rows of other hubs."""
    async with opened(postgres_url, 1, 2, 5) as (whole, mine), opened(postgres_url, 1, 5) as (_, others):
        for n, other in enumerate(others):
            await other.renew("other", "http://other", "2", copied=n)
            await other.open()
        for own in mine:
            await own.renew("me", "http://me", "1")
        statements: list[str] = []
        fetch = whole.renewals._fetch

        async def counted(sql: str, values: Row) -> Sequence[Row]:
            statements.append(sql)
            return await fetch(sql, values)

        whole.renewals._fetch = counted
        found = await asyncio.gather(
            *(own.renew("me", "http://me", "1", copied=n) for n, own in enumerate((*mine, mine[0])))
        )
        assert len(statements) == 2, "one for three slots, and one for the second wish of the first"
        seen = [[(row.name, row.copied, row.leads) for row in rows] for rows in found]
        assert seen[1:3] == [[("me", 1, False)], [("me", 2, False), ("other", 1, True)]]
        assert seen[0] == [("me", 0, False), ("other", 0, True)]
        assert seen[3] == [("me", 3, False), ("other", 0, True)]
        assert sorted(rows[0].beat for rows in (found[0], found[3])) == [2, 3]


async def test_a_slot_that_is_damaged_keeps_no_other_from_being_renewed(postgres_url: str) -> None:
    async with opened(postgres_url, 1, 2) as (whole, (one, two)):
        await one.renew("me", "http://me", "1")
        await two.renew("me", "http://me", "1")
        await whole._fetch_beside("DROP TABLE lifesigns_slot_2.hubs CASCADE", ())
        good, bad = await asyncio.gather(
            one.renew("me", "http://me", "1"), two.renew("me", "http://me", "1"), return_exceptions=True
        )
        assert not isinstance(good, BaseException)
        assert good[0].beat == 2
        assert isinstance(bad, AdapterError)
        assert not bad.transient
