"""`BusMonitor`: who lives on a bus, without a hub. Seed 001, requirement by requirement."""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections.abc import AsyncIterator

import pytest

import lifesigns
from lifesigns.adapters.bus.memory import MemoryBus
from lifesigns.agent.bus_monitor import BusAgent, Presence
from lifesigns.errors import UsageError
from tests.agent.bus_monitor import agentkit
from tests.contracts.bus.ground import Ear, eventually

INTERVAL, TIMEOUT = 0.2, 1.0


class Told:
    """Everything a monitor calls back with, in order."""

    def __init__(self) -> None:
        self.news: list[BusAgent] = []

    def __call__(self, agent: BusAgent) -> None:
        self.news.append(agent)

    def of(self, agent_id: str) -> list[Presence]:
        return [agent.presence for agent in self.news if agent.agent_id == agent_id]

    async def comes(self, agent_id: str, *presences: Presence) -> BusAgent:
        await eventually(lambda: self.of(agent_id) == list(presences))
        return [agent for agent in self.news if agent.agent_id == agent_id][-1]


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture
async def bus(url: str) -> AsyncIterator[MemoryBus]:
    bus = MemoryBus(url)
    await bus.connect()
    yield bus
    await bus.close()


def monitor_on(url: str, told: Told, registry: object = None) -> lifesigns.BusMonitor:
    return lifesigns.BusMonitor(
        url,
        on_dead=told,
        on_alive=told,
        on_left=told,
        registry=registry,
        interval=INTERVAL,
        timeout=TIMEOUT,
    )


def beat(agent_id: str, **more: object) -> bytes:
    return json.dumps({"agent_id": agent_id, **more}).encode()


async def test_a_death_is_told_once_at_its_threshold_and_a_beat_brings_back(url: str, bus: MemoryBus) -> None:
    """Not before the timeout, once per death, and again after a resurrection."""
    told = Told()
    async with monitor_on(url, told):
        await bus.publish("heartbeat.coder-7", beat("coder-7"))
        alive = await told.comes("coder-7", Presence.ALIVE)
        began = time.monotonic()
        assert alive.downtime is None
        dead = await told.comes("coder-7", Presence.ALIVE, Presence.DEAD)
        assert time.monotonic() - began >= TIMEOUT - 0.1
        assert dead.reason
        await asyncio.sleep(TIMEOUT)
        assert told.of("coder-7") == [Presence.ALIVE, Presence.DEAD]
        await bus.publish("heartbeat.coder-7", beat("coder-7"))
        back = await told.comes("coder-7", Presence.ALIVE, Presence.DEAD, Presence.ALIVE)
        assert back.downtime is not None
        assert back.downtime >= TIMEOUT
        await told.comes("coder-7", Presence.ALIVE, Presence.DEAD, Presence.ALIVE, Presence.DEAD)


async def test_who_goes_on_beating_is_not_dead_and_of_many_only_the_silent_one_is(
    url: str, bus: MemoryBus
) -> None:
    told = Told()
    async with monitor_on(url, told) as monitor:
        await bus.publish("heartbeat.silent", beat("silent"))
        while Presence.DEAD not in told.of("silent"):
            for n in range(20):
                await bus.publish(f"heartbeat.agent-{n}", beat(f"agent-{n}"))
            await asyncio.sleep(INTERVAL / 2)
        assert [agent.agent_id for agent in told.news if agent.presence is Presence.DEAD] == ["silent"]
        assert set(monitor.agents()) == {f"agent-{n}" for n in range(20)}
        assert not monitor.is_alive("silent")
        assert (last := monitor.agent("silent")) is not None
        assert last.presence is Presence.DEAD


async def test_a_dead_agent_leaves_the_registry_of_its_user(url: str, bus: MemoryBus) -> None:
    told, registry = Told(), {"coder-7": "its address", "other": "another"}
    async with monitor_on(url, told, registry):
        await bus.publish("heartbeat.coder-7", beat("coder-7"))
        await told.comes("coder-7", Presence.ALIVE, Presence.DEAD)
        assert registry == {"other": "another"}


