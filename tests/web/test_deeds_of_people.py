"""Whatever a person does is on the audit record when it is answered: who, what, to whom, when.

The law holds for every row of the API that needs an operator or an admin and changes something: a row that is not tried
here fails the last test.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from lifesigns.hub.principals import Role
from lifesigns.web.routes import ACTORS, ADMINS
from lifesigns.web.table import CALLS
from tests.hub.alerting.test_notifier import Ear
from tests.web.hub import RunningHub
from tests.web.test_acks import alerting_hub

AGENT, API = "/api/v1/agents/{agent_id}", "/api/v1"


class Act(NamedTuple):
    """What is asked for, and what the record says then."""

    body: Any
    what: str
    agent_id: str = "a"


ACTS: dict[tuple[str, str], Act] = {
    ("POST", f"{AGENT}/nudge"): Act({"message": "hello"}, "nudge ordered"),
    ("POST", f"{AGENT}/escalate"): Act({"reason": "odd"}, "escalate ordered"),
    ("POST", f"{AGENT}/terminate"): Act({"reason": "enough"}, "terminate ordered"),
    ("POST", f"{AGENT}/pause"): Act({"for": 60}, "paused"),
    ("POST", f"{AGENT}/resume"): Act(None, "resumed"),
    ("POST", f"{AGENT}/clear"): Act(None, "cleared"),
    ("POST", f"{API}/escalations/{{intervention_id}}/decision"): Act(
        {"decision": "ignore"}, "escalate answered"
    ),
    ("POST", f"{API}/groups/{{group}}/release"): Act(None, "group released", ""),
    ("POST", f"{API}/alerts/{{alert_id}}/ack"): Act({"reason": "mine"}, "alert acknowledged", "waits"),
    ("POST", f"{API}/silences"): Act({"agents": ["x"], "for": 60, "reason": "lunch"}, "silence made", ""),
    ("DELETE", f"{API}/silences/{{silence_id}}"): Act(None, "silence ended", ""),
    ("POST", f"{API}/breakers/{{name}}/reset"): Act(None, "breaker ordered"),
    ("POST", f"{API}/breakers/{{name}}/open"): Act(None, "breaker ordered"),
    ("POST", f"{API}/breakers/{{name}}/close"): Act(None, "breaker ordered"),
    ("POST", f"{API}/tasks/{{task_id}}/recover"): Act(None, "recovery requested", "gone"),
    ("POST", f"{API}/tokens"): Act({"role": "viewer", "name": "screen"}, "token created", ""),
    ("POST", f"{API}/keys"): Act({"public_key": "d7" * 32, "name": "k", "agents": "a"}, "token created", ""),
    ("POST", f"{API}/tokens/{{token_id}}/rotate"): Act({}, "token rotated", ""),
    ("DELETE", f"{API}/tokens/{{token_id}}"): Act(None, "token revoked", ""),
}


@pytest.fixture
async def hub() -> AsyncIterator[RunningHub]:
    """A hub with somebody to do something about in every way."""
    async with alerting_hub(Ear()) as running:
        yield running


async def said(hub: RunningHub, kind: str, agent_id: str, **more: Any) -> None:
    answer = await hub.post(f"{API}/signals", {"type": kind, "agent_id": agent_id, **more})
    assert answer.json()["rejected"] == []


async def found(hub: RunningHub, path: str) -> str:
    """The path, with something that exists in the place of its parameter."""
    await hub.post(f"{API}/beats", [{"agent_id": "a"}, {"agent_id": "gone", "task_id": "t"}])
    if "{name}" in path:
        await said(hub, "breaker", "a", name="search", state="open")
    if "{alert_id}" in path:
        await said(hub, "doing", "waits", doing="waiting_for_human")
    if "{task_id}" in path:
        await said(hub, "exited", "gone", status=0)
    if "{group}" in path:
        for n in range(9):
            await said(hub, "error", f"sick-{n}", message="full", recoverable=False)
    names = {"agent_id": "a", "name": "search", "group": "fleet", "task_id": "t"}
    names["alert_id"] = "needs_human:waits:waiting_for_human"
    if "{intervention_id}" in path:
        asked = await hub.post(f"{API}/agents/a/escalate", {"reason": "odd"})
        names["intervention_id"] = asked.json()["id"]
    if "{silence_id}" in path:
        body = {"agents": ["x"], "for": 60, "reason": "lunch"}
        names["silence_id"] = (await hub.post(f"{API}/silences", body)).json()["id"]
    if "{token_id}" in path:
        await hub.token_for(Role.VIEWER)
        names["token_id"] = hub.service.access.tokens.list()[-1].id
    return path.format(**names)


@pytest.mark.parametrize(("row", "act"), ACTS.items(), ids=lambda one: " ".join(one) if len(one) == 2 else "")
async def test_it_is_on_the_record_with_the_name_of_who_did_it(
    hub: RunningHub, row: tuple[str, str], act: Act
) -> None:
    method, path = row
    place = await found(hub, path)
    done = await hub.http.request(method, place, json=act.body)
    assert done.is_success, done.text
    entries = (await hub.get(f"{API}/audit", limit=5)).json()["entries"]
    mine = [one for one in entries if one["what"] == act.what]
    assert mine, entries
    assert mine[0]["who"].startswith("tests (")
    assert mine[0]["agent_id"] == act.agent_id
    assert mine[0]["at"]


def test_every_row_by_which_people_act_is_tried_here() -> None:
    rows = {(call.method, call.path) for call in CALLS if call.who in (ACTORS, ADMINS)}
    in_test_hubs = {
        ("DELETE", "/api/v1/hubs/{name}"),
        ("POST", "/api/v1/hubs/{name}/drain"),
        ("DELETE", "/api/v1/hubs/{name}/drain"),
    }
    assert {row for row in rows if row[0] != "GET"} == set(ACTS) | in_test_hubs
