"""A hub that stands by forwards every call to the one that judges. Nobody gains anything by coming that way.

Promises:
    1. A call has the rights of its own token, whichever hub it came to, and no header of a client adds to them.
    2. `Host`, `Origin` and the address that count are those of the hub that the client reached.
    3. Nobody's token is sent to a hub that does not prove to be the one that judges, at that very address.
    4. Whoever tries many tokens at one hub has to wait there, and nobody else has to.
    5. A call that was forwarded is not forwarded again, and what is for hubs alone is not forwarded at all.
    6. Whose session it is, a hub believes another one of its fleet only, and for that very call.
    7. Nobody fills the memory of the hub that stands by, with a token or without.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import httpx2
import msgspec
import pytest

from lifesigns.cli.doctor_checks import examine
from lifesigns.config.hub_locator import HubLocator
from lifesigns.hub.principals import Role
from lifesigns.hub.token_macs import HubMacs
from lifesigns.web import leader_connection
from lifesigns.web.forwarded import BEATS_OF_HUB, ReachedHub
from lifesigns.web.host_policy import HostPolicy
from tests.servers.certificates import self_signed
from tests.web.listening import until
from tests.web.two_hubs import OneHub, TwoHubs, two_hubs

BEATS = "/api/v1/beats"


@pytest.fixture
async def hubs(tmp_path: Path) -> AsyncIterator[TwoHubs]:
    async with two_hubs(tmp_path, policy=HostPolicy(names=frozenset({"hub-2.example"}))) as both:
        await until(lambda: not both.site.why_away)
        yield both


async def from_address(hub: OneHub, address: str, token: str) -> int:
    """The status of a call from another address of this machine."""
    transport = httpx2.AsyncHTTPTransport(local_address=address, verify=False)
    async with httpx2.AsyncClient(transport=transport, base_url=hub.url) as client:
        answer = await client.get("/api/v1/me", headers={"authorization": f"Bearer {token}"})
        return answer.status_code


async def test_a_role_gets_what_it_gets_at_the_hub_that_judges(hubs: TwoHubs) -> None:
    for role in (Role.AGENT, Role.VIEWER, Role.OPERATOR, Role.ADMIN):
        token = await hubs.judge.token(role, "a" if role is Role.AGENT else "")
        for method, path in (
            ("GET", "/api/v1/agents"),
            ("GET", "/api/v1/tokens"),
            ("GET", "/api/v1/hubs"),
            ("DELETE", "/api/v1/hubs/nobody"),
            ("POST", BEATS),
            ("GET", "/api/v1/agents/b"),
        ):
            direct, through = [
                await hub.ask(path, token, method, content=b'{"agent_id": "b"}' if method == "POST" else None)
                for hub in (hubs.judge, hubs.standby)
            ]
            assert through.status_code == direct.status_code, (role, method, path)


async def test_what_a_client_says_about_itself_counts_for_nothing(hubs: TwoHubs) -> None:
    """Neither a made-up header, nor one that a hub has made for another call."""
    macs = hubs.judge.service.access.tokens.hub_macs
    assert macs is not None
    true = ReachedHub("standby", b"hub-2.example", "127.0.0.9", 1, tls=False, behind_proxy=False).header(macs)
    other_mac = true[:-1] + (b"1" if true.endswith(b"0") else b"0")
    for forged in (b"x", other_mac, true.replace(b"hub-2.example", b"evil.example")):
        answer = await hubs.judge.ask(
            "/docs", headers={"host": "evil.example", "lifesigns-forwarded": forged.decode()}
        )
        assert answer.status_code == 421
    twice = [("host", "evil.example"), *[("lifesigns-forwarded", true.decode())] * 2]
    async with httpx2.AsyncClient(base_url=hubs.judge.url, verify=False, trust_env=False) as client:
        assert (await client.get("/docs", headers=twice)).status_code == 421
    posts = msgspec.msgpack.encode([(b"nonsense", b'{"agent_id": "a"}')])
    alone = await hubs.judge.ask(BEATS_OF_HUB, method="POST", content=posts)
    assert alone.status_code == 404, "that call is for hubs"
    by_hub = await hubs.judge.ask(
        BEATS_OF_HUB, method="POST", content=posts, headers={"lifesigns-forwarded": true.decode()}
    )
    assert msgspec.msgpack.decode(by_hub.content) == [None], "and a hub has no right of its own"
    assert not hubs.judge.service.engine.beliefs.agents


async def test_a_hub_says_whose_session_it_is_and_nobody_else_does(hubs: TwoHubs) -> None:
    """The token by which it was opened still has to be good, and the page has to be ours."""
    access = hubs.judge.service.access
    macs, now = access.tokens.hub_macs, hubs.judge.service.clock()
    assert macs is not None
    made = await access.tokens.create(role=Role.VIEWER, name="v", now=now)
    port = int(hubs.judge.url.rsplit(":", 1)[1])
    host = f"127.0.0.1:{port}".encode()

    def said(token_id: str, call: bytes = b"GET /api/v1/me", by: HubMacs = macs) -> str:
        reached = ReachedHub("standby", host, "127.0.0.9", port, False, False, token_id)
        return reached.header(by, call).decode()

    async def status(header: str, method: str = "GET", path: str = "/api/v1/me", **more: str) -> int:
        cookie = {"cookie": f"lifesigns_{port}=of-another-hub"}
        answer = await hubs.judge.ask(
            path, method=method, headers={**cookie, "lifesigns-forwarded": header, **more}
        )
        return answer.status_code

    mine = made.stored.id
    assert await status(said(mine)) == 200
    assert await status(said("")) == 401
    assert await status(said("unknown")) == 401
    assert await status(said(mine, by=HubMacs(b"a key of another fleet"))) in (401, 421)
    assert await status(said(mine).replace(mine, "admin")) in (401, 421)
    assert await status(said("").replace(" ", f" {mine} ", 1)) in (401, 421), "of another call"
    assert await status(said(mine), origin="http://evil.example") == 403
    change = said(mine, b"POST /api/v1/tokens")
    assert await status(change, "POST", "/api/v1/tokens") == 403, "no Origin"
    for path in ("/api/v1/agents", "/api/v1/me?x=1"):
        assert await status(said(mine), path=path) in (401, 421), (
            "what was said of one call is worth nothing in another"
        )
    of_a_page = {"origin": hubs.judge.url}
    reading = said(mine, b"GET /api/v1/silences")
    assert await status(reading, "POST", "/api/v1/silences", **of_a_page) in (401, 421), (
        "nor by another method"
    )
    await access.tokens.revoke(mine, now)
    assert await status(said(mine)) == 401


async def test_a_hub_without_the_key_of_the_fleet_believes_nobody(hubs: TwoHubs) -> None:
    access = hubs.judge.service.access
    macs = access.tokens.hub_macs
    assert macs is not None
    made = await access.tokens.create(role=Role.ADMIN, name="v", now=hubs.judge.service.clock())
    port = int(hubs.judge.url.rsplit(":", 1)[1])
    reached = ReachedHub("standby", f"127.0.0.1:{port}".encode(), "-", port, False, False, made.stored.id)
    said = {
        "cookie": f"lifesigns_{port}=x",
        "lifesigns-forwarded": reached.header(macs, b"GET /api/v1/me").decode(),
    }
    assert (await hubs.judge.ask("/api/v1/me", headers=said)).status_code == 200
    access.tokens.hub_macs = None
    assert (await hubs.judge.ask("/api/v1/me", headers=said)).status_code == 401


async def test_names_and_pages_are_those_of_the_hub_that_was_reached(hubs: TwoHubs) -> None:
    admin = await hubs.judge.token(Role.ADMIN)
    typed = {"host": "hub-2.example"}
    assert (await hubs.judge.ask("/api/v1/me", admin, headers=typed)).status_code == 421
    assert (await hubs.standby.ask("/api/v1/me", admin, headers=typed)).status_code == 200
    assert (await hubs.standby.ask("/docs", headers={"host": "evil.example"})).status_code == 421
    for origin, status in (("http://hub-2.example", 202), ("http://evil.example", 403)):
        for body in (b'{"agent_id": "a"}', b'[{"agent_id": "a"}]'):
            said = {**typed, "origin": origin}
            answer = await hubs.standby.ask(BEATS, admin, "POST", content=body, headers=said)
            assert answer.status_code == status
    link = await hubs.standby.ask("/api/v1/sign-in-links", admin, "POST", headers=typed)
    assert link.json()["url"].startswith("http://hub-2.example/sign-in?")


async def test_whoever_tries_many_tokens_waits_and_nobody_else(hubs: TwoHubs) -> None:
    admin = await hubs.judge.token(Role.ADMIN)
    guesses = [await from_address(hubs.standby, "127.0.0.2", f"guess-{n}") for n in range(30)]
    assert guesses == [401] * 10 + [429] * 20
    assert hubs.judge.service.access.throttle.refused == 10, "the hub that judges learns of a few"
    assert await from_address(hubs.standby, "127.0.0.2", admin) == 200, "a right one is always let in"
    assert await from_address(hubs.standby, "127.0.0.3", "one guess") == 401
    assert await from_address(hubs.judge, "127.0.0.4", "one guess") == 401


async def test_a_call_that_was_forwarded_is_not_forwarded_again(hubs: TwoHubs) -> None:
    admin = await hubs.judge.token(Role.ADMIN)
    said = {"lifesigns-forwarded": "by another hub"}
    for path, method, body in (
        ("/api/v1/me", "GET", None),
        (BEATS, "POST", b'{"agent_id": "a"}'),
        (BEATS_OF_HUB, "POST", b""),
    ):
        answer = await hubs.standby.ask(path, admin, method, content=body, headers=said)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")


async def test_what_is_for_hubs_alone_is_not_forwarded(hubs: TwoHubs) -> None:
    """The hub that judges took it for a batch of the hub that stands by. Of anybody: it counted no guess and read millions of beats."""
    agent = await hubs.judge.token(Role.AGENT, "a")
    posts = msgspec.msgpack.encode(
        [(agent.encode(), b'{"agent_id": "a"}'), (b"a guess", b'{"agent_id": "a"}')]
    )
    for token in (None, agent, await hubs.judge.token(Role.ADMIN)):
        for path in (BEATS_OF_HUB, f"{BEATS_OF_HUB}?x=1"):
            answer = await hubs.standby.ask(path, token, "POST", content=posts)
            assert answer.status_code == 404
    assert not hubs.judge.service.engine.beliefs.agents


HELD_MAX = 220 * 1024 * 1024
"""Eight bodies of 8 MB with a token and eight without, some of the rest, and what else a process needs."""


async def test_bodies_that_never_end_do_not_fill_a_hub_that_stands_by(hubs: TwoHubs) -> None:
    """It reads a body before it asks the hub that judges, which would have read none of these."""
    size, many = 8 * 1024 * 1024, 40
    agent = await hubs.judge.token(Role.AGENT, "a")
    head = f"POST {BEATS} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {size}\r\n"
    shown = f"authorization: Bearer {agent}\r\n"
    heads = [head.encode(), (head + shown).encode()] * many
    rest = b"\r\n" + bytes(size - 1)
    port = int(hubs.standby.url.rpartition(":")[2])
    before = _resident()
    with ExitStack() as stack:
        peers = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in heads]

        async def say_all_but_the_end(peer: socket.socket, head: bytes) -> None:
            peer.setblocking(False)
            await asyncio.get_running_loop().sock_sendall(peer, head)
            await asyncio.get_running_loop().sock_sendall(peer, rest)

        with suppress(TimeoutError):
            async with asyncio.timeout(4):
                await asyncio.gather(*map(say_all_but_the_end, peers, heads))
        assert _resident() - before < HELD_MAX
        beat = await hubs.standby.ask(BEATS, agent, "POST", content=b'[{"agent_id": "a"}]')
        assert beat.status_code == 202, "what is small is heard meanwhile"


def _resident() -> int:
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) * 1024


async def test_headers_of_a_connection_end_with_it(hubs: TwoHubs, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = await hubs.judge.token(Role.ADMIN)
    sent: list[bytes] = []
    begin = leader_connection.LeaderConnection.begin

    def noted(connection: leader_connection.LeaderConnection, request: bytes, **more: bool) -> None:
        sent.append(request)
        begin(connection, request, **more)

    monkeypatch.setattr(leader_connection.LeaderConnection, "begin", noted)
    own = {"connection": "keep-alive, x-mine", "x-mine": "1", "te": "trailers", "keep-alive": "timeout=5"}
    answer = await hubs.standby.ask("/api/v1/me", admin, headers={**own, "x-other": "2"})
    assert answer.status_code == 200
    (request,) = [one for one in sent if b"/api/v1/me" in one]
    names = [line.partition(b":")[0] for line in request.split(b"\r\n")[1:] if line]
    assert not {b"connection", b"x-mine", b"te", b"keep-alive"} & set(names)
    assert names.count(b"host") == names.count(b"lifesigns-forwarded") == names.count(b"x-other") == 1


async def test_a_body_that_is_too_large_is_refused_before_it_is_forwarded(hubs: TwoHubs) -> None:
    admin = await hubs.judge.token(Role.ADMIN)
    answer = await hubs.standby.ask(BEATS, admin, "POST", content=b"[" + b" " * (8 * 1024 * 1024))
    assert answer.status_code == 413


# --- who is there -------------------------------------------------------------------------------------


@asynccontextmanager
async def thief(passes_on_to: list[int]) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Something that passes everything on to the hub that judges, if it knows its port; its address, and what it saw."""
    seen: list[bytes] = []
    writers: list[asyncio.StreamWriter] = []

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, note: bool) -> None:
        while piece := await reader.read(65536):
            if note:
                seen.append(piece)
            writer.write(piece)

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", passes_on_to[0])
        writers.extend((writer, back))
        await asyncio.gather(pump(reader, back, True), pump(there, writer, False), return_exceptions=True)

    server = await asyncio.start_server(meet, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", seen
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()


async def test_an_address_that_somebody_wrote_into_the_store_gets_no_token(tmp_path: Path) -> None:
    """Not even if the hub that judges stands behind it: that one says where it is itself."""
    passes_on_to: list[int] = []
    async with thief(passes_on_to) as (url, seen), two_hubs(tmp_path) as hubs:
        passes_on_to.append(int(hubs.judge.url.rpartition(":")[2]))
        await until(lambda: not hubs.site.why_away)
        admin = await hubs.judge.token(Role.ADMIN)
        await hubs.judge.service.store.renew("judge", url, "1.0")
        await hubs.standby.lease.may_lead()
        leader = hubs.standby.lease.leader
        assert leader is not None
        assert leader.url == url
        assert (await hubs.standby.ask("/api/v1/me", admin)).status_code == 503
        beat = await hubs.standby.ask(BEATS, admin, "POST", content=b'{"agent_id": "a"}')
        assert beat.status_code == 503
        assert seen
        assert admin.encode() not in b"".join(seen)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:9", "start it with --host"),
        ("http://192.0.2.1:8710", "a token would be sent there unencrypted"),
    ],
)
async def test_a_hub_that_cannot_be_reached_is_said_to_those_who_may_know(
    tmp_path: Path, url: str, why: str
) -> None:
    """In the log, by `/readyz` and by `lifesigns doctor`; at once, without waiting for it."""
    async with two_hubs(tmp_path, judge_at=url) as hubs:
        await until(lambda: why in hubs.site.why_away)
        admin = await hubs.judge.token(Role.ADMIN)
        ready = await hubs.standby.ask("/readyz", admin)
        assert (ready.status_code, why in ready.json()["judge"]) == (503, True)
        assert (await hubs.standby.ask("/readyz")).json()["judge"] == "away"
        locator = HubLocator(hubs.standby.url, admin)
        checks = await asyncio.to_thread(lambda: list(examine({}, locator, given=True)))
        assert (checks[-1].what, checks[-1].level, why in checks[-1].said) == ("hubs", "bad", True)


