"""Nobody listens in, and nobody guesses.

Promises:
    1. A stream of events is for those who may read everything, and ends with the token or the session it was opened with.
    2. Orders reach their agent's own side: not who waits for another's, nor who waits with a token that was revoked meanwhile.
    3. Secrets are looked up by their digest or compared in constant time; who guesses is slowed down, and who does not guess is not.
"""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from lifesigns.core.effects import AskStatus
from lifesigns.hub import throttle
from lifesigns.hub.principals import Role
from lifesigns.hub.throttle import FAILURES_MAX, WINDOW_FOR
from lifesigns.web import beats_and_orders
from lifesigns.web.host_policy import HostPolicy
from tests.web.hub import RunningHub, running_hub
from tests.web.listening import Ear, listening, until
from tests.web.test_getting_in import first_word, raw, request, signed_in

SOURCES = Path(__file__, "../../../src/lifesigns").resolve()
NOW = 1_000_000.0


@pytest.fixture
async def hub() -> AsyncIterator[RunningHub]:
    async with running_hub() as running:
        yield running


def give(hub: RunningHub, agent_id: str) -> None:
    """An order for this agent."""
    now = hub.service.clock()
    hub.service.hub.deliver(AskStatus(now, f"n-{agent_id}", 1, agent_id, None, "t", "well?", now + 3600))


async def happen(hub: RunningHub, agent_id: str) -> None:
    """Something that is an event."""
    doing = {"type": "doing", "agent_id": agent_id, "doing": "waiting_for_human"}
    await hub.post("/api/v1/beats", {"agent_id": agent_id})
    assert (await hub.post("/api/v1/signals", doing)).json()["accepted"] == 1


# --- 1. events -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token", ["none", "wrong", "agent", "in the address", "another scheme"])
@pytest.mark.parametrize("query", ["", "?agent=a", "?types=AGENT_HEARTBEAT"])
async def test_only_who_may_read_everything_hears_events(hub: RunningHub, token: str, query: str) -> None:
    """An agent does not even hear its own: what else is in a stream is decided by who asks, not by who may."""
    agent = await hub.token_for(Role.AGENT, "a")
    line = f"GET /api/v1/events{query}"
    asked = {
        "none": request(hub, line, Authorization=""),
        "wrong": request(hub, line, Authorization="Bearer wrong"),
        "agent": request(hub, line, Authorization=f"Bearer {agent}", Last_Event_ID="0"),
        "in the address": request(hub, f"{line}{'&' if query else '?'}token={hub.token}", Authorization=""),
        "another scheme": request(hub, line, Authorization=f"EventSource {hub.token}"),
    }[token]
    assert await first_word(hub, asked) == (403 if token == "agent" else 401)


async def next_or_end(ear: Ear) -> str | None:
    told = await ear.next()
    return None if told is None else told.type


async def test_a_stream_ends_with_its_token_before_anything_else_is_told(hub: RunningHub) -> None:
    token = await hub.token_for(Role.VIEWER)
    async with listening(hub.url, token) as ear:
        assert (await hub.http.delete(f"/api/v1/tokens/{token.split('_')[1]}")).status_code == 204
        await happen(hub, "a")
        assert await next_or_end(ear) is None


async def test_a_stream_ends_when_its_token_expires() -> None:
    moments = [NOW]
    async with running_hub(clock=lambda: moments[-1]) as hub:
        body = {"role": "viewer", "name": "n", "expires_after": 60}
        token = (await hub.post("/api/v1/tokens", body)).json()["token"]
        async with listening(hub.url, token) as ear:
            moments.append(NOW + 60)
            await happen(hub, "a")
            assert await next_or_end(ear) is None


@pytest.mark.parametrize("how", ["signed out", "ended by an admin"])
async def test_a_stream_ends_with_its_session(hub: RunningHub, how: str) -> None:
    """Its token goes on: somebody else ends what one browser sees."""
    browser = await signed_in(hub)
    place = urlsplit(hub.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    writer.write(request(hub, "GET /api/v1/events", Authorization="", Connection="", Cookie=browser.cookie))
    ear = Ear(reader, writer)
    await ear.begin()
    assert ear.status == 200
    if how == "signed out":
        assert await browser.status("POST /sign-out", Origin=hub.url) == 204
    else:
        (session,) = (await hub.get("/api/v1/sessions")).json()["sessions"]
        assert (await hub.http.delete(f"/api/v1/sessions/{session['id']}")).status_code == 204
    await happen(hub, "a")
    assert await next_or_end(ear) is None
    await ear.hang_up()


# --- 2. orders -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/agents/victim/orders?wait=20",
        "/api/v1/orders?agent=victim&wait=20",
        "/api/v1/orders?agent=evil&agent=victim&wait=20",
        "/api/v1/orders?agent=evil,victim&wait=20",
        "/api/v1/orders?wait=20&agent=victim,",
    ],
)
async def test_who_waits_for_anothers_orders_is_refused_at_once(hub: RunningHub, path: str) -> None:
    async with hub.client(await hub.token_for(Role.AGENT, "evil")) as evil, asyncio.timeout(10):
        assert (await evil.get(path)).status_code == 403


