"""Pages are written one after the other; nothing falls between them, and a store that is away is known to be."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from lifesigns.core.effects import Refusal
from lifesigns.core.signals import BeatReceived, NudgeRequested
from lifesigns.errors import AdapterError
from lifesigns.events import types_of
from lifesigns.hub import committer
from tests.hub.faulty_store import FaultyStore
from tests.hub.ground import Ground


def ground_over(store: FaultyStore) -> Ground:
    return Ground(lambda: store)


async def ids(store: FaultyStore) -> list[int]:
    return [event.id for event in await store.events()]


def announce(ground: Ground, *numbers: int) -> None:
    for number in numbers:
        ground.hub.announce(Refusal(1.0, "a", "a test", number))


async def numbers(store: FaultyStore) -> list[int]:
    return [json.loads(event.data)["count"] for event in await store.events(types=types_of(Refusal))]


async def test_a_clean_end_keeps_what_came_while_the_last_page_was_on_its_way() -> None:
    store = FaultyStore("clean end")
    ground = ground_over(store)
    await ground.start()
    store.hold()
    announce(ground, 1)
    await store.arrived.wait()
    announce(ground, 2)
    ending = asyncio.create_task(ground.hub.stop())
    await asyncio.sleep(0)
    store.go_on()
    await ending
    assert await numbers(FaultyStore("clean end")) == [1, 2]


async def test_who_waits_for_a_word_is_answered_by_a_clean_end() -> None:
    store = FaultyStore("answered")
    ground = ground_over(store)
    await ground.start()
    ground.hub.hear([BeatReceived("a", 1, "one")])
    store.hold()
    announce(ground, 1)
    await store.arrived.wait()
    keeping = asyncio.create_task(ground.hub.store_reports([NudgeRequested(agent_id="a", by="me")]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    ending = asyncio.create_task(ground.hub.stop())
    await asyncio.sleep(0)
    store.go_on()
    assert await asyncio.wait_for(keeping, 5)
    await ending


async def test_what_finds_no_place_is_counted_and_leaves_no_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest go: they were never told. Ids rise without a gap, or no store would take the page."""
    monkeypatch.setattr(committer, "EVENTS_MAX", 3)
    store = FaultyStore()
    async with ground_over(store) as ground:
        announce(ground, 1)
        await ground.until(lambda: store.pages)
        store.fail()
        announce(ground, 2)
        await ground.until(lambda: ground.hub.committer.trouble)
        announce(ground, *range(3, 10))
        store.heal()
        await ground.until(lambda: len(store.pages) == 3)
        announce(ground, 10)
        await ground.until(lambda: len(store.pages) == 4)
        assert await numbers(store) == [1, 2, 7, 8, 9, 10]
        assert await ids(store) == [event.id for event in ground.events] == [1, 2, 3, 4, 5, 6]
        assert ground.hub.committer.lost == 4


async def test_an_idle_hub_notices_that_the_store_is_away_and_that_it_is_back(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(committer, "PING_EVERY", 0.01)
    monkeypatch.setattr(committer, "RETRY_AFTER", (0.01,))
    store = FaultyStore()
    async with ground_over(store) as ground:
        store.fail("the disk is full")
        await ground.until(lambda: ground.hub.committer.state == "the disk is full")
        store.heal()
        await ground.until(lambda: ground.hub.committer.state == "ok")
        assert store.pages == []
    actions = [getattr(record, "action", "") for record in caplog.records]
    assert actions == ["store_failed", "store_back"]


async def test_a_page_that_takes_too_long_is_trouble_before_anybody_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(committer, "SLOW_AFTER", 0.05)
    store = FaultyStore()
    async with ground_over(store) as ground:
        store.hold()
        announce(ground, 1)
        await ground.until(lambda: ground.hub.committer.state != "ok")
        assert "on its way" in ground.hub.committer.state
        store.go_on()
        await ground.until(lambda: ground.hub.committer.state == "ok")


@pytest.mark.parametrize("error", [AdapterError("it is damaged", transient=False), ValueError("damaged")])
async def test_a_store_that_never_takes_a_page_again_is_said_once_and_for_all(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """Also if it is a bug of ours: who waits is told, and the hub watches on."""
    caplog.set_level(logging.CRITICAL, "lifesigns.hub")
    store = FaultyStore()
    async with ground_over(store) as ground:
        store.hold()
        announce(ground, 1)
        await store.arrived.wait()
        store.error = error
        keeping = asyncio.create_task(ground.hub.committer.wait_until_stored())
        store.go_on()
        with pytest.raises(AdapterError):
            await asyncio.wait_for(keeping, 5)
        with pytest.raises(AdapterError):
            await asyncio.wait_for(ground.hub.store_reports([NudgeRequested(agent_id="a", by="me")]), 5)
        assert "damaged" in ground.hub.committer.state
        assert not ground.hub.committer.trouble.transient  # type: ignore[union-attr]
        assert ground.events == []


async def test_nothing_is_told_or_carried_out_before_it_is_kept() -> None:
    store = FaultyStore()
    async with ground_over(store) as ground:
        ground.hub.hear([BeatReceived("a", 1, "one")])
        await ground.until(lambda: ground.events)
        store.hold()
        ground.hub.hear([NudgeRequested(agent_id="a", by="me", message="hello")])
        await store.arrived.wait()
        assert (ground.told("NUDGE_SENT"), ground.orders) == ([], [])
        store.go_on()
        await ground.until(lambda: ground.orders)
        assert len(ground.told("NUDGE_SENT")) == len(ground.orders) == 1