async def test_the_hub_itself_at_the_address_of_the_other_is_not_taken_for_it(tmp_path: Path) -> None:
    """Both listen on their own loopback, on two machines: what is there is this hub."""
    async with two_hubs(tmp_path) as hubs:
        await hubs.judge.service.store.renew("judge", hubs.standby.url, "1.0")
        await hubs.standby.lease.may_lead()
        await until(lambda: "does not prove to be judge" in hubs.site.why_away)
        assert (await hubs.standby.ask("/api/v1/agents")).status_code == 503


async def test_a_certificate_between_hubs_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the system's authorities, or by those of `SSL_CERT_FILE`."""
    certificate = self_signed(tmp_path)
    tls = str(certificate), str(certificate.with_name("key.pem"))
    for trusted in (False, True):
        leader_connection.trust.cache_clear()
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate) if trusted else "/dev/null")
        (tmp_path / str(trusted)).mkdir()
        async with two_hubs(tmp_path / str(trusted), judge_tls=tls) as hubs:
            if trusted:
                await until(lambda hubs=hubs: not hubs.site.why_away)
            else:
                await until(lambda hubs=hubs: "SSL_CERT_FILE names the authority" in hubs.site.why_away)
            admin = await hubs.judge.token(Role.ADMIN)
            status = (await hubs.standby.ask("/api/v1/me", admin)).status_code
            assert status == (200 if trusted else 503)
    leader_connection.trust.cache_clear()
