"""Seed 004: `.ecos/agent-health/*.json` are read and written as the document shows them."""

from __future__ import annotations

import json
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.journeys.outside import BOUND, serving

CONFIG = {
    "agents": {
        "libs-svg-svgbbox": {
            "role": "active-development",
            "interval_seconds": 60,
            "missed_threshold": 3,
            "last_heartbeat": "2025-01-15T10:30:05Z",
            "consecutive_missed": 0,
        },
        "orchestrator-master": {
            "role": "critical-infrastructure",
            "interval_seconds": 20,
            "missed_threshold": 4,
            "last_heartbeat": "2025-01-15T10:30:00Z",
            "consecutive_missed": 0,
        },
    }
}
TASK = {
    "task_id": "task-20250115-001",
    "agent": "libs-svg-svgbbox",
    "description": "Implement bounding box calculation",
    "assigned_at": "2025-01-15T09:00:00Z",
    "last_progress_update": "2025-01-15T10:30:00Z",
    "progress_percentage": 60,
    "status": "in_progress",
}
STALLED = """
CURRENT_TIME=$(date -u +%Y-%m-%dT%H:%M:%SZ)
jq --arg now "$CURRENT_TIME" '
  .tasks[] |
  select(.status == "in_progress") |
  select(.expected_completion < $now) |
  select(.last_progress_update < ($now | strptime("%Y-%m-%dT%H:%M:%SZ") | mktime - 1800 | strftime("%Y-%m-%dT%H:%M:%SZ")))
' $CLAUDE_PROJECT_DIR/.ecos/agent-health/task-tracking.json
"""


def kept(folder: Path) -> Path:
    """The files of the document, with a task that should be done in an hour."""
    expected = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    folder.mkdir(parents=True)
    (folder / "heartbeat-config.json").write_text(json.dumps(CONFIG))
    done = {**TASK, "task_id": "task-old", "status": "completed"}
    tasks = {"tasks": [done, {**TASK, "expected_completion": expected}]}
    (folder / "task-tracking.json").write_text(json.dumps(tasks))
    return folder


def test_what_is_kept_comes_to_the_hub_and_back(tmp_path: Path) -> None:
    project = tmp_path / "project"
    kept(project / ".ecos/agent-health")
    with serving(tmp_path) as hub:
        told = hub.cli("ecos", "import", "--json", CLAUDE_PROJECT_DIR=str(project))
        assert json.loads(told.stdout)["agents"] == 2
        assert hub.health("libs-svg-svgbbox") == "starting"
        hub.post("/api/v1/beats", {"agent_id": "orchestrator-master"})
        hub.cli("ecos", "export", str(tmp_path / "out"))
        heartbeats = json.loads((tmp_path / "out/heartbeat-config.json").read_text())["agents"]
        assert heartbeats["libs-svg-svgbbox"] == {
            **CONFIG["agents"]["libs-svg-svgbbox"],
            "last_heartbeat": None,
        }
        master = heartbeats["orchestrator-master"]
        assert (master["interval_seconds"], master["missed_threshold"]) == (20, 4)
        assert master["last_heartbeat"] is not None
        (task,) = json.loads((tmp_path / "out/task-tracking.json").read_text())["tasks"]
        known = {
            key: task[key] for key in ("task_id", "agent", "description", "progress_percentage", "status")
        }
        assert known == {key: TASK[key] for key in known}
    with serving(tmp_path / "out") as other:
        other.cli("ecos", "import", str(tmp_path / "out"))
        other.cli("ecos", "export", str(tmp_path / "again"))
        again = json.loads((tmp_path / "again/heartbeat-config.json").read_text())["agents"]
        for one in (again, heartbeats):
            one["orchestrator-master"]["last_heartbeat"] = None
        assert again == heartbeats


@pytest.mark.skipif(shutil.which("jq") is None, reason="the document needs jq")
def test_the_documents_query_finds_a_stalled_task_in_what_is_written(tmp_path: Path) -> None:
    """An overdue task that was never heard of since has no progress update; jq takes null for the earliest of all."""
    with serving(tmp_path) as hub:
        hub.post("/api/v1/beats", {"agent_id": "a"})
        hub.post(
            "/api/v1/signals", {"type": "task_assigned", "agent_id": "a", "task_id": "t", "expected_for": 0.1}
        )

        def found() -> str:
            hub.cli("ecos", "export", CLAUDE_PROJECT_DIR=str(tmp_path))
            query = ["bash", "-c", STALLED]
            done = subprocess.run(
                query,
                capture_output=True,
                text=True,
                timeout=BOUND,
                check=True,
                env={"CLAUDE_PROJECT_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
            )
            return done.stdout

        hub.until(lambda: '"task_id": "t"' in found(), "the query finds it")


BAD = [
    ("heartbeat-config.json", "{", "heartbeat-config.json: "),
    ("heartbeat-config.json", '{"agents": []}', 'needs "agents" with an object'),
    (
        "heartbeat-config.json",
        '{"agents": {"x": {"interval_seconds": "soon", "missed_threshold": 3}}}',
        "agents.x: interval_seconds is 'soon', but needs a number",
    ),
    (
        "heartbeat-config.json",
        '{"agents": {"x": {"interval_seconds": 3}}}',
        "agents.x: missed_threshold is missing",
    ),
    ("task-tracking.json", '{"tasks": [{"task_id": "t"}]}', "tasks[0]: agent is missing"),
    (
        "task-tracking.json",
        '{"tasks": [{"task_id": "t", "agent": "a", "expected_completion": "noon"}]}',
        "expected_completion is 'noon', but needs a time such as 2025-01-15T10:30:00Z",
    ),
]


def test_a_bad_file_is_named_with_its_reason_and_nothing_is_told(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        for number, (file, content, says) in enumerate(BAD):
            folder = kept(tmp_path / f"files-{number}")
            (folder / file).write_text(content)
            refused = hub.cli("ecos", "import", str(folder), check=False)
            assert refused.returncode == 2
            assert f"{folder / file}: " in refused.stderr
            assert says in refused.stderr
        assert "has neither" in hub.cli("ecos", "import", str(tmp_path / "nowhere"), check=False).stderr
        assert hub.get("/api/v1/agents")["agents"] == []
