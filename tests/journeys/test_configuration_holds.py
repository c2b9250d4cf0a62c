"""What stands in `lifesigns.yaml` changes what happens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.outside import BOUND, environment, serving

PROGRAM = """
import lifesigns
for name in ("tool_execution", "checkpoint_write", "search"):
    breaker = lifesigns.Breaker(name)
    print(name, breaker.policy.failure_threshold, breaker.policy.recovery_timeout, breaker.policy.half_open_requests)
print("shared", lifesigns.guard("other").policy.failure_threshold, lifesigns.guard("own", failure_threshold=9).policy.failure_threshold)
"""


def printed(folder: Path, **env: str) -> list[list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=environment(HOME=str(folder), **env),
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=True,
    )
    return [line.split() for line in done.stdout.splitlines()]


def test_the_circuit_breaker_tree_is_what_breakers_are_made_with(tmp_path: Path) -> None:
    """IMPL-REQ-003 section 7, in the file or in the environment."""
    assert printed(tmp_path)[:2] == [
        ["tool_execution", "5", "30.0", "1"],
        ["checkpoint_write", "3", "120.0", "1"],
    ]
    tree = {
        "default": {"failure_threshold": 7, "recovery_timeout_seconds": 11, "half_open_requests": 2},
        "overrides": {"tool_execution": {"failure_threshold": 4, "recovery_timeout_seconds": 13}},
    }
    (tmp_path / "lifesigns.yaml").write_text(json.dumps({"health_monitoring": {"circuit_breaker": tree}}))
    tool, _, search, shared = printed(tmp_path)
    assert tool == ["tool_execution", "4", "13.0", "2"]
    assert search == ["search", "7", "11.0", "2"]
    assert shared == ["shared", "7", "9"]
    by_environment = printed(tmp_path, LIFESIGNS_POLICY__BREAKERS__SEARCH__FAILURE_THRESHOLD="6")
    assert by_environment[2][:2] == ["search", "6"]


def test_a_configuration_that_is_wrong_does_not_end_an_agent_that_wants_a_breaker(tmp_path: Path) -> None:
    (tmp_path / "lifesigns.yaml").write_text(
        "health_monitoring: {circuit_breaker: {default: {failure_threshold: no}}}"
    )
    assert printed(tmp_path)[0] == ["tool_execution", "5", "30.0", "1"]


@pytest.mark.parametrize("enabled", [True, False])
def test_nobody_is_judged_where_health_monitoring_is_off(tmp_path: Path, enabled: bool) -> None:
    """Agents are heard and shown; loops and silence are nobody's business. Switched on, the same agents are found."""
    config = {"health_monitoring": {"enabled": enabled}, "profile": "swift"}
    loop = [
        {
            "type": "tool_finished",
            "agent_id": "a",
            "call_id": f"c{n}",
            "tool": "grep",
            "args": "x",
            "result": "no",
        }
        for n in range(20)
    ]
    with serving(tmp_path, config) as hub:
        hub.post("/api/v1/beats", [{"agent_id": "a", "status": "working"}, {"agent_id": "silent"}])
        hub.post("/api/v1/signals", loop)
        if enabled:
            hub.until(lambda: hub.health("a") == "stuck", "the loop is found")
            hub.until(lambda: hub.health("silent") == "disconnected", "the silence is found")
            return
        hub.until(lambda: hub.get("/api/v1/agents/silent")["since_heartbeat_s"] > 6, "the silence lasts")
        assert (hub.health("a"), hub.health("silent")) == ("healthy", "healthy")
        assert not hub.events("FINDING_OPENED", "NUDGE_SENT", "ESCALATION_TRIGGERED", "NEEDS_HUMAN")
        hub.post("/api/v1/agents/a/nudge", {"message": "Are you there?"})
        assert hub.events("NUDGE_SENT")
