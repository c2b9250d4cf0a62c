"""Breakers of agents over HTTP: seen, and turned once, on record, by name."""

import time
import uuid
from typing import Any
from urllib.parse import quote

import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.hub.principals import Role
from lifesigns.views import moment
from tests.web.hub import RunningHub, running_hub


async def test_breakers_are_listed_over_all_agents(hub: RunningHub) -> None:
    reports = (("a", "search", "open"), ("a", "git", "closed"), ("b", "search", "half_open"))
    for agent, name, state in reports:
        signal = {"type": "breaker", "agent_id": agent, "name": name, "state": "open"}
        await hub.post("/api/v1/signals", [signal, {**signal, "state": state}])
    everyone = (await hub.get("/api/v1/breakers")).json()["breakers"]
    assert sorted((one["agent_id"], one["name"], one["state"]) for one in everyone) == sorted(reports)
    named = (await hub.get("/api/v1/breakers/search")).json()["breakers"]
    assert [one["agent_id"] for one in named] == ["a", "b"]
    is_open = (await hub.get("/api/v1/breakers", state="open,half_open")).json()["breakers"]
    assert len(is_open) == 2
    assert len((await hub.get("/api/v1/breakers", agent="b")).json()["breakers"]) == 1
    first = (await hub.get("/api/v1/breakers", limit=2)).json()
    rest = (await hub.get("/api/v1/breakers", limit=2, cursor=first["cursor"])).json()
    assert (len(first["breakers"]), len(rest["breakers"]), rest["cursor"]) == (2, 1, None)


async def test_a_breaker_nobody_has_is_not_found(hub: RunningHub) -> None:
    assert (await hub.get("/api/v1/breakers/search")).status_code == 404
    answer = await hub.get("/api/v1/breakers", state="ajar")
    assert (answer.status_code, answer.json()["field"]) == (400, "state[0]")


async def reported(hub: RunningHub, agent_id: str, name: str = "search", **more: Any) -> None:
    signal = {"type": "breaker", "agent_id": agent_id, "incarnation": "one", "name": name, "state": "open"}
    assert (await hub.post("/api/v1/signals", {**signal, **more})).json()["accepted"] == 1


async def orders(hub: RunningHub, agent_id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await hub.get(f"/api/v1/agents/{agent_id}/orders")).json()["orders"]
    return found


async def test_an_open_one_says_when_it_is_tried_again(hub: RunningHub) -> None:
    """The agent's clock is not ours: what it says is translated."""
    sent_at = time.time() + 3600
    until, said = moment(sent_at + 60), moment(sent_at)
    await reported(hub, "a", failures=4, until=until, timestamp=said)
    await reported(hub, "b", state="forced_open")
    first, second = (await hub.get("/api/v1/breakers")).json()["breakers"]
    assert first["failures"] == 4
    assert 0 < first["half_open_in_s"] <= 60
    assert first["half_open_at"] < until
    assert (second["half_open_at"], second["half_open_in_s"]) == (None, None)
    (shown,) = (await hub.get("/api/v1/agents/a")).json()["circuit_breakers"]
    assert shown["half_open_at"] == first["half_open_at"]
    await reported(hub, "a", until=moment(sent_at - 5), timestamp=said)
    assert (await hub.get("/api/v1/breakers/search", agent="a")).json()["breakers"][0]["half_open_in_s"] == 0


@pytest.mark.parametrize("act", ["reset", "open", "close"])
async def test_a_wish_reaches_the_agent_names_who_and_is_on_record(hub: RunningHub, act: str) -> None:
    await reported(hub, "a")
    answer = await hub.post(f"/api/v1/breakers/search/{act}", {"reason": "it is back"})
    assert answer.status_code == 202
    (record,) = answer.json()["interventions"]
    assert (record["rung"], record["stage"], record["open"]) == ("breaker", "ordered", True)
    (order,) = await orders(hub, "a")
    assert (order["type"], order["name"], order["act"]) == ("breaker", "search", act)
    assert order["order_id"] == record["id"]
    assert order["by"] == record["by"] == f"tests ({hub.token.split('_')[1]})"
    done = {"type": "breaker_turned", "agent_id": "a", "incarnation": "one", "order_id": record["id"]}
    await hub.post("/api/v1/signals", done)
    record = (await hub.get(f"/api/v1/interventions/{record['id']}")).json()
    assert [stage["stage"] for stage in record["stages"]] == ["ordered", "done"]
    assert await orders(hub, "a") == []
    (_, ordered) = (await hub.get("/api/v1/audit", agent="a")).json()["entries"]
    assert (ordered["what"], ordered["who"]) == ("breaker ordered", order["by"])
    assert ordered["detail"] == f"{act} breaker 'search': it is back"


