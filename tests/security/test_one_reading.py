"""A request has one meaning: for us, for a proxy before us, and for whoever reads the log.

Promises:
    1. What two readers could read differently is refused, and nothing that follows on the connection is heard.
    2. A path means one row of the table, byte by byte: nothing is unfolded, joined, decoded twice or looked up in a folder.
    3. A method does what its row says; all others do nothing, and no answer repeats what was sent.
    4. Nothing that is sent becomes a header, a second answer or a line of the log.

The first shapes of each are in `tests/web/test_getting_in.py`; these are the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from urllib.parse import quote, urlsplit

import pytest

from lifesigns.hub.principals import Role
from lifesigns.web.table import CALLS
from tests.web.hub import RunningHub, running_hub
from tests.web.test_getting_in import raw, request

SNEAKY = b'{"role": "admin", "name": "sneaky"}'


@pytest.fixture
async def hub() -> AsyncIterator[RunningHub]:
    async with running_hub() as running:
        yield running


def admins(hub: RunningHub) -> list[str]:
    return [token.name for token in hub.service.access.tokens.list()]


# --- 1. where a request ends -------------------------------------------------------------------------------------


def smuggled(hub: RunningHub) -> bytes:
    """What an attacker would like to be heard as the next request, with somebody else's token."""
    return request(hub, "POST /api/v1/tokens", Content_Length=str(len(SNEAKY))) + SNEAKY


FRAMES: dict[str, bytes] = {
    "CL.TE": b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
    "TE.CL": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n",
    "TE.TE": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
    "TE with a blank": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "TE after a tab": b"Transfer-Encoding:\tchunked, identity\r\n\r\n0\r\n\r\n",
    "TE on a folded line": b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "TE with a vertical tab": b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "TE in two steps": b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "an encoding we do not know": b"Transfer-Encoding: chunked-not\r\n\r\n0\r\n\r\n",
    "two lengths in one": b"Content-Length: 0, 44\r\n\r\n",
    "a length in hex": b"Content-Length: 0x10\r\n\r\n",
    "a length with a blank": b"Content-Length: 4 4\r\n\r\n",
    "a length with an underscore": b"Content-Length: 4_4\r\n\r\n",
    "a length that is none": b"Content-Length: \r\n\r\n",
    "a length that is too long": b"Content-Length: 18446744073709551617\r\n\r\n",
    "a chunk with a sign": b"Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n",
    "a chunk in 0x": b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
    "a chunk that overflows": b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n\r\n",
    "a chunk without its end": b"Transfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n",
    "a bare line feed after a chunk": b"Transfer-Encoding: chunked\r\n\r\n1\nx\n0\n\n",
    "a line break in a name": b"X\rY: 1\r\n\r\n",
    "a bare return": b"X: 1\rContent-Length: 44\r\n\r\n",
    "a NUL in a name": b"X\0: 1\r\n\r\n",
    "a name with a bracket": b"X(: 1\r\n\r\n",
    "a header without a name": b": 1\r\n\r\n",
}


@pytest.mark.parametrize("frame", FRAMES)
async def test_a_frame_with_two_readings_is_refused_and_nothing_after_it_is_heard(
    hub: RunningHub, frame: str
) -> None:
    outer = request(hub, "POST /api/v1/beats", Connection="").removesuffix(b"\r\n") + FRAMES[frame]
    reply = await raw(hub, outer + smuggled(hub))
    assert reply.status in (0, 400, 413), reply
    assert admins(hub) == ["tests"]


@pytest.mark.parametrize("line", ["GET /api/v1/me", "GET /healthz", "HEAD /healthz"])
async def test_the_body_of_a_request_that_wants_none_is_not_the_next_request(
    hub: RunningHub, line: str
) -> None:
    """A proxy that ignores the body of a GET would let its author speak with the next one's token."""
    inner = smuggled(hub)
    body = request(hub, line, Content_Length=str(len(inner)), Connection="") + inner
    last = request(hub, "GET /healthz")
    assert (await raw(hub, body + last)).status == 200
    assert admins(hub) == ["tests"]


