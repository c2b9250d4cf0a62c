"""Other sites have no business here, whatever a browser does for them.

Promises:
    1. No page of another site, port or scheme changes anything, by whatever kind of request a page can send without asking.
    2. A name that somebody else can point at this machine is no name of ours (DNS rebinding).
    3. No answer lets another page read it: there is no CORS.
    4. Cookies are ours alone: not to scripts, not to other sites, not over plain HTTP where there is TLS, and one that was planted is none.
    5. No answer leads a browser elsewhere, is shown in a frame, or runs a script that is not ours.

The first shapes of each are in `tests/web/test_getting_in.py` and `test_browsers.py`; agents' texts in a real browser are in
`tests/browser/test_hostile.py`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from lifesigns.hub.principals import Role
from lifesigns.web.access import PINGED
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.routes import Route
from lifesigns.web.table import CALLS
from tests.web.hub import RunningHub, running_hub
from tests.web.test_getting_in import Browser, link, opened, raw, request, signed_in

CHANGES = [call for call in CALLS if call.method not in ("GET", "HEAD")]
READS = [call for call in CALLS if call.method == "GET" and call.path != "/api/v1/events"]


@pytest.fixture
async def hub() -> AsyncIterator[RunningHub]:
    async with running_hub() as running:
        yield running


def line(call: Route) -> str:
    path = re.sub(r"\{\w+\}", "a", call.path)
    return f"{call.method} {path}"


# --- 1. changes by other pages -------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", CHANGES, ids=line)
async def test_no_call_that_changes_something_is_open_to_another_page(hub: RunningHub, call: Route) -> None:
    """With the victim's cookie, and even with a good token."""
    browser = await signed_in(hub)
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": hub.url.replace("http:", "https:")},
        {"Origin": hub.url, "Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ):
        assert await browser.status(line(call), **headers) == 403, headers
        assert (await raw(hub, request(hub, line(call), **headers))).status == 403, headers


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", ""]
)
async def test_what_a_form_can_send_needs_the_origin_too(hub: RunningHub, kind: str) -> None:
    """These need no question beforehand: a page may send them to anybody, with cookies."""
    browser = await signed_in(hub)
    body = b'{"role": "admin", "name": "owned"}'
    for origin in ("https://evil.example", ""):
        said = {"Content_Type": kind, "Content_Length": str(len(body)), "Origin": origin}
        sent = request(hub, "POST /api/v1/tokens", Authorization="", Cookie=browser.cookie, **said)
        assert (await raw(hub, sent + body)).status == 403
    assert "owned" not in [token.name for token in hub.service.access.tokens.list()]


async def test_a_link_or_a_picture_changes_nothing(hub: RunningHub) -> None:
    """What a page can have a browser GET with our cookie is only ever looked at."""
    browser = await signed_in(hub)
    await hub.post("/api/v1/beats", {"agent_id": "a"})
    before = [(await hub.get(f"/api/v1/{place}")).text for place in ("tokens", "silences", "alerts")]
    for call in CHANGES:
        path = line(call).partition(" ")[2]
        status = await browser.status(f"GET {path}?_method=POST", Sec_Fetch_Site="cross-site")
        assert status in (200, 400, 401, 403, 404, 405), path
    after = [(await hub.get(f"/api/v1/{place}")).text for place in ("tokens", "silences", "alerts")]
    assert [re.sub(r'"used_at":"[^"]*"', "", text) for text in after] == [
        re.sub(r'"used_at":"[^"]*"', "", text) for text in before
    ]


@pytest.mark.parametrize("call", READS, ids=line)
async def test_with_a_cookie_nothing_is_read_by_another_page(hub: RunningHub, call: Route) -> None:
    browser = await signed_in(hub)
    for site in ("cross-site", "same-site"):
        status = await browser.status(line(call), Sec_Fetch_Site=site)
        assert status == refused(call) if call.who else status < 500, site


def refused(call: Route) -> int:
    """How a call with a cookie is refused. No cookie is good for a ping of a job: to that, whoever has one is nobody."""
    return 401 if call.path.startswith(PINGED) else 403


# --- 2. names ------------------------------------------------------------------------------------------------------