async def test_a_name_that_several_have_is_turned_for_all_or_for_one(hub: RunningHub) -> None:
    for agent in ("a", "b", "c"):
        await reported(hub, agent)
    one = (await hub.post("/api/v1/breakers/search/reset?agent=b")).json()["interventions"]
    assert [record["agent_id"] for record in one] == ["b"]
    every = (await hub.post("/api/v1/breakers/search/reset")).json()["interventions"]
    assert sorted(record["agent_id"] for record in every) == ["a", "b", "c"]
    assert len({record["id"] for record in (*one, *every)}) == 4


async def test_the_same_key_is_the_same_act_for_all_of_them(hub: RunningHub) -> None:
    await reported(hub, "a")
    await reported(hub, "b")
    key = {"Idempotency-Key": "k1"}
    first = (await hub.post("/api/v1/breakers/search/reset", headers=key)).json()
    again = (await hub.post("/api/v1/breakers/search/reset", headers=key)).json()
    ids = [record["id"] for record in first["interventions"]]
    assert [record["id"] for record in again["interventions"]] == ids
    assert len(ids) == 2
    other = (await hub.post("/api/v1/breakers/search/open", headers=key)).json()
    assert not set(ids) & {record["id"] for record in other["interventions"]}
    too_long = await hub.post("/api/v1/breakers/search/reset", headers={"Idempotency-Key": "k" * 201})
    assert too_long.status_code == 400


async def test_the_same_key_is_the_same_act_also_for_another_hub() -> None:
    store = "breakers-" + uuid.uuid4().hex
    key = {"Idempotency-Key": "k1"}
    async with running_hub(MemoryStore(store)) as hub:
        await reported(hub, "a")
        await hub.post("/api/v1/breakers/search/reset", headers=key)
        token = hub.token
    async with running_hub(MemoryStore(store)) as hub, hub.client(token) as same:
        again = await same.post("/api/v1/breakers/search/reset", headers=key)
        assert again.status_code == 202
        assert len(await orders(hub, "a")) == 1
        assert [one["id"] for one in again.json()["interventions"]] == [
            one["order_id"] for one in await orders(hub, "a")
        ]


async def test_nobody_turns_what_is_not_there(hub: RunningHub) -> None:
    assert (await hub.post("/api/v1/breakers/search/reset")).status_code == 404
    await reported(hub, "a")
    assert (await hub.post("/api/v1/breakers/search/reset?agent=b")).status_code == 404
    assert (await hub.post("/api/v1/breakers/search/reset?agent=no%20spaces")).status_code == 400
    assert (await hub.post("/api/v1/breakers/search/slam")).status_code == 404
    await hub.post("/api/v1/signals", {"type": "left", "agent_id": "a", "incarnation": "one"})
    assert (await hub.post("/api/v1/breakers/search/reset")).status_code == 404
    assert (await hub.get("/api/v1/breakers")).json()["breakers"] == []


async def test_only_operators_turn_breakers(hub: RunningHub) -> None:
    await reported(hub, "a")
    for role in (Role.VIEWER, Role.AGENT):
        async with hub.client(await hub.token_for(role, "a" if role is Role.AGENT else "")) as other:
            assert (await other.post("/api/v1/breakers/search/reset")).status_code == 403
    async with hub.client(await hub.token_for(Role.OPERATOR)) as operator:
        answer = await operator.post("/api/v1/breakers/search/reset")
    assert answer.json()["interventions"][0]["by"].startswith("a operator")


async def test_a_name_with_signs_of_a_path_is_one_name(hub: RunningHub) -> None:
    name = "GET /search?q=ä%"
    await reported(hub, "a", name)
    answer = await hub.post(f"/api/v1/breakers/{quote(name, safe='')}/reset")
    assert answer.status_code == 202
    assert (await orders(hub, "a"))[0]["name"] == name
