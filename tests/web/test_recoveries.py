"""Recoveries of the fleet: what is under way, what became of the others."""

import json
from typing import Any

from lifesigns.ports import Event
from tests.web.hub import RunningHub


def told(n: int, at: float, kind: str, stage: str, **more: Any) -> Event:
    data = {"task_id": "t-1", "stage": stage, "reason": "it crashed", **more}
    return Event(n, at, kind, "a", json.dumps(data).encode())


async def test_nobody_has_ever_been_started_anew(hub: RunningHub) -> None:
    """No rate is better than one of nothing."""
    found = (await hub.get("/api/v1/recoveries")).json()
    assert found == {
        "active": [],
        "steps": [],
        "completed": 0,
        "failed": 0,
        "success_rate": None,
        "complete": True,
    }


async def test_the_rate_is_of_those_that_are_decided(hub: RunningHub) -> None:
    """One that has only begun is neither a success nor a failure."""
    now = hub.service.clock()
    await hub.keep(
        told(1, now - 9 * 86400, "RECOVERY_FAILED", "failed", attempts=3),
        told(2, now - 50, "RECOVERY_INITIATED", "initiated", attempt=1, from_checkpoint="cp-2"),
        told(3, now - 40, "RECOVERY_COMPLETED", "completed", attempt=1, new_agent_id="a"),
        told(4, now - 30, "RECOVERY_FAILED", "failed", attempts=2),
        told(5, now - 20, "RECOVERY_INITIATED", "initiated", attempt=3, from_checkpoint=None),
    )
    found = (await hub.get("/api/v1/recoveries")).json()
    assert (found["completed"], found["failed"], found["success_rate"]) == (1, 1, 0.5)
    assert [step["stage"] for step in found["steps"]] == ["initiated", "failed", "completed", "initiated"]
    assert [step["attempt"] for step in found["steps"]] == [3, 2, 1, 1]
    assert found["steps"][-1]["checkpoint_id"] == "cp-2"
    longer = (await hub.get("/api/v1/recoveries", **{"for": "30d", "limit": 1})).json()
    assert (longer["failed"], len(longer["steps"])) == (2, 1)


async def test_who_is_started_anew_is_active(hub: RunningHub) -> None:
    beat = {"agent_id": "a", "incarnation": "i-1", "task_id": "t-1"}
    await hub.post("/api/v1/beats", beat)
    exit_ = {"type": "exited", "agent_id": "a", "incarnation": "i-1", "exit_status": 9, "expected": False}
    await hub.post("/api/v1/signals", exit_)
    (one,) = (await hub.get("/api/v1/recoveries")).json()["active"]
    assert (one["task_id"], one["recovery"]["agent_id"]) == ("t-1", "a")
    assert one["recovery"]["reason"]


async def test_a_bad_period_names_its_field(hub: RunningHub) -> None:
    answer = await hub.get("/api/v1/recoveries", **{"for": "soon"})
    assert (answer.status_code, answer.json()["field"]) == (400, "for")
