"""Tasks, claims and checkpoints over HTTP."""

import asyncio
from typing import Any

import httpx2

from lifesigns.hub.principals import Role
from tests.web.hub import RunningHub


async def claim(hub: RunningHub, task: str, agent: str, **more: Any) -> httpx2.Response:
    return await hub.post(f"/api/v1/tasks/{task}/claim", {"agent_id": agent, **more})


async def test_a_task_is_held_by_one(hub: RunningHub) -> None:
    granted = (await claim(hub, "t-1", "a")).json()
    assert (granted["granted"], granted["holder"]) == (True, "a")
    assert granted["lease_s"] > 0
    refused = await claim(hub, "t-1", "b")
    assert refused.status_code == 409
    assert "'a'" in refused.json()["detail"]
    again = (await claim(hub, "t-1", "a")).json()
    assert again["token"] == granted["token"]


async def test_of_many_who_claim_at_once_one_gets_it(hub: RunningHub) -> None:
    answers = await asyncio.gather(*(claim(hub, "t-1", f"a-{n}") for n in range(20)))
    assert sorted(answer.status_code for answer in answers) == [200, *[409] * 19]


async def test_the_next_life_of_its_holder_claims_anew_and_the_old_one_is_refused(hub: RunningHub) -> None:
    """Fencing is about lives: the one that claimed first may still be running somewhere."""
    old = (await claim(hub, "t-1", "a", incarnation="one")).json()["token"]
    assert (await claim(hub, "t-1", "a", incarnation="two")).json()["token"] > old
    assert (await claim(hub, "t-1", "a", incarnation="one")).status_code == 409


async def test_it_is_given_back_with_its_own_token_only(hub: RunningHub) -> None:
    token = (await claim(hub, "t-1", "a")).json()["token"]
    place = "/api/v1/tasks/t-1/release"
    assert (await hub.post(place, {"agent_id": "b", "token": token})).status_code == 409
    wrong = await hub.post(place, {"agent_id": "a", "token": token + 1})
    assert (wrong.status_code, wrong.json()["field"]) == (409, "token")
    assert (await hub.post(place, {"agent_id": "a", "token": token})).status_code == 204
    assert (await hub.post(place, {"agent_id": "a", "token": token})).status_code == 404
    assert (await claim(hub, "t-1", "b")).json()["token"] > token


async def test_every_task_is_listed_once(hub: RunningHub) -> None:
    """Worked on, held and expected: three ways to be a task."""
    await hub.post("/api/v1/beats", [{"agent_id": n, "task_id": "worked-on"} for n in ("a", "b")])
    await claim(hub, "held", "a")
    await hub.post(
        "/api/v1/signals",
        {"type": "task_assigned", "agent_id": "c", "task_id": "expected", "expected_for": 60},
    )
    listed = (await hub.get("/api/v1/tasks")).json()["tasks"]
    assert sorted(task["task_id"] for task in listed) == ["expected", "held", "worked-on"]
    worked_on = (await hub.get("/api/v1/tasks/worked-on")).json()
    assert worked_on["agents"] == ["a", "b"]
    held = (await hub.get("/api/v1/tasks/held")).json()
    assert held["claim"]["agent_id"] == "a"
    assert held["claim"]["held_until"] > held["claim"]["claimed_at"]
    expected = (await hub.get("/api/v1/tasks/expected")).json()
    assert expected["due"]["agent_id"] == "c"
    assert (await hub.get("/api/v1/tasks/unheard-of")).status_code == 404


