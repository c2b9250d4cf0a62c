"""HTTP and a bus at the same time: whoever comes through either door is heard, and gets its orders. Without the bus the
hub is blind, says so, and convicts nobody."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import lifesigns
from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.assembly.links import bus_at
from lifesigns.core.health import Health
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.signals import NudgeRequested
from lifesigns.hub import committer
from lifesigns.ports import Bus
from tests.hub.faulty_store import FaultyStore
from tests.servers.nats import NatsServer
from tests.servers.process import Server
from tests.servers.valkey import ValkeyServer
from tests.web.hub import RunningHub, running_hub

WAIT_MAX = 30.0
ROOT = Path(__file__).parents[2]
QUICK = FleetPolicy(canary_every=0.2, canary_late_after=1.0, truce_min=0.5)
"""A hub that knows within a second whether it can see."""

pytestmark = pytest.mark.timeout(150)


async def until(condition: Callable[[], object], within: float = WAIT_MAX) -> None:
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 -- what is waited for is not told by events
            await asyncio.sleep(0.01)


def quick_clock(rate: float = 4.0) -> Callable[[], float]:
    """One on which seconds pass four times as quickly."""
    began_at = time.monotonic()
    return lambda: 1_700_000_000.0 + (time.monotonic() - began_at) * rate


async def silence(hub: RunningHub) -> None:
    """Longer than an agent may be silent."""
    over_at = hub.service.clock() + 5.0
    await until(lambda: hub.service.clock() > over_at)


@dataclass
class Stage:
    """A hub with both doors, and what was said on the bus."""

    hub: RunningHub
    bus: Bus
    said: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def health(self, agent_id: str) -> Health | None:
        agent = self.hub.service.engine.agent(agent_id)
        return None if agent is None else agent.health

    def told(self, kind: str, agent_id: str = "") -> list[dict[str, Any]]:
        """Events of this type that were told on the bus."""
        events = [event for subject, event in self.said if subject == f"lifesigns.event.{kind}"]
        return [event for event in events if event["agent_id"] == agent_id or not agent_id]

    def orders(self, agent_id: str) -> list[str]:
        """Ids of the nudges for an agent that were said on the bus."""
        orders = [order for subject, order in self.said if subject == f"lifesigns.order.{agent_id}"]
        return [order["order_id"] for order in orders if order["type"] == "nudge"]

    def stages(self, agent_id: str) -> list[str]:
        """How far the nudge of an agent has come, as it was told."""
        return [event["data"]["stage"] for event in self.told("INTERVENTION", agent_id)]

    async def nudge(self, agent_id: str) -> None:
        await self.hub.service.http_receiver.store_reports(
            [NudgeRequested(agent_id=agent_id, by="me", message="look up")]
        )

    async def beat(self, agent_id: str, seq: int, *, by: str) -> dict[str, Any]:
        """One beat through one of the doors, and what was answered."""
        beat = {"agent_id": agent_id, "seq": seq, "incarnation": "one"}
        if by == "bus":
            await self.bus.publish(f"heartbeat.{agent_id}", json.dumps(beat).encode())
            await self.bus.flush()
            return {}
        answer: dict[str, Any] = (await self.hub.post("/api/v1/beats", beat)).json()
        return answer

    async def ready(self) -> tuple[int, dict[str, Any]]:
        answer = await self.hub.get("/readyz")
        return answer.status_code, answer.json()


@asynccontextmanager
async def stage(server: Server, **more: Any) -> AsyncIterator[Stage]:
    bus = bus_at(server.url)
    async with running_hub(bus=bus_at(server.url), policy="swift", fleet=QUICK, **more) as hub:
        scene = Stage(hub, bus)
        await until(lambda: hub.service.bus_state == "ok")
        await bus.connect()
        for pattern in ("lifesigns.event.>", "lifesigns.order.>"):
            await bus.subscribe(pattern, lambda subject, raw: scene.said.append((subject, json.loads(raw))))
        try:
            yield scene
        finally:
            await bus.close()


@pytest.fixture(params=[NatsServer, ValkeyServer], ids=["nats", "valkey"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with request.param() as started:
        yield started


async def test_orders_reach_real_senders_through_either_door_once(server: Server) -> None:
    """A nudge comes out of `life.nudges()`; its delivery comes back as a word, and the order is over."""
    async with (
        stage(server) as scene,
        lifesigns.Sender("bus-agent", hub=server.url, interval=0.5) as over_bus,
        lifesigns.Sender("http-agent", hub=scene.hub.url, token=scene.hub.token, interval=0.5) as over_http,
    ):
        lives = {"bus-agent": over_bus, "http-agent": over_http}
        for name, life in lives.items():
            await until(lambda name=name: scene.health(name) is Health.HEALTHY)  # type: ignore[misc]
            await scene.nudge(name)
            async with asyncio.timeout(WAIT_MAX):
                nudge = await anext(life.nudges())
            assert nudge.text == "look up"
        await until(lambda: not scene.hub.service.hub.ledger.offered)
        for name in lives:
            await until(lambda name=name: "seen" in scene.stages(name))  # type: ignore[misc]
            assert scene.stages(name) == ["delivered", "seen"]
        assert len(scene.orders("bus-agent")) == 1
        assert [event["agent_id"] for event in scene.told("NUDGE_SENT")] == list(lives)
        assert all(life.next_nudge(timeout=0) is None for life in lives.values())


SENDER = """
import sys, time, lifesigns
with lifesigns.Sender(sys.argv[1], hub=sys.argv[2], token=sys.argv[3], interval=0.5):
    time.sleep(600)
