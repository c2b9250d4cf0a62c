"""What an agent signed, nobody else has said.

Promises:
    1. Signed messages are heard over HTTP and over a bus, singly and in batches; a changed one, one of a key that is unknown, revoked or for other
       agents, is not, and is counted.
    2. What was recorded is not heard again.
    3. Where signatures are required nothing else is heard of these agents; everybody else is heard as ever.
    4. A key comes on top of a token or a subject, never instead.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import lifesigns
from lifesigns.adapters.signing.agent_key import new_key, signer_of
from lifesigns.adapters.signing.ed25519 import verifies
from lifesigns.assembly.links import bus_at
from lifesigns.cli import main
from lifesigns.core.health import Health
from lifesigns.errors import UsageError, WireError
from lifesigns.hub import signatures
from lifesigns.hub.bus_receiver import Relays
from lifesigns.hub.forgeries import Forgeries
from lifesigns.hub.principals import Patterns
from lifesigns.hub.signatures import Signatures
from lifesigns.wire.signed import Seal, is_signed, key_id
from tests.adapters.executors.ground import until
from tests.web.hub import RunningHub, running_hub

ALL = Patterns.of("*")


@asynccontextmanager
async def hub_with(agents: str = "a", **more: Any) -> AsyncIterator[tuple[RunningHub, str]]:
    """A hub that verifies, and a key it knows."""
    key = new_key()
    async with running_hub(verifies=verifies, **more) as hub:
        public = signer_of(key).public.hex()
        body = {"public_key": public, "name": "k", "agents": agents}
        assert (await hub.post("/api/v1/keys", body)).status_code == 201
        yield hub, key


def counts(hub: RunningHub) -> dict[str, int]:
    return {str(kind): n for kind, n in hub.service.hub.counters.forged.counts.items() if n}


async def send(hub: RunningHub, raw: bytes, path: str = "beats") -> int:
    return (await hub.http.post(f"/api/v1/{path}", content=raw)).status_code


def beat(agent_id: str = "a", **more: object) -> bytes:
    return json.dumps({"agent_id": agent_id, **more}).encode()


def health(hub: RunningHub, agent_id: str) -> Health | None:
    agent = hub.service.engine.agent(agent_id)
    return None if agent is None else agent.health


# --- 1. heard, or not ----------------------------------------------------------------------------------------


async def test_what_is_signed_is_heard_and_what_was_changed_is_not() -> None:
    async with hub_with("a,b-*") as (hub, key):
        seal, stranger = Seal(signer_of(key)), Seal(signer_of(new_key()))
        assert await send(hub, seal.signed(beat())) == 202
        assert await send(hub, seal.signed(b"[" + beat("a") + b"," + beat("b-1") + b"]")) == 202
        assert (
            await send(
                hub, seal.signed(b'{"type":"checkpoint","agent_id":"a","checkpoint_id":"c"}'), "signals"
            )
            == 202
        )
        assert await send(hub, seal.signed(beat()).replace(b'"a"', b'"b-2"')) == 400
        assert await send(hub, stranger.signed(beat())) == 400
        assert await send(hub, seal.signed(beat("victim"))) == 400
        assert await send(hub, b"signed nonsense\n" + beat()) == 400
        assert counts(hub) == {"signature": 3}
        assert {agent.id for agent in hub.service.engine.agents()} == {"a", "b-1"}
        last = hub.service.hub.last_beat("a")
        assert last is not None
        assert last.beat.agent_id == "a", "the last beat is kept without its signature"


async def test_a_key_is_revoked_and_another_takes_its_place() -> None:
    async with hub_with("a") as (hub, key):
        seal, other = Seal(signer_of(key)), new_key()
        body = {"public_key": signer_of(other).public.hex(), "name": "next", "agents": "a"}
        assert (await hub.post("/api/v1/keys", body)).status_code == 201
        assert (await hub.post("/api/v1/keys", body)).status_code == 400, "it is known"
        assert await send(hub, seal.signed(beat())) == 202
        assert await send(hub, Seal(signer_of(other)).signed(beat())) == 202
        name = key_id(signer_of(key).public)
        listed = (await hub.get("/api/v1/tokens")).json()["tokens"]
        assert {one["id"] for one in listed if one["role"] == "key"} == {
            name,
            key_id(signer_of(other).public),
        }
        assert (await hub.http.delete(f"/api/v1/tokens/{name}")).status_code == 204
        assert await send(hub, seal.signed(beat())) == 400
        assert await send(hub, Seal(signer_of(other)).signed(beat())) == 202


async def test_nobody_comes_in_with_a_key() -> None:
    async with hub_with("a") as (hub, key):
        for bearer in (key, signer_of(key).public.hex(), key_id(signer_of(key).public)):
            answer = await hub.http.get("/api/v1/me", headers={"authorization": f"Bearer {bearer}"})
            assert answer.status_code == 401
        assert (
            await hub.post("/api/v1/tokens", {"role": "key", "name": "x", "agents": "a"})
        ).status_code == 400


@pytest.mark.parametrize("way", ["http", "bus"])
@pytest.mark.parametrize("relays", [Relays.OPEN, Relays.SIGNED, Relays.REFUSED])
async def test_senders_sign_what_they_send(way: str, relays: Relays) -> None:
    """Also several of them in one message, which is signed once."""
    bus = f"memory://{new_key()}"
    more = {"bus": bus_at(bus), "relays": relays, "must_sign": ALL}
    async with hub_with("a,b,c", **more) as (hub, key):
        await until(lambda: hub.service.bus_state == "ok")
        url, token = (hub.url, hub.token) if way == "http" else (bus, None)
        with ExitStack() as stack:
            lives = [
                stack.enter_context(
                    lifesigns.Sender(one, url, token=token, key=key, interval=0.2, close_for=10)
                )
                for one in ("a", "b", "c")
            ]
            await until(lambda: all(health(hub, one) is Health.HEALTHY for one in ("a", "b", "c")))
            await until(lambda: not any(life.stats.buffered for life in lives))
            if relays is not Relays.REFUSED:
                assert counts(hub) == {}
            await asyncio.to_thread(stack.close)


def test_what_is_no_key_is_said_and_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        lifesigns.Sender("a", "memory://x", key="lsk_secret")
    assert "secret" not in str(caught.value)


async def test_the_command_makes_a_key_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_hub(verifies=verifies, must_sign=ALL) as hub:
        runner = CliRunner()
        options = ["--hub", hub.url, "--token", hub.token]
        made = await asyncio.to_thread(runner.invoke, main, ["key", "create", "a", *options])
        key = made.stdout.strip()
        assert key.startswith("lsk_")
        monkeypatch.setenv("LIFESIGNS_KEY", key)
        async with lifesigns.Sender("a", hub.url, token=hub.token, interval=0.2):
            await until(lambda: health(hub, "a") is Health.HEALTHY)
        listed = await asyncio.to_thread(runner.invoke, main, ["key", "list", "--json", *options])
        (one,) = json.loads(listed.stdout)["keys"]
        assert (one["id"], one["agents"]) == (key_id(signer_of(key).public), "a")
        revoked = await asyncio.to_thread(runner.invoke, main, ["key", "revoke", one["id"], *options])
        assert revoked.exit_code == 0
        assert await send(hub, Seal(signer_of(key)).signed(beat())) == 400


# --- 2. not again --------------------------------------------------------------------------------------------


async def test_what_was_recorded_is_not_heard_again() -> None:
    async with hub_with("a") as (hub, key):
        seal = Seal(signer_of(key))
        recorded = seal.signed(beat(seq=1, incarnation="i"))
        assert await send(hub, recorded) == 202
        assert await send(hub, recorded) == 400
        overtaken, newest = seal.signed(beat(seq=2)), seal.signed(beat(seq=3))
        assert await send(hub, newest) == 202
        assert await send(hub, overtaken) == 400
        assert counts(hub) == {"replay": 2}
        assert await send(hub, Seal(signer_of(key)).signed(beat(seq=4))) == 202, (
            "another process has its own numbers"
        )


def test_sessions_that_are_forgotten_do_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is used by very many processes costs no memory without end, and lets no recording in."""
    monkeypatch.setattr(signatures, "SESSIONS_MAX", 3)
    signer, now = signer_of(new_key()), 0.0

    class Book:
        def key(self, key_id: str, now: float) -> tuple[bytes, Patterns]:
            return signer.public, ALL

    moments = iter(range(10**12, 10**15, 10**9))
    monkeypatch.setattr("lifesigns.wire.signed.time.time_ns", lambda: next(moments))
    hub = Signatures(Book(), Forgeries(), verifies)
    seals = [Seal(signer) for _ in range(5)]
    recorded = [seal.signed(beat()) for seal in seals]
    for raw in recorded:
        hub.opened(raw, now, "here")
    for raw in recorded:
        with pytest.raises(WireError, match="heard before"):
            hub.opened(raw, now, "here")
    assert len(hub._sessions[key_id(signer.public)].last) == 3
    hub.opened(seals[-1].signed(beat()), now, "here")
    hub.opened(Seal(signer).signed(beat()), now, "here")


