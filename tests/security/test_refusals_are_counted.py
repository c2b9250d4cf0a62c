"""Nobody is refused unseen.

Promise: every refusal has a counter in `/metrics`. Each test provokes one from outside and sees its counter move.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lifesigns.adapters.checkpoints.folder import FolderContents
from lifesigns.adapters.signing.agent_key import new_key, signer_of
from lifesigns.adapters.signing.ed25519 import verifies
from lifesigns.assembly.links import bus_at
from lifesigns.config.values import Limits
from lifesigns.hub.bus_receiver import Relays
from lifesigns.hub.principals import Patterns, Role
from lifesigns.web.connections import Connections, Patience
from lifesigns.wire.signed import Seal
from tests.adapters.executors.ground import until
from tests.web.hub import RunningHub, running_hub
from tests.web.test_connections import connect, peer
from tests.web.test_getting_in import raw, request

Counted = dict[tuple[str, str], float]
"""By name and the value of its only label."""
QUICK = Patience(head_for=0.3, linger_for=0.3)


async def counted(hub: RunningHub) -> Counted:
    text = (await hub.get("/metrics")).text
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if family.type == "counter"
    }


@asynccontextmanager
async def counting(hub: RunningHub, name: str, label: str = "", by: float = 1) -> AsyncIterator[None]:
    """What happens in the block moves this counter, by so much and no more."""
    key = (name, label)
    before = await counted(hub)
    yield
    async with asyncio.timeout(20):
        while (now := await counted(hub))[key] == before[key]:  # noqa: ASYNC110 -- as a scraper would
            await asyncio.sleep(0.02)
    assert now[key] - before[key] == by, {
        k: v - before.get(k, 0) for k, v in now.items() if v != before.get(k)
    }


# --- requests ------------------------------------------------------------------------------------------------

Act = Callable[[RunningHub], Awaitable[int]]


def sent(line: str, body: bytes = b"", **headers: str) -> Act:
    async def act(hub: RunningHub) -> int:
        return (await raw(hub, request(hub, line, **headers) + body)).status

    return act


async def as_viewer(hub: RunningHub) -> int:
    async with hub.client(await hub.token_for(Role.VIEWER)) as viewer:
        return (await viewer.post("/api/v1/beats", json={"agent_id": "a"})).status_code


async def about_another(hub: RunningHub) -> int:
    async with hub.client(await hub.token_for(Role.AGENT, "b")) as agent:
        return (await agent.get("/api/v1/agents/a")).status_code


async def of_another(hub: RunningHub) -> int:
    await hub.post("/api/v1/tasks/t/claim", {"agent_id": "a"})
    return (await hub.post("/api/v1/tasks/t/claim", {"agent_id": "b"})).status_code


async def too_fast(hub: RunningHub) -> int:
    async with hub.client(await hub.token_for(Role.AGENT, "wild")) as wild:
        while (answer := await wild.get("/api/v1/me")).status_code == 200:
            pass
        return answer.status_code


async def half_a_head(hub: RunningHub) -> int:
    async with peer(hub) as slow:
        await slow.say(b"GET /api/v1/me HTTP/1.1\r\n")
        return int((await slow.hears()).split()[1])


REFUSED: dict[str, tuple[int, Act]] = {
    "what is not HTTP": (400, sent("GET / HTTP/9.9\r\nX")),
    "what cannot be read": (400, sent("POST /api/v1/beats", b"{", Content_Length="1")),
    "no token": (401, sent("GET /api/v1/me", Authorization="")),
    "a wrong token": (401, sent("GET /api/v1/me", Authorization="Bearer x")),
    "a role that may not": (403, as_viewer),
    "an agent about another": (403, about_another),
    "another page": (403, sent("POST /api/v1/beats", Origin="http://evil.example")),
    "a place that is not there": (404, sent("GET /api/v1/nothing")),
    "a method": (405, sent("TRACE /api/v1/beats")),
    "a head that does not come": (408, half_a_head),
    "somebody else's task": (409, of_another),
    "a large body": (413, sent("POST /api/v1/beats", Content_Length=str(10**9))),
    "a packing": (415, sent("POST /api/v1/beats", b"x", Content_Length="1", Content_Encoding="br")),
    "another host": (421, sent("GET /healthz", Host="evil.example")),
    "another content": (
        422,
        sent("PUT /api/v1/tasks/u/checkpoints/c?agent_id=a&digest=00", b"x", Content_Length="1"),
    ),
    "too many requests": (429, too_fast),
    "many headers": (431, sent("GET /api/v1/me", X="y" * 60_000)),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_every_refused_request_is_counted_by_its_status(what: str, tmp_path: Path) -> None:
    status, act = REFUSED[what]
    going = running_hub(
        limits=Limits(requests_per_second=5),
        connections=Connections(patience=QUICK),
        contents=FolderContents(tmp_path),
    )
    async with going as hub:
        await hub.post("/api/v1/beats", [{"agent_id": "a"}, {"agent_id": "b"}])
        async with counting(hub, "lifesigns_http_requests_refused_total", str(status)):
            assert await act(hub) == status


async def test_wrong_tokens_are_counted_and_so_is_who_is_told_to_wait() -> None:
    async with running_hub() as hub, hub.client("wrong") as guesser:
        async with counting(hub, "lifesigns_guesses_throttled_total", by=3):
            before = (await counted(hub))["lifesigns_tokens_refused_total", ""]
            statuses = [(await guesser.get("/api/v1/me")).status_code for _ in range(13)]
        assert statuses == [401] * 10 + [429] * 3
        assert (await counted(hub))["lifesigns_tokens_refused_total", ""] - before == 13


@pytest.mark.parametrize("limit", ["requests", "signals", "bytes", "unknown_requests"])
async def test_every_limit_per_second_has_a_counter(limit: str) -> None:
    name = {"requests": 5, "signals": 5, "bytes": 100, "unknown_requests": 5}
    async with running_hub(limits=Limits(**{f"{limit}_per_second": name[limit]})) as hub:
        token = None if limit == "unknown_requests" else await hub.token_for(Role.AGENT, "a")
        async with (
            counting(hub, "lifesigns_http_requests_over_limit_total", limit),
            hub.client(token) as wild,
        ):
            batch = [{"agent_id": "a"}] * 40
            while (await wild.post("/api/v1/beats", json=batch)).status_code != 429:
                pass


# --- connections ---------------------------------------------------------------------------------------------


async def test_connections_turned_away_and_cut_off_are_counted() -> None:
    connections = Connections(3, patience=Patience(head_for=60, stalled_for=0.3))
    async with running_hub(connections=connections) as hub:
        await hub.get("/healthz")  # The connection that the test looks through.
        others = [await connect(hub) for _ in range(2)]
        await until(lambda: len(connections) == 3)
        async with counting(hub, "lifesigns_connections_turned_away_total"), peer(hub) as late:
            assert (await late.hears()).startswith(b"HTTP/1.1 503 ")
        assert (await counted(hub))["lifesigns_http_requests_refused_total", "503"] == 1
        for one in others:
            await one.close()
    going = running_hub(connections=Connections(patience=QUICK))
    async with going as hub, counting(hub, "lifesigns_connections_cut_off_total"), peer(hub) as slow:
        await slow.say(b"GET / HTTP/1.1\r\n")
        await slow.hears()


# --- messages ------------------------------------------------------------------------------------------------


@asynccontextmanager
async def on_a_bus(**more: Any) -> AsyncIterator[tuple[RunningHub, Callable[[str, bytes], Awaitable[None]]]]:
    url = f"memory://{uuid.uuid4()}"
    bus = bus_at(url)
    async with running_hub(bus=bus_at(url), verifies=verifies, **more) as hub:
        await until(lambda: hub.service.bus_state == "ok")
        await bus.connect()

        async def say(subject: str, payload: bytes) -> None:
            await bus.publish(subject, payload)
            await bus.flush()

        yield hub, say
        await bus.close()


BEAT = b'{"agent_id": "victim"}'


async def test_what_cannot_be_read_is_counted_by_http_and_bus() -> None:
    async with on_a_bus() as (hub, say):
        async with counting(hub, "lifesigns_signals_unreadable_total"):
            await hub.post("/api/v1/beats", [{"agent_id": 7}, {"agent_id": "a"}])
        async with counting(hub, "lifesigns_signals_unreadable_total"):
            await say("heartbeat.a", b"\xff")


async def test_what_the_engine_does_not_believe_is_counted() -> None:
    async with running_hub() as hub:
        beat = {"agent_id": "a", "seq": 1, "incarnation": "one"}
        await hub.post("/api/v1/beats", beat)
        async with counting(hub, "lifesigns_signals_refused_total"):
            await hub.post("/api/v1/beats", beat)


@pytest.mark.parametrize("path", ["beats", "signals"])
async def test_who_speaks_for_another_is_counted_by_http(path: str) -> None:
    body = {"agent_id": "victim", "type": "left"}
    async with running_hub() as hub, hub.client(await hub.token_for(Role.AGENT, "evil")) as evil:
        for said in (body, [{**body, "agent_id": "evil"}, body]):
            async with counting(hub, "lifesigns_messages_forged_total", "speaker"):
                await evil.post(f"/api/v1/{path}", json=said)


async def test_who_speaks_for_another_is_counted_by_the_bus() -> None:
    async with on_a_bus() as (hub, say), counting(hub, "lifesigns_messages_forged_total", "speaker"):
        await say("heartbeat.evil", BEAT)


async def test_relays_that_are_not_heard_are_counted() -> None:
    going = on_a_bus(relays=Relays.REFUSED)
    async with going as (hub, say), counting(hub, "lifesigns_messages_forged_total", "relay"):
        await say("heartbeat.relay:x", BEAT)


@pytest.mark.parametrize("way", ["http", "bus"])
async def test_what_is_not_signed_wrongly_signed_or_said_again_is_counted(way: str) -> None:
    async with on_a_bus(must_sign=Patterns.of("victim")) as (hub, say):

        async def send(payload: bytes) -> None:
            if way == "bus":
                await say("heartbeat.victim", payload)
            else:
                await hub.http.post("/api/v1/beats", content=payload)

        key = new_key()
        body = {"public_key": signer_of(key).public.hex(), "name": "k", "agents": "victim"}
        assert (await hub.post("/api/v1/keys", body)).status_code == 201
        good = Seal(signer_of(key)).signed(BEAT)
        for reason, payload in (
            ("unsigned", BEAT),
            ("signature", Seal(signer_of(new_key())).signed(BEAT)),
            ("signature", good.replace(b"victim", b"victi2")),
        ):
            async with counting(hub, "lifesigns_messages_forged_total", reason):
                await send(payload)
        await send(good)
        async with counting(hub, "lifesigns_messages_forged_total", "replay"):
            await send(good)


@pytest.mark.parametrize("way", ["signals", "rest", "bus"])
async def test_who_says_something_of_anothers_task_is_counted(way: str) -> None:
    taken = {"type": "claim", "agent_id": "evil", "task_id": "t"}
    async with on_a_bus() as (hub, say), hub.client(await hub.token_for(Role.AGENT, "evil")) as evil:
        await hub.post("/api/v1/beats", [{"agent_id": "victim"}, {"agent_id": "evil"}])
        assigned = {"type": "task_assigned", "agent_id": "victim", "task_id": "t", "expected_for": 60}
        assert (await hub.post("/api/v1/signals", assigned)).json()["rejected"] == []
        async with counting(hub, "lifesigns_ownership_refused_total", "bus" if way == "bus" else "http"):
            if way == "signals":
                assert (await evil.post("/api/v1/signals", json=taken)).status_code == 400
            elif way == "rest":
                answer = await evil.post("/api/v1/tasks/t/claim", json={"agent_id": "evil"})
                assert answer.status_code == 409
            else:
                await say("lifesigns.signal.evil", json.dumps(taken).encode())
