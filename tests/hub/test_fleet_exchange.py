"""Two processes with the hubs of four slots each, on a real PostgreSQL: what each of their hubs knows of the fleet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from lifesigns.adapters.store.postgres import PostgresStore
from lifesigns.core.effects import Rung
from lifesigns.core.fleet import NOT_ALL_SEEN
from lifesigns.core.fleet_summary import KNOWN_FOR
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.signals import BeatReceived
from lifesigns.hub import fleet_exchange
from lifesigns.hub.fleet_exchange import FleetExchange
from lifesigns.hub.hub import Hub
from lifesigns.hub.slots import SLOTS, slot_of
from tests.hub.ground import Ground
from tests.servers.postgres import PostgresServer


class SlotGround(Ground):
    """The hub of a slot."""

    def __init__(self, slot: int) -> None:
        self._slot = slot
        super().__init__()

    def another_hub(self) -> Hub:
        return Hub(
            self.another_store(),
            fleet=FleetPolicy(canary_every=0),
            clock=lambda: self.now,
            slot=self._slot,
        )


class Process:
    """Some of the slots."""

    def __init__(self, url: str, slots: range) -> None:
        self.store = PostgresStore(url)
        self.exchange = FleetExchange(self.store)
        self.grounds = {slot: SlotGround(slot) for slot in slots}

    def beat(self) -> None:
        """An agent for each slot."""
        for slot, ground in self.grounds.items():
            name = next(f"a-{n}" for n in range(1000) if slot_of(f"a-{n}") == slot)
            ground.hub.hear([BeatReceived(agent_id=name)])

    def may_end(self) -> set[int]:
        """The slots in which an agent might be ended now, or once all others know that it is wished."""
        found = set[int]()
        for slot, ground in self.grounds.items():
            engine = ground.hub.engine
            (agent,) = engine.agents()
            held = engine._context.fleet.hold(agent, Rung.TERMINATE, ground.now)
            if held is None or held[0] != NOT_ALL_SEEN:
                found.add(slot)
        return found

    def members(self, slot: int) -> int:
        """Of the fleet, as the hub of this slot knows it."""
        return self.grounds[slot].hub.engine._context.fleet._sources_in("fleet").of("")[0]


@pytest.fixture
async def both(postgres_server: PostgresServer) -> AsyncIterator[tuple[Process, Process]]:
    async with AsyncExitStack() as stack:
        halves = Process(postgres_server.url, range(4)), Process(postgres_server.url, range(4, SLOTS))
        for half in halves:
            stack.push_async_callback(half.store.close)
            for slot, ground in half.grounds.items():
                await stack.enter_async_context(ground)
                half.exchange.hubs[slot] = ground.hub
            half.beat()
        await asyncio.sleep(0.05)
        yield halves


async def test_each_hub_learns_how_the_rest_of_the_fleet_is(both: tuple[Process, Process]) -> None:
    one, two = both
    await one.exchange.exchange()
    assert one.may_end() == set(), "half of the fleet is not known"
    await two.exchange.exchange()
    assert two.may_end() == set(), "what was there at the first look may be old"
    await one.exchange.exchange()
    await two.exchange.exchange()
    await one.exchange.exchange()
    assert one.may_end() | two.may_end() == {*range(SLOTS)}
    assert {one.members(slot) for slot in range(4)} | {two.members(slot) for slot in range(4, 8)} == {SLOTS}


async def test_a_slot_that_says_nothing_new_ends_all_ending(
    both: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its hub died: whatever was said of it is old."""
    monkeypatch.setattr(fleet_exchange, "KNOWN_FOR", 0.3)
    one, two = both
    for half in (one, two, one, two, one):
        await half.exchange.exchange()
    assert one.may_end()
    assert one.exchange.why_unheard() == ""
    monkeypatch.setattr(fleet_exchange, "UNHEARD_AFTER", 0.3)
    del two.exchange.hubs[5]
    for _ in range(3):
        await asyncio.sleep(0.15)
        await two.exchange.exchange()
        await one.exchange.exchange()
    assert one.exchange.why_unheard().startswith("Nobody judges slot 5:"), "and people are told"
    for half in both:
        for ground in half.grounds.values():
            ground.now += KNOWN_FOR
    await two.exchange.exchange()
    await one.exchange.exchange()
    assert one.may_end() == set()
    assert two.may_end() == set()
