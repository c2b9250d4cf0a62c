"""Hubs on one bus: those with another store are found, those on the same store and oneself are not."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lifesigns.adapters.bus.memory import MemoryBus
from lifesigns.errors import UsageError
from lifesigns.hub.bus_neighbours import GONE_AFTER, OTHERS_MAX, SUBJECT, BusNeighbours, HubCard

NOW = 1000.0
ADDRESS = f"memory://{uuid.uuid4()}"


@pytest.fixture
async def first(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[BusNeighbours]:
    """A hub that judges."""
    monkeypatch.setattr("lifesigns.hub.bus_neighbours.ANSWER_FOR", 0.2)
    bus = MemoryBus(ADDRESS)
    await bus.connect()
    neighbours = BusNeighbours(bus, HubCard("hub-1", "http://one", "postgres://db/a", "a"), lambda: NOW)
    await bus.subscribe(SUBJECT, neighbours.hear)
    running = asyncio.create_task(neighbours.run())
    yield neighbours
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await bus.close()


def asking(identity: str) -> BusNeighbours:
    card = HubCard("hub-2", "http://two", "postgres://db/b", identity)
    return BusNeighbours(MemoryBus(ADDRESS), card, lambda: NOW)


@pytest.mark.parametrize("identity", ["b", ""])
async def test_a_hub_with_another_store_is_refused_and_the_error_names_both(
    first: BusNeighbours, identity: str
) -> None:
    with pytest.raises(UsageError) as refused:
        await asking(identity).refuse_to_share()
    assert "hub-1 at http://one (store postgres://db/a)" in str(refused.value)
    assert "hub-2 at http://two (store postgres://db/b)" in str(refused.value)
    assert first.why_shared(NOW) == "", "who only asked is no neighbour"


async def test_a_hub_on_the_same_store_may_start(first: BusNeighbours) -> None:
    await asking("a").refuse_to_share()
    assert first.why_shared(NOW) == ""


@asynccontextmanager
async def uninvited(first: BusNeighbours) -> AsyncIterator[BusNeighbours]:
    """A hub with another store that could not ask, and that the first one has heard of."""
    bus = MemoryBus(ADDRESS)
    await bus.connect()
    second = BusNeighbours(bus, HubCard("hub-2", "http://two", "SQLite in /x"), lambda: NOW)
    running = asyncio.create_task(second.run())
    async with asyncio.timeout(10):
        while not first.why_shared(NOW):  # noqa: ASYNC110 -- nobody tells of it
            await asyncio.sleep(0.001)
    running.cancel()
    yield second
    await bus.close()


async def test_one_that_could_not_ask_is_told_of_while_it_is_there(first: BusNeighbours) -> None:
    async with uninvited(first):
        pass
    assert first.why_shared(NOW + GONE_AFTER - 0.1) == "hub-2 at http://two (store SQLite in /x)"
    assert first.why_shared(NOW + GONE_AFTER) == ""


async def test_one_that_stops_is_no_neighbour_any_more(first: BusNeighbours) -> None:
    async with uninvited(first) as second, asyncio.timeout(10):
        await second.leave()
        while first.why_shared(NOW):  # noqa: ASYNC110 -- nobody tells of it
            await asyncio.sleep(0.001)


async def test_nonsense_is_ignored_and_a_crowd_is_bounded(first: BusNeighbours) -> None:
    first.hear(SUBJECT, b"nonsense")
    first.hear(SUBJECT, b'{"hub": 7}')
    assert first.why_shared(NOW) == ""
    for n in range(10 * OTHERS_MAX):
        first.hear(SUBJECT, b'{"hub":"x\\u001b[2J","url":"u","store":"s","process":"%d"}' % n)
    text = first.why_shared(NOW)
    assert text.count("x") == OTHERS_MAX
    assert text.isprintable()


async def test_a_hub_that_no_other_can_share_the_store_with_does_not_hear_itself() -> None:
    """Its own messages come back to it over the bus, and nothing in them says the same store."""
    bus = MemoryBus(ADDRESS)
    await bus.connect()
    alone = BusNeighbours(bus, HubCard("hub-3", "http://three", "SQLite in /y"), lambda: NOW)
    echoes: list[bytes] = []
    await bus.subscribe(SUBJECT, alone.hear)
    await bus.subscribe(SUBJECT, lambda _subject, payload: echoes.append(payload))
    running = asyncio.create_task(alone.run())
    async with asyncio.timeout(10):
        while not echoes:  # noqa: ASYNC110 -- nobody tells of it
            await asyncio.sleep(0.001)
    running.cancel()
    await bus.close()
    assert alone.why_shared(NOW) == ""


async def test_two_that_start_at_once_do_not_refuse_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else neither would start. One hears the other soon, and people are told."""
    monkeypatch.setattr("lifesigns.hub.bus_neighbours.ANSWER_FOR", 0.2)
    await asyncio.gather(asking("c").refuse_to_share(), asking("d").refuse_to_share())


async def test_many_questions_at_once_are_answered_once(first: BusNeighbours) -> None:
    """Whoever floods the bus with questions does not have the hub flood it with answers."""
    bus = MemoryBus(ADDRESS)
    await bus.connect()
    answers: list[bytes] = []
    await bus.subscribe(SUBJECT, lambda _subject, payload: answers.append(payload))
    for n in range(100):
        first.hear(SUBJECT, b'{"hub":"x","url":"u","store":"s","process":"%d","asks":true}' % n)
    async with asyncio.timeout(10):
        while not answers:  # noqa: ASYNC110 -- nobody tells of it
            await asyncio.sleep(0.001)
    await bus.close()
    assert len(answers) <= 2, "the answer, and perhaps its first announcement"


async def test_the_connection_of_the_question_is_closed(first: BusNeighbours) -> None:
    closed: list[bool] = []

    class Told(MemoryBus):
        async def close(self) -> None:
            closed.append(True)
            await super().close()

    card = HubCard("hub-2", "http://two", "postgres://db/b", "a")
    await BusNeighbours(Told(ADDRESS), card, lambda: NOW).refuse_to_share()
    assert closed == [True]


async def test_two_stores_that_no_other_hub_can_use_are_not_one(first: BusNeighbours) -> None:
    """Both say nothing about their store, which does not make it the same."""
    alone = BusNeighbours(MemoryBus(ADDRESS), HubCard("hub-3", "http://three", "SQLite in /y"), lambda: NOW)
    alone.hear(SUBJECT, b'{"hub":"hub-4","url":"u","store":"SQLite in /z","process":"another"}')
    assert "hub-4" in alone.why_shared(NOW)