LINES = {
    "no version": "GET /api/v1/me",
    "a tab": "GET\t/api/v1/me\tHTTP/1.1",
    "another version": "GET /api/v1/me HTTP/2.0",
    "no such version": "GET /api/v1/me HTTP/1.10",
    "a version in small letters": "GET /api/v1/me http/1.1",
    "a blank in the path": "GET /api/v1/me x HTTP/1.1",
    "a method in small letters": "get /api/v1/me HTTP/1.1",
    "no path": "GET HTTP/1.1",
    "a NUL": "GET /api/v1/me\0 HTTP/1.1",
    "a byte above ASCII": "GET /api/v1/m\xe9 HTTP/1.1",
}


@pytest.mark.parametrize("line", LINES)
async def test_a_first_line_that_is_not_one_is_refused(hub: RunningHub, line: str) -> None:
    good = request(hub)
    assert good.startswith(b"GET /api/v1/me HTTP/1.1\r\n")
    changed = good.replace(b"GET /api/v1/me HTTP/1.1", LINES[line].encode("latin-1"), 1)
    assert (await raw(hub, changed)).status in (0, 400, 404)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1@evil.example"])
async def test_a_whole_address_in_the_first_line_does_not_stand_for_the_host(
    hub: RunningHub, host: str
) -> None:
    """A proxy may go by one and we by the other."""
    line = f"GET http://{host}/api/v1/me"
    assert (await raw(hub, request(hub, line))).status in (400, 404, 421)
    own = f"GET http://{urlsplit(hub.url).netloc}/api/v1/me"
    assert (await raw(hub, request(hub, own))).status == 200
    misdirected = request(hub, f"GET http://{urlsplit(hub.url).netloc}/api/v1/me", Host="evil.example")
    assert (await raw(hub, misdirected)).status in (400, 421)


@pytest.mark.parametrize(
    ("protocol", "more"),
    [
        ("websocket", {"Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec_WebSocket_Version": "13"}),
        ("h2c", {"HTTP2_Settings": "AAMAAABkAARAAAAAAAIAAAAA"}),
        ("TLS/1.0", {}),
    ],
)
@pytest.mark.parametrize("path", ["/api/v1/me", "/api/v1/events/list", "/", "/healthz"])
async def test_nobody_is_led_to_another_protocol(
    hub: RunningHub, path: str, protocol: str, more: dict[str, str]
) -> None:
    """What follows an upgrade would not be looked at by who looks at requests."""
    upgrade = request(hub, f"GET {path}", Connection="Upgrade, HTTP2-Settings", Upgrade=protocol, **more)
    reply = await raw(hub, upgrade + smuggled(hub))
    assert reply.status == 200
    assert "connection: close" in reply.head
    assert "upgrade:" not in reply.head.lower()
    assert reply.body.count("HTTP/1.1") == 0
    assert admins(hub) == ["tests"]


async def test_to_expect_something_does_not_get_around_anything(hub: RunningHub) -> None:
    body = request(hub, "POST /api/v1/beats", Authorization="", Expect="100-continue", Content_Length="17")
    assert (await raw(hub, body + b'{"agent_id": "a"}')).status == 401
    large = request(hub, "POST /api/v1/beats", Expect="100-continue", Content_Length=str(10**9))
    assert (await raw(hub, large)).status == 413
    assert (await raw(hub, request(hub, Expect="the-unexpected"))).status in (200, 400, 417)


async def test_a_method_in_a_header_is_none(hub: RunningHub) -> None:
    """Some servers believe these, and a page may send them with a plain form."""
    for header in ("X_HTTP_Method_Override", "X_HTTP_Method", "X_Method_Override"):
        reply = await raw(hub, request(hub, "GET /api/v1/tokens", **{header: "DELETE"}))
        assert reply.status == 200
    for header in ("X_Original_URL", "X_Rewrite_URL", "X_Forwarded_Prefix", "X_Forwarded_Path"):
        reply = await raw(hub, request(hub, "GET /healthz", Authorization="", **{header: "/api/v1/tokens"}))
        assert "tokens" not in reply.body


# --- 2. paths --------------------------------------------------------------------------------------------------