async def test_an_unknown_load_is_not_the_least(url: str, bus: MemoryBus) -> None:
    told = Told()
    async with monitor_on(url, told) as monitor:
        loads = {"says-nothing": None, "half": 0.5, "calm": 0.1, "full": 1.0}
        for name, load in loads.items():
            said = {} if load is None else {"load": load}
            await bus.publish(f"heartbeat.{name}", beat(name, **said))
        await eventually(lambda: len(monitor.agents()) == len(loads))
        assert monitor.least_loaded(4) == ["calm", "half", "says-nothing", "full"]


async def test_our_sender_says_that_it_stops_and_its_silence_is_no_death(url: str, bus: MemoryBus) -> None:
    """Graceful shutdown: the final heartbeat is sent, on the agent's own subject."""
    told, heard = Told(), Ear()
    await bus.subscribe("heartbeat.*", heard)
    async with monitor_on(url, told) as monitor:
        async with lifesigns.Sender("coder-7", url, interval=INTERVAL, close_for=0.5) as life:
            life.load(0.25)
            await told.comes("coder-7", Presence.ALIVE)
        left = await told.comes("coder-7", Presence.ALIVE, Presence.LEFT)
        assert left.status == "stopping"
        assert monitor.agents() == {}
        await asyncio.sleep(2 * TIMEOUT)
        assert told.of("coder-7") == [Presence.ALIVE, Presence.LEFT]
    last_subject, last = heard.heard[-1]
    assert last_subject == "heartbeat.coder-7"
    assert json.loads(last)["status"] == "stopping"


async def test_an_agent_that_crashes_does_not_say_that_it_stops(url: str, bus: MemoryBus) -> None:
    told = Told()

    async def crash() -> None:
        async with lifesigns.Sender("coder-7", url, interval=INTERVAL, close_for=0.3):
            await told.comes("coder-7", Presence.ALIVE)
            raise RuntimeError("out of luck")

    async with monitor_on(url, told):
        with pytest.raises(RuntimeError):
            await crash()
        await told.comes("coder-7", Presence.ALIVE, Presence.DEAD)


async def test_of_two_agents_in_one_process_each_says_by_itself_that_it_stops(
    url: str, bus: MemoryBus
) -> None:
    """They share messages, but a listener without a hub reads one agent a message."""
    heard, told = Ear(), Told()
    await bus.subscribe("heartbeat.*", heard)
    async with monitor_on(url, told):
        one = lifesigns.Sender("one", url, interval=INTERVAL, close_for=0.5)
        two = lifesigns.Sender("two", url, interval=INTERVAL, close_for=0.5)
        async with one, two:
            await told.comes("one", Presence.ALIVE)
            await told.comes("two", Presence.ALIVE)
        await told.comes("one", Presence.ALIVE, Presence.LEFT)
        await told.comes("two", Presence.ALIVE, Presence.LEFT)
    last = {s: json.loads(p) for s, p in heard.heard if not s.startswith("heartbeat.relay:")}
    assert {subject: said["status"] for subject, said in last.items()} == {
        "heartbeat.one": "stopping",
        "heartbeat.two": "stopping",
    }


async def test_while_the_bus_is_down_nobody_dies(url: str) -> None:
    """Seed 001: "Bus down: nothing works; fix the bus first". It is not the agents' fault, and nobody is told that it is."""

    class CutBus(MemoryBus):
        """Takes everything and delivers nothing while it is cut."""

        cut = False

        async def subscribe(self, pattern, hear):  # type: ignore[no-untyped-def]
            return await super().subscribe(pattern, lambda s, p: None if self.cut else hear(s, p))

    inner, told = CutBus(url), Told()
    monitor = lifesigns.BusMonitor(inner, on_dead=told, on_alive=told, interval=INTERVAL, timeout=TIMEOUT)
    async with lifesigns.Sender("coder-7", url, interval=INTERVAL, close_for=0.1), monitor:
        await told.comes("coder-7", Presence.ALIVE)
        inner.cut = True
        await asyncio.sleep(4 * TIMEOUT)
        assert told.of("coder-7") == [Presence.ALIVE]
        inner.cut = False
        await asyncio.sleep(TIMEOUT)
        assert told.of("coder-7") == [Presence.ALIVE]


async def test_a_bus_that_is_not_there_yet_is_waited_for() -> None:
    """Nothing raises, and `stop` ends the waiting."""
    monitor = lifesigns.BusMonitor("nats://127.0.0.1:9", interval=INTERVAL)
    began = time.monotonic()
    await asyncio.to_thread(monitor.start)
    await asyncio.to_thread(monitor.stop)
    assert time.monotonic() - began < 10


