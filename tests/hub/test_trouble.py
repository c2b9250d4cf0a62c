"""That the store or the bus is away is kept, if there is anybody to keep it; and told in any case."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from lifesigns.core.effects import Pause
from lifesigns.hub.feed import Listener
from lifesigns.hub.service import Service
from lifesigns.ports import Event
from tests.hub.alerting.test_every_kind import LooseBus
from tests.hub.faulty_store import FaultyStore

BOUND = 30.0


@asynccontextmanager
async def service() -> AsyncIterator[tuple[Service, FaultyStore, LooseBus, Listener]]:
    store, bus = FaultyStore(), LooseBus()
    running = Service(store, bus)
    await running.start()
    try:
        async with asyncio.timeout(BOUND):
            while running.bus_state != "ok":  # noqa: ASYNC110 -- it is not told by events
                await asyncio.sleep(0.005)
        yield running, store, bus, running.feed.listen()
    finally:
        store.heal()
        await running.stop()


async def next_of(listener: Listener, kind: str) -> Event:
    async with asyncio.timeout(BOUND):
        while True:
            for event in await listener.next(1.0):
                if event.type == kind:
                    return event


async def test_a_lost_bus_is_on_record_when_it_happens_and_when_it_is_over() -> None:
    async with service() as (running, store, bus, listener):
        bus.lost = True
        running.housekeeping.every_second(running.clock())
        lost = await next_of(listener, "HUB_BUS_LOST")
        assert lost.id > 0
        bus.lost = False
        running.housekeeping.every_second(running.clock())
        back = await next_of(listener, "HUB_BUS_BACK")
        kept = await store.events(types=("HUB_BUS_LOST", "HUB_BUS_BACK"))
        assert [event.id for event in kept] == [lost.id, back.id]


async def test_a_bus_that_is_lost_together_with_the_store_is_told_at_once() -> None:
    """It could be kept only when there is no hurry any more."""
    async with service() as (running, store, bus, listener):
        store.fail("disk full")
        running.hub.announce(Pause(1.0, "", "ann", None))
        async with asyncio.timeout(BOUND):
            while running.store_state == "ok":  # noqa: ASYNC110 -- it is not told by events
                await asyncio.sleep(0.005)
        bus.lost = True
        running.housekeeping.every_second(running.clock())
        assert (await next_of(listener, "HUB_BUS_LOST")).id == 0