ODD_PATHS = [
    *("/api/v1/%6de", "/api/v1%2fme", "/api%2fv1%2fme", "/api/v1/me%20", "/api/v1/me%00", "/api/v1/me%2f"),
    *("/api/v1/me/", "/api/v1//me", "//api/v1/me", "/./api/v1/me", "/api/./v1/me", "/api/v1/x/../me"),
    *("/API/v1/me", "/api/v1/Me", "/api/v1/me;a=b", "/api/v1/me.json", "/api/v1/me\\", "/\\api\\v1\\me"),
    *("/api/v1/me%23", "/api/v1/me%3f", "/api/v1/%2e%2e/v1/me", "/api/v1/%252e%252e/me", "/%2e/api/v1/me"),
    *("/api/v1/agents/%2e%2e%2ftokens", "/api/v1/agents/..%2ftokens", "/api/v1/agents/../tokens"),
    *("/api/v1/agents/%c0%af", "/api/v1/agents/%e0%80%af", "/api/v1/agents/%u002f", "/api/v1/agents/%"),
    *("/api/v1/agents/a%0aX", "/api/v1/agents/a%0d", "/api/v1/agents/%20", "/api/v1/agents/%e2%80%ae"),
    *("/app-45baafde651b.js/../index.html", "/dashboard/index.html", "/index.html", "/.env", "/robots.txt"),
    *("/docs/..%2f..%2fetc%2fpasswd", "/docs%2f", "/openapi.json%00.html", "/metrics%2f..%2f..%2fhealthz"),
]


@pytest.mark.parametrize("path", ODD_PATHS)
async def test_a_path_that_is_not_in_the_table_is_nowhere(hub: RunningHub, path: str) -> None:
    for token in ("", f"Bearer {hub.token}"):
        reply = await raw(hub, request(hub, f"GET {path}", Authorization=token))
        assert reply.status in (400, 401, 404), reply
        for secret in ("root:", '"role":"admin"', "SECRET", "<!doctype"):
            assert secret not in reply.body


async def test_a_fragment_and_a_long_query_change_nothing(hub: RunningHub) -> None:
    assert (await raw(hub, request(hub, "GET /api/v1/me#x"))).status in (200, 400)
    assert (await raw(hub, request(hub, f"GET /api/v1/me?{'x' * 20_000}"))).status in (200, 400, 414, 431)
    assert (await raw(hub, request(hub, f"GET /{'x' * 70_000}"))).status in (0, 400, 404, 414, 431)


async def test_an_id_with_a_slash_is_one_id_and_no_path(hub: RunningHub) -> None:
    """Encoded it names the agent `org/a`; as it stands it is another path."""
    await hub.post("/api/v1/beats", {"agent_id": "org/a"})
    assert (await hub.get("/api/v1/agents/org%2Fa")).json()["agent_id"] == "org/a"
    assert (await hub.get("/api/v1/agents/org/a")).status_code == 404
    assert (await hub.get("/api/v1/agents/org%252Fa")).status_code in (400, 404)


# --- 3. methods ------------------------------------------------------------------------------------------------

METHODS = [
    "TRACE",
    "TRACK",
    "OPTIONS",
    "PUT",
    "PATCH",
    "DELETE",
    "POST",
    "PROPFIND",
    "MOVE",
    "LOCK",
    "SEARCH",
    "PURGE",
]


@pytest.mark.parametrize("method", METHODS)
async def test_a_method_that_no_row_has_does_nothing_anywhere(hub: RunningHub, method: str) -> None:
    rows: dict[str, set[str]] = {}
    for call in CALLS:
        rows.setdefault(call.path, set()).add(call.method)
    places = [path for path, methods in rows.items() if method not in methods and "{" not in path]
    assert len(places) > 15
    for path in places:
        reply = await raw(hub, request(hub, f"{method} {path}", X_Echo="echoed-by-trace"))
        assert reply.status in (400, 405), (path, reply.status)
        assert "echoed-by-trace" not in reply.body
        assert hub.token not in reply.body