# --- 3. required ---------------------------------------------------------------------------------------------


async def test_where_it_is_required_nothing_else_is_heard() -> None:
    bus = f"memory://{new_key()}"
    async with hub_with("a", bus=bus_at(bus), must_sign=Patterns.of("a")) as (hub, key):
        await until(lambda: hub.service.bus_state == "ok")
        publisher = bus_at(bus)
        await publisher.connect()
        assert await send(hub, beat("a")) == 400
        assert await send(hub, b'{"type":"left","agent_id":"a"}', "signals") == 400
        await publisher.publish("heartbeat.a", beat("a"))
        await publisher.publish("heartbeat.relay:x", b"[" + beat("a") + b"," + beat("free-1") + b"]")
        await publisher.publish("lifesigns.signal.a", b'{"type":"left","agent_id":"a"}')
        await until(lambda: counts(hub) == {"unsigned": 5})
        assert await send(hub, beat("free")) == 202
        await until(lambda: health(hub, "free-1"))
        assert health(hub, "a") is None
        assert await send(hub, Seal(signer_of(key)).signed(beat("a"))) == 202
        await publisher.close()


async def test_relays_that_have_to_sign() -> None:
    bus = f"memory://{new_key()}"
    async with hub_with("a,b", bus=bus_at(bus), relays=Relays.SIGNED) as (hub, key):
        await until(lambda: hub.service.bus_state == "ok")
        publisher = bus_at(bus)
        await publisher.connect()
        batch = b"[" + beat("a") + b"," + beat("b") + b"," + beat("victim") + b"]"
        await publisher.publish("heartbeat.relay:x", batch)
        await until(lambda: counts(hub) == {"relay": 3})
        await publisher.publish("heartbeat.relay:x", Seal(signer_of(key)).signed(batch))
        await until(lambda: counts(hub) == {"relay": 3, "signature": 1})
        assert {agent.id for agent in hub.service.engine.agents()} == {"a", "b"}
        await publisher.close()


