"""A braked group waits for a person's word, and here it is given."""

from __future__ import annotations

from pathlib import Path

from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.hub.principals import Role
from tests.web.hub import RunningHub, running_hub

PLACE = "/api/v1/groups"


async def storm(hub: RunningHub) -> None:
    agents = [f"a-{n}" for n in range(4)]
    await hub.post("/api/v1/beats", [{"agent_id": agent, "host": "ws-1"} for agent in agents])
    await hub.post("/api/v1/beats", [{"agent_id": f"b-{n}", "host": "ws-2"} for n in range(40)])
    words = [
        {"type": "error", "agent_id": agent, "message": "full", "recoverable": False} for agent in agents
    ]
    await hub.post("/api/v1/signals", words)


async def test_a_braked_group_is_first_in_the_list_and_released_by_name(hub: RunningHub) -> None:
    await storm(hub)
    shown = (await hub.get(PLACE)).json()["groups"]
    assert [(one["name"], one["braked"]) for one in shown] == [
        ("host ws-1", True),
        ("fleet", False),
        ("host ws-2", False),
    ]
    assert (shown[0]["unwell"], shown[0]["members"]) == (4, 4)
    done = await hub.post(f"{PLACE}/host%20ws-1/release")
    assert done.status_code == 202
    assert (done.json()["braked"], done.json()["unwell"]) == (False, 4)
    assert done.json()["released_until"] is not None
    (deed,) = (await hub.get("/api/v1/audit", limit=1)).json()["entries"]
    assert deed["what"] == "group released"
    assert deed["who"].startswith("tests (")


async def test_what_is_held_back_is_nothing_to_follow_or_to_decide(hub: RunningHub) -> None:
    """It has no id before it is ordered, and many that have none would be shown as one."""
    await storm(hub)
    held = await hub.service.store.events(types=("INTERVENTION",))
    assert any(b'"stage":"held"' in event.data for event in held)
    shown = (await hub.get("/api/v1/interventions")).json()["interventions"]
    assert shown
    assert all(one["id"] for one in shown)


async def test_what_is_not_braked_cannot_be_released(hub: RunningHub) -> None:
    await storm(hub)
    assert (await hub.post(f"{PLACE}/fleet/release")).status_code == 409
    assert (await hub.post(f"{PLACE}/host%20nowhere/release")).status_code == 404
    async with hub.client(await hub.token_for(Role.VIEWER)) as viewer:
        assert (await viewer.get(PLACE, params={"limit": 1})).json()["cursor"] == "1"
        assert (await viewer.post(f"{PLACE}/host%20ws-1/release")).status_code == 403


async def test_a_persons_word_outlives_a_hub_that_dies(tmp_path: Path) -> None:
    """It names no agent, and is kept all the same."""
    async with running_hub(SqliteStore(tmp_path / "hub.db")) as hub:
        await storm(hub)
        released = (await hub.post(f"{PLACE}/host%20ws-1/release")).json()
        hub.service.notifier.changed = tuple  # type: ignore[method-assign]
        hub.service.hub.abort()
        await hub.service.store.close()
    async with running_hub(SqliteStore(tmp_path / "hub.db")) as hub:
        shown = {one["name"]: one for one in (await hub.get(PLACE)).json()["groups"]}
        assert shown["host ws-1"] == released
