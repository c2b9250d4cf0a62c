"""Several hubs that judge at once are no way round what one hub refuses.

Promises:
    1. What concerns agents of two slots is refused, also with the header by which hubs name a slot to each other.
    2. That header, and the one of a part of a delivery, give nobody a right.
    3. A session is known to the hubs that did not open it as long as the one that did says so, and no longer.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from lifesigns.hub.principals import Role
from lifesigns.hub.slots import SLOTS
from tests.web.slots_in_process import SlotsHub, hubs_in_slots


@pytest.fixture
async def hubs(tmp_path: Path) -> AsyncIterator[list[SlotsHub]]:
    async with hubs_in_slots(tmp_path) as both:
        yield both


async def test_what_two_slots_could_both_grant_is_refused_whoever_names_a_slot(hubs: list[SlotsHub]) -> None:
    claim = {"type": "claim", "agent_id": "w-1", "task_id": "t"}
    for slot in (None, *range(SLOTS)):
        named = {} if slot is None else {"lifesigns_slot": str(slot)}
        for hub in hubs:
            for path in ("tasks/t/claim", "messages", "tasks/t/checkpoints"):
                assert (await hub.post(f"/api/v1/{path}", {}, **named)).status_code == 501
            said = await hub.post("/api/v1/signals", claim, **named)
            assert said.status_code == 400
    assert not any(service.engine.beliefs.claims for hub in hubs for service in hub.services.values())


async def test_headers_of_hubs_give_nobody_a_right(hubs: list[SlotsHub]) -> None:
    agent = await hubs[0].token_for(Role.AGENT, "w-*")
    for hub in hubs:
        for named in (
            *({"lifesigns_slot": str(slot)} for slot in range(SLOTS)),
            {"lifesigns_part": "1"},
            {"lifesigns_part": "whole"},
        ):
            assert (await hub.get("/api/v1/agents", agent, **named)).status_code == 403
            assert (await hub.get("/api/v1/agents", "nonsense", **named)).status_code in (401, 429)
            heard = await hub.post(
                "/api/v1/beats", [{"agent_id": "x-1"}, {"agent_id": "x-2"}], agent, **named
            )
            assert heard.status_code == 400 or heard.json()["accepted"] == 0
    assert not any(service.engine.beliefs.agents for hub in hubs for service in hub.services.values())


async def test_a_session_is_known_to_all_hubs_until_it_is_over(hubs: list[SlotsHub]) -> None:
    """Reading and changing what other hubs judge; a page elsewhere changes nothing."""
    await hubs[0].post("/api/v1/beats", [{"agent_id": f"w-{n}"} for n in range(40)])
    link = (await hubs[0].post("/api/v1/sign-in-links", {})).json()["url"]
    async with httpx2.AsyncClient(base_url=hubs[0].url, trust_env=False, verify=False, timeout=30) as browser:
        page = (await browser.get(link)).text
        form = dict(re.findall(r'name="(code|nonce)" value="([^"]+)"', page))
        origin = {"origin": hubs[0].url}
        assert (await browser.post("/sign-in", data=form, headers=origin)).status_code in (200, 303)
        fleet = await browser.get("/api/v1/fleet")
        assert (fleet.status_code, fleet.json()["agents"], fleet.json()["missing"]) == (200, 40, [])
        for n in range(16):
            path = f"/api/v1/agents/w-{n}"
            assert (await browser.get(path)).status_code == 200
            for page_of, status in ((origin, 202), ({"origin": "http://evil.example"}, 403), ({}, 403)):
                assert (await browser.post(f"{path}/pause", json={}, headers=page_of)).status_code == status
        kept = dict(browser.cookies)
        assert (await browser.post("/sign-out", headers=origin)).status_code == 204
        for name, value in kept.items():
            browser.cookies.set(name, value)
        for n in range(16):
            assert (await browser.get(f"/api/v1/agents/w-{n}")).status_code == 401, (
                "the cookie is worth nothing"
            )
        assert (await browser.get("/api/v1/fleet")).status_code == 401
