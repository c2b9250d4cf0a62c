"""Attempts to get in where one has no business: each is refused, with the right status, and nothing leaks."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import pytest

from lifesigns.hub.principals import Role
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.routes import EVERYBODY, NO_TOKEN, Route
from tests.web.hub import RunningHub, running_hub

SECRET = re.compile(r"ls_[0-9a-f]{8}_[0-9a-f]{16}")
WAIT_MAX = 20.0


class Reply(NamedTuple):
    status: int
    """0 if the connection was closed without a word."""
    head: str
    body: str


@pytest.fixture(autouse=True)
def _no_secret_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Whatever a test tries, no token is in the log."""
    with caplog.at_level(logging.DEBUG):
        yield
    assert SECRET.search(caplog.text) is None


async def raw(hub: RunningHub, request: bytes) -> Reply:
    """Bytes as they stand, and what comes back until the hub has closed the connection."""
    place = urlsplit(hub.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        async with asyncio.timeout(WAIT_MAX):
            try:
                writer.write(request)
                await writer.drain()
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.read()
            except (asyncio.IncompleteReadError, ConnectionError):
                return Reply(0, "", "")
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)
    reply = Reply(int(head.split()[1]), head.decode(), body.decode())
    assert SECRET.search(reply.head + reply.body) is None
    return reply


