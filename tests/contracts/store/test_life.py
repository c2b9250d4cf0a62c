"""How a store begins and ends."""

import asyncio

import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.errors import AdapterError
from lifesigns.ports import Commit, Store
from tests.contracts.store.ground import Ground, event, fill


async def test_every_store_answers_to_the_port(ground: Ground) -> None:
    store: Store = ground.make()
    assert store is not None


async def test_a_store_that_is_well_answers_a_ping(ground: Ground) -> None:
    """Before it is opened too, and the page of its hub is not touched."""
    store = ground.make()
    await store.ping()
    await store.open()
    await fill(store, event(1))
    await store.ping()
    _, found = await ground.opened()
    assert (found.commit, found.event) == (1, 1)


async def test_reading_takes_over_from_nobody(ground: Ground) -> None:
    """Somebody who only looks, or makes a token, does so beside a hub that runs."""
    hub = await ground.store()
    await fill(hub, event(1))
    guest = ground.make()
    assert len(await guest.events()) == 1
    assert await guest.tokens() == []
    await hub.commit(Commit(2))


async def test_a_store_may_be_closed_twice_and_never_used_again(ground: Ground) -> None:
    store = await ground.store()
    await asyncio.gather(store.close(), store.close())
    await store.close()
    for futile in (store.open(), store.commit(Commit(1)), store.events(), store.tokens(), store.ping()):
        with pytest.raises(AdapterError, match="closed") as refused:
            await futile
        assert not refused.value.transient


async def test_a_store_that_was_never_used_can_be_closed(ground: Ground) -> None:
    await ground.make().close()


async def test_memory_without_a_name_is_shared_with_nobody() -> None:
    one, other = MemoryStore(), MemoryStore()
    await one.open()
    await fill(one, event(1))
    assert (await other.open()).commit == 0
