"""From an agent's breaker to a person and back: seen, alerted, turned from the hub in the agent's own process."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from lifesigns.adapters.bus.memory import MemoryBus
from lifesigns.adapters.channels.webhook import WebhookChannel
from lifesigns.agent.guard.breakers import BREAKERS
from lifesigns.agent.guard.guard import Breaker
from lifesigns.assembly.senders import Sender
from lifesigns.core.signals import BreakerState
from lifesigns.hub.alerting.rules import Pacing, Rate, Rules
from tests.adapters.channels.peers import Peer
from tests.agent.supervise.running import environ
from tests.web.hub import RunningHub, running_hub

WITHIN = 30.0
"""A bound, not a wait: the machine may be busy."""


async def until(holds: Callable[[], Awaitable[Any]]) -> None:
    async with asyncio.timeout(WITHIN):
        while not await holds():  # noqa: ASYNC110 -- what is waited for happens in other threads and processes
            await asyncio.sleep(0.02)


async def shown(hub: RunningHub, name: str) -> dict[str, str]:
    """The state of this breaker by agent, as the hub shows it."""
    answer = await hub.get("/api/v1/breakers")
    return {one["agent_id"]: one["state"] for one in answer.json()["breakers"] if one["name"] == name}


async def until_shown(hub: RunningHub, name: str, **states: str) -> None:
    async def is_shown() -> bool:
        return await shown(hub, name) == states

    await until(is_shown)


async def turned(hub: RunningHub, name: str, act: str, **query: str) -> dict[str, Any]:
    """The record of one turn when it is over."""
    answer = await hub.post(f"/api/v1/breakers/{name}/{act}", {"reason": "a test"}, params=query)
    (record,) = answer.json()["interventions"]

    async def is_over() -> bool:
        record.update((await hub.get(f"/api/v1/interventions/{record['id']}")).json())
        return not record["open"]

    await until(is_over)
    found: dict[str, Any] = record
    return found


async def until_told(people: Peer, name: str, *stages: str) -> None:
    async def is_told() -> bool:
        notices = [request.json for request in people.requests]
        return [one["stage"] for one in notices if name in one["title"]] == [*stages]

    await until(is_told)


@pytest.fixture(autouse=True)
def nobody_elses_breakers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that other tests left in this process would be reported, too, and a hub knows 64 of an agent."""
    monkeypatch.setattr(BREAKERS, "_breakers", {})


@pytest.fixture
def name() -> str:
    return f"search-{uuid.uuid4()}"


async def test_an_opening_is_alerted_and_a_reset_from_the_hub_ends_it(name: str) -> None:
    """The agent's own breaker lets calls through again, and whoever was told is told that it is over."""
    pacing = Pacing(hold_for=0.0, update_every=0.05, repeat_every=0)
    async with Peer() as people:
        rules = Rules({"ops": Rate(per_minute=600, gap=0.01)}, pacing=pacing)
        channels = {"ops": WebhookChannel(people.url)}
        async with running_hub(rules=rules, channels=channels) as hub:
            breaker = Breaker(name, failure_threshold=1, recovery_timeout=300)
            async with Sender("coder-7", hub.url, token=hub.token):
                with pytest.raises(OSError, match="down"), breaker:
                    raise OSError("down")
                await until_told(people, name, "opened")
                await until_shown(hub, name, **{"coder-7": "open"})
                assert (await turned(hub, name, "reset"))["stage"] == "done"
                assert breaker.state is BreakerState.CLOSED
                assert await shown(hub, name) == {"coder-7": "closed"}
                await until_told(people, name, "opened", "resolved")


async def test_over_a_bus_it_is_the_same(name: str) -> None:
    url = f"memory://{uuid.uuid4()}"
    async with running_hub(bus=MemoryBus(url)) as hub:
        breaker = Breaker(name)
        async with Sender("coder-7", url):
            await until_shown(hub, name, **{"coder-7": "closed"})
            assert (await turned(hub, name, "open"))["stage"] == "done"
            assert breaker.state is BreakerState.OPEN


async def test_agents_of_one_process_share_its_breakers_and_a_name_means_all_of_them(name: str) -> None:
    async with running_hub() as hub:
        breaker = Breaker(name)
        breaker.force_open()
        async with Sender("a", hub.url, token=hub.token), Sender("b", hub.url, token=hub.token):
            await until_shown(hub, name, a="forced_open", b="forced_open")
            await turned(hub, name, "close", agent="a")
            await until_shown(hub, name, a="closed", b="closed")


# --- under a supervisor ------------------------------------------------------------------------------------

SPEAKS = """
import sys, lifesigns
lifesigns.guard(sys.argv[1]).force_open()
with lifesigns.Sender() as life:
    life.stopping.wait(60)
"""


@asynccontextmanager
async def supervised(hub: RunningHub, *program: str) -> AsyncIterator[None]:
    """`lifesigns run` with this program, at a hub."""
    words = ("-m", "lifesigns", "run", "--id", "coder-7", "--quiet", "--", sys.executable, "-c", *program)
    env = environ(LIFESIGNS_HUB=hub.url, LIFESIGNS_TOKEN=hub.token)
    supervisor = await asyncio.create_subprocess_exec(sys.executable, *words, env=env)
    try:
        yield
    finally:
        supervisor.terminate()
        async with asyncio.timeout(WITHIN):
            await supervisor.wait()


async def test_under_a_supervisor_only_the_program_that_has_the_breaker_answers(name: str) -> None:
    """They share one mailbox: the supervisor must not take what is not for it."""
    async with running_hub(policy="swift") as hub, supervised(hub, SPEAKS, name):
        await until_shown(hub, name, **{"coder-7": "forced_open"})
        record = await turned(hub, name, "reset")
        assert [stage["stage"] for stage in record["stages"]] == ["ordered", "done"]
        await until_shown(hub, name, **{"coder-7": "closed"})
