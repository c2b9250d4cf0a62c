"""Seed 003, typed from the document: a worker in a process of its own, its locks, its keys in the real MCP memory server, its end,
and what is left of it: the lock is free, the recovery is on record at the hub, in the memory and for people."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, environment, serving, until
from tests.servers.mcp_memory import memory_server

RECOVERIES = "task-sentinel/metrics/lock-recoveries/"

WORKER = """
import sys, time
from lifesigns import HeartbeatMonitor

monitor = HeartbeatMonitor(
    "worker-local-1",
    "org/repo",
    {
        "heartbeat_interval": 500,    # the document's five minutes, ten minutes and one minute, 600 times as fast
        "stale_threshold": 3000,
        "detection_interval": 500,
    },
    memory=sys.argv[1],
)
monitor.start()
monitor.addTask("task-123")
monitor.addTask("task-456")
monitor.removeTask("task-456")
monitor.recordTaskCompletion()
print(monitor.getMetrics()["tasks_completed"], monitor.getHealthStatus(), flush=True)
time.sleep(600)
"""
BYSTANDER = """
import time
from lifesigns import HeartbeatMonitor

monitor = HeartbeatMonitor("worker-local-2", "org/repo", {"heartbeat_interval": 500, "stale_threshold": 3000})
monitor.start()
monitor.add_task("task-789")
time.sleep(600)
"""


@pytest.fixture(scope="module")
def server() -> str:
    return shlex.join(memory_server())


def kept(file: Path) -> dict[str, str]:
    """What the server has in its file, which is as it is only between two writes."""
    lines = file.read_text().splitlines() if file.exists() else []
    found = {}
    for line in lines:
        with suppress(ValueError):
            entity = json.loads(line)
            found[entity["name"]] = entity["observations"][-1] if entity["observations"] else ""
    return found


def held(hub: Hub) -> set[str]:
    return {task["task_id"] for task in hub.get("/api/v1/tasks")["tasks"] if task["claim"]}


def test_a_worker_that_dies_loses_its_lock_once_and_everybody_can_see_it(tmp_path: Path, server: str) -> None:
    file = tmp_path / "memory.jsonl"
    env = {"LIFESIGNS_MEMORY_COMMAND": server}
    with serving(tmp_path, {"memory": {"file": str(file)}}, env=env) as hub:
        worker = hub.python("worker.py", WORKER, str(file))
        hub.python("bystander.py", BYSTANDER)
        hub.until(lambda: held(hub) == {"task-123", "task-789"}, "both hold their locks")
        lock = "task-sentinel/tasks/task-123/lock"
        hub.until(lambda: lock in kept(file), "the lock is in the memory")
        seen = hub.cli("memory", "get", "task-sentinel/workers/worker-local-1/heartbeat", "--file", str(file))
        assert json.loads(seen.stdout)["worker_id"] == "worker-local-1"
        worker.send_signal(signal.SIGKILL)
        worker.wait()
        died_at = time.monotonic()
        hub.until(lambda: held(hub) == {"task-789"}, "the lock is released, and only that one")
        assert time.monotonic() - died_at > 2.0, "it was released before it was stale"
        until(lambda: any(key.startswith(RECOVERIES) for key in kept(file)), "the recovery is in the memory")
        until(lambda: lock not in kept(file), "the lock is gone from the memory")
        (key,) = hub.cli("memory", "list", f"{RECOVERIES}*", "--file", str(file)).stdout.split()
        recovery = json.loads(kept(file)[key])
        assert (recovery["worker_id"], recovery["task_id"]) == ("worker-local-1", "task-123")
        assert recovery["stale_duration"] >= 3000
        listed = json.loads(hub.cli("claims", "recovered", "--json").stdout)["recovered"]
        assert [(one["agent_id"], one["task_id"]) for one in listed] == [("worker-local-1", "task-123")]


def test_what_the_document_types_at_the_memory_server_is_done_by_our_commands(
    tmp_path: Path, server: str
) -> None:
    """`store`, `retrieve`, `list-keys` of "Monitoring and debugging" and "Troubleshooting": the server itself has no commands."""
    env = environment(LIFESIGNS_MEMORY_COMMAND=server, MEMORY_FILE_PATH=str(tmp_path / "memory.jsonl"))

    def typed(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "lifesigns", "memory", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=env)

    assert typed("get", "test-heartbeat").returncode == 1
    for value in ('{"test": false}', '{"test": true}'):
        assert typed("put", "test-heartbeat", value).returncode == 0
    assert typed("get", "test-heartbeat").stdout == '{"test": true}\n'
    assert typed("put", "task-sentinel/workers/worker-local-1/heartbeat", "{}").returncode == 0
    assert typed("list", "task-sentinel/workers/*/heartbeat").stdout.split() == [
        "task-sentinel/workers/worker-local-1/heartbeat"
    ]


def scraped(hub: Hub, name: str, worker: str) -> float | None:
    """One number of a worker, as Prometheus would read it."""
    for line in str(hub.get("/metrics")).splitlines():
        if line.startswith(f'{name}{{agent="{worker}"}} '):
            return float(line.rpartition(" ")[2])
    return None


def test_metrics_are_a_time_series_at_the_hub_under_the_keys_of_the_document_and_in_prometheus(
    tmp_path: Path,
) -> None:
    """ "Example heartbeat" posted as it stands there, "Metrics collection" and "Monitoring and debugging" looked up, without any server but ours."""
    heartbeat = {
        "worker_id": "worker-local-1",
        "timestamp": int(time.time() * 1000),
        "health_status": "healthy",
        "current_tasks": ["task-123", "task-456"],
        "capacity_available": 3,
        "metrics": {
            "cpu_usage": 45.2,
            "memory_usage": 2048,
            "tasks_completed": 42,
            "tasks_failed": 2,
            "uptime": 7200,
        },
    }
    series = "task-sentinel/metrics/heartbeats/worker-local-1/"
    with serving(tmp_path) as hub:
        hub.post("/api/v1/beats", heartbeat)
        hub.post("/api/v1/beats", {"agent_id": "no-worker"})

        def listed(pattern: str) -> list[str]:
            return hub.cli("memory", "list", pattern).stdout.split()

        assert listed("task-sentinel/workers/*/heartbeat") == [
            "task-sentinel/workers/no-worker/heartbeat",
            "task-sentinel/workers/worker-local-1/heartbeat",
        ]
        seen = json.loads(hub.cli("memory", "get", "task-sentinel/workers/worker-local-1/heartbeat").stdout)
        assert {**seen, "timestamp": 0} == {**heartbeat, "timestamp": 0}
        hub.until(lambda: listed(f"{series}*"), "the series has an entry", 90)
        key = listed(f"{series}*")[0]
        at = int(key.removeprefix(series))
        assert abs(at - heartbeat["timestamp"]) <= 120_000  # type: ignore[operator]
        assert json.loads(hub.cli("memory", "get", key).stdout) == {
            "timestamp": at,
            "health_status": "healthy",
            "task_count": 2,
            "capacity_available": 3,
            "metrics": heartbeat["metrics"],
        }
        assert hub.cli("memory", "get", f"{series}17", check=False).returncode == 1
        for name, wanted in (
            ("cpu_percent", 45.2),
            ("memory_bytes", 2048 * 1024 * 1024),
            ("tasks", 2),
            ("capacity_available", 3),
            ("tasks_completed_total", 42),
            ("tasks_failed_total", 2),
        ):
            assert scraped(hub, f"lifesigns_worker_{name}", "worker-local-1") == wanted
            assert scraped(hub, f"lifesigns_worker_{name}", "no-worker") is None
        hub.stop()
        hub.start()
        assert key in listed(f"{series}*"), "it is still there after a restart"


def test_a_list_that_leaves_workers_out_says_so(tmp_path: Path) -> None:
    """A list looks at the series of at most 200 workers; it used to look complete."""
    with serving(tmp_path) as hub:

        def listed(pattern: str) -> tuple[bool, int]:
            found = hub.get(f"/api/v1/memory/keys?pattern={pattern}")
            return found["complete"], found["workers_left_out"]

        hub.post("/api/v1/beats", [{"agent_id": f"w-{n:03}"} for n in range(200)])
        assert listed("*") == (True, 0)
        hub.post("/api/v1/beats", [{"agent_id": f"w-{n:03}"} for n in range(200, 203)])
        assert listed("*") == (False, 3)
        assert listed("task-sentinel/metrics/heartbeats/w-2*") == (True, 0)
        assert listed("task-sentinel/workers/*") == (True, 0)
        told = hub.cli("memory", "list")
        assert sum(key.endswith("/heartbeat") for key in told.stdout.split()) == 203
        assert told.stderr == "The series of 3 workers more were not looked at: narrow the pattern.\n"
        assert hub.cli("memory", "list", "task-sentinel/workers/*").stderr == ""
