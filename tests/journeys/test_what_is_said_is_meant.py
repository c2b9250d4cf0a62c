"""What an agent says of itself counts: that it is busy, what it has spent, how long a task should take, when it last saved."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.outside import Hub, serving

QUICK = {"silence": {"interval": "1s", "timeout": "3s", "ping_wait": "0.4s", "busy_factor": 5}}
NOBODY_IS_HELPED = {"ladder": {"enabled": False}}


def test_who_says_that_it_is_busy_has_more_time_than_who_says_nothing(tmp_path: Path) -> None:
    """In a beat, and until when; in the end both are missed."""
    with serving(tmp_path, {"policy": {**QUICK, **NOBODY_IS_HELPED}, "fleet": {"brake_count": 100}}) as hub:
        until = time.time() + 12
        hub.post(
            "/api/v1/beats",
            [
                {"agent_id": "plain"},
                {"agent_id": "busy", "status": "busy"},
                {"agent_id": "until", "doing": "busy", "until": until},
                {"agent_id": "lame", "status": "degraded"},
            ],
        )
        assert hub.agent("lame")["findings"][0]["kind"] == "self_reported"  # type: ignore[index]
        hub.until(lambda: hub.health("plain") == "disconnected", "who said nothing is missed")
        assert (hub.health("busy"), hub.health("until")) == ("healthy", "healthy")
        hub.until(lambda: hub.health("busy") == hub.health("until") == "disconnected", "both are missed")
        hub.until(lambda: {"plain", "busy"} <= found_lost(hub).keys(), "both are on record")
        found = found_lost(hub)
        assert found["plain"] < found["busy"]
        assert hub.agent("busy")["metrics"]["missed_heartbeats"] >= 2  # type: ignore[index]


def found_lost(hub: Hub) -> dict[str, Any]:
    """When each agent was found to be lost. A flip is seen before it is stored."""
    flips = hub.events("HEALTH_STATE_CHANGED")
    return {flip["agent_id"]: flip["at"] for flip in flips if flip["data"]["to"] == "disconnected"}


def test_the_first_totals_of_a_life_count_from_zero(tmp_path: Path) -> None:
    """In our names, in the seed's and in agentkit's; and what was known before the hub's restart is not counted again."""
    with serving(tmp_path) as hub:
        hub.post("/api/v1/beats", {"agent_id": "ours", "seq": 1, "token_count": 5000, "cost_usd": 5.0})
        hub.post("/api/v1/beats", {"agentId": "seed", "tokenCount": 5000})
        told = {"tokens_in": "300", "tokens_out": "200"}
        hub.post("/api/v1/beats", {"agent_id": "kit", "status": "busy", "load": 0.5, "metadata": told})
        assert spent(hub, "ours") == (5000, 5.0)
        assert spent(hub, "seed")[0] == 5000
        assert spent(hub, "kit")[0] == 500
        hub.post("/api/v1/beats", {"agent_id": "ours", "seq": 2, "token_count": 5200, "cost_usd": 5.5})
        assert spent(hub, "ours") == (5200, 5.5)
        hub.stop()
        hub.start()
        hub.post("/api/v1/beats", {"agent_id": "ours", "seq": 3, "token_count": 5300, "cost_usd": 5.75})
        assert spent(hub, "ours") == (5300, 5.75)


def spent(hub: Hub, agent_id: str) -> tuple[int, float]:
    metrics = hub.get(f"/api/v1/agents/{agent_id}")["metrics"]
    return metrics["token_count"], metrics["cost_usd"]


STALE = """
import sys, time
import lifesigns

with lifesigns.Sender(sys.argv[1], interval=0.5, task="t") as life:
    life.checkpoint("cp-1")
    for step in range(10_000):
        with life.tool("read", {"file": step}) as call:
            time.sleep(0.2)
            call.result(f"content {step}")
        if sys.argv[1] == "saves":
            life.checkpoint(f"cp-{step + 2}")
"""


@pytest.mark.timeout(120)
def test_a_stale_checkpoint_stays_found_while_its_agent_calls_tools(tmp_path: Path) -> None:
    """It vanished at the next call, and nobody was told of it again."""
    stall = {"checkpoint_degraded_after": "2s", "checkpoint_stuck_after": "4s", "tool_call_after": "60s"}
    with serving(tmp_path, {"policy": {**NOBODY_IS_HELPED, "stall": stall}}) as hub:
        for name in ("forgets", "saves"):
            hub.python(f"{name}.py", STALE, name)
        hub.until(lambda: hub.health("forgets") == "stuck", "it is stuck")
        seen = set()
        ends_at = time.monotonic() + 5
        while time.monotonic() < ends_at:  # Through some twenty of its calls.
            seen.add((hub.health("forgets"), hub.health("saves")))
            time.sleep(0.05)
        assert seen == {("stuck", "healthy")}
        (found,) = hub.get("/api/v1/agents/forgets")["findings"]
        assert found["kind"] == "no_checkpoint"


LATE = """
import time
import lifesigns

with lifesigns.Sender("late", interval=0.5) as life:
    with life.task("t-1", expected_for=1.0):
        time.sleep(60)
"""


@pytest.mark.timeout(120)
def test_a_short_task_that_takes_three_times_as_long_is_told(tmp_path: Path) -> None:
    with serving(tmp_path, {"policy": NOBODY_IS_HELPED}) as hub:
        hub.python("late.py", LATE)
        hub.until(lambda: hub.health("late") == "degraded", "it is degraded")
        (found,) = hub.get("/api/v1/agents/late")["findings"]
        assert "t-1" in found["text"]


LOOPS = """
import time
import lifesigns

with lifesigns.Sender("loops", interval=0.5, task="t") as life:
    while True:
        with life.model() as call:
            time.sleep(0.1)
            call.tokens(100, 10)
        with life.tool("grep", {"pattern": "x"}) as call:
            call.result("3 matches")
"""


@pytest.mark.timeout(120)
def test_those_who_have_finished_do_not_keep_a_looping_one_from_being_helped(tmp_path: Path) -> None:
    """A few that beat once and were never heard again, a few that left: they are no part of the fleet any more."""
    ladder = {"hesitate_for": "0.2s", "nudge_every": "30s"}
    config = {"policy": {**QUICK, "ladder": ladder}, "fleet": {"lost_after": "2s"}}
    with serving(tmp_path, config) as hub:
        hub.post("/api/v1/beats", [{"agent_id": f"once-{n}"} for n in range(4)])
        hub.post("/api/v1/beats", [{"agent_id": f"done-{n}"} for n in range(4)])
        hub.post("/api/v1/signals", [{"type": "left", "agent_id": f"done-{n}"} for n in range(4)])
        hub.until(lambda: all(hub.health(f"once-{n}") == "disconnected" for n in range(4)), "they are missed")
        hub.until(lambda: not hub.get("/api/v1/fleet")["braked"], "the brake is off")
        hub.python("loops.py", LOOPS)
        hub.until(lambda: hub.events("NUDGE_SENT", agent="loops"), "the looping one is nudged")
