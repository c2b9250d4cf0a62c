"""Alerts are taken on by people: whoever was told is told who has it, and it is on record."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from lifesigns.adapters.channels.pagerduty import PagerDutyChannel
from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.core.signals import EscalationRequested
from lifesigns.errors import AdapterError
from lifesigns.hub.alerting.rules import Rules
from lifesigns.hub.principals import Role
from lifesigns.ports import Channel, Store
from tests.adapters.channels.peers import PagerDuty, Peer
from tests.hub.alerting.test_notifier import AT_ONCE, FAST, Ear
from tests.web.hub import RunningHub, running_hub

PLACE = "/api/v1/alerts"


@asynccontextmanager
async def alerting_hub(ear: Channel, store: Store | None = None) -> AsyncIterator[RunningHub]:
    rules = Rules({"ops": FAST}, pacing=AT_ONCE)
    async with running_hub(store, rules=rules, channels={"ops": ear}) as hub:
        await until(lambda: hub.service.notifier.caught_up)
        yield hub


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
async def hub(ear: Ear) -> AsyncIterator[RunningHub]:
    async with alerting_hub(ear) as running:
        yield running


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 -- what is waited for is not told by events
            await asyncio.sleep(0.005)


async def crash(hub: RunningHub, *agents: str) -> None:
    for agent in agents:
        await hub.post("/api/v1/beats", {"agent_id": agent})
        await hub.post("/api/v1/signals", {"type": "exited", "agent_id": agent, "status": 1})


async def standing(hub: RunningHub, kind: str = "stuck_agent") -> list[dict[str, Any]]:
    told = (await hub.get(PLACE)).json()["alerts"]
    return [one for one in told if one["standing"] and one["kind"] == kind]


async def test_a_wait_that_is_over_stands_no_more_though_nobody_was_told_yet(
    hub: RunningHub, ear: Ear
) -> None:
    """That somebody waits no more is no event: the alert is closed at the next check, some seconds later."""
    asks = {"type": "doing", "agent_id": "a", "doing": "waiting_for_human", "note": "May I?"}
    await hub.post("/api/v1/signals", asks)
    await until(lambda: any(n.key.startswith("needs_human:a") for n in ear.told))
    (alert,) = await standing(hub, "needs_human")
    assert "May I?" in alert["text"]
    await hub.post("/api/v1/signals", {**asks, "doing": "working"})
    assert [one.is_open for one in hub.service.notifier.alerting.alerts] == [True]
    assert await standing(hub, "needs_human") == []


async def test_what_is_open_stands_with_its_key_and_is_taken_on_by_it(hub: RunningHub, ear: Ear) -> None:
    await crash(hub, "a")
    await until(lambda: any(n.key == "stuck_agent:a" for n in ear.told))
    (alert,) = await standing(hub)
    assert (alert["key"], alert["open"], alert["acknowledged"]) == ("stuck_agent:a", True, None)
    assert "a is disconnected" in alert["text"]
    done = await hub.post(f"{PLACE}/{alert['key']}/ack", {"reason": "looking", "for": 3600})
    assert done.status_code == 200
    assert done.json()["keys"] == ["stuck_agent:a"]
    assert done.json()["acknowledged"]["by"].startswith("tests (")
    await until(lambda: ear.stages[-1] == "acknowledged")
    (alert,) = await standing(hub)
    assert alert["acknowledged"]["reason"] == "looking"
    assert alert["acknowledged"]["until"] is not None
    (deed,) = (await hub.get("/api/v1/audit", limit=1)).json()["entries"]
    assert (deed["what"], deed["agent_id"]) == ("alert acknowledged", "a")
    assert deed["who"].startswith("tests (")
    assert "looking" in deed["detail"]


async def test_an_id_of_the_list_does_as_well(hub: RunningHub, ear: Ear) -> None:
    await crash(hub, "a")
    await until(lambda: ear.told)
    listed = (await hub.get(PLACE)).json()["alerts"]
    ids = [one["id"] for one in listed if one["key"] == "stuck_agent:a"]
    assert len(ids) == 2, "what stands, and what happened"
    for alert_id in ids:
        assert (await hub.post(f"{PLACE}/{alert_id}/ack")).json()["keys"] == ["stuck_agent:a"]


async def test_what_the_hub_believes_is_told_under_the_key_the_list_says(hub: RunningHub, ear: Ear) -> None:
    """Two places make these keys: the list from what is believed, alerting from what happened."""
    await hub.post("/api/v1/signals", {"type": "doing", "agent_id": "a", "doing": "waiting_for_human"})
    await hub.post("/api/v1/beats", {"agent_id": "b"})
    await hub.service.http_receiver.store_reports(
        [EscalationRequested(agent_id="b", reason="it burns money", by="ann")]
    )
    told = [one for one in (await hub.get(PLACE)).json()["alerts"] if one["standing"]]
    assert [(one["key"], one["kind"]) for one in told] == [
        ("escalation:b", "escalation"),
        ("needs_human:a:waiting_for_human", "needs_human"),
    ]
    assert (await hub.post(f"{PLACE}/standing:needs_human:a:waiting_for_human/ack")).status_code == 200
    happened = [one for one in (await hub.get(PLACE)).json()["alerts"] if not one["standing"]]
    assert {one["key"] for one in happened} == {"escalation:b", "needs_human:a:waiting_for_human"}


async def test_a_group_is_taken_on_by_its_key(hub: RunningHub, ear: Ear) -> None:
    for n in range(4):
        await hub.post("/api/v1/beats", {"agent_id": f"a-{n}", "host": "ws-1"})
    words = [{"type": "exited", "agent_id": f"a-{n}", "status": 1} for n in range(4)]
    await hub.post("/api/v1/signals", words)
    await until(lambda: any(n.group for n in ear.told if n.kind == "stuck_agent"))
    alerts = await standing(hub)
    assert {one["group"] for one in alerts} == {"stuck_agent@host ws-1"}
    done = await hub.post(f"{PLACE}/stuck_agent@host%20ws-1/ack", {"reason": "the host is gone"})
    assert len(done.json()["keys"]) == 4
    assert [bool(one["acknowledged"]) for one in await standing(hub)] == [True] * 4


async def test_what_is_over_cannot_be_taken_on(hub: RunningHub, ear: Ear) -> None:
    await crash(hub, "a")
    (old,) = [
        one for one in (await hub.get(PLACE)).json()["alerts"] if one["type"] == "HEALTH_STATE_CHANGED"
    ][-1:]
    await hub.post("/api/v1/beats", {"agent_id": "a", "incarnation": "i-2"})
    await until(lambda: hub.service.notifier.alerting.alerts.get("stuck_agent:a") is None)
    for alert_id in (old["id"], "stuck_agent:a", "standing:stuck_agent:a", "999999", "nonsense"):
        assert (await hub.post(f"{PLACE}/{alert_id}/ack")).status_code == 409, alert_id


@pytest.mark.parametrize(
    ("body", "field"), [({"for": 0}, "for"), ({"for": "soon"}, "for"), ({"reason": 1}, "reason")]
)
async def test_a_wrong_word_is_named(hub: RunningHub, body: dict[str, Any], field: str) -> None:
    refused = await hub.post(f"{PLACE}/stuck_agent:a/ack", body)
    assert (refused.status_code, refused.json()["field"]) == (400, field)


async def test_a_viewer_looks_and_takes_nothing_on(hub: RunningHub) -> None:
    async with hub.client(await hub.token_for(Role.VIEWER)) as viewer:
        assert (await viewer.get(PLACE)).status_code == 200
        assert (await viewer.post(f"{PLACE}/stuck_agent:a/ack")).status_code == 403


async def test_it_is_still_taken_on_after_a_restart(ear: Ear, tmp_path: Path) -> None:
    async with alerting_hub(ear, SqliteStore(tmp_path / "hub.db")) as hub:
        await crash(hub, "a")
        await until(lambda: ear.told)
        await hub.post(f"{PLACE}/stuck_agent:a/ack", {"reason": "looking"})
    async with alerting_hub(ear, SqliteStore(tmp_path / "hub.db")) as hub:
        (alert,) = await standing(hub)
        assert alert["acknowledged"]["reason"] == "looking"
        assert alert["acknowledged"]["until"] is None


async def test_with_the_store_away_it_holds_and_is_said_not_to_be_on_record(
    hub: RunningHub, ear: Ear
) -> None:
    """It may be the store itself that rings."""
    await crash(hub, "a")
    await until(lambda: ear.told)
    hub.service.hub.committer.trouble = AdapterError("disk full")
    refused = await hub.post(f"{PLACE}/stuck_agent:a/ack")
    assert refused.status_code == 503
    assert "not on record yet" in refused.json()["detail"]
    await until(lambda: "acknowledged" in ear.stages)


async def test_pagerdutys_incident_is_acknowledged_and_resolved_under_one_key() -> None:
    """By its real rules, over HTTP: what is acknowledged twice, or was never triggered, would be refused."""
    duty = PagerDuty()
    async with Peer(duty.enqueue) as peer:
        channel = PagerDutyChannel(duty.routing_key, api=peer.url)
        async with alerting_hub(channel) as hub:
            await crash(hub, "a")
            await until(lambda: duty.open.get("stuck_agent:a") == "triggered")
            await hub.post(f"{PLACE}/stuck_agent:a/ack")
            await until(lambda: duty.open["stuck_agent:a"] == "acknowledged")
            await hub.post("/api/v1/beats", {"agent_id": "a", "incarnation": "i-2"})
            await until(lambda: not duty.open)
    actions = [request.json["event_action"] for request in peer.requests]
    assert actions == ["trigger", "acknowledge", "resolve"]