async def first_word(hub: RunningHub, request: bytes) -> int:
    """The status alone, and then hang up: some answers are streams without an end."""
    place = urlsplit(hub.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        async with asyncio.timeout(WAIT_MAX):
            writer.write(request)
            return int((await reader.readline()).split()[1])
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


def request(hub: RunningHub, line: str = "GET /api/v1/me", **headers: str) -> bytes:
    """A request with an admin's token, and these headers besides; an empty one is left out."""
    said = {"Host": urlsplit(hub.url).netloc, "Authorization": f"Bearer {hub.token}", "Connection": "close"}
    said |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{line} HTTP/1.1", *(f"{name}: {value}" for name, value in said.items() if value)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def statuses(hub: RunningHub, requests: Mapping[str, bytes]) -> dict[str, int]:
    return {name: (await raw(hub, one)).status for name, one in requests.items()}


# --- without, or with too little ------------------------------------------------------------------------


def calls(hub: RunningHub) -> list[tuple[Route, str]]:
    """Every call, and a path for it that names the agent coder-7."""
    return [(call, re.sub(r"\{\w+\}", "coder-7", call.path)) for call in hub.web.table.calls]


async def test_every_call_of_the_api_needs_a_token(hub: RunningHub) -> None:
    for call, path in calls(hub):
        reply = await raw(hub, request(hub, f"{call.method} {path}", Authorization=""))
        if call.who is NO_TOKEN:
            assert not path.startswith("/api/"), path
        else:
            assert reply.status == 401, path
            assert 'www-authenticate: Bearer realm="lifesigns"' in reply.head
            assert "application/problem+json" in reply.head


@pytest.mark.parametrize("role", sorted(EVERYBODY))
async def test_every_call_is_open_to_the_roles_it_names_and_to_no_other(hub: RunningHub, role: Role) -> None:
    token = await hub.token_for(role, "coder-7" if role is Role.AGENT else "")
    wrong = {}
    for call, path in calls(hub):
        if call.who is NO_TOKEN:
            continue
        status = await first_word(hub, request(hub, f"{call.method} {path}", Authorization=f"Bearer {token}"))
        if (status == 403) is (role in call.who) or status == 401:
            wrong[f"{call.method} {path}"] = status
    assert wrong == {}


async def test_wrong_tokens_in_every_shape_are_401(hub: RunningHub) -> None:
    token_id = hub.token.split("_")[1]
    tried = {
        "none": request(hub, Authorization=""),
        "cut": request(hub, Authorization=f"Bearer {hub.token[:-1]}"),
        "more": request(hub, Authorization=f"Bearer {hub.token}0"),
        "id only": request(hub, Authorization=f"Bearer {token_id}"),
        "two words": request(hub, Authorization=f"Bearer x {hub.token}"),
        "no scheme": request(hub, Authorization=hub.token),
        "basic": request(hub, Authorization=f"Basic {hub.token}"),
        "empty": request(hub, Authorization="Bearer "),
        "latin": request(hub, Authorization="Bearer \xff\xfe"),
    }
    assert set((await statuses(hub, tried)).values()) == {401}
    assert (await raw(hub, request(hub, Authorization=f"bEaReR   {hub.token} "))).status == 200


async def test_a_token_in_the_address_is_not_read(hub: RunningHub) -> None:
    """Addresses end up in logs and histories."""
    for name in ("token", "access_token", "authorization", "code"):
        reply = await raw(hub, request(hub, f"GET /api/v1/me?{name}={hub.token}", Authorization=""))
        assert reply.status == 401


async def test_an_agent_speaks_only_for_its_own_ids(hub: RunningHub) -> None:
    ids = ["coder-7", "coder-", "coder-7/../x", "coder", "Coder-7", "reviewer-1"]
    async with hub.client(await hub.token_for(Role.AGENT, "coder-*")) as agent:
        beats = (await agent.post("/api/v1/beats", json=[{"agent_id": name} for name in ids])).json()
        assert beats["accepted"] == 1
        assert [(bad["index"], bad["field"]) for bad in beats["rejected"]] == [
            (n, "agent_id") for n in range(1, 6)
        ]
        words = [{"type": "left", "agent_id": name} for name in ids[1:]]
        assert (await agent.post("/api/v1/signals", json=words)).status_code == 400
    known = (await hub.get("/api/v1/agents")).json()["agents"]
    assert [agent["agent_id"] for agent in known] == ["coder-7"]


async def test_an_agent_asks_only_about_its_own_ids_and_learns_nothing_of_others(hub: RunningHub) -> None:
    await hub.post("/api/v1/beats", [{"agent_id": "coder-7"}, {"agent_id": "reviewer-1"}])
    async with hub.client(await hub.token_for(Role.AGENT, "coder-*")) as agent:
        assert (await agent.get("/api/v1/agents/coder-7")).status_code == 200
        for other in ("reviewer-1", "unknown", "coder-", "coder-7%2F..%2Freviewer-1", "coder-7%2f%2e%2e%2fx"):
            for way in ("", "/heartbeat"):
                answer = await agent.get(f"/api/v1/agents/{other}{way}")
                assert answer.status_code == 403, other
        for fleet in ("/api/v1/agents", "/api/v1/fleet", "/api/v1/tokens"):
            assert (await agent.get(fleet)).status_code == 403


async def test_a_viewer_says_nothing(hub: RunningHub) -> None:
    async with hub.client(await hub.token_for(Role.VIEWER)) as viewer:
        assert (await viewer.post("/api/v1/beats", json={"agent_id": "a"})).status_code == 403
        assert (await viewer.get("/api/v1/agents")).json()["agents"] == []


# --- managing tokens ------------------------------------------------------------------------------------


async def test_a_token_is_shown_once_listed_without_its_secret_and_revoked(hub: RunningHub) -> None:
    wanted = {"role": "agent", "name": "ci", "agents": "coder-*", "expires_after": 3600}
    made = await hub.post("/api/v1/tokens", wanted)
    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    token, token_id = made.json()["token"], made.json()["id"]
    listed = await hub.get("/api/v1/tokens")
    assert token not in listed.text
    assert "digest" not in listed.text
    assert [(one["name"], one["agents"]) for one in listed.json()["tokens"]] == [
        ("tests", ""),
        ("ci", "coder-*"),
    ]
    async with hub.client(token) as agent:
        me = {"name": "ci", "role": "agent", "token_id": token_id, "agents": ["coder-*"]}
        assert (await agent.get("/api/v1/me")).json() == me
        assert (await hub.http.delete(f"/api/v1/tokens/{token_id}")).status_code == 204
        assert (await agent.get("/api/v1/me")).status_code == 401
    assert (await hub.http.delete(f"/api/v1/tokens/{token_id}")).status_code == 404


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"role": "agent", "name": "n"}, "agents"),
        ({"role": "agent", "name": "n", "agents": "a*b"}, "agents"),
        ({"role": "viewer", "name": "n", "agents": "a"}, "agents"),
        ({"role": "emperor", "name": "n"}, "role"),
        ({"role": "viewer", "name": ""}, "name"),
        ({"role": "viewer", "name": "n", "expires_after": -1}, "expires_after"),
    ],
)
async def test_a_token_that_makes_no_sense_is_a_problem_with_its_field(
    hub: RunningHub, wanted: dict[str, object], field: str
) -> None:
    answer = await hub.post("/api/v1/tokens", wanted)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


