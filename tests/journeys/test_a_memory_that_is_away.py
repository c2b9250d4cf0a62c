"""The MCP memory server dies, or cannot be started: people are told, and whoever writes to it goes on.

Of a hub: docs/howto/github-locks.md, "Recoveries in an MCP memory"; docs/reference/channels.md: `hub_memory_lost`. Of a worker: seed 003,
"Failure handling".
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from tests.journeys.outside import Hub, serving
from tests.journeys.test_seed_003 import BYSTANDER, RECOVERIES, kept, server

__all__ = ["server"]

CONFIG = {
    "agents": {
        "lost-*": {
            "silence": {"interval": 1.0, "timeout": 4.0, "ping_wait": 0.5},
            "claim": {"lease": 2.0, "check_wait": 0.5},
        }
    }
}
WORKER = """
import sys, time
from lifesigns import HeartbeatMonitor

monitor = HeartbeatMonitor(
    "worker-local-1",
    "org/repo",
    {"heartbeat_interval": 300, "stale_threshold": 60_000, "retry_attempts": 3, "retry_delay": 100},
    memory=sys.argv[1],
    on_alert=lambda alert: print("alert", alert.consecutive_failures, flush=True),
)
monitor.start()
monitor.addTask("task-123")
time.sleep(600)
"""
THREE_GIVEN_UP = 150.0
"""A write is tried three times, 5 s apart, and three have to fail: half a minute, and a busy machine."""


def fragile(folder: Path, server: str) -> tuple[Path, dict[str, str]]:
    """A command that starts the real server only while the file `up` is there, and writes down its `pid`."""
    up, command = folder / "up", folder / "memory-server"
    command.write_text(f"#!/bin/sh\ntest -e {up} || exit 1\necho $$ > {folder}/pid\nexec {server}\n")
    command.chmod(0o755)
    return up, {"LIFESIGNS_MEMORY_COMMAND": str(command)}


def lose(hub: Hub, *tasks: str) -> None:
    """For each of these tasks a worker claims it, and is not heard again."""
    for task in tasks:
        hub.post("/api/v1/beats", {"agent_id": f"lost-{task}"})
        hub.post(f"/api/v1/tasks/{task}/claim", {"agent_id": f"lost-{task}"})


def released(hub: Hub) -> set[str]:
    return {event["data"]["task_id"] for event in hub.events("CLAIM_RELEASED")}


def recovered(file: Path) -> set[str]:
    """What the memory has of it."""
    return {json.loads(value)["task_id"] for key, value in kept(file).items() if key.startswith(RECOVERIES)}


def alerts(hub: Hub) -> list[str]:
    """The standing ones about the memory."""
    standing = [one for one in hub.get("/api/v1/alerts")["alerts"] if one["standing"]]
    return [one["id"] for one in standing if "hub_memory_lost" in one["id"]]


def test_people_are_told_when_the_memory_server_is_gone_and_when_it_is_back(
    tmp_path: Path, server: str
) -> None:
    up, env = fragile(tmp_path, server)
    up.touch()
    file = tmp_path / "memory.jsonl"
    with serving(tmp_path, {**CONFIG, "memory": {"file": str(file)}}, env=env) as hub:
        hub.python("bystander.py", BYSTANDER)
        lose(hub, "t-1")
        hub.until(lambda: recovered(file) == {"t-1"}, "the memory has the first one")
        assert alerts(hub) == []
        up.unlink()
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        lose(hub, "t-2", "t-3")
        hub.until(lambda: released(hub) == {"t-1", "t-2", "t-3"}, "the tasks are free all the same")
        hub.until(lambda: alerts(hub) and hub.events("HUB_MEMORY_LOST"), "people are told", THREE_GIVEN_UP)
        (lost,) = hub.events("HUB_MEMORY_LOST")
        assert "the memory server" in lost["data"]["reason"]
        assert hub.get("/readyz"), "the hub itself is well"
        up.touch()
        lose(hub, "t-4")
        hub.until(lambda: "t-4" in recovered(file), "the memory has the next one", THREE_GIVEN_UP)
        hub.until(lambda: hub.events("HUB_MEMORY_BACK") and not alerts(hub), "that is told, too")
        assert not hub.disconnected() - {f"lost-t-{n}" for n in range(1, 5)}, "nobody else suffered"


def test_a_worker_works_on_alerts_after_three_failures_and_leaves_them_in_the_memory(
    tmp_path: Path, server: str
) -> None:
    """Its graceful degradation: no task is lost, somebody is told, and the memory has the failures as soon as it takes them."""
    up, env = fragile(tmp_path, server)
    file = tmp_path / "memory.jsonl"
    with serving(tmp_path, env=env) as hub:
        worker = hub.python("worker.py", WORKER, str(file))
        hub.until(lambda: "alert 3" in hub.output(worker), "it is alerted after three")
        assert hub.health("worker-local-1") == "healthy"
        assert hub.get("/api/v1/tasks/task-123")["claim"]["agent_id"] == "worker-local-1"
        up.touch()
        key = "task-sentinel/workers/worker-local-1/heartbeat-failures"
        hub.until(lambda: key in kept(file), "the memory has the failures")
        failures = json.loads(hub.cli("memory", "get", key, "--file", str(file)).stdout)
        assert max(one["consecutive_failures"] for one in failures) >= 3
        assert all("the memory server" in one["error"] for one in failures)
        hub.until(lambda: key.removesuffix("-failures") in kept(file), "and its heartbeat")