# --- 4. on top of, never instead -----------------------------------------------------------------------------


async def test_a_key_does_not_widen_a_token_nor_a_subject() -> None:
    bus = f"memory://{new_key()}"
    async with hub_with("*", bus=bus_at(bus)) as (hub, key):
        await until(lambda: hub.service.bus_state == "ok")
        seal = Seal(signer_of(key))
        made = (await hub.post("/api/v1/tokens", {"role": "agent", "name": "t", "agents": "a"})).json()
        bearer = {"authorization": f"Bearer {made['token']}"}
        answer = await hub.http.post("/api/v1/beats", content=seal.signed(beat("victim")), headers=bearer)
        assert answer.status_code == 400
        publisher = bus_at(bus)
        await publisher.connect()
        await publisher.publish("heartbeat.a", seal.signed(beat("victim")))
        await until(lambda: counts(hub) == {"speaker": 1})
        assert health(hub, "victim") is None
        await publisher.close()


@given(st.binary(max_size=400), st.integers(0, 300), st.booleans())
def test_no_bytes_are_taken_for_a_signature(noise: bytes, at: int, inside: bool) -> None:
    """Whatever stands there: a `WireError`, or what was signed."""
    signer = signer_of("lsk_" + "07" * 32)
    raw = Seal(signer).signed(beat())
    changed = raw[:at] + noise + raw[at:] if inside else raw[:at] + noise

    class Book:
        def key(self, key_id: str, now: float) -> tuple[bytes, Patterns]:
            return signer.public, ALL

    try:
        message, patterns = Signatures(Book(), Forgeries(), verifies).opened(changed, 0.0, "here")
    except WireError:
        return
    assert patterns is None or (changed == raw and message == beat())
    assert is_signed(changed) is (patterns is not None)