async def test_head_is_what_get_is_without_its_body(hub: RunningHub) -> None:
    viewer = await hub.token_for(Role.VIEWER)
    for call in CALLS:
        if call.method == "GET" and "{" not in call.path and call.path != "/sign-in":
            line = f"HEAD {call.path}"
            for token in ("", f"Bearer {viewer}"):
                reply = await raw(hub, request(hub, line, Authorization=token))
                may = not call.who or (bool(token) and Role.VIEWER in call.who)
                assert (reply.status not in (401, 403)) is may, (line, reply.status)
                assert reply.body == ""


# --- 4. nothing that is sent becomes a header, an answer or a line -------------------------------------------------

SPLIT = "a\r\nSet-Cookie: owned=1\r\n\r\n<script>"


@pytest.mark.parametrize(
    "line",
    [
        f"GET /api/v1/agents/{quote(SPLIT, safe='')}",
        f"GET /api/v1/tasks/{quote(SPLIT, safe='')}",
        f"GET /api/v1/breakers/{quote(SPLIT, safe='')}",
        f"GET /api/v1/agents?state={quote(SPLIT, safe='')}",
        f"GET /api/v1/events/list?type={quote(SPLIT, safe='')}",
        f"GET /sign-in?code={quote(SPLIT, safe='')}",
        f"GET /sign-in?code=x&next={quote('//evil.example', safe='')}",
        f"GET /{quote(SPLIT, safe='')}",
    ],
)
async def test_what_is_echoed_stays_a_text(hub: RunningHub, line: str) -> None:
    reply = await raw(hub, request(hub, line))
    assert "owned" not in reply.head
    assert "evil.example" not in reply.head
    assert reply.head.count("HTTP/1.1") == 1
    kept = (
        "application/problem+json" in reply.head,
        "application/json" in reply.head,
        "location: /\r" in reply.head,
    )
    assert any(kept), reply.head


@pytest.mark.parametrize(
    "header",
    [
        "Host",
        "Origin",
        "Accept",
        "Accept-Encoding",
        "If-None-Match",
        "Last-Event-ID",
        "Idempotency-Key",
    ],
)
async def test_no_header_of_a_request_comes_back_as_one(hub: RunningHub, header: str) -> None:
    said = {header.replace("-", "_"): "evil-echo.example"}
    for line in ("GET /api/v1/me", "GET /", "GET /metrics", "GET /healthz", "POST /api/v1/sign-in-links"):
        reply = await raw(hub, request(hub, line, **said))
        assert "evil-echo" not in reply.head


@pytest.mark.parametrize("said", ["<script>", "a b", "a\x00b", "é", "x" * 129, "a;b", 'a"b'])
async def test_an_id_of_a_request_comes_back_only_if_it_is_a_plain_name(hub: RunningHub, said: str) -> None:
    """The one header that is meant to: nothing in it can be mistaken for something else."""
    reply = await raw(hub, request(hub, "GET /api/v1/me", X_Request_Id=said))
    assert said not in reply.head
    plain = await raw(hub, request(hub, "GET /api/v1/me", X_Request_Id="job-7.example"))
    assert "x-request-id: job-7.example" in plain.head


async def test_what_is_written_into_the_log_is_one_line(
    hub: RunningHub, caplog: pytest.LogCaptureFixture
) -> None:
    """Paths reach the log when something fails; names when they are refused."""
    with caplog.at_level(logging.DEBUG, logger="lifesigns"):
        for path in ("/api/v1/agents/a%0aERROR%20all%20is%20lost", "/%0d%0aERROR", "/api/v1/agents/%1b[2J"):
            await raw(hub, request(hub, f"GET {path}"))
        async with hub.client(await hub.token_for(Role.AGENT, "a")) as agent:
            await agent.post("/api/v1/beats", json={"agent_id": "b\nERROR all is lost\x1b[2J"})
            await agent.post("/api/v1/signals", json={"type": "left", "agent_id": "c\r\nERROR"})
        await asyncio.sleep(0)
    for record in caplog.records:
        if record.name.startswith("lifesigns"):
            assert "\n" not in record.getMessage()
            assert "\x1b" not in record.getMessage()