REBOUND = [
    *("evil.example", "EVIL.example", "evil.example.", "evil.example:8710", "localhost.evil.example"),
    *("127.0.0.1.evil.example", "127-0-0-1.evil.example", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1"),
    *(
        "localhost%00.evil.example",
        "localhost evil.example",
        "localhost,evil.example",
        "localhost;evil.example",
    ),
    *(
        "[::1].evil.example",
        "[::1%25lo]",
        "localhost:8710:80",
        "user@localhost",
        "localhost/evil",
        "xn--localhost-",
    ),
]


@pytest.mark.parametrize("host", REBOUND)
async def test_a_name_that_is_not_ours_gets_nothing_not_even_the_page(hub: RunningHub, host: str) -> None:
    browser = await signed_in(hub)
    for path in ("/", "/api/v1/me", "/openapi.json", "/sign-in?code=x", "/metrics"):
        reply = await raw(hub, request(hub, f"GET {path}", Host=host))
        assert reply.status in (400, 421), (host, path)
        assert "<!doctype html>" not in reply.body.lower()
    assert await browser.status(Host=host, Origin=f"http://{host}") in (400, 421)
    for header in ("X_Forwarded_Host", "Forwarded", "X_Host"):
        said = {header: "127.0.0.1" if header != "Forwarded" else "host=127.0.0.1"}
        assert (await raw(hub, request(hub, Host=host, **said))).status in (400, 421)


# --- 3. no CORS ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000", "own"])
async def test_no_answer_of_any_call_lets_another_page_read_it(hub: RunningHub, origin: str) -> None:
    said = {"Origin": hub.url if origin == "own" else origin}
    for call in CALLS:
        if call.path == "/api/v1/events":
            continue
        path = line(call).partition(" ")[2]
        asked = {
            "Access_Control_Request_Method": call.method,
            "Access_Control_Request_Headers": "authorization",
        }
        for one in (
            request(hub, line(call), **said),
            request(hub, f"OPTIONS {path}", **said, **asked, Authorization=""),
        ):
            reply = await raw(hub, one)
            for name in (
                "access-control",
                "timing-allow-origin",
                "cross-origin-resource-policy: cross-origin",
            ):
                assert name not in reply.head.lower(), line(call)
    assert (await raw(hub, request(hub, "GET /crossdomain.xml"))).status == 404
    assert (await raw(hub, request(hub, "GET /clientaccesspolicy.xml"))).status == 404


async def test_no_answer_is_a_script_for_another_page(hub: RunningHub) -> None:
    """A page may load any address as a script or a style: JSON with `nosniff` is neither, and no callback is put round it."""
    for path in ("/api/v1/me?callback=owned", "/api/v1/agents?jsonp=owned", "/openapi.json?callback=owned"):
        reply = await raw(hub, request(hub, f"GET {path}"))
        assert "owned(" not in reply.body
        assert "content-type: application/" in reply.head
        assert "x-content-type-options: nosniff" in reply.head


# --- 4. cookies ----------------------------------------------------------------------------------------------------


async def test_every_cookie_is_for_the_browser_alone_and_for_our_own_page(hub: RunningHub) -> None:
    for policy, secure in ((HostPolicy(), False), (HostPolicy(tls=True), True)):
        hub.web.site.host_policy = policy
        page = await raw(hub, request(hub, await _line(hub), Authorization=""))
        done = await opened(hub, await _line(hub))
        out = await raw(hub, request(hub, "POST /sign-out", Origin=_own(hub, secure)))
        cookies = re.findall(r"set-cookie: (.*)\r\n", page.head + done.head + out.head)
        assert len(cookies) == 3
        for cookie in cookies:
            assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; ")), cookie
            assert ("Secure" in cookie.split("; ")) is secure
            assert cookie.startswith("__Host-") is secure
            assert "domain=" not in cookie.lower()


async def _line(hub: RunningHub) -> str:
    async with hub.client(hub.token) as client:
        return f"GET /sign-in?code={(await client.post('/api/v1/sign-in-links')).json()['code']}"


def _own(hub: RunningHub, secure: bool) -> str:
    return hub.url.replace("http:", "https:") if secure else hub.url


async def test_a_cookie_that_is_not_exactly_ours_is_none(hub: RunningHub) -> None:
    good = (await signed_in(hub)).cookie
    name, _, value = good.partition("=")
    for cookie in (
        f"{name}={value}x",
        f"{name}={value[:-1]}",
        f"{name}=",
        f"{name}",
        f"{name} ={value}",
        f"{name.upper()}={value}",
        f"__Host-{name}={value}",
        f"__Secure-{name}={value}",
        f"{name}1={value}",
        f'{name}="{value}"',
        f"{name}={value};{name}={value}",
        f"x={good}",
        f"{name}={'A' * 8000}",
    ):
        assert await Browser(hub, cookie).status() == 401, cookie[:60]
    assert await Browser(hub, good).status() == 200


async def test_a_token_is_no_session_and_a_session_no_token(hub: RunningHub) -> None:
    good = (await signed_in(hub)).cookie
    name, _, value = good.partition("=")
    assert await Browser(hub, f"{name}={hub.token}").status() == 401
    assert (await raw(hub, request(hub, Authorization=f"Bearer {value}"))).status == 401


async def test_a_session_is_worth_no_more_than_its_token(hub: RunningHub) -> None:
    """A viewer's session makes no operator's, and its links sign in as a viewer."""
    browser = await signed_in(hub, await hub.token_for(Role.VIEWER))
    for call in CALLS:
        if call.who and Role.VIEWER not in call.who:
            assert await browser.status(line(call), Origin=hub.url) == refused(call), line(call)
    made = await raw(
        hub,
        request(hub, "POST /api/v1/sign-in-links", Authorization="", Cookie=browser.cookie, Origin=hub.url),
    )
    code = re.search(r'"code":"([^"]+)"', made.body)
    assert code
    page = await raw(hub, request(hub, f"GET /sign-in?code={code[1]}", Authorization=""))
    assert "(viewer)" in page.body


# --- 5. where a browser is led, and what it runs ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["next", "redirect", "url", "return_to", "code"])
async def test_nobody_is_led_elsewhere(hub: RunningHub, name: str) -> None:
    there = "https:%2F%2Fevil.example"
    good = await link(hub)
    for one in (
        f"{good}&{name}={there}",
        f"GET /sign-in?{name}={there}",
        f"GET /?{name}={there}",
        "GET //evil.example",
    ):
        reply = await opened(hub, one)
        assert "evil.example" not in reply.head
        found = re.search(r"location: (.*)\r\n", reply.head)
        assert found is None or found[1] == "/"


@pytest.mark.parametrize("path", ["/", "/docs", "/sign-in"])
async def test_every_page_runs_only_what_is_ours_and_in_no_frame(hub: RunningHub, path: str) -> None:
    one = await link(hub) if path == "/sign-in" else f"GET {path}"
    reply = await raw(hub, request(hub, one))
    assert "content-type: text/html" in reply.head
    found = re.search(r"content-security-policy: (.*)\r\n", reply.head)
    assert found
    policy = dict(part.partition(" ")[::2] for part in found[1].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == "'none'"
    assert policy["form-action"] in ("'none'", "'self'")
    assert policy.get("script-src", "'self'") == "'self'"
    assert "unsafe" not in found[1]
    assert "http:" not in found[1]
    kept = (
        "origin" if path == "/sign-in" else "no-referrer"
    )  # Its form has to say its Origin; an address is not in that.
    assert f"referrer-policy: {kept}\r\n" in reply.head
    assert not re.search(r"<script(?![^>]*\bsrc=\"/app-)", reply.body)
    assert not re.search(r"\son\w+=", reply.body)
    assert not re.search(r"(src|href)=\"(https?:)?//", reply.body)


async def test_an_answer_of_the_api_is_no_page(hub: RunningHub) -> None:
    """Opened by itself, a text of an agent would be shown as the type we say, which is never HTML."""
    evil = "<script>alert(1)</script>"
    await hub.post("/api/v1/beats", {"agent_id": "a", "phase": evil, "task_id": evil})
    put = await hub.http.put("/api/v1/tasks/t/checkpoints/c?agent_id=a", content=evil)
    assert put.status_code in (201, 409)
    for call in READS:
        reply = await raw(hub, request(hub, line(call), Accept="text/html,*/*"))
        if call.path not in ("/docs", "/sign-in"):
            assert "content-type: text/html" not in reply.head, call.path
            assert "x-content-type-options: nosniff" in reply.head


async def test_the_port_in_the_cookie_keeps_two_hubs_of_a_machine_apart(hub: RunningHub) -> None:
    browser = await signed_in(hub)
    async with running_hub() as other:
        assert urlsplit(other.url).port != urlsplit(hub.url).port
        assert await Browser(other, browser.cookie).status() == 401