async def test_an_order_for_another_wakes_nobody_else(hub: RunningHub) -> None:
    async with hub.client(await hub.token_for(Role.AGENT, "evil")) as evil:
        waiting = asyncio.create_task(evil.get("/api/v1/agents/evil/orders?wait=1", timeout=20))
        await until(lambda: hub.service.hub.ledger.polls)
        give(hub, "victim")
        assert (await waiting).json() == {"orders": []}


async def test_who_waits_with_a_token_that_is_revoked_gets_nothing(hub: RunningHub) -> None:
    token = await hub.token_for(Role.AGENT, "a")
    async with hub.client(token) as agent:
        waiting = asyncio.create_task(agent.get("/api/v1/agents/a/orders?wait=20", timeout=30))
        await until(lambda: hub.service.hub.ledger.polls)
        assert (await hub.http.delete(f"/api/v1/tokens/{token.split('_')[1]}")).status_code == 204
        give(hub, "a")
        assert (await waiting).json() == {"orders": []}


async def test_a_poll_waits_no_longer_than_it_may(hub: RunningHub) -> None:
    """Else one token could hold connections for ever."""
    for wait in ("61", "1e9", "-1", "nan", "inf", "x"):
        assert (await hub.get("/api/v1/agents/a/orders", wait=wait)).status_code == 400, wait
    many = "&".join(f"agent=a{n}" for n in range(beats_and_orders.AGENTS_MAX + 1))
    assert (await hub.get(f"/api/v1/orders?{many}")).status_code in (400, 431)


# --- 3. guesses ----------------------------------------------------------------------------------------------------

SECRETS = re.compile(
    r"(?<![\w.])(token|secret|nonce|mac|signature|password|bearer|session|code|cookie)(?![\w(])"
)


def test_no_secret_is_compared_sign_by_sign() -> None:
    """`==` takes longer the more of a guess is right. Secrets are looked up by their digest, or compared by `compare_digest`."""
    found = []
    for place in ("hub", "web", "wire", "assembly", "adapters/signing", "audit"):
        for file in sorted((SOURCES / place).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq | ast.NotEq):
                    sides = (node.left, *node.comparators)
                    is_secret = any(SECRETS.fullmatch(ast.unparse(side)) for side in sides)
                    if is_secret and not any(isinstance(side, ast.Constant) for side in sides):
                        found.append(f"{file.relative_to(SOURCES)}:{node.lineno} {ast.unparse(node)}")
    assert found == []


async def test_ten_wrong_guesses_a_minute_and_then_wait_whatever_is_guessed() -> None:
    moments = [NOW]
    async with running_hub(clock=lambda: moments[-1]) as hub:

        async def guess(n: int) -> int:
            if n % 2:
                return (await raw(hub, request(hub, f"GET /sign-in?code=x{n}", Authorization=""))).status
            return (await raw(hub, request(hub, Authorization=f"Bearer x{n}"))).status

        assert [await guess(n) for n in range(FAILURES_MAX + 2)] == [401] * FAILURES_MAX + [429] * 2
        assert (await raw(hub, request(hub))).status == 200
        moments.append(NOW + WINDOW_FOR)
        assert await guess(0) == 401


async def test_an_address_that_is_written_in_another_way_is_the_same_address() -> None:
    """IPv6 has a billion addresses for everybody: whoever has one has its /64."""
    assert throttle.network("2001:db8::1") == throttle.network("2001:db8:0:0:ffff::7")
    assert throttle.network("::ffff:10.0.0.1") == throttle.network("10.0.0.1")
    async with running_hub() as hub:
        hub.web.site.host_policy = HostPolicy(behind_proxy=True)
        tried = [f"2001:db8::{n:x}" for n in range(1, FAILURES_MAX + 2)]
        statuses = [
            (await raw(hub, request(hub, Authorization="Bearer no", X_Forwarded_For=one))).status
            for one in tried
        ]
        assert statuses == [401] * FAILURES_MAX + [429]


async def test_what_is_wrong_with_a_token_is_not_told(hub: RunningHub) -> None:
    """Unknown, revoked, too old or another id: the answer to the same request is the same, byte by byte."""
    token = await hub.token_for(Role.VIEWER)
    assert (await hub.http.delete(f"/api/v1/tokens/{token.split('_')[1]}")).status_code == 204
    told = {
        (await raw(hub, request(hub, Authorization=f"Bearer {one}", X_Request_Id="one")))
        for one in (token, token[:-1] + "0", hub.token[:-1] + "x", "ls_00000000_" + "0" * 64, "x")
    }
    assert len(told) == 1
