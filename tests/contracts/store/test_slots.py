"""Hubs that divide the agents among themselves, on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import asyncpg
import pytest

from lifesigns.adapters.store.postgres import PostgresStore
from lifesigns.adapters.store.postgres_slots import PostgresSlots
from lifesigns.errors import AdapterError
from lifesigns.hub.slot_ownership import SLOTS, SlotOwnership
from lifesigns.ports.slots import Plan, SlotRow


class HubOfSlots:
    """One hub: its connections, and what it concludes."""

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        self.store = PostgresStore(url)
        self.table = PostgresSlots(self.store)

    async def join(self) -> HubOfSlots:
        await self.store.renew(self.name, "", "1.0")
        await self.table.make()
        return self

    async def seen(self) -> tuple[dict[int, SlotRow], dict[str, int]]:
        look = await self.table.look(self.name, 1)
        return {row.slot: row for row in look.slots}, {hub.name: hub.beat for hub in look.hubs}

    async def claim(self, *slots: int) -> Mapping[int, int]:
        rows, beats = await self.seen()
        return await self.table.change(self.name, Plan({slot: rows[slot].epoch for slot in slots}, beats))


@pytest.fixture
async def hubs(postgres_url: str) -> AsyncIterator[list[HubOfSlots]]:
    made = [await HubOfSlots(postgres_url, name).join() for name in ("a", "b\\", "c")]
    yield made
    for hub in made:
        await hub.store.close()


async def test_at_first_nobody_owns_any_slot(hubs: list[HubOfSlots]) -> None:
    rows, beats = await hubs[1].seen()
    assert list(rows.values()) == [SlotRow(slot) for slot in range(SLOTS)]
    assert beats.keys() == {"a", "b\\", "c"}


async def test_a_look_raises_the_beat(hubs: list[HubOfSlots]) -> None:
    _, first = await hubs[0].seen()
    _, second = await hubs[0].seen()
    assert second == first | {"a": first["a"] + 1}


async def test_who_has_no_row_is_told(hubs: list[HubOfSlots]) -> None:
    await hubs[0].store.release("a")
    with pytest.raises(AdapterError, match="the hub a has no row"):
        await hubs[0].table.look("a", 1)


async def test_of_two_that_claim_the_same_slots_one_gets_each(hubs: list[HubOfSlots]) -> None:
    """In any order, and without waiting for each other for ever."""
    plans = [await hub.seen() for hub in hubs]
    answers = await asyncio.gather(
        *(
            hub.table.change(
                hub.name,
                Plan(dict.fromkeys(order, 0), {name: plans[-1][1][name] for name in ("a", "b\\", "c")}),
            )
            for hub, order in zip(
                hubs, (range(SLOTS), range(SLOTS - 1, -1, -1), range(0, SLOTS, 3)), strict=True
            )
        )
    )
    got = [slot for answer in answers for slot in answer]
    assert len(got) == len(set(got)) == SLOTS
    rows, _ = await hubs[0].seen()
    for hub, answer in zip(hubs, answers, strict=True):
        assert dict(answer) == {slot: row.epoch for slot, row in rows.items() if row.owner == hub.name}


async def test_epochs_rise_and_no_two_hubs_have_the_same(hubs: list[HubOfSlots]) -> None:
    """The ids of orders are made of them. And they are higher than that of a hub that led alone before."""
    state = await hubs[0].store.open(epoch_min=1_000)
    epochs = [
        epoch
        for answer in await asyncio.gather(*(hub.claim(number) for number, hub in enumerate(hubs)))
        for epoch in answer.values()
    ]
    assert sorted(epochs) == [state.epoch + 1, state.epoch + 2, state.epoch + 3]
    assert min((await hubs[0].claim(9)).values()) > max(epochs)


async def test_an_owner_that_is_back_keeps_its_slots(hubs: list[HubOfSlots]) -> None:
    """Another hub saw it stand still, and decided; then it renewed its row."""
    owner, other, _ = hubs
    await owner.claim(1, 2)
    rows, beats = await other.seen()
    plan = Plan({1: rows[1].epoch}, beats)
    await owner.seen()
    assert await other.table.change(other.name, plan) == {}
    rows, beats = await other.seen()
    assert (await other.table.change(other.name, Plan({1: rows[1].epoch}, beats))).keys() == {1}


async def test_an_owner_that_renews_its_row_in_the_same_moment_sees_the_claim(
    hubs: list[HubOfSlots], postgres_url: str
) -> None:
    """Its renewal waits for the claim: it must not go on with slots that are another's now."""
    owner, other, _ = hubs
    await owner.claim(1)
    rows, beats = await other.seen()
    connection = await asyncpg.connect(postgres_url)
    try:
        async with connection.transaction():
            await connection.execute("SELECT FROM lifesigns.slots WHERE slot = 1 FOR UPDATE")
            claiming = asyncio.create_task(other.table.change(other.name, Plan({1: rows[1].epoch}, beats)))
            await until_somebody_waits(connection, 1)
            looking = asyncio.create_task(owner.seen())
            await until_somebody_waits(connection, 2)
    finally:
        await connection.close()
    assert (await claiming).keys() == {1}
    rows, _ = await looking
    assert rows[1].owner == other.name


async def until_somebody_waits(connection: asyncpg.Connection[asyncpg.Record], how_many: int) -> None:
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    async with asyncio.timeout(10.0):
        while await connection.fetchval(waiting) < how_many:  # noqa: ASYNC110 -- the server does not tell
            await asyncio.sleep(0.01)


async def test_a_slot_is_given_only_by_who_still_owns_it(hubs: list[HubOfSlots]) -> None:
    owner, other, third = hubs
    await owner.claim(1, 2)
    rows, beats = await owner.seen()
    plan = Plan(beats=beats, give={1: (rows[1].epoch, other.name), 2: (rows[2].epoch - 1, other.name)})
    assert await owner.table.change(owner.name, plan) == {}
    rows, _ = await third.seen()
    assert (rows[1].owner, rows[2].owner) == (other.name, owner.name)
    assert rows[1].epoch > rows[2].epoch


async def test_three_hubs_divide_all_slots(hubs: list[HubOfSlots]) -> None:
    """The machine and the rows together; only time is ours."""
    now, ownerships = 100.0, {hub.name: SlotOwnership(hub.name, 1) for hub in hubs}
    for _ in range(60):
        now += 1.0
        for hub in hubs:
            look = await hub.table.look(hub.name, 1)
            plan = ownerships[hub.name].look(look.hubs, look.slots, now, now)
            ownerships[hub.name].claimed(await hub.table.change(hub.name, plan))
    held = [set(ownership.held(now)) for ownership in ownerships.values()]
    assert set.union(*held) == set(range(SLOTS))
    assert sum(map(len, held)) == SLOTS
    assert min(map(len, held)) > SLOTS / 6
