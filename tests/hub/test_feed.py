"""Events go to everybody who listens; nobody waits for a listener, and a slow one is cut off alone."""

from __future__ import annotations

import asyncio

import pytest

from lifesigns.events.catalogue import AGENT_HEARTBEAT
from lifesigns.hub import feed as feed_module
from lifesigns.hub.feed import Feed
from lifesigns.ports import Event


def event(number: int, kind: str = "FLIP") -> Event:
    return Event(number, float(number), kind, "a", b"{}")


async def test_everybody_hears_what_is_told_from_now_on() -> None:
    feed = Feed()
    feed.publish([event(1)])
    async with feed.listen() as first:
        feed.publish([event(2)])
        async with feed.listen() as second:
            feed.publish([event(3)])
            assert await first.next(0) == [event(2), event(3)]
            assert await second.next(0) == [event(3)]
    assert len(feed) == 0


async def test_who_waits_is_woken_and_who_hears_nothing_is_told_so_after_a_while() -> None:
    feed = Feed()
    async with feed.listen() as listener:
        assert await listener.next(0.01) == []
        waiting = asyncio.create_task(listener.next(30))
        await asyncio.sleep(0)
        feed.publish([event(1)])
        assert await asyncio.wait_for(waiting, 5) == [event(1)]
        assert not listener.ended


async def test_a_listener_hears_the_types_it_asked_for_and_beats_only_by_name() -> None:
    feed = Feed()
    wanted = []
    async with feed.listen() as all_but_beats, feed.listen(["FLIP"]) as flips:
        wanted.append(feed.beats_wanted)
        async with feed.listen([AGENT_HEARTBEAT]) as beats:
            wanted.append(feed.beats_wanted)
            feed.publish([event(1), event(2, "BRAKE"), event(3, AGENT_HEARTBEAT)])
            assert await beats.next(0) == [event(3, AGENT_HEARTBEAT)]
        wanted.append(feed.beats_wanted)
        assert await flips.next(0) == [event(1)]
        assert await all_but_beats.next(0) == [event(1), event(2, "BRAKE")]
    assert wanted == [False, True, False]


async def test_a_slow_listener_is_cut_off_and_not_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """It learns that it missed something, and holds no memory meanwhile."""
    monkeypatch.setattr(feed_module, "WAITING_MAX", 3)
    feed = Feed()
    async with feed.listen() as slow, feed.listen() as quick:
        for number in range(1, 10):
            feed.publish([event(number)])
            assert await quick.next(0) == [event(number)]
        assert slow.overrun
        assert not quick.overrun
        assert len(slow._waiting) <= 3
        await slow.next(0)


async def test_the_end_wakes_everybody_who_waits_and_whoever_comes_later() -> None:
    feed = Feed()
    async with feed.listen() as listener:
        feed.publish([event(1)])
        waiting = asyncio.create_task(listener.next(30))
        await asyncio.sleep(0)
        feed.end()
        assert await asyncio.wait_for(waiting, 5) == [event(1)]
        assert listener.ended
        assert await listener.next(30) == []
    async with feed.listen() as late:
        assert late.ended
        assert await late.next(30) == []


async def test_there_is_a_limit_to_those_who_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "LISTENERS_MAX", 2)
    feed = Feed()
    full = []
    async with feed.listen():
        full.append(feed.full)
        async with feed.listen():
            full.append(feed.full)
        full.append(feed.full)
    assert full == [False, True, False]
