"""The hubs on one store, over the API."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.hub import lease as leases
from lifesigns.hub.lease import Lease
from tests.web.hub import RunningHub, running_hub

HUBS = "/api/v1/hubs"


@pytest.fixture
async def hub() -> AsyncIterator[RunningHub]:
    async with running_hub() as running:
        yield running


async def test_a_hub_with_a_store_for_itself_is_alone(hub: RunningHub) -> None:
    assert (await hub.get(HUBS)).json() == {"hubs": []}
    gone = await hub.http.request("DELETE", f"{HUBS}/other")
    assert gone.status_code == 404


async def test_a_lost_hub_is_shown_told_and_forgotten_on_record(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is there is not forgotten."""
    store = hub.service.store
    assert isinstance(store, MemoryStore)
    lease = Lease(store, "me", "http://me", "1.0")
    await store.renew("other", "http://other", "1.0")
    await lease.may_lead()
    hub.service.join(lease)
    shown = (await hub.get(HUBS)).json()["hubs"]
    assert [(one["name"], one["state"]) for one in shown] == [("me", "stands by"), ("other", "stands by")]
    there = await hub.http.request("DELETE", f"{HUBS}/other")
    assert there.status_code == 409
    assert lease.why_lost(0.0) == ""
    monkeypatch.setattr(leases, "LOST_AFTER", 0.0)
    assert "other at http://other" in lease.why_lost(0.0)
    done = await hub.http.request("DELETE", f"{HUBS}/other")
    assert done.status_code == 204
    assert [one["name"] for one in (await hub.get(HUBS)).json()["hubs"]] == ["me"]
    (entry,) = [
        one for one in (await hub.get("/api/v1/audit")).json()["entries"] if one["what"] == "hub forgotten"
    ]
    assert entry["who"].startswith("tests (")


async def test_a_hub_is_drained_and_resumed_on_record(hub: RunningHub) -> None:
    store = hub.service.store
    assert isinstance(store, MemoryStore)
    lease = Lease(store, "me", "http://me", "1.0")
    await store.renew("other", "http://other", "1.0")
    await lease.may_lead()
    hub.service.join(lease)
    assert (await hub.http.request("POST", f"{HUBS}/nobody/drain")).status_code == 404
    for method, state in (("POST", "drained"), ("DELETE", "stands by")):
        assert (await hub.http.request(method, f"{HUBS}/other/drain")).status_code == 204
        shown = (await hub.get(HUBS)).json()["hubs"]
        assert [one["state"] for one in shown if one["name"] == "other"] == [state]
    entries = (await hub.get("/api/v1/audit")).json()["entries"]
    assert [one["what"] for one in entries if one["what"].startswith("hub ")] == [
        "hub resumed",
        "hub drained",
    ]


async def test_the_only_hub_that_can_judge_is_not_drained(hub: RunningHub) -> None:
    """Nobody would watch."""
    store = hub.service.store
    assert isinstance(store, MemoryStore)
    lease = Lease(store, "me", "http://me", "1.0")
    await lease.may_lead()
    await store.open()
    await store.renew("other", "http://other", "1.0")
    await store.drain("other")
    await lease.may_lead()
    hub.service.join(lease)
    refused = await hub.http.request("POST", f"{HUBS}/me/drain")
    assert refused.status_code == 409
    assert "no other hub stands by" in refused.json()["detail"]
