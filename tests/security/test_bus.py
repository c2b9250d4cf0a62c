"""On a bus everybody speaks for itself.

Promises:
    1. The subject decides who speaks. A message that says otherwise is not heard, is counted, and in a burst is an alert.
    2. With the permissions of our page a NATS user, and a Redis user, speaks for itself alone: it ends nobody, gives no orders and
       acknowledges nothing; and its agent works as ever.
    3. Who may not speak for many at once still speaks for each.
    4. Whatever comes over a bus, the hub goes on, forgets nothing of it in memory, and counts all of it.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import lifesigns
from lifesigns.adapters.signing.agent_key import new_key, signer_of
from lifesigns.adapters.signing.ed25519 import verifies
from lifesigns.assembly.links import bus_at
from lifesigns.core.health import Health
from lifesigns.errors import AdapterError
from lifesigns.hub import forgeries
from lifesigns.hub.bus_receiver import Relays
from lifesigns.hub.forgeries import Forgery
from lifesigns.ports import Bus
from lifesigns.wire.signed import Seal
from tests.adapters.executors.ground import until
from tests.servers.nats import NatsServer
from tests.servers.process import Server
from tests.servers.valkey import ValkeyServer
from tests.web.hub import RunningHub, running_hub

PAGE = Path(__file__, "../../../docs/explanation/who-speaks-for-whom.md").resolve().read_text()
LEFT = {"type": "left", "agent_id": "victim"}


@pytest.fixture
def nats(tmp_path: Path) -> Iterator[NatsServer]:
    """With the users of our page."""
    (conf,) = re.findall(r"```text\n(authorization .*?)```", PAGE, re.DOTALL)
    config = tmp_path / "nats.conf"
    config.write_text(conf)
    with NatsServer("--config", str(config)) as server:
        yield server


@pytest.fixture
def redis() -> Iterator[ValkeyServer]:
    """With the user of our page."""
    (acl,) = re.findall(r"```text\nACL SETUSER (.*?)\n```", PAGE)
    with ValkeyServer("--user", *acl.split()) as server:
        yield server


def address(server: Server, user: str, password: str) -> str:
    return f"{server.scheme}://{user}:{password}@127.0.0.1:{server.port}"


@asynccontextmanager
async def hub_on(url: str, **more: Any) -> AsyncIterator[RunningHub]:
    async with running_hub(bus=bus_at(url), **more) as hub:
        await until(lambda: hub.service.bus_state == "ok")
        yield hub


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Bus]:
    bus = bus_at(url)
    await bus.connect()
    try:
        yield bus
    finally:
        await bus.close()


async def say(bus: Bus, subject: str, *words: object) -> None:
    await bus.publish(subject, json.dumps(words[0] if len(words) == 1 else words).encode())
    await bus.flush()


def forged(hub: RunningHub, kind: Forgery = Forgery.SPEAKER) -> int:
    return hub.service.hub.counters.forged.counts[kind]


def health(hub: RunningHub, agent_id: str) -> Health | None:
    agent = hub.service.engine.agent(agent_id)
    return None if agent is None else agent.health


# --- 1. the subject decides ----------------------------------------------------------------------------------


@pytest.fixture(params=[NatsServer, ValkeyServer], ids=["nats", "valkey"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with request.param() as started:
        yield started


async def test_nobody_is_ended_from_anothers_subject(server: Server) -> None:
    async with hub_on(server.url) as hub, connected(server.url) as bus:
        await say(bus, "heartbeat.victim", {"agent_id": "victim", "seq": 1})
        await until(lambda: health(hub, "victim") is Health.HEALTHY)
        await say(bus, "lifesigns.signal.evil", LEFT)
        await say(bus, "lifesigns.report.relay:x.1.evil", LEFT)
        await say(bus, "lifesigns.report.victim", LEFT)
        await say(bus, "heartbeat.evil", {"agent_id": "victim", "status": "draining"})
        await say(bus, "heartbeat.evil", {"agent_id": "evil"}, {"agent_id": "victim"}, {"agent_id": "new"})
        await until(lambda: forged(hub) == 6)
        assert health(hub, "victim") is Health.HEALTHY
        assert health(hub, "evil") is not None, "what is its own to say counts"
        assert health(hub, "new") is None
        metrics = (await hub.get("/metrics")).text
        assert 'lifesigns_messages_forged_total{reason="speaker"} 6.0' in metrics
        await say(bus, "lifesigns.signal.victim", LEFT)
        await until(lambda: health(hub, "victim") is not Health.HEALTHY)


async def test_beats_that_are_read_together_are_looked_at_one_by_one(server: Server) -> None:
    """A beat between two honest ones is not heard, they are."""
    readable = (("a", "a"), ("evil", "victim"), ("b", "b"))
    async with hub_on(server.url) as hub, connected(server.url) as bus:
        for beats in (readable, (("c", "c"), ("b", "b\nheartbeat.d"), ("d", "d"))):
            for subject, agent_id in beats:
                await bus.publish(f"heartbeat.{subject}", json.dumps({"agent_id": agent_id}).encode())
            await bus.flush()
            await until(partial(health, hub, beats[-1][1]))
        await until(lambda: forged(hub) == 1)
        assert {agent.id for agent in hub.service.engine.agents()} == {"a", "b", "c", "d"}


@pytest.mark.parametrize("agent_id", ["org/a.b:c@d", "a.b.c", "a..b", ".a", "a.", "...", "-"])
async def test_every_id_has_subjects_of_its_own(server: Server, agent_id: str) -> None:
    """Also those with empty words, which no subject may have: they are heard, and told."""
    async with hub_on(server.url) as hub, lifesigns.Sender(agent_id, server.url, interval=0.2) as life:
        await until(lambda: health(hub, agent_id) is Health.HEALTHY)
        (await hub.post(f"/api/v1/agents/{agent_id.replace('/', '%2F')}/nudge", {"message": "x"}))
        nudge = await asyncio.to_thread(life.next_nudge, 10)
        assert nudge is not None
        assert forged(hub) == 0


async def test_a_burst_is_an_alert_until_it_is_over(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifesigns.hub.housekeeping.SECOND", 0.05)

    async def told(hub: RunningHub) -> str:
        return (await hub.get("/api/v1/alerts")).text

    async with hub_on(server.url) as hub, connected(server.url) as bus:
        for _ in range(forgeries.BURST - 1):
            await say(bus, "heartbeat.evil", {"agent_id": "victim"})
        await until(lambda: forged(hub) == forgeries.BURST - 1)
        await asyncio.sleep(0.2)
        assert "HUB_MESSAGES_FORGED" not in await told(hub)
        await say(bus, "heartbeat.evil", {"agent_id": "victim"})
        await until(lambda: hub.service.troubles.now())
        text = await told(hub)
        assert "HUB_MESSAGES_FORGED" in text
        assert "heartbeat.evil" in text
        monkeypatch.setattr(forgeries, "OVER_AFTER", 0.1)
        await until(lambda: not hub.service.troubles.now())


# --- 2. with the permissions of our page ---------------------------------------------------------------------

OTHERS = [
    "heartbeat.victim",
    "heartbeat.relay:x",
    "heartbeat.coder-7.x",
    "lifesigns.report.relay:x.1.victim",
    "lifesigns.signal.relay:x.1",
    "lifesigns.signal.victim",
    "lifesigns.order.victim",
    "lifesigns.kept.relay:x",
    "lifesigns.kept.relay:x.victim",
    "lifesigns.event.HEALTH_STATE_CHANGED",
    "lifesigns.canary.hub",
]


async def _is_refused_everything_of_others(bus: Bus, subjects: list[str]) -> None:
    for subject in subjects:
        await bus.publish(subject, b"{}")
        with pytest.raises(AdapterError, match="refused"):
            await bus.flush()
    for pattern in ("lifesigns.order.victim", "lifesigns.order.>", "heartbeat.>", "lifesigns.kept.>"):
        with pytest.raises(AdapterError, match="refused"):
            await bus.subscribe(pattern, lambda subject, payload: None)


async def test_a_nats_user_speaks_for_its_agent_alone(nats: NatsServer) -> None:
    its_own = address(nats, "coder-7", "its-secret")
    async with hub_on(address(nats, "hub", "hub-secret")) as hub, connected(its_own) as bus:
        await _is_refused_everything_of_others(
            bus, [*OTHERS, "lifesigns.order.coder-7", "lifesigns.kept.relay:x.coder-7"]
        )
        async with lifesigns.Sender("coder-7", its_own, interval=0.2) as life:
            await until(lambda: health(hub, "coder-7") is Health.HEALTHY)
            await hub.post("/api/v1/agents/coder-7/nudge", {"message": "x"})
            assert await asyncio.to_thread(life.next_nudge, 10) is not None
            await until(lambda: not life.stats.buffered)
            await say(bus, "lifesigns.signal.coder-7", {**LEFT})
            await until(lambda: forged(hub) == 1)
        await until(lambda: health(hub, "coder-7") is not Health.HEALTHY)


async def test_a_redis_user_speaks_for_its_agent_alone(redis: ValkeyServer) -> None:
    its_own = address(redis, "coder-7", "its-secret")
    async with hub_on(redis.url) as hub, connected(its_own) as bus:
        await _is_refused_everything_of_others(bus, OTHERS)
        async with lifesigns.Sender("coder-7", its_own, interval=0.2) as life:
            await until(lambda: health(hub, "coder-7") is Health.HEALTHY)
            await hub.post("/api/v1/agents/coder-7/nudge", {"message": "x"})
            assert await asyncio.to_thread(life.next_nudge, 10) is not None
            await until(lambda: not life.stats.buffered)


# --- 3. several agents of one process ------------------------------------------------------------------------


async def _all_are_heard(hub: RunningHub, url: str, ids: list[str]) -> None:
    with ExitStack() as stack:
        lives = [stack.enter_context(lifesigns.Sender(one, url, interval=0.2, close_for=10)) for one in ids]
        await until(lambda: all(health(hub, one) is Health.HEALTHY for one in ids))
        for life in lives:
            life.checkpoint(f"cp-{life.agent_id}")
        await until(lambda: not any(life.stats.buffered for life in lives))
        agents = [hub.service.engine.agent(one) for one in ids]
        assert [agent and agent.work and agent.work.checkpoint_id for agent in agents] == [
            f"cp-{one}" for one in ids
        ]
        await asyncio.to_thread(stack.close)


async def test_who_is_trusted_speaks_for_many_in_one_message(nats: NatsServer) -> None:
    async with hub_on(address(nats, "hub", "hub-secret")) as hub:
        await _all_are_heard(hub, address(nats, "farm", "farm-secret"), ["a", "b.c", "d"])


async def test_who_may_not_speak_for_many_speaks_for_each(tmp_path: Path) -> None:
    """The server refuses the relay's subjects, and the sender finds out."""
    config = tmp_path / "nats.conf"
    of_two = ["heartbeat.a", "heartbeat.b", "lifesigns.report.*.*.a", "lifesigns.report.*.*.b"]
    heard = ["lifesigns.order.a", "lifesigns.order.b", "lifesigns.kept.*.a", "lifesigns.kept.*.b"]
    config.write_text(
        f"""authorization {{ users = [{{user: hub, password: x}}, {{user: two, password: x, permissions: {{
        publish: {json.dumps(of_two)}, subscribe: {json.dumps(heard)} }} }}] }}"""
    )
    with NatsServer("--config", str(config)) as server:
        async with hub_on(address(server, "hub", "x")) as hub:
            await _all_are_heard(hub, address(server, "two", "x"), ["a", "b"])


