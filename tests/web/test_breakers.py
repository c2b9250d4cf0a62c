"""Breakers of agents over HTTP."""

from tests.web.hub import RunningHub


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