async def test_pages_of_tasks_are_complete(hub: RunningHub) -> None:
    await hub.post("/api/v1/beats", [{"agent_id": f"a-{n}", "task_id": f"t-{n}"} for n in range(7)])
    seen: list[str] = []
    cursor: str | None = None
    while True:
        query = {"limit": 3} | ({"cursor": cursor} if cursor else {})
        page = (await hub.get("/api/v1/tasks", **query)).json()
        seen += [task["task_id"] for task in page["tasks"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert seen == [f"t-{n}" for n in range(7)]


async def test_a_task_that_should_take_a_million_years_can_be_shown(hub: RunningHub) -> None:
    """What an agent says is data; the calendar ends before that."""
    signal = {"type": "task_assigned", "agent_id": "c", "task_id": "slow", "expected_for": 1e15}
    await hub.post("/api/v1/signals", signal)
    assert (await hub.get("/api/v1/tasks/slow")).json()["due"]["expected_at"].startswith("9999")


async def test_checkpoints_form_a_chain(hub: RunningHub) -> None:
    place = "/api/v1/tasks/t-1/checkpoints"
    for name, parent in (("cp-1", None), ("cp-2", "cp-1")):
        said = {"agent_id": "a", "checkpoint_id": name, "parent_id": parent, "digest": "d", "size": 12}
        answer = await hub.post(place, said)
        assert (answer.status_code, answer.json()["checkpoint_id"]) == (201, name)
    chain = (await hub.get(place)).json()["checkpoints"]
    assert [(one["checkpoint_id"], one["parent_id"], one["agent_id"]) for one in chain] == [
        ("cp-1", None, "a"),
        ("cp-2", "cp-1", "a"),
    ]
    assert (await hub.get("/api/v1/agents/a")).json()["last_checkpoint"] is not None
    assert (await hub.get("/api/v1/tasks/unheard-of/checkpoints")).status_code == 404


async def test_who_lost_the_task_saves_no_more_of_it(hub: RunningHub) -> None:
    token = (await claim(hub, "t-1", "a")).json()["token"]
    place = "/api/v1/tasks/t-1/checkpoints"
    stranger = await hub.post(place, {"agent_id": "b", "checkpoint_id": "cp-1"})
    assert stranger.status_code == 409
    old = await hub.post(place, {"agent_id": "a", "checkpoint_id": "cp-1", "token": token - 1})
    assert old.status_code == 409
    good = await hub.post(place, {"agent_id": "a", "checkpoint_id": "cp-1", "token": token})
    assert good.status_code == 201


async def test_an_ended_life_neither_claims_nor_saves(hub: RunningHub) -> None:
    await hub.post("/api/v1/beats", {"agent_id": "a", "incarnation": "one"})
    await hub.post("/api/v1/signals", {"type": "left", "agent_id": "a", "incarnation": "one"})
    assert (await claim(hub, "t-1", "a", incarnation="one")).status_code == 409
    said = {"agent_id": "a", "incarnation": "one", "checkpoint_id": "cp-1"}
    assert (await hub.post("/api/v1/tasks/t-1/checkpoints", said)).status_code == 409


async def test_an_agent_claims_for_itself_only(hub: RunningHub) -> None:
    async with hub.client(await hub.token_for(Role.AGENT, "coder-*")) as coder:
        for place, more in (
            ("claim", {}),
            ("release", {"token": 1}),
            ("checkpoints", {"checkpoint_id": "cp-1"}),
        ):
            other = await coder.post(f"/api/v1/tasks/t-1/{place}", json={"agent_id": "other", **more})
            assert (other.status_code, other.json()["field"]) == (403, "agent_id")
        own = await coder.post("/api/v1/tasks/t-1/claim", json={"agent_id": "coder-7"})
        assert own.status_code == 200
        assert (await coder.get("/api/v1/tasks")).status_code == 403


async def test_a_bad_body_names_its_field(hub: RunningHub) -> None:
    bad: list[tuple[str, dict[str, Any], str]] = [
        ("claim", {}, "agent_id"),
        ("claim", {"agent_id": "no spaces"}, "agent_id"),
        ("claim", {"agent_id": "line\n"}, "agent_id"),
        ("release", {"agent_id": "a"}, "token"),
        ("release", {"agent_id": "a", "token": -1}, "token"),
        ("checkpoints", {"agent_id": "a", "checkpoint_id": ""}, "checkpoint_id"),
    ]
    for place, body, field in bad:
        answer = await hub.post(f"/api/v1/tasks/t-1/{place}", body)
        assert (answer.status_code, answer.json()["field"]) == (400, field), body


async def test_a_task_id_that_is_too_long_is_a_problem_that_names_it(hub: RunningHub) -> None:
    answer = await hub.get(f"/api/v1/tasks/{'x' * 1025}")
    assert (answer.status_code, answer.json()["field"]) == (400, "task_id")