async def test_a_hub_that_hears_no_relays_says_so(server: Server) -> None:
    async with hub_on(server.url, relays=Relays.REFUSED) as hub, connected(server.url) as bus:
        await _all_are_heard(hub, server.url, ["a", "b", "c"])
        before = forged(hub, Forgery.RELAY)
        await say(bus, "heartbeat.relay:x", {"agent_id": "new"}, {"agent_id": "newer"})
        await say(bus, "lifesigns.signal.relay:x.1", {**LEFT, "agent_id": "new"})
        await until(lambda: forged(hub, Forgery.RELAY) == before + 3)
        assert health(hub, "new") is None


# --- 4. whatever comes ---------------------------------------------------------------------------------------

VALID = [
    ("heartbeat.a", b'{"agent_id":"a","seq":7,"incarnation":"i","status":"busy","load":0.5}'),
    ("heartbeat.relay:r", b'[{"agent_id":"a","seq":7},{"agent_id":"b"}]'),
    ("heartbeat.a", b'{"worker_id":"a","health_status":"ok","metrics":{"cpu_usage":3}}'),
    ("heartbeat.a", b"\x82\xa8agent_id\xa1a\xa3seq\x07"),
    (
        "lifesigns.signal.a",
        b'{"type":"tool_started","agent_id":"a","call_id":"c","tool":"t","args":{"x":[1]}}',
    ),
    ("lifesigns.report.relay:r.1.a", b'{"type":"checkpoint","agent_id":"a","checkpoint_id":"cp"}'),
    (
        "lifesigns.signal.relay:r.2",
        b'[{"type":"left","agent_id":"a"},{"type":"activity","agent_id":"b","kind":"k"}]',
    ),
]
SEED, MESSAGES = 14, 3000
SIGNER = signer_of(new_key())
SEALED = Seal(SIGNER)
"""Of a key that the hub knows, in the test of all messages."""
ANSWERS = [
    (
        "lifesigns.order.a",
        b'{"type":"nudge","order_id":"1-1","epoch":1,"agent_id":"a","attempt":1,"text":"x"}',
    ),
    ("lifesigns.kept.relay:r", b"1"),
    ("lifesigns.kept.relay:r.a", b"apart"),
    ("lifesigns.event.HEALTH_STATE_CHANGED", b"{}"),
    ("lifesigns.canary.hub", b"1"),
]
"""What the hub says, said by somebody else: nobody at the hub listens to it, but for its own canary."""