async def test_what_is_said_on_anothers_subject_or_cannot_be_read_is_not_believed(
    url: str, bus: MemoryBus
) -> None:
    told = Told()
    async with monitor_on(url, told) as monitor:
        await bus.publish("heartbeat.mallory", beat("coder-7"))
        await bus.publish("heartbeat.broken", b"{not json")
        await bus.publish("heartbeat.coder-8", beat("coder-8"))
        await told.comes("coder-8", Presence.ALIVE)
        assert set(monitor.agents()) == {"coder-8"}


async def test_a_callback_that_fails_or_is_slow_disturbs_nothing(
    url: str, bus: MemoryBus, caplog: pytest.LogCaptureFixture
) -> None:
    told, threads = Told(), set[int]()

    def fail(agent: BusAgent) -> None:
        threads.add(threading.get_ident())
        raise RuntimeError("callback trouble")

    async def note(agent: BusAgent) -> None:
        threads.add(threading.get_ident())
        told(agent)

    async with lifesigns.BusMonitor(url, on_alive=fail, on_dead=note, interval=INTERVAL, timeout=TIMEOUT):
        await bus.publish("heartbeat.coder-7", beat("coder-7"))
        await told.comes("coder-7", Presence.DEAD)
    assert "callback trouble" in caplog.text
    assert len(threads) == 2
    assert threading.get_ident() in threads


def test_values_that_make_no_sense_are_refused() -> None:
    with pytest.raises(UsageError, match="interval 5 and timeout 1"):
        lifesigns.BusMonitor("memory://", interval=5, timeout=1)
    with pytest.raises(UsageError, match="begins with one of"):
        lifesigns.BusMonitor("ftp://nowhere")
    monitor = lifesigns.BusMonitor("memory://once").start()
    monitor.stop()
    with pytest.raises(UsageError, match="it lives once"):
        monitor.start()


# --- agentkit's Go side ----------------------------------------------------------------------------------------------


async def test_what_a_go_sender_publishes_is_heard_as_it_is(url: str, bus: MemoryBus) -> None:
    told = Told()
    async with monitor_on(url, told) as monitor:
        await bus.publish("heartbeat.agent-abc123", agentkit.IDLE)
        first = await told.comes("agent-abc123", Presence.ALIVE)
        assert (first.status, first.load, dict(first.metadata)) == ("idle", 0.0, {})
        await bus.publish("heartbeat.agent-abc123", agentkit.BUSY)
        await bus.publish("heartbeat.agent-abc123", agentkit.SPENDS)
        await bus.publish("heartbeat.agent-full", agentkit.FULL)
        await bus.publish("heartbeat.agent-esc", agentkit.ESCAPED)
        await told.comes("agent-esc", Presence.ALIVE)
        now = monitor.agents()
        assert (now["agent-abc123"].load, now["agent-abc123"].metadata["tokens_in"]) == (0.5, "1200")
        assert now["agent-full"].load == 1.0
        assert (now["agent-esc"].status, now["agent-esc"].metadata["note"]) == ("<idle>", "a & b")
        assert monitor.least_loaded() == ["agent-esc"]
        await told.comes("agent-abc123", Presence.ALIVE, Presence.DEAD)


async def test_what_our_sender_publishes_a_go_monitor_can_unmarshal(url: str, bus: MemoryBus) -> None:
    """One object a message on `heartbeat.<id>`, and the five fields have the types of its struct."""
    heard = Ear()
    await bus.subscribe("heartbeat.*", heard)
    async with lifesigns.Sender("coder-7", url, interval=INTERVAL, close_for=0.5) as life:
        life.load(0.25)
        life.status("busy")
        life.metadata(tokens_in=1200)
        await eventually(lambda: any(b'"tokens_in"' in payload for payload in heard.payloads))
    for subject, payload in heard.heard:
        said = json.loads(payload)
        assert subject == f"heartbeat.{said['agent_id']}"
        for name, kinds in agentkit.GO_FIELDS.items():
            assert name not in said or isinstance(said[name], kinds)
        assert all(isinstance(value, str) for value in said.get("metadata", {}).values())
        assert said["timestamp"].endswith("Z")
        time.strptime(said["timestamp"][:19], "%Y-%m-%dT%H:%M:%S")