# --- guessing -------------------------------------------------------------------------------------------


async def test_wrong_tokens_are_slowed_down_and_right_ones_never(
    hub: RunningHub, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever forges where it comes from is counted all the same."""
    wrong = [request(hub, Authorization="Bearer ls_wrong", X_Forwarded_For=f"10.0.0.{n}") for n in range(13)]
    replies = [await raw(hub, one) for one in wrong]
    assert [reply.status for reply in replies] == [401] * 10 + [429] * 3
    wait = re.search(r"retry-after: (\d+)", replies[-1].head)
    assert wait
    assert 0 < int(wait[1]) <= 60
    assert (await raw(hub, request(hub))).status == 200
    refusals = [record for record in caplog.records if getattr(record, "action", "") == "token_refused"]
    assert len(refusals) == 2
    assert "ls_wrong" not in caplog.text


async def test_behind_a_proxy_each_client_is_counted_by_what_the_proxy_says(hub: RunningHub) -> None:
    """The last address is the proxy's word; those before it are the client's own."""
    hub.web.site.host_policy = HostPolicy(behind_proxy=True)

    async def status(forwarded: str) -> int:
        return (await raw(hub, request(hub, Authorization="Bearer no", X_Forwarded_For=forwarded))).status

    assert [await status(f"6.6.6.{n}, 10.0.0.1") for n in range(11)][-1] == 429
    assert await status("10.0.0.1, 10.0.0.2") == 401


# --- other pages ----------------------------------------------------------------------------------------


async def test_a_name_that_is_not_ours_is_misdirected(hub: RunningHub) -> None:
    """DNS rebinding: the page is same-origin by then, but its name is in every request. Also where no token is needed."""
    port = urlsplit(hub.url).port
    for path in ("/api/v1/me", "/healthz"):
        for host in (
            "evil.example",
            f"evil.example:{port}",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "evil-localhost",
        ):
            reply = await raw(hub, request(hub, f"GET {path}", Host=host))
            assert reply.status == 421, host
            assert "--allow-host" in reply.body
        for host in (
            "",
            "localhost@evil",
            "a b",
            "[::1",
            "::1",
            "x:y",
            "http://localhost",
            "localhost:123456",
            "a,b",
        ):
            assert (await raw(hub, request(hub, f"GET {path}", Host=host))).status == 400, host


async def test_addresses_loopback_and_allowed_names_are_ours(hub: RunningHub) -> None:
    hub.web.site.host_policy = HostPolicy(names=frozenset({"hub.example.org"}))
    for host in (
        "localhost",
        "LOCALHOST:1",
        "localhost.",
        "hub.localhost:80",
        "127.0.0.1",
        "127.8.9.1:5",
        "[::1]:8710",
    ):
        assert (await raw(hub, request(hub, Host=host))).status == 200, host
    for host in ("10.1.2.3:8710", "[2001:db8::1]", "hub.example.org", "Hub.Example.ORG.:443"):
        assert (await raw(hub, request(hub, Host=host))).status == 200, host
    assert (await raw(hub, request(hub, Host="other.example.org"))).status == 421


async def test_another_page_changes_nothing_even_with_a_token(hub: RunningHub) -> None:
    place = urlsplit(hub.url)
    foreign = [
        *(
            "http://evil.example",
            f"https://{place.netloc}",
            f"http://127.0.0.1:{(place.port or 0) + 1}",
            "null",
        ),
        *(
            f"http://localhost:{place.port}",
            f"http://{place.netloc}.evil.example",
            "http://",
            "x",
            f"{hub.url}/",
        ),
    ]
    for method in (
        "POST /api/v1/beats",
        "DELETE /api/v1/tokens/x",
        "OPTIONS /api/v1/beats",
        "POST /sign-out",
    ):
        for origin in foreign:
            reply = await raw(hub, request(hub, method, Origin=origin))
            assert reply.status == 403, origin
            assert "access-control" not in reply.head.lower()
        for site in ("cross-site", "same-site", "strange"):
            assert (await raw(hub, request(hub, method, Sec_Fetch_Site=site))).status == 403
    beat = request(
        hub, "POST /api/v1/beats", Origin=hub.url, Sec_Fetch_Site="same-origin", Content_Length="17"
    )
    assert (await raw(hub, beat + b'{"agent_id": "a"}')).status == 202


async def test_no_answer_invites_other_pages(hub: RunningHub) -> None:
    reply = await raw(hub, request(hub, Origin="http://evil.example"))
    assert reply.status == 200
    assert "access-control" not in reply.head.lower()


# --- the dashboard's link and cookie --------------------------------------------------------------------


class Browser:
    """Somebody who signed in by a link."""

    def __init__(self, hub: RunningHub, cookie: str) -> None:
        self.hub, self.cookie = hub, cookie

    async def status(self, line: str = "GET /api/v1/me", **headers: str) -> int:
        said = {"Authorization": "", "Cookie": self.cookie, **headers}
        return (await raw(self.hub, request(self.hub, line, **said))).status


async def link(hub: RunningHub, token: str | None = None) -> str:
    async with hub.client(token or hub.token) as client:
        answer = await client.post("/api/v1/sign-in-links")
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    url = answer.json()["url"]
    assert url == f"{hub.url}/sign-in?code={answer.json()['code']}"
    return f"GET {url.removeprefix(hub.url)}"


async def opened(hub: RunningHub, line: str, **headers: str) -> Reply:
    """Open a link, and press the button of the page it shows."""
    page = await raw(hub, request(hub, line, Authorization="", **headers))
    nonce = re.search(
        r"set-cookie: ([^;]+_sign_in=[^;]+); Max-Age=300; HttpOnly; SameSite=Strict; Path=/", page.head
    )
    if nonce is None:
        return page
    form = urlencode(dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.body)))
    said = {"Content_Length": str(len(form)), "Origin": hub.url, **headers}
    if "; Secure" in page.head:
        said["Origin"] = hub.url.replace("http:", "https:")
    said["Cookie"] = "; ".join(filter(None, (headers.get("Cookie"), nonce[1])))
    return await raw(hub, request(hub, "POST /sign-in", Authorization="", **said) + form.encode())


async def signed_in(hub: RunningHub, token: str | None = None) -> Browser:
    reply = await opened(hub, await link(hub, token))
    found = re.search(r"set-cookie: ([^;]+)", reply.head)
    assert found
    return Browser(hub, found[1])


async def test_a_link_signs_in_once_with_a_cookie_no_script_and_no_other_site_can_use(
    hub: RunningHub,
) -> None:
    line = await link(hub)
    reply = await opened(hub, line)
    assert reply.status == 303
    assert "location: /\r\n" in reply.head
    assert "referrer-policy: no-referrer" in reply.head
    assert "cache-control: no-store" in reply.head
    found = re.search(r"set-cookie: (\S+)=(\S+); HttpOnly; SameSite=Strict; Path=/\r\n", reply.head)
    assert found
    assert found[1] == f"lifesigns_{urlsplit(hub.url).port}"
    assert found[2] not in line
    replayed = await opened(hub, line)
    assert replayed.status == 401
    assert "set-cookie" not in replayed.head


async def test_over_tls_the_cookie_is_only_for_tls_and_only_ours(hub: RunningHub) -> None:
    hub.web.site.host_policy = HostPolicy(tls=True)
    async with hub.client(hub.token) as client:
        made = (await client.post("/api/v1/sign-in-links")).json()
    assert made["url"].startswith("https://")
    reply = await opened(hub, f"GET /sign-in?code={made['code']}")
    assert re.search(
        r"set-cookie: __Host-lifesigns_\d+=\S+; HttpOnly; SameSite=Strict; Path=/; Secure\r\n", reply.head
    )


async def test_behind_a_proxy_that_speaks_tls_the_cookie_is_only_for_tls(hub: RunningHub) -> None:
    line = await link(hub)
    assert "Secure" not in (await opened(hub, line, X_Forwarded_Proto="https")).head
    line = await link(hub)
    hub.web.site.host_policy = HostPolicy(behind_proxy=True)
    assert "; Secure\r\n" in (await opened(hub, line, X_Forwarded_Proto="https")).head


async def test_an_old_link_and_a_link_of_a_revoked_token_open_nothing() -> None:
    moments = [1_000_000.0]
    async with running_hub(clock=lambda: moments[-1]) as hub:
        old = await link(hub)
        moments.append(moments[-1] + 300)
        assert (await opened(hub, old)).status == 401
        token = await hub.token_for(Role.VIEWER)
        fresh = await link(hub, token)
        assert (await hub.http.delete(f"/api/v1/tokens/{token.split('_')[1]}")).status_code == 204
        assert (await opened(hub, fresh)).status == 401


async def test_to_look_at_a_link_does_not_use_it_up(hub: RunningHub) -> None:
    """Chat programs do, before the person can."""
    line = await link(hub)
    for method in ("HEAD", "GET"):
        looked = await raw(hub, request(hub, line.replace("GET", method), Authorization=""))
        assert looked.status == 200
    assert (await opened(hub, line)).status == 303


async def test_guessed_codes_are_slowed_down(hub: RunningHub) -> None:
    line = await link(hub)
    guesses = [(await opened(hub, f"GET /sign-in?code={n}")).status for n in range(11)]
    assert guesses == [401] * 10 + [429]
    assert (await opened(hub, line)).status == 303


async def test_a_session_can_do_what_its_token_can_and_ends_with_it(hub: RunningHub) -> None:
    token = await hub.token_for(Role.VIEWER)
    browser = await signed_in(hub, token)
    assert await browser.status() == 200
    assert await browser.status("GET /api/v1/fleet") == 200
    assert await browser.status("GET /api/v1/tokens") == 403
    assert await browser.status("POST /api/v1/beats", Origin=hub.url) == 403
    assert (await hub.http.delete(f"/api/v1/tokens/{token.split('_')[1]}")).status_code == 204
    assert await browser.status() == 401


async def test_an_agent_has_no_dashboard(hub: RunningHub) -> None:
    async with hub.client(await hub.token_for(Role.AGENT, "a")) as agent:
        assert (await agent.post("/api/v1/sign-in-links")).status_code == 403


async def test_with_a_cookie_only_our_own_page_asks(hub: RunningHub) -> None:
    """A page on another port of this machine is the same site, so the browser sends our cookie along."""
    browser = await signed_in(hub)
    elsewhere = "http://127.0.0.1:1"
    for line in ("GET /api/v1/me", "GET /api/v1/events", "HEAD /api/v1/me"):
        assert await browser.status(line, Sec_Fetch_Site="same-site") == 403
        assert await browser.status(line, Sec_Fetch_Site="cross-site") == 403
        assert await browser.status(line, Origin=elsewhere) == 403
    assert await browser.status(Sec_Fetch_Site="same-origin") == 200
    assert await browser.status(Sec_Fetch_Site="none") == 200
    assert await browser.status("POST /api/v1/sign-in-links") == 403
    assert await browser.status("POST /api/v1/sign-in-links", Origin=elsewhere) == 403
    assert await browser.status("POST /api/v1/sign-in-links", Origin=hub.url) == 201


async def test_a_session_that_somebody_else_chose_is_never_taken_over(hub: RunningHub) -> None:
    """Fixation: who plants a cookie before the victim signs in must not be signed in with it after."""
    name = f"lifesigns_{urlsplit(hub.url).port}"
    planted = f"{name}={'x' * 43}"
    reply = await opened(hub, await link(hub), Cookie=planted)
    assert reply.status == 303
    assert planted not in reply.head
    assert await Browser(hub, planted).status() == 401
    good = (await signed_in(hub)).cookie
    assert await Browser(hub, f"{good}; {planted}").status() == 401
    assert await Browser(hub, f"{planted}; {good}").status() == 401
    assert await Browser(hub, f"theme=dark; {good}; x").status() == 200
    assert await Browser(hub, good.upper()).status() == 401


async def test_a_wrong_token_is_not_mended_by_a_good_cookie(hub: RunningHub) -> None:
    browser = await signed_in(hub)
    assert await browser.status(Authorization="Bearer wrong") == 401


async def test_who_signs_out_is_out(hub: RunningHub) -> None:
    browser = await signed_in(hub)
    assert await browser.status("POST /sign-out") == 403
    reply = await opened(hub, "POST /sign-out", Cookie=browser.cookie, Origin=hub.url)
    assert reply.status == 204
    assert "Max-Age=0" in reply.head
    assert await browser.status() == 401


# --- tricks with the protocol ---------------------------------------------------------------------------


async def test_no_path_leads_out_of_the_table(hub: RunningHub) -> None:
    tricks = [
        *(
            "/..%2f..%2fetc/passwd",
            "/%2e%2e/%2e%2e/etc/passwd",
            "/%252e%252e%252fetc",
            "/..\\..\\etc",
            "/..%5c..%5cetc",
        ),
        *(
            "/../../etc/passwd",
            "//etc/passwd",
            "/api/v1/../../healthz",
            "/api/v1/agents/..",
            "/api//v1/agents",
        ),
        *(
            "/api/v1/agents/%2e%2e",
            "/api/v1/agents/a%00b",
            "/%00",
            "/healthz%00",
            "/healthz/",
            "/HEALTHZ",
            "/healthz;x",
        ),
        *(
            "/api/v1/agents/%ff%fe",
            "/api/v1/agents/%c0%ae%c0%ae%c0%af",
            "/api/v1/agents/a%0d%0aX:%20y",
            "/%",
            "/%zz",
        ),
        *("/api/v1/tokens/..%2f..%2fadmin.token", "/admin.token", "/.git/config", "/static/../admin.token"),
    ]
    for path in tricks:
        reply = await raw(hub, request(hub, f"GET {path}"))
        assert reply.status in (400, 404, 405), path
        assert "root:" not in reply.body
        assert "\r\nx: y" not in reply.head.lower()


async def test_requests_that_two_readers_would_read_differently_are_refused(hub: RunningHub) -> None:
    """Otherwise a proxy in front and the hub behind it disagree about where a request ends, and whose it is."""
    good = request(hub).removesuffix(b"\r\n")
    post = request(hub, "POST /api/v1/beats").removesuffix(b"\r\n")
    tried = {
        "length and chunks": post + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "chunks and length": post + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        "two lengths": post + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "the same length twice": post + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        "a strange length": post + b"Content-Length: +3\r\n\r\nabc",
        "a negative length": post + b"Content-Length: -3\r\n\r\nabc",
        "a strange encoding": post + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "two encodings": post + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        "a folded header": good + b"X: 1\r\n 2\r\n\r\n",
        "a folded token": good.replace(b"Bearer ", b"Bearer\r\n ") + b"\r\n",
        "line feeds only": (good + b"\r\n").replace(b"\r\n", b"\n"),
        "a space before the colon": good + b"X : 1\r\n\r\n",
        "no colon": good + b"X\r\n\r\n",
        "a zero byte": good + b"X: a\0b\r\n\r\n",
        "two hosts": good + b"Host: evil.example\r\n\r\n",
        "the same host twice": good + b"Host: " + urlsplit(hub.url).netloc.encode() + b"\r\n\r\n",
        "two tokens": good + b"Authorization: Bearer x\r\n\r\n",
        "two origins": good + b"Origin: " + hub.url.encode() + b"\r\nOrigin: http://evil.example\r\n\r\n",
        "two cookies": good + b"Cookie: a=b\r\nCookie: c=d\r\n\r\n",
    }
    assert {name: status for name, status in (await statuses(hub, tried)).items() if status != 400} == {}


async def test_a_smuggled_second_request_is_not_answered(hub: RunningHub) -> None:
    inner = request(hub, "POST /api/v1/tokens", Content_Length="35") + b'{"role": "admin", "name": "sneaky"}'
    outer = request(
        hub, "POST /api/v1/beats", Authorization="", Content_Length="0", Transfer_Encoding="chunked"
    )
    assert (await raw(hub, outer + b"0\r\n\r\n" + inner)).status in (0, 400)
    assert [token.name for token in hub.service.access.tokens.list()] == ["tests"]


async def test_too_many_and_too_large_headers_are_refused(hub: RunningHub) -> None:
    many = request(hub).removesuffix(b"\r\n") + b"X: y\r\n" * 200 + b"\r\n"
    large = request(hub, X="y" * 60_000)
    token = request(hub, Authorization="Bearer " + "y" * 60_000)
    found = await statuses(hub, {"many": many, "large": large, "token": token})
    assert set(found.values()) <= {400, 431, 0}


async def test_a_body_that_is_too_large_is_refused_before_it_is_sent(hub: RunningHub) -> None:
    announced = request(hub, "POST /api/v1/beats", Content_Length=str(10**9))
    assert (await raw(hub, announced)).status == 413
    endless = request(hub, "POST /api/v1/beats", Transfer_Encoding="chunked")
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    assert (await raw(hub, endless + chunk * 200)).status in (413, 0)
    absurd = request(hub, "POST /api/v1/beats", Content_Length="9" * 30)
    assert (await raw(hub, absurd)).status in (400, 413)


async def test_nobody_without_a_token_is_read_to_the_end(hub: RunningHub) -> None:
    """Who it is is known before its body is."""
    stranger = request(hub, "POST /api/v1/beats", Authorization="", Content_Length="1000000")
    assert (await raw(hub, stranger)).status == 401


async def test_a_body_that_comes_too_slowly_is_given_up(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lifesigns.web.bodies.BODY_FOR", 0.1)
    slow = request(hub, "POST /api/v1/beats", Content_Length="100") + b"{"
    assert (await raw(hub, slow)).status == 408


async def test_other_methods_do_nothing_and_repeat_nothing(hub: RunningHub) -> None:
    assert (await raw(hub, request(hub, "HEAD /healthz"))).status == 200
    for method in ("TRACE", "OPTIONS", "PUT", "PATCH", "PROPFIND"):
        reply = await raw(hub, request(hub, f"{method} /api/v1/beats"))
        assert reply.status == 405, method
        assert "allow: POST" in reply.head
        assert hub.token not in reply.body
    assert (await raw(hub, request(hub, "BREW /api/v1/beats"))).status in (400, 405)
    assert (await raw(hub, request(hub, "CONNECT evil.example:443"))).status in (400, 404, 405)
