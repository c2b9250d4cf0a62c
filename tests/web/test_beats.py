"""Beats and signals over HTTP."""

import gzip
import json

from tests.web.hub import RunningHub


async def test_one_beat_makes_an_agent_known(hub: RunningHub) -> None:
    answer = await hub.post("/api/v1/beats", {"agent_id": "coder-7", "status": "busy"})
    assert answer.status_code == 202
    assert answer.json() == {"accepted": 1, "rejected": [], "orders": {}}
    agent = (await hub.get("/api/v1/agents/coder-7")).json()
    assert agent["state"] == "healthy"
    assert agent["doing"] == "working"


async def test_a_bad_beat_of_an_array_is_rejected_and_the_others_count(hub: RunningHub) -> None:
    answer = await hub.post("/api/v1/beats", [{"agent_id": "a"}, {"agent_id": 7}, {"agent_id": "b"}])
    body = answer.json()
    assert body["accepted"] == 2
    assert [(bad["index"], bad["field"]) for bad in body["rejected"]] == [(1, "agent_id")]


async def test_lines_and_gzip_are_read(hub: RunningHub) -> None:
    lines = b'{"agent_id": "a"}\n{"agent_id": "b"}\n'
    answer = await hub.http.post("/api/v1/beats", content=lines)
    assert answer.json()["accepted"] == 2
    packed = gzip.compress(json.dumps([{"agent_id": "c"}]).encode())
    answer = await hub.http.post("/api/v1/beats", content=packed, headers={"content-encoding": "gzip"})
    assert answer.json()["accepted"] == 1


async def test_the_last_beat_is_shown_as_it_came(hub: RunningHub) -> None:
    await hub.post("/api/v1/beats", {"agent_id": "a/b", "seq": 4, "metadata": {"k": "v"}})
    answer = await hub.get("/api/v1/agents/a%2Fb/heartbeat")
    assert answer.json()["beat"]["metadata"] == {"k": "v"}
    assert answer.json()["received_at"].endswith("Z")


async def test_a_beat_that_cannot_be_read_is_a_problem_that_names_the_field(hub: RunningHub) -> None:
    answer = await hub.post("/api/v1/beats", {"agent_id": "no spaces please"})
    assert (answer.status_code, answer.json()["field"]) == (400, "agent_id")
    answer = await hub.http.post("/api/v1/beats", content=b"[{")
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
