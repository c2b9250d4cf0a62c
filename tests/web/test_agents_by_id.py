"""Agents asked for by name, and those that changed: what a screen does every other second."""

from tests.web.hub import RunningHub


async def test_only_those_asked_for_are_told_in_the_order_they_were_first_heard_of(hub: RunningHub) -> None:
    """An id twice is one agent, an id nobody has is nobody."""
    for agent_id in ("a", "b/1", "c"):
        await hub.post("/api/v1/beats", {"agent_id": agent_id})
    found = (await hub.get("/api/v1/agents", id=["c,nobody", "b/1,c"])).json()
    assert [agent["agent_id"] for agent in found["agents"]] == ["b/1", "c"]
    assert (found["cursor"], found["complete"]) == (None, True)


async def test_ids_are_one_filter_among_the_others(hub: RunningHub) -> None:
    await hub.post("/api/v1/beats", [{"agent_id": "a", "host": "x"}, {"agent_id": "b", "host": "y"}])
    found = (await hub.get("/api/v1/agents", id="a,b", host="y")).json()
    assert [agent["agent_id"] for agent in found["agents"]] == ["b"]


async def test_what_is_no_id_is_named_and_so_is_too_many(hub: RunningHub) -> None:
    wrong = await hub.get("/api/v1/agents", id="a,no id")
    assert (wrong.status_code, wrong.json()["field"]) == (400, "id[1]")
    ids = ",".join(f"a{n}" for n in range(101))
    assert (await hub.get("/api/v1/agents", id=ids)).status_code == 400


async def test_who_was_forgotten_and_is_back_is_not_gone(hub: RunningHub) -> None:
    """A screen that shows who changed and takes away who is gone took it away."""
    await hub.post("/api/v1/beats", [{"agent_id": "back"}, {"agent_id": "gone"}])
    before = (await hub.get("/api/v1/agents")).json()["updated"]
    for agent_id in ("back", "gone"):
        del hub.service.engine.beliefs.agents[agent_id]  # As the engine forgets.
    hub.service.hub.changes.gone(["back", "gone"], hub.service.clock())
    await hub.post("/api/v1/beats", {"agent_id": "back"})
    told = (await hub.get("/api/v1/agents", since=before)).json()
    assert ([agent["agent_id"] for agent in told["agents"]], told["gone"]) == (["back"], ["gone"])
