"""What a hub answers while another one judges: what that one answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from lifesigns.hub.principals import Role
from lifesigns.web import leader_connection
from lifesigns.web.connections import Connections
from tests.web.listening import until
from tests.web.two_hubs import TwoHubs, two_hubs

HUBS = "/api/v1/hubs"
BEATS = "/api/v1/beats"


@pytest.fixture
async def hubs(tmp_path: Path) -> AsyncIterator[TwoHubs]:
    async with two_hubs(tmp_path) as both:
        await until(lambda: not both.site.why_away)
        yield both


async def test_it_lives_and_is_ready_while_it_reaches_the_one_that_judges(hubs: TwoHubs) -> None:
    assert (await hubs.standby.ask("/healthz")).status_code == 200
    ready = await hubs.standby.ask("/readyz")
    assert (ready.status_code, ready.json()["status"], ready.json()["judge"]) == (200, "standby", "ok")


async def test_a_call_is_answered_by_the_one_that_judges(hubs: TwoHubs) -> None:
    admin = await hubs.judge.token(Role.ADMIN)
    taken = await hubs.standby.ask(BEATS, admin, "POST", content=b'[{"agent_id": "a"}]')
    assert (taken.status_code, taken.json()["accepted"]) == (202, 1)
    shown = [(await hub.ask("/api/v1/agents/a", admin)).json() for hub in (hubs.standby, hubs.judge)]
    assert shown[0]["agent_id"] == shown[1]["agent_id"] == "a"
    nobody = await hubs.standby.ask("/api/v1/agents/nobody", admin)
    assert (nobody.status_code, nobody.json()["status"]) == (404, 404), "refusals come through as they are"
    page = await hubs.standby.ask("/docs", admin, "HEAD")
    assert (page.status_code, page.content) == (
        (await hubs.judge.ask("/docs", admin, "HEAD")).status_code,
        b"",
    )


async def test_a_single_beat_is_answered_when_the_one_that_judges_has_heard_it(hubs: TwoHubs) -> None:
    agent = await hubs.judge.token(Role.AGENT, "a")
    taken = await hubs.standby.ask(BEATS, agent, "POST", content=b'{"agent_id": "a"}')
    assert (taken.status_code, taken.json()) == (202, {"accepted": 1, "rejected": [], "orders": {}})
    assert "a" in hubs.judge.service.engine.beliefs.agents


async def test_beats_that_come_together_count_each_for_its_own_token(hubs: TwoHubs) -> None:
    """One for another agent is refused, one that cannot be read is refused with the reason; the others are taken."""
    tokens = [await hubs.judge.token(Role.AGENT, f"a-{n}") for n in range(40)]
    await asyncio.sleep(0)
    asks = [
        hubs.standby.ask(BEATS, token, "POST", content=json.dumps({"agent_id": f"a-{n}"}).encode())
        for n, token in enumerate(tokens)
    ]
    asks.append(hubs.standby.ask(BEATS, tokens[0], "POST", content=b'{"agent_id": "a-1"}'))
    asks.append(hubs.standby.ask(BEATS, tokens[0], "POST", content=b'{"agent_id": 7}'))
    *taken, foreign, unreadable = await asyncio.gather(*asks)
    assert {one.status_code for one in taken} == {202}
    assert "may not speak" in foreign.text
    assert unreadable.status_code == 400
    agents = hubs.judge.service.engine.beliefs.agents
    assert {f"a-{n}" for n in range(40)} <= agents.keys()


async def test_orders_ride_back_with_a_beat(hubs: TwoHubs) -> None:
    admin, agent = await hubs.judge.token(Role.ADMIN), await hubs.judge.token(Role.AGENT, "a")
    await hubs.standby.ask(BEATS, agent, "POST", content=b'{"agent_id": "a"}')
    nudged = await hubs.standby.ask("/api/v1/agents/a/nudge", admin, "POST", json={"message": "Hello?"})
    assert nudged.status_code == 202
    beat = await hubs.standby.ask(BEATS, agent, "POST", content=b'{"agent_id": "a"}')
    assert ["Hello?" in str(order) for order in beat.json()["orders"]["a"]] == [True]


async def test_events_pass_as_they_happen_and_a_client_that_leaves_ends_the_call(hubs: TwoHubs) -> None:
    admin = await hubs.judge.token(Role.ADMIN)
    client = httpx2.AsyncClient(
        base_url=hubs.standby.url,
        headers={"authorization": f"Bearer {admin}"},
        trust_env=False,
        verify=False,
    )
    feed = hubs.judge.service.feed
    async with client, client.stream("GET", "/api/v1/events") as stream:
        lines = stream.aiter_lines()
        assert (await anext(lines)).startswith("retry:")
        assert len(feed._listeners) == 1
        await hubs.judge.ask(BEATS, admin, "POST", content=b'[{"agent_id": "a"}]')
        async with asyncio.timeout(10):
            while "HEALTH_STATE_CHANGED" not in (await anext(lines)):
                pass
    await until(lambda: not feed._listeners)


async def test_it_lists_the_hubs_and_says_which_one_was_asked(hubs: TwoHubs) -> None:
    admin = await hubs.judge.token(Role.ADMIN)
    for asked in (hubs.standby, hubs.judge):
        await asked.lease.may_lead()
        shown = (await asked.ask(HUBS, admin)).json()["hubs"]
        assert [(one["name"], one["state"]) for one in shown] == [
            ("judge", "judges"),
            ("standby", "stands by"),
        ]
        assert [one["name"] for one in shown if one["here"]] == [asked.lease.name]


async def test_without_the_one_that_judges_it_says_that_it_stands_by(hubs: TwoHubs) -> None:
    """To those who may not see the fleet it names neither that hub nor its address."""
    admin, agent = await hubs.judge.token(Role.ADMIN), await hubs.judge.token(Role.AGENT, "a")
    await hubs.standby.ask("/api/v1/me", admin)
    await hubs.standby.ask("/api/v1/me", agent)
    await hubs.judge.service.store.release("judge")
    await hubs.standby.lease.may_lead()
    answers = [await hubs.standby.ask("/api/v1/agents", token) for token in (None, "nonsense", agent, admin)]
    answers.append(await hubs.standby.ask(BEATS, agent, "POST", content=b'{"agent_id": "a"}'))
    assert [answer.status_code for answer in answers] == [503] * 5
    assert all(answer.headers["retry-after"] == "1" for answer in answers)
    assert not any("127.0.0.1" in answer.text for answer in answers)
    page = await hubs.standby.ask("/")
    assert (page.status_code, "stands by" in page.text) == (503, True)
    assert [one["name"] for one in (await hubs.standby.ask(HUBS, admin)).json()["hubs"]] == ["standby"]
    await until(lambda: hubs.site.why_away)
    ready = await hubs.standby.ask("/readyz")
    assert ready.status_code == 503
    assert (ready.json()["status"], ready.json()["judge"]) == ("standby", "away")


async def test_calls_end_when_another_hub_judges(hubs: TwoHubs) -> None:
    """The one that judged may be frozen, and would never end them."""
    admin = await hubs.judge.token(Role.ADMIN)
    agent = "/api/v1/agents/a/orders?wait=60"
    await hubs.judge.ask(BEATS, admin, "POST", content=b'[{"agent_id": "a"}]')
    poll = asyncio.ensure_future(hubs.standby.ask(agent, admin))
    await until(lambda: hubs.judge.service.hub.ledger.polls)
    async with asyncio.timeout(10):
        await hubs.judge.service.store.release("judge")
        await hubs.standby.lease.may_lead()
        with pytest.raises(httpx2.RemoteProtocolError):
            await poll


async def test_a_call_that_may_have_been_heard_is_not_repeated(
    hubs: TwoHubs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GET is: on a connection that was closed meanwhile nobody read it."""
    admin = await hubs.judge.token(Role.ADMIN)
    await hubs.standby.ask("/api/v1/me", admin)
    cut = 0

    def lost(connection: leader_connection.LeaderConnection, request: bytes, **more: bool) -> None:
        nonlocal cut
        begin(connection, request, **more)
        if cut == 0 and b"/healthz" not in request:
            cut += 1
            connection.close()

    begin = leader_connection.LeaderConnection.begin
    monkeypatch.setattr(leader_connection.LeaderConnection, "begin", lost)
    assert (await hubs.standby.ask("/api/v1/me", admin)).status_code == 200
    cut = 0
    answer = await hubs.standby.ask("/api/v1/agents/a/nudge", admin, "POST", json={"message": "Hello?"})
    assert (answer.status_code, "retry-after" in answer.headers) == (502, False)


async def test_the_connections_of_a_hub_count_for_no_address(tmp_path: Path) -> None:
    """They are of many clients."""
    few = Connections(most_per_address=2)
    async with two_hubs(tmp_path, connections=few) as hubs:
        await until(lambda: not hubs.site.why_away)
        admin = await hubs.judge.token(Role.ADMIN)
        await hubs.judge.ask(BEATS, admin, "POST", content=b'[{"agent_id": "a"}]')
        async with asyncio.timeout(20):
            polls = [hubs.standby.ask("/api/v1/agents/a/orders?wait=1", admin) for _ in range(6)]
            assert [one.status_code for one in await asyncio.gather(*polls)] == [200] * 6
        assert few.turned_away == 0
