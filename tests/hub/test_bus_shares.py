"""Shares on a bus: a sender that takes too much of the hub's time is dropped for a while, its agents are put off, and nobody
else notices."""

from __future__ import annotations

import asyncio
import json

import pytest

from lifesigns.hub.bus_shares import MESSAGE_COSTS, WATCH_EVERY, WATCH_FROM, BusShares
from lifesigns.hub.shares import BURST_FOR, SHARE, Shares
from lifesigns.wire.subjects import sender
from tests.hub.test_bus_receiver import Doorstep, ShyBus, opened, until


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ("heartbeat.evil", "evil"),
        ("heartbeat.evil.b-7", "evil"),
        ("heartbeat.relay:host-1", "relay:host-1"),
        ("lifesigns.signal.evil.b-7", "evil"),
        ("lifesigns.signal.relay:host-1.12", "relay:host-1"),
        ("lifesigns.report.relay:host-1.12.evil.b-7", "evil"),
        ("heartbeat.evil%2E%2Ex", "evil"),
        ("heartbeat", ""),
        ("lifesigns.report.x", "x"),
    ],
)
def test_the_sender_is_the_first_part_of_the_id_or_a_relay(subject: str, name: str) -> None:
    assert sender(subject) == name


class Senders:
    """Two senders and a clock."""

    def __init__(self) -> None:
        self.now, self.put_off = 1000.0, list[str]()
        self.all_shares = Shares(lambda: self.now)
        self.shares = BusShares(ShyBus(), self.all_shares, lambda: self.now, self.put_off.append)

    def work(self, seconds: float, *subjects: str, within: float = 1.0) -> None:
        """So long for messages on these subjects, within that time."""
        self.now += within
        self.shares.note(subjects, seconds)


async def test_a_sender_over_its_share_is_dropped_until_it_has_paid_and_the_other_is_not() -> None:
    some = Senders()
    some.work(0.5, "heartbeat.evil.1")  # From here on it is looked at.
    for _ in range(3):
        some.work(0.4, *["heartbeat.evil.1"] * 99, "heartbeat.good")
    assert some.shares.drops("heartbeat.evil.2")
    assert some.shares.drops("lifesigns.report.relay:x.1.evil.3")
    assert not some.shares.drops("heartbeat.good")
    assert some.shares.dropped == 2
    assert set(some.put_off) == {"evil"}
    assert some.all_shares.flooded
    some.now += 60.0
    async with asyncio.timeout(10):
        while some.shares.dropping:  # noqa: ASYNC110 -- it looks again by itself
            await asyncio.sleep(0.01)
    assert not some.shares.drops("heartbeat.evil.2")
    assert not some.all_shares.flooded


async def test_it_does_not_matter_in_which_order_senders_are_dropped() -> None:
    """For each new list of them the bus compiles an expression, for milliseconds."""
    lists = set()
    for names in (("a", "b", "c"), ("c", "a", "b"), ("b", "c", "a")):
        some = Senders()
        some.work(0.5, "heartbeat.a")
        for name in names:
            some.shares.charge(name, 10.0)
        lists.add(some.shares.subjects)
    assert len(lists) == 1


async def test_who_takes_its_share_and_no_more_is_never_dropped() -> None:
    some = Senders()
    for _ in range(100):
        some.work(SHARE * WATCH_EVERY - MESSAGE_COSTS, "heartbeat.busy", within=WATCH_EVERY * 1.001)
    assert not some.shares.dropping
    assert not some.put_off


async def test_what_the_hub_does_later_for_a_message_is_charged_as_well() -> None:
    some = Senders()
    some.work(WATCH_FROM, "heartbeat.evil")
    some.all_shares.charge_apart("bus", SHARE * (1.0 + BURST_FOR) + 0.1)
    some.work(0.0, "heartbeat.evil")
    assert some.shares.drops("heartbeat.evil")


async def test_a_relay_over_its_share_puts_off_the_whole_bus_because_its_agents_are_not_known() -> None:
    some = Senders()
    some.work(0.5, "heartbeat.relay:x")
    some.work(0.9, "heartbeat.relay:x")
    assert some.put_off == [""]


async def test_a_message_that_takes_long_is_read_in_turns_and_others_are_heard_between() -> None:
    async with opened(Doorstep()) as step:
        bad = b"[" + b",".join(b'{"agent_id":"evil","load":"much"}' for _ in range(5000)) + b"]"
        await step.say("heartbeat.evil", bad)
        await step.say("lifesigns.signal.evil", {"type": "left", "agent_id": "evil"})
        await step.say("heartbeat.good", {"agent_id": "good"})
        await until(lambda: step.heard)
        assert [getattr(one, "agent_id", "") for one in step.heard] == ["good"]
        assert step.counters.unreadable == 0
        assert "evil" in step.refused
        async with asyncio.timeout(30):
            while len(step.heard) < 2:
                step.now += WATCH_EVERY
                await asyncio.sleep(0.01)
        assert step.counters.unreadable == 5000


async def test_a_flood_on_the_bus_is_dropped_there_and_a_neighbour_is_heard() -> None:
    async with opened(Doorstep()) as step:
        beat = json.dumps({"agent_id": "evil.1"}).encode()
        sent = 0
        async with asyncio.timeout(60):
            while not step.door.over_share:
                step.now += 0.001
                for _ in range(100):
                    await step.say("heartbeat.evil.1", beat)
                sent += 100
                await asyncio.sleep(0)
        await step.say("heartbeat.good", {"agent_id": "good"})
        await until(lambda: any(getattr(one, "agent_id", "") == "good" for one in step.heard))
        assert step.refused == {"evil"}
        assert len(step.heard) < sent
