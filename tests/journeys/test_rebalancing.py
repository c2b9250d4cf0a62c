"""Tasks of unwell workers go to healthy ones with room, if `fleet.moves_per_minute` says so (docs/howto/rebalance-tasks.md)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journeys.outside import BOUND, Hub, Json, Refused, serving

MOVING = {"fleet": {"moves_per_minute": 60}}
WORKER = """
import sys, time
from lifesigns import HeartbeatMonitor

name, *tasks = sys.argv[1:]
fast = {"heartbeat_interval": 300, "stale_threshold": 2500, "detection_interval": 300}
monitor = HeartbeatMonitor(name, "org/repo", fast, capacity=2)
monitor.accept_moves(take=lambda task_id: True, give_back=lambda task_id: task_id != tasks[0])
monitor.start()
for task in tasks:
    monitor.add_task(task)
print("ready", flush=True)
time.sleep(600)
"""


def moves(hub: Hub) -> list[tuple[str, str, str]]:
    return [
        (one["data"]["task_id"], one["data"]["agent_id"], one["data"]["stage"])
        for one in hub.events("TASK_MOVE")
    ]


def holders(hub: Hub) -> dict[str, str]:
    """Who holds which task."""
    tasks = hub.get("/api/v1/tasks")["tasks"]
    return {one["task_id"]: one["claim"]["agent_id"] for one in tasks if one["claim"]}


def beat(hub: Hub, agent_id: str, **fields: Json) -> list[Json]:
    """A beat of a worker that only knows HTTP; the orders that come back."""
    answer = hub.post("/api/v1/beats", {"agent_id": agent_id, **fields})
    return list(answer.get("orders", {}).get(agent_id, []))


def claim(hub: Hub, agent_id: str, task_id: str) -> int:
    return int(hub.post(f"/api/v1/tasks/{task_id}/claim", {"agent_id": agent_id})["token"])


def test_the_tasks_of_a_killed_worker_are_taken_by_another_each_once(tmp_path: Path) -> None:
    with serving(tmp_path, MOVING) as hub:
        first = hub.python("worker.py", WORKER, "w-1", "t-1", "t-2")
        hub.python("worker.py", WORKER, "w-2")
        hub.until(lambda: holders(hub) == {"t-1": "w-1", "t-2": "w-1"}, "the first one holds both")
        hub.until(lambda: hub.health("w-2") == "healthy", "the second one is there")
        first.kill()
        first.wait(BOUND)
        hub.until(lambda: holders(hub) == {"t-1": "w-2", "t-2": "w-2"}, "the second one holds both")
        assert sorted(moves(hub)) == [
            (task, "w-2", stage) for task in ("t-1", "t-2") for stage in ("offered", "taken")
        ]
        with pytest.raises(Refused) as refused:  # The first one comes back: its task is not its own any more.
            claim(hub, "w-1", "t-1")
        assert refused.value.status == 409
        assert "t-1 of w-1" in str(hub.get("/api/v1/audit"))


def test_an_unwell_worker_keeps_what_it_does_not_give_back(tmp_path: Path) -> None:
    with serving(tmp_path, MOVING) as hub:
        tokens = {task: claim(hub, "w-1", task) for task in ("t-1", "t-2", "t-3")}
        beat(hub, "w-2", capacity_available=1, load=0.2)
        beat(hub, "w-3", capacity_available=9, load=0.7)

        def asked() -> list[Json]:
            orders = beat(hub, "w-1", task_id="t-1", tasks=[*tokens], status="degraded")
            return [order for order in orders if order["type"] == "give_back"]

        hub.until(asked, "it is asked")
        question = asked()[0]
        assert (question["task_id"], question["token"]) == ("t-3", tokens["t-3"])
        assert "w-2 has room" in question["text"]
        assert holders(hub) == dict.fromkeys(tokens, "w-1"), "a question takes nothing away"
        hub.post("/api/v1/tasks/t-3/release", {"agent_id": "w-1", "token": question["token"]})

        offers = beat(hub, "w-2", capacity_available=1, load=0.2)
        assert [(one["type"], one["task_id"], one["giver"]) for one in offers] == [("offer", "t-3", "w-1")]
        assert claim(hub, "w-2", "t-3") > question["token"]
        assert holders(hub) == {"t-1": "w-1", "t-2": "w-1", "t-3": "w-2"}
        assert moves(hub) == [
            ("t-3", "w-1", "asked_back"),
            ("t-3", "w-2", "offered"),
            ("t-3", "w-2", "taken"),
        ]
        assert not beat(hub, "w-3", capacity_available=9, load=0.7), "the other one has not heard of it"


def test_without_the_key_nothing_moves(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        claim(hub, "w-1", "t-1")
        token = claim(hub, "w-1", "t-2")
        beat(hub, "w-2", capacity_available=5, load=0.1)
        hub.until(
            lambda: beat(hub, "w-1", status="degraded") is not None and hub.health("w-1") == "degraded",
            "unwell",
        )
        hub.post("/api/v1/tasks/t-2/release", {"agent_id": "w-1", "token": token})
        assert not beat(hub, "w-2", capacity_available=5, load=0.1)
        assert not moves(hub)
