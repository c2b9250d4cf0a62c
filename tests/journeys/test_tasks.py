"""Seed 004, 1.5: a task is kept with what it is about, how far it is and when it should be done; a stalled one is asked about."""

from __future__ import annotations

import json
from pathlib import Path

from tests.journeys.outside import Hub, serving

CONFIG = {"policy": {"task": {"stalled_after": "2s", "inquiry_wait": "2s"}, "silence": {"timeout": "60s"}}}


def say(hub: Hub, kind: str, **fields: object) -> None:
    hub.post("/api/v1/signals", {"type": kind, "agent_id": "libs-svg-svgbbox", **fields})


def test_a_task_shows_its_progress_and_is_asked_about_when_it_stalls(tmp_path: Path) -> None:
    with serving(tmp_path, CONFIG) as hub:
        assert "No task" in hub.cli("tasks").stderr + hub.cli("tasks").stdout
        hub.cli("beat", "libs-svg-svgbbox")
        task_id, about = "task-20250115-001", "Implement bounding box calculation"
        say(hub, "task_assigned", task_id=task_id, expected_for=12, description=about)
        say(hub, "progress", task_id=task_id, percent=60)
        shown = json.loads(hub.cli("tasks", task_id, "--json").stdout)["due"]
        assert (shown["description"], shown["percent"], shown["status"]) == (about, 60, "in_progress")
        assert shown["assigned_at"] <= shown["progress_at"] < shown["expected_at"]
        listed = hub.cli("tasks", check=False)
        assert task_id in listed.stdout
        assert "60 %" in listed.stdout

        def status() -> str:
            hub.post("/api/v1/beats", {"agent_id": "libs-svg-svgbbox"})
            return str(hub.get(f"/api/v1/tasks/{task_id}")["due"]["status"])

        hub.until(lambda: status() == "stalled", "its agent is asked about it")
        assert hub.cli("tasks", check=False).returncode == 1
        hub.until(lambda: status() == "blocked", "there is no answer, but there are beats")
        say(hub, "progress", task_id=task_id, percent=80)
        assert (status(), hub.cli("tasks", task_id).returncode) == ("in_progress", 0)
