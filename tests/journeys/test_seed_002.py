"""Seed 002 (IMPL-REQ-003), typed from the document: its configuration as it stands, and its story.

An agent that makes no more progress is STUCK, nudged, escalated to the orchestrator, which decides *terminate and recover*; the
next life goes on from the last checkpoint. Section 7 is read as it is written; the story has the same tree with seconds
for minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.journeys.outside import Hub, Json, environment, serving

SECTION_7 = """
health_monitoring:
  enabled: true
  heartbeat:
    interval_seconds: 300 # 5 minutes
    timeout_seconds: 600 # 10 minutes (2x interval)
  health_check:
    interval_seconds: 60 # 1 minute
    checkpoint_stale_threshold_seconds: 1800 # 30 minutes
  intervention:
    nudge:
      enabled: true
      max_attempts: 3
      interval_seconds: 600 # 10 minutes between nudges
    escalation:
      timeout_seconds: 900 # 15 minutes
    termination:
      cleanup_timeout_seconds: 30
  circuit_breaker:
    default:
      failure_threshold: 3
      recovery_timeout_seconds: 60
      half_open_requests: 1
    overrides:
      tool_execution:
        failure_threshold: 5
        recovery_timeout_seconds: 30
      checkpoint_write:
        failure_threshold: 3
        recovery_timeout_seconds: 120
  recovery:
    max_attempts_per_task: 3
    max_attempts_per_hour: 5
    backoff_seconds: [60, 120, 240] # Exponential backoff
  alerting:
    stuck_agent:
      channels: ["slack", "pagerduty"]
      severity: "warning"
    circuit_breaker_open:
      channels: ["slack"]
      severity: "warning"
    recovery_failed:
      channels: ["slack", "pagerduty"]
      severity: "critical"
channels: # where Slack and PagerDuty are is not in the document
  slack: {url: "https://hooks.slack.com/services/x"}
  pagerduty: {routing_key: "0123456789abcdef0123456789abcdef"}
"""
FAST = {
    "health_monitoring": {
        "heartbeat": {"interval_seconds": 1, "timeout_seconds": 30},
        "health_check": {"interval_seconds": 1, "checkpoint_stale_threshold_seconds": 4},
        "intervention": {
            "nudge": {"enabled": True, "max_attempts": 2, "interval_seconds": 2},
            "escalation": {"timeout_seconds": 300},
            "termination": {"cleanup_timeout_seconds": 5},
        },
        "recovery": {"max_attempts_per_task": 3, "max_attempts_per_hour": 5, "backoff_seconds": [1, 2, 4]},
    }
}
AGENT = """
import time
import lifesigns

with lifesigns.Sender(interval=0.5) as life:
    if life.resume_from is None:
        life.checkpoint("cp-1")
        number = 0
    else:
        print("goes on from", life.resume_from, flush=True)
        number = 1
    while not life.stopping.is_set():
        with life.tool("edit", {"line": time.time()}) as call:
            call.result("ok")
        if number:
            number += 1
            life.checkpoint(f"cp-{number}")
        time.sleep(0.5)
"""


def of_type(hub: Hub, name: str) -> list[Json]:
    return [event["data"] for event in hub.events(name, agent="coder-7")]


def test_section_7_is_read_as_it_is_written(tmp_path: Path) -> None:
    (tmp_path / "coditect-config.yaml").write_text(SECTION_7)
    command = [sys.executable, "-m", "lifesigns", "config", "check", "--json", "coditect-config.yaml"]
    checked = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, check=True, env=environment()
    )
    policy = json.loads(checked.stdout)["policy"]
    expected: dict[str, Json] = {
        "silence": {"interval": 300, "timeout": 600},
        "stall": {"checkpoint_stuck_after": 1800},
        "ladder": {"nudge_max": 3, "nudge_every": 600, "escalation_timeout": 900},
        "breaker": {"failure_threshold": 3, "recovery_timeout": 60, "half_open_requests": 1},
        "respawn": {"per_task_max": 3, "per_hour_max": 5, "backoff": [60, 120, 240]},
    }
    assert {
        section: {key: policy[section][key] for key in keys} for section, keys in expected.items()
    } == expected
    of_tools, of_checkpoints = policy["breakers"]["tool_execution"], policy["breakers"]["checkpoint_write"]
    assert (of_tools["failure_threshold"], of_tools["recovery_timeout"]) == (5, 30)
    assert (of_checkpoints["failure_threshold"], of_checkpoints["recovery_timeout"]) == (3, 120)


def test_an_agent_without_progress_is_nudged_escalated_terminated_and_recovered(tmp_path: Path) -> None:
    with serving(tmp_path, FAST) as hub:
        (tmp_path / "agent.py").write_text(AGENT)
        run = ("lifesigns", "run", "--id", "coder-7", "--task", "t-1", "--restart", "on-failure", "--")
        hub.started(*run, sys.executable, "agent.py")
        hub.until(lambda: hub.agent("coder-7"), "it is heard")
        hub.until(lambda: of_type(hub, "NUDGE_SENT"), "it is nudged")
        to = [flip["to"] for flip in of_type(hub, "HEALTH_STATE_CHANGED")]
        assert "stuck" in to
        assert of_type(hub, "NUDGE_SENT")[0]["attempt"] == 1
        hub.until(lambda: of_type(hub, "ESCALATION_TRIGGERED"), "the orchestrator is asked")
        waiting = json.loads(hub.cli("decide", "--json").stdout)["interventions"]
        (escalation,) = [one["id"] for one in waiting]
        hub.cli("decide", escalation, "terminate", "--note", "terminate and recover")
        hub.until(lambda: of_type(hub, "AGENT_TERMINATED"), "it is ended")
        assert of_type(hub, "AGENT_TERMINATED")[0]["checkpoint"] == "cp-1"
        hub.until(lambda: of_type(hub, "RECOVERY_COMPLETED"), "another life goes on")
        assert of_type(hub, "RECOVERY_INITIATED")[0]["from_checkpoint"] == "cp-1"
        assert of_type(hub, "RECOVERY_COMPLETED")[0]["new_agent_id"] == "coder-7"
        hub.until(lambda: hub.health("coder-7") == "healthy", "and makes progress")
        told = " ".join(one["what"] + one["detail"] for one in hub.get("/api/v1/audit")["entries"])
        assert "terminate and recover" in told
