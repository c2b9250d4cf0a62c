"""A browser does for nobody else what it does for the person in front of it.

Promises:
    1. To follow a link signs nobody in: another site cannot have a visitor work as whoever made the link.
    2. A session ends at the latest when it was said to, and whoever may can see who is signed in, and end it.
    3. Every answer says that its type is not to be guessed; what the API answers is stored nowhere; over TLS a browser stays there.
    4. Who signs in and out is on record.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx2
import pytest

from lifesigns.hub.principals import Role
from lifesigns.web.host_policy import HostPolicy
from tests.web.hub import RunningHub, running_hub

ELSEWHERE = "https://evil.example"


@pytest.fixture
async def hub() -> AsyncIterator[RunningHub]:
    async with running_hub() as running:
        yield running


async def link(hub: RunningHub, token: str | None = None) -> str:
    async with hub.client(token or hub.token) as client:
        return str((await client.post("/api/v1/sign-in-links")).json()["url"])


async def press(browser: httpx2.AsyncClient, page: httpx2.Response, **headers: str) -> httpx2.Response:
    """The button of a sign-in page."""
    form = dict(re.findall(r'name="(\w+)" value="([^"]*)"', page.text))
    return await browser.post("/sign-in", data=form, headers=headers)


async def signed_in(hub: RunningHub, browser: httpx2.AsyncClient, token: str | None = None) -> None:
    page = await browser.get(await link(hub, token))
    assert (await press(browser, page, origin=hub.url)).status_code == 303


# --- 1. links --------------------------------------------------------------------------------------------------


async def test_to_follow_a_link_signs_nobody_in(hub: RunningHub) -> None:
    async with hub.client(None) as victim:
        page = await victim.get(await link(hub), headers={"sec-fetch-site": "cross-site"})
        assert page.status_code == 200
        assert "signs this browser in as <strong><bdi>tests</bdi></strong> (admin)" in page.text
        assert (await victim.get("/api/v1/me")).status_code == 401
        policy = page.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy
        assert "form-action 'self'" in policy


async def test_another_site_cannot_press_the_button(hub: RunningHub) -> None:
    """Neither with its own form, nor with a page it has read itself: the nonce is bound to the browser."""
    async with hub.client(None) as attacker, hub.client(None) as victim:
        page = await attacker.get(await link(hub))
        for headers in ({"origin": ELSEWHERE}, {"origin": hub.url}, {"origin": "null"}, {}):
            assert (await press(victim, page, **headers)).status_code == 403, headers
        crossed = await press(victim, page, origin=hub.url, **{"sec-fetch-site": "cross-site"})
        assert crossed.status_code == 403
        assert (await victim.get("/api/v1/me")).status_code == 401


async def test_the_button_of_our_own_page_signs_in_once(hub: RunningHub) -> None:
    async with hub.client(None) as browser:
        page = await browser.get(await link(hub), headers={"sec-fetch-site": "none"})
        done = await press(browser, page, origin=hub.url)
        assert (done.status_code, done.headers["location"]) == (303, "/")
        assert (await browser.get("/api/v1/me")).json()["name"] == "tests"
        again = await press(browser, page, origin=hub.url)
        assert (again.status_code, again.headers["location"]) == (303, "/")
    async with hub.client(None) as other:
        assert (await press(other, await other.get(await link(hub)), origin=hub.url)).status_code == 303


async def test_a_name_is_only_a_name_on_the_page(hub: RunningHub) -> None:
    made = await hub.service.access.tokens.create(
        role=Role.VIEWER, name="<script>alert(1)</script>", now=hub.service.clock()
    )
    async with hub.client(None) as browser:
        assert "<script>" not in (await browser.get(await link(hub, made.token))).text


# --- 2. sessions -----------------------------------------------------------------------------------------------


async def test_a_session_that_is_used_all_the_time_ends_all_the_same() -> None:
    moments = [1_000_000.0]
    going = running_hub(clock=lambda: moments[-1], session_for=86400.0)
    async with going as hub, hub.client(None) as browser:
        await signed_in(hub, browser)
        for _ in range(23):
            moments.append(moments[-1] + 3600)
            assert (await browser.get("/api/v1/me")).status_code == 200
        moments.append(moments[-1] + 3600)
        assert (await browser.get("/api/v1/me")).status_code == 401


async def test_who_is_signed_in_can_be_seen_and_ended(hub: RunningHub) -> None:
    viewer = await hub.token_for(Role.VIEWER)
    async with hub.client(None) as mine, hub.client(None) as others:
        await signed_in(hub, mine)
        await signed_in(hub, others, viewer)
        seen = (await mine.get("/api/v1/sessions")).json()["sessions"]
        assert {(one["role"], one["own"], one["address"]) for one in seen} == {
            ("admin", True, "127.0.0.1"),
            ("viewer", False, "127.0.0.1"),
        }
        assert [one["role"] for one in (await others.get("/api/v1/sessions")).json()["sessions"]] == [
            "viewer"
        ]
        ids = {one["role"]: one["id"] for one in seen}
        own = {"origin": hub.url}
        not_theirs = await others.delete(f"/api/v1/sessions/{ids['admin']}", headers=own)
        assert not_theirs.status_code == 404
        assert (await mine.delete(f"/api/v1/sessions/{ids['viewer']}", headers=own)).status_code == 204
        assert (await others.get("/api/v1/me")).status_code == 401
        assert (await mine.get("/api/v1/me")).status_code == 200


async def test_an_agent_sees_no_sessions(hub: RunningHub) -> None:
    async with hub.client(await hub.token_for(Role.AGENT, "a")) as agent:
        assert (await agent.get("/api/v1/sessions")).status_code == 403


# --- 3. headers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/api/v1/me", "/api/v1/agents", "/metrics", "/api/v1/nothing", "/healthz", "/"]
)
async def test_no_type_is_guessed_and_nothing_is_stored(hub: RunningHub, path: str) -> None:
    answer = await hub.get(path)
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    assert answer.headers.get_list("cache-control") == ["no-store"]
    assert "strict-transport-security" not in answer.headers


async def test_the_answer_to_a_beat_too(hub: RunningHub) -> None:
    answer = await hub.post("/api/v1/beats", {"agent_id": "a"})
    assert answer.status_code == 202
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


async def test_over_tls_a_browser_stays_there_but_for_this_machines_own_name(hub: RunningHub) -> None:
    hub.web.site.host_policy = HostPolicy(tls=True, names=frozenset({"hub.example"}))
    for host, strict in (("hub.example", True), ("localhost:8710", False), ("hub.localhost", False)):
        answer = await hub.http.get("/api/v1/me", headers={"host": host})
        assert answer.status_code == 200
        assert ("strict-transport-security" in answer.headers) is strict


# --- 4. on record ----------------------------------------------------------------------------------------------


async def test_who_signs_in_and_out_is_on_record(hub: RunningHub) -> None:
    async with hub.client(None) as browser:
        await signed_in(hub, browser)
        (session,) = (await browser.get("/api/v1/sessions")).json()["sessions"]
        await browser.post("/sign-out", headers={"origin": hub.url})
    await hub.service.http_receiver.store_reports(())
    deeds = [(one["what"], one["detail"]) for one in (await hub.get("/api/v1/audit")).json()["entries"]]
    assert ("signed in", f"session {session['id']} from 127.0.0.1") in deeds
    assert any(what == "session ended" and detail.startswith(session["id"]) for what, detail in deeds)
