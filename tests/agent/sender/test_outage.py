"""The bus is killed for ten seconds under a thousand senders."""

import asyncio
import contextlib
import json
import math
import os
import sys
import time
from asyncio.subprocess import PIPE, Process

import pytest

from lifesigns.adapters.bus.nats import NatsBus
from lifesigns.core.effects import Flip
from lifesigns.core.health import Health
from tests.agent.sender.tower import Tower
from tests.servers.nats import NatsServer

PROCESSES = 4
EACH = int(os.environ.get("SENDERS", "100"))
AWAY_FOR = 10.0
BACK_WITHIN = 5.0


@pytest.mark.timeout(180)
async def test_after_an_outage_of_the_bus_everybody_is_back_and_nobody_was_thought_dead() -> None:
    """All are heard again within 5 s of its return, no death is reported, and no call of a sender was held up."""
    async with contextlib.AsyncExitStack() as stack:
        server = stack.enter_context(NatsServer())
        tower = Tower(NatsBus(server.url))
        stack.push_async_callback(tower._bus.close)
        watching = asyncio.create_task(tower.watch())
        stack.callback(watching.cancel)
        fleets = [await _fleet(stack, server.url, f"p{number}") for number in range(PROCESSES)]
        await _until(lambda: len(tower.heard_at) == PROCESSES * EACH, 60)

        await asyncio.to_thread(server.kill)
        killed_at = time.monotonic()
        await asyncio.sleep(AWAY_FOR)  # the outage itself
        assert max(tower.heard_at.values()) < killed_at + 1
        await asyncio.to_thread(server.start)
        tower.mark = time.monotonic()
        await _until(lambda: len(tower.first_after) == PROCESSES * EACH, 30)
        back_after = max(tower.first_after.values()) - tower.mark

        figures = [await _end(fleet) for fleet in fleets]
        watching.cancel()

    sys.stderr.write(f"\nback after {back_after:.2f} s; {figures}\n")
    assert back_after <= BACK_WITHIN
    flips = [fact for fact in tower.facts if isinstance(fact, Flip)]
    assert not [flip for flip in flips if flip.now in (Health.DISCONNECTED, Health.STUCK, Health.FAILING)]
    assert not tower.orders
    assert sum(figure["dropped"] for figure in figures) == 0
    _check_nobody_was_held_up(figures)


def _check_nobody_was_held_up(figures: list[dict[str, float]]) -> None:
    """Of tens of thousands of calls no more take over a millisecond than the same calls on a sender that sends nothing.

    Both are interrupted by chance, whenever the scheduler puts the thread aside or another one holds the GIL; so their
    difference has a spread, of which four are allowed, and one call in two thousand besides.
    """
    calls = sum(figure["calls"] for figure in figures)
    long_calls = sum(figure["long_calls"] for figure in figures)
    long_control = sum(figure["long_control"] for figure in figures)
    allowed = 4 * math.sqrt(long_calls + long_control) + calls / 2000
    assert calls > 1000
    assert long_calls - long_control <= allowed, (
        f"{long_calls} of {calls} calls were long, control {long_control}"
    )


async def _fleet(stack: contextlib.AsyncExitStack, url: str, name: str) -> Process:
    command = [sys.executable, "-m", "tests.agent.sender.fleet", url, name, str(EACH)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)

    async def reap() -> None:
        if process.returncode is None:
            process.kill()
        await process.communicate()

    stack.push_async_callback(reap)
    assert process.stdout is not None
    assert await asyncio.wait_for(process.stdout.readline(), 60) == b"started\n"
    return process


async def _end(fleet: Process) -> dict[str, float]:
    assert fleet.stdin is not None
    assert fleet.stdout is not None
    fleet.stdin.close()
    figures: dict[str, float] = json.loads(await asyncio.wait_for(fleet.stdout.read(), 30))
    await fleet.wait()
    return figures


async def _until(holds: object, within: float) -> None:
    async with asyncio.timeout(within):
        while not holds():  # type: ignore[operator]  # noqa: ASYNC110 -- a dict that another callback fills
            await asyncio.sleep(0.02)
