"""Pings to the dead-man's switch: while all is well, and at no other time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from lifesigns.hub.dead_man_pings import FAILING_AFTER, RETRY_AFTER, DeadManPings
from lifesigns.ports import NotTaken

EVERY = 60.0


class Switch:
    """Takes pings, refuses them, or never answers."""

    name = "hc.example"

    def __init__(self) -> None:
        self.pinged_at: list[float] = []
        self.refuses = self.hangs = self.closed = False
        self.now = 1000.0

    async def ping(self) -> None:
        self.pinged_at.append(self.now)
        if self.hangs:
            await asyncio.Event().wait()
        if self.refuses:
            raise NotTaken("hc.example answered 404", transient=False)

    async def close(self) -> None:
        self.closed = True


class World:
    """The hub's health and clock, and the switch."""

    def __init__(self) -> None:
        self.switch = Switch()
        self.why = ""
        self.pings = DeadManPings(self.switch, EVERY, lambda: self.why, lambda: self.switch.now)

    async def until(self, moment: float) -> None:
        """Let the time go on second by second; the task gets its turns."""
        while self.switch.now < moment:
            self.switch.now += 1.0
            for _ in range(5):
                await asyncio.sleep(0)


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr("lifesigns.hub.dead_man_pings.LOOK_EVERY", 0.0)
    async with _running(World()) as running:
        yield running


@asynccontextmanager
async def _running(world: World) -> AsyncIterator[World]:
    task = asyncio.create_task(world.pings.run())
    try:
        yield world
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert world.switch.closed


async def test_it_is_pinged_at_once_and_then_every_so_often(world: World) -> None:
    await world.until(1000.0 + 3 * EVERY)
    first, second, third = world.switch.pinged_at[:3]
    assert first <= 1001.0
    assert (second - first, third - second) == (EVERY, EVERY)
    assert world.pings.state == "ok"
    assert world.pings.sent == len(world.switch.pinged_at)


async def test_there_is_no_ping_while_the_hub_is_unwell_and_one_as_soon_as_it_is_well(world: World) -> None:
    await world.until(1010.0)
    world.why = "the store is away: no route"
    await world.until(1300.0)
    assert len(world.switch.pinged_at) == 1
    assert world.pings.state == "no ping, because the store is away: no route"
    world.why = ""
    await world.until(1302.0)
    assert len(world.switch.pinged_at) == 2
    assert world.pings.state == "ok"


async def test_a_ping_that_is_refused_is_tried_again_soon_and_people_are_told_after_a_while(
    world: World,
) -> None:
    began_at = 1000.0 + EVERY
    await world.until(began_at - 2)
    world.switch.refuses = True
    await world.until(began_at + FAILING_AFTER - 2)
    assert world.pings.failed >= (FAILING_AFTER - 2) // RETRY_AFTER
    assert world.pings.why_failing(world.switch.now) == ""
    assert world.pings.state == "hc.example answered 404"
    await world.until(began_at + FAILING_AFTER + RETRY_AFTER)
    assert world.pings.why_failing(world.switch.now) == "hc.example answered 404"
    world.switch.refuses = False
    await world.until(began_at + FAILING_AFTER + 3 * RETRY_AFTER)
    assert world.pings.why_failing(world.switch.now) == ""
    assert world.pings.state == "ok"


async def test_a_switch_that_never_answers_is_given_up_and_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lifesigns.hub.dead_man_pings.PING_FOR", 0.01)
    world.switch.hangs = True
    async with asyncio.timeout(30):
        while world.pings.failed < 2:
            await world.until(world.switch.now + 1)
            await asyncio.sleep(0.005)
    assert "no answer" in world.pings.state