"""


async def test_the_death_of_a_real_agent_is_told_through_either_door(server: Server) -> None:
    """Its process is killed; the others live on."""
    async with stage(server) as scene, lifesigns.Sender("lives", hub=server.url, interval=0.5):
        places = {"bus-agent": server.url, "http-agent": scene.hub.url}
        children = [
            await asyncio.create_subprocess_exec(
                sys.executable, "-c", SENDER, name, url, scene.hub.token, cwd=ROOT
            )
            for name, url in places.items()
        ]
        try:
            await until(lambda: all(scene.health(name) is Health.HEALTHY for name in places))
        finally:
            for child in children:
                child.kill()
                await child.wait()
        await until(lambda: all(scene.health(name) is Health.DISCONNECTED for name in places))
        await until(lambda: all(len(scene.told("HEALTH_STATE_CHANGED", name)) == 2 for name in places))
        assert [event["data"]["to"] for event in scene.told("HEALTH_STATE_CHANGED", "lives")] == ["healthy"]


async def test_an_agent_that_changes_doors_is_one_agent(server: Server) -> None:
    """Its beats count, and its orders wait for it wherever it comes next."""
    async with stage(server) as scene:
        for seq, door in enumerate(("http", "bus", "http", "bus"), 1):
            await scene.beat("a", seq, by=door)
            await until(lambda: scene.hub.service.engine.agent("a"))
            agent = scene.hub.service.engine.agent("a")
            assert agent is not None
            await until(lambda agent=agent, seq=seq: agent.beats == seq)  # type: ignore[misc]
        await scene.nudge("a")
        await until(lambda: scene.orders("a"))
        answer = await scene.beat("a", 5, by="http")
        assert [order["order_id"] for order in answer["orders"]["a"]] == scene.orders("a")
        agent = scene.hub.service.engine.agent("a")
        assert agent is not None
        assert (agent.beats, agent.health, len(list(scene.hub.service.engine.agents()))) == (
            5,
            Health.HEALTHY,
            1,
        )


async def test_a_hub_without_its_bus_is_blind_says_so_and_convicts_nobody(server: Server) -> None:
    """Away at the start, there, frozen in the middle, there again. Agents over HTTP are not convicted either: who cannot
    see cannot know."""
    server.stop()
    bus = bus_at(server.url)
    async with running_hub(bus=bus, policy="swift", fleet=QUICK, clock=quick_clock()) as hub:
        scene = Stage(hub, bus)
        listener = hub.service.feed.listen()
        await until(lambda: hub.service.engine.beliefs.awareness.blind)
        await scene.beat("dies", 1, by="http")
        status, body = await scene.ready()
        assert (status, body["blind"], body["store"]) == (503, True, "ok")
        assert body["bus"] not in ("ok", "none")
        await until(lambda: [trouble.part for trouble in hub.service.troubles.now()] == ["BUS"])
        await silence(hub)
        assert scene.health("dies") is Health.HEALTHY

        server.start()
        await until(lambda: not hub.service.engine.beliefs.awareness.blind)
        await until(lambda: not hub.service.troubles.now())
        assert (await scene.ready())[0] == 200
        await until(lambda: scene.health("dies") is Health.DISCONNECTED)
        await scene.beat("lives", 1, by="bus")
        await until(lambda: scene.health("lives") is Health.HEALTHY)

        server.freeze()
        await until(lambda: hub.service.engine.beliefs.awareness.blind)
        await silence(hub)
        assert scene.health("lives") is Health.HEALTHY
        server.restart()
        await until(lambda: not hub.service.engine.beliefs.awareness.blind)
        await scene.beat("lives", 2, by="http")
        types = [event.type for event in await listener.next(0)]
        assert types.count("HUB_BLIND") == types.count("HUB_SIGHTED") == 2
        assert types[0] in ("HUB_BUS_LOST", "HUB_BLIND")
        assert "HUB_BUS_BACK" in types
        assert types.index("HUB_BUS_LOST") < types.index("HUB_BUS_BACK")


async def test_who_finds_the_inbox_full_is_told_or_counted(server: Server) -> None:
    """Over HTTP it can come again; on a bus there is nobody to tell."""
    async with stage(server) as scene:
        hub = scene.hub.service.hub
        hub.inbox.signals_max = 10
        beats = [{"agent_id": f"{n}"} for n in range(11)]
        answer = await scene.hub.post("/api/v1/beats", beats)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        words = [{"type": "activity", "agent_id": f"{n}", "kind": "any"} for n in range(11)]
        answer = await scene.hub.post("/api/v1/signals", words)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert hub.counters.turned_away == 22
        await scene.bus.publish("heartbeat.relay:many", json.dumps(beats).encode())
        await scene.bus.publish("lifesigns.signal.relay:many", json.dumps(words).encode())
        await until(lambda: hub.counters.turned_away == 44)
        assert not list(scene.hub.service.engine.agents())
        await scene.beat("a", 1, by="bus")
        await until(lambda: scene.health("a") is Health.HEALTHY)


def order_ids(hub: RunningHub, agent_id: str) -> list[str]:
    """What waits for an agent."""
    return [
        json.loads(bytes(raw))["order_id"]
        for raw in hub.service.http_receiver.orders_for([agent_id])[agent_id]
    ]


async def test_the_first_of_two_hubs_stops_acting_when_the_second_takes_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if it has nothing to write. Its open order is given by the other, under the same id."""
    monkeypatch.setattr(committer, "PING_EVERY", 0.05)
    name = str(uuid.uuid4())
    async with running_hub(FaultyStore(name)) as first:
        await first.post("/api/v1/beats", {"agent_id": "a"})
        await first.service.http_receiver.store_reports(
            [NudgeRequested(agent_id="a", by="me", message="look up")]
        )
        (order_id,) = order_ids(first, "a")
        async with running_hub(FaultyStore(name)) as second:
            await until(lambda: "another hub" in first.service.store_state)
            await until(lambda: not first.service.hub.ledger.offered)
            assert order_ids(second, "a") == [order_id]
            assert (await first.get("/readyz")).status_code == 503
            word = {"type": "checkpoint", "agent_id": "a", "checkpoint_id": "cp-1"}
            assert (await first.post("/api/v1/signals", word)).status_code == 503
            assert (await second.post("/api/v1/signals", word)).status_code == 202
            assert (await first.post("/api/v1/beats", {"agent_id": "b"})).status_code == 503
            assert (await first.get("/api/v1/agents/b")).status_code == 404
    kept = await MemoryStore(name).events()
    assert [event.id for event in kept] == list(range(1, len(kept) + 1))
    assert not any(event.agent_id == "b" for event in kept)
