"""Silences made by people while the hub runs: on record, kept, and over in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.hub.alerting.rules import Matcher, Rules, Silence
from lifesigns.hub.principals import Role
from tests.hub.alerting.test_notifier import AT_ONCE, FAST, Ear
from tests.web.hub import RunningHub, running_hub
from tests.web.test_acks import alerting_hub, crash, standing, until

PLACE = "/api/v1/silences"
BUILDS = {"agents": ["build-*"], "for": 3600, "reason": "moving"}


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
async def hub(ear: Ear) -> AsyncIterator[RunningHub]:
    async with alerting_hub(ear) as running:
        yield running


async def test_what_is_silenced_stands_and_is_told_to_nobody_until_the_silence_ends(
    hub: RunningHub, ear: Ear
) -> None:
    made = await hub.post(PLACE, BUILDS)
    assert made.status_code == 201
    silence = made.json()
    assert (silence["agents"], silence["kinds"], silence["active"]) == (["build-*"], [], True)
    await crash(hub, "build-1", "coder-1")
    await until(lambda: [n.key for n in ear.told] == ["stuck_agent:coder-1"])
    (built,) = [one for one in await standing(hub) if one["agent_id"] == "build-1"]
    assert "moving" in built["silenced_by"]
    assert (await hub.get(PLACE)).json()["silences"] == [silence]
    assert (await hub.http.delete(f"{PLACE}/{silence['id']}")).status_code == 204
    await until(lambda: "stuck_agent:build-1" in [n.key for n in ear.told])
    assert (await hub.get(PLACE)).json()["silences"] == []
    audit_records = (await hub.get("/api/v1/audit")).json()["entries"]
    assert [one["what"] for one in audit_records if "silence" in one["what"]] == [
        "silence ended",
        "silence made",
    ]
    assert all(one["who"].startswith("tests (") for one in audit_records if "silence" in one["what"])


async def test_a_silence_survives_a_restart(ear: Ear, tmp_path: Path) -> None:
    async with alerting_hub(ear, SqliteStore(tmp_path / "hub.db")) as hub:
        silence = (await hub.post(PLACE, {**BUILDS, "kinds": ["stuck_agent"]})).json()
    async with alerting_hub(ear, SqliteStore(tmp_path / "hub.db")) as hub:
        assert (await hub.get(PLACE)).json()["silences"] == [silence]


async def test_a_silence_that_is_over_is_not_shown(hub: RunningHub) -> None:
    assert (await hub.post(PLACE, {**BUILDS, "for": 0.001})).status_code == 201
    await asyncio.sleep(0.002)
    assert (await hub.get(PLACE)).json()["silences"] == []


async def test_those_of_the_configuration_are_shown_and_ended_there(ear: Ear) -> None:
    configured = Silence("config-1", Matcher(kinds=("hub_blind",)), 4_000_000_000.0, "ada", "always")
    rules = Rules({"ops": FAST}, pacing=AT_ONCE, silences=[configured])
    async with running_hub(rules=rules, channels={"ops": ear}) as hub:
        (shown,) = (await hub.get(PLACE)).json()["silences"]
        assert (shown["id"], shown["configured"], shown["from_at"]) == ("config-1", True, None)
        refused = await hub.http.delete(f"{PLACE}/config-1")
        assert refused.status_code == 409
        assert "configuration" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"agents": []}, "agents"),
        ({"agents": [""]}, "agents"),
        ({"kinds": ["stuck"]}, "kinds"),
        ({"for": 0}, "for"),
        ({"for": None}, "for"),
        ({"reason": ""}, "reason"),
    ],
)
async def test_a_wrong_word_is_named(hub: RunningHub, change: dict[str, Any], field: str) -> None:
    refused = await hub.post(PLACE, {**BUILDS, **change})
    assert refused.status_code == 400
    assert refused.json()["field"].partition("[")[0] == field


async def test_there_is_an_end_to_silences(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifesigns.hub.alerting.alerting.SILENCES_MAX", 2)
    assert [(await hub.post(PLACE, BUILDS)).status_code for _ in range(3)] == [201, 201, 409]


async def test_only_operators_silence(hub: RunningHub) -> None:
    async with hub.client(await hub.token_for(Role.VIEWER)) as viewer:
        assert (await viewer.get(PLACE)).status_code == 200
        assert (await viewer.post(PLACE, json=BUILDS)).status_code == 403
    assert (await hub.http.delete(f"{PLACE}/nowhere")).status_code == 404