def mutated(chance: random.Random) -> tuple[str, bytes]:
    """A valid message with a few bytes changed, doubled, cut or moved, on a subject that may be another's."""
    subject, payload = chance.choice(VALID)
    if chance.random() < 0.3:
        payload = SEALED.signed(payload)
    if chance.random() < 0.3:
        subject = f"{chance.choice(('heartbeat', 'lifesigns.signal', 'lifesigns.report'))}.{chance.randrange(10**9)}"
    raw = bytearray(payload)
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(raw) + 1)
        match chance.randrange(4):
            case 0:
                raw[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                raw[at:at] = raw[at : at + chance.randrange(40)]
            case 2:
                del raw[at : at + chance.randrange(20)]
            case _:
                raw[at:at] = chance.choice(
                    (b"\n", b"{", b"]", b"\\u0000", b"1e999", b"null", b"\xff", b"[" * 200)
                )
    return subject, bytes(raw)


@pytest.mark.parametrize("kind", ["memory", "nats"])
async def test_no_message_harms_the_hub_and_each_is_counted(
    kind: str, nats_or_none: NatsServer | None
) -> None:
    url = nats_or_none.url if nats_or_none else f"memory://{random.random()}"
    chance = random.Random(SEED)
    async with hub_on(url, verifies=verifies) as hub, connected(url) as bus:
        counters, door = hub.service.hub.counters, hub.service.bus_receiver
        assert door is not None
        await say(bus, "heartbeat.honest", {"agent_id": "honest", "seq": 1})
        await until(lambda: health(hub, "honest") is Health.HEALTHY)

        def counted() -> int:
            return (
                counters.beats + counters.reports + counters.unreadable + sum(counters.forged.counts.values())
            )

        def has_counted(expected: int) -> bool:
            return counted() >= expected

        async def send(count: int) -> None:
            for _ in range(count):
                expected = counted() + 1
                subject, payload = mutated(chance)
                await bus.publish(subject, payload)
                await bus.flush()
                if "relay:r." not in subject:  # What has a number is heard once.
                    await until(partial(has_counted, expected))

        body = {"public_key": SIGNER.public.hex(), "name": "k", "agents": "a,b"}
        assert (await hub.post("/api/v1/keys", body)).status_code == 201
        for subject, payload in ANSWERS * 20:
            cut = payload[: chance.randrange(len(payload) + 1)] + bytes([chance.randrange(256)])
            await bus.publish(subject, chance.choice((payload, cut)))
        await bus.flush()
        await send(MESSAGES // 3)
        tracemalloc.start()
        try:
            await send(MESSAGES // 3)
            first = tracemalloc.get_traced_memory()[0]
            await send(MESSAGES // 3)
            assert tracemalloc.get_traced_memory()[0] - first < 2_000_000
        finally:
            tracemalloc.stop()
        assert door.dropped == 0
        await say(bus, "heartbeat.honest", {"agent_id": "honest", "seq": 2})
        await until(lambda: (last := hub.service.hub.last_beat("honest")) and last.beat.seq == 2)
        assert health(hub, "honest") is Health.HEALTHY


@pytest.fixture
def nats_or_none(kind: str) -> Iterator[NatsServer | None]:
    if kind == "memory":
        yield None
        return
    with NatsServer() as server:
        yield server


async def test_whatever_is_said_to_an_agent_its_sender_goes_on() -> None:
    """Orders and acknowledgements that are none: cut, changed, of another kind, or not readable at all."""
    url, chance = f"memory://{random.random()}", random.Random(SEED)
    async with hub_on(url) as hub, connected(url) as bus, lifesigns.Sender("a", url, interval=0.1) as life:
        await until(lambda: health(hub, "a") is Health.HEALTHY)
        for _ in range(500):
            _, payload = chance.choice(ANSWERS)
            raw = bytearray(payload)
            for _ in range(1 + chance.randrange(4)):
                at = chance.randrange(len(raw) + 1)
                raw[at : at + chance.randrange(3)] = chance.choice(
                    (b"\xff", b"{", b"null", b"", b"[" * 300, b"9" * 30)
                )
            for subject in ("lifesigns.order.a", "lifesigns.kept.relay:r.a"):
                await bus.publish(subject, bytes(raw))
        await bus.flush()
        before = beats_heard(hub)
        await until(lambda: beats_heard(hub) > before + 3)
        life.checkpoint("cp-after")
        await until(lambda: not life.stats.buffered)
        assert health(hub, "a") is Health.HEALTHY


def beats_heard(hub: RunningHub) -> int:
    return hub.service.hub.counters.beats
