"""Agents that send what the seeds say, and nothing else: each is known, believed well while it speaks, and missed when it
does not."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from tests.journeys.outside import Hub, serving

POLICY = {"profile": "swift", "fleet": {"brake_count": 100}}


def beats(number: int) -> dict[str, dict[str, Any]]:
    """One beat of each document's agent."""
    now = time.time()
    written = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    return {
        "seed-001": {
            "agent_id": "seed-001",
            "timestamp": now,
            "status": "idle",
            "load": 0.2,
            "metadata": {"v": "1"},
        },
        "seed-002": {
            "agentId": "seed-002",
            "taskId": "task-9",
            "timestamp": written,
            "phase": "build",
            "lastToolCall": written,
            "tokenCount": 100 * number,
            "errorCount": 0,
            "progressIndicator": f"{number} files",
        },
        "seed-003": {
            "worker_id": "seed-003",
            "timestamp": int(now * 1000),
            "health_status": "healthy",
            "current_tasks": ["task-123"],
            "capacity_available": 3,
            "metrics": {
                "cpu_usage": 45.2,
                "memory_usage": 2048,
                "tasks_completed": number,
                "tasks_failed": 0,
                "uptime": number,
            },
        },
    }


def speak(hub: Hub, names: set[str], number: int) -> None:
    """A round of beats of these, and of one that always beats."""
    said = [beat for name, beat in beats(number).items() if name in names]
    hub.post("/api/v1/beats", [*said, {"agent_id": "another", "seq": number}])


def test_each_is_healthy_while_it_speaks_and_missed_when_it_does_not(tmp_path: Path) -> None:
    names = set(beats(0))
    with serving(tmp_path, POLICY) as hub:
        number = 0

        def believed(speaking: set[str], health: str) -> bool:
            nonlocal number
            number += 1
            speak(hub, speaking, number)
            time.sleep(0.3)
            return all(hub.health(name) == health for name in names)

        hub.until(lambda: believed(names, "healthy") and number > 20, "all of them are healthy")
        assert hub.disconnected() == set()
        hub.until(lambda: believed(set(), "disconnected"), "all of them are missed")
        assert hub.health("another") == "healthy"
