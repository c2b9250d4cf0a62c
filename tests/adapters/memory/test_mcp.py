"""The MCP memory, with the real server: `@modelcontextprotocol/server-memory` from npm, over stdio."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from lifesigns.adapters.memory.mcp import McpMemory
from lifesigns.agent.memory_writer import MemoryWriter, WriteFailure
from lifesigns.agent.sender.session import Alert
from lifesigns.cli import main
from lifesigns.errors import AdapterError
from lifesigns.integrations.task_sentinel import HeartbeatMonitor
from tests.servers.mcp_memory import memory_server


@pytest.fixture(scope="session")
def server() -> tuple[str, ...]:
    return memory_server()


def until(holds: Callable[[], bool], within: float = 60.0) -> None:
    by = time.monotonic() + within
    while not holds():
        assert time.monotonic() < by, f"not within {within} s"
        time.sleep(0.05)


def test_a_value_is_written_read_replaced_listed_and_deleted(server: tuple[str, ...], tmp_path: Path) -> None:
    memory = McpMemory(tmp_path / "memory.jsonl", server)
    try:
        assert memory.get("a/1") is None
        memory.put("a/1", '{"n": 1}')
        memory.put("a/1", '{"n": 2}')
        memory.put("a/1", '{"n": 2}')
        memory.put("b/1", "other")
        assert memory.get("a/1") == '{"n": 2}'
        assert memory.keys() == ["a/1", "b/1"]
        assert memory.keys("a/*") == ["a/1"]
        memory.delete(["b/1", "never there"])
        assert memory.keys() == ["a/1"]
    finally:
        memory.close()
    again = McpMemory(tmp_path / "memory.jsonl", server)
    assert again.get("a/1") == '{"n": 2}'
    again.close()


def test_two_writers_on_one_file_lose_nothing(server: tuple[str, ...], tmp_path: Path) -> None:
    """Each server writes the whole file; without the lock most of these are gone."""
    file = tmp_path / "memory.jsonl"

    def write(name: str) -> None:
        memory = McpMemory(file, server)
        for n in range(15):
            memory.put(f"{name}/{n}", str(n))
        memory.close()

    threads = [threading.Thread(target=write, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    memory = McpMemory(file, server)
    assert len(memory.keys()) == 30
    memory.close()


def test_a_server_that_is_killed_is_started_again(server: tuple[str, ...], tmp_path: Path) -> None:
    memory = McpMemory(tmp_path / "memory.jsonl", server)
    memory.put("a", "1")
    assert memory._server is not None
    memory._server.kill()
    memory._server.wait()
    memory.put("a", "2")
    assert memory.get("a") == "2"
    memory.close()


def test_a_worker_keeps_its_heartbeat_there_and_the_command_line_finds_it(
    server: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 003, typed as there: a worker, its tasks, and the keys of its protocol."""
    file = tmp_path / "memory.jsonl"
    monkeypatch.setenv("LIFESIGNS_MEMORY_COMMAND", " ".join(server))
    monitor = HeartbeatMonitor(
        "worker-local-1",
        "org/repo",
        {"heartbeatInterval": 200},
        hub="memory://sentinel",
        capacity=5,
        memory=file,
    )
    monitor.start()
    monitor.addTask("task-123")
    monitor.addTask("task-456")
    monitor.recordTaskCompletion()
    key = "task-sentinel/workers/worker-local-1/heartbeat"

    def heartbeat() -> dict[str, object]:
        shown = CliRunner().invoke(main, ["memory", "get", key, "--file", str(file)])
        return dict(json.loads(shown.stdout)) if shown.exit_code == 0 else {}

    until(lambda: heartbeat().get("current_tasks") == ["task-123", "task-456"])
    said = heartbeat()
    assert (said["worker_id"], said["capacity_available"]) == ("worker-local-1", 3)
    assert set(said["metrics"]) == {"cpu_usage", "memory_usage", "tasks_completed", "tasks_failed", "uptime"}  # type: ignore[call-overload]
    listed = CliRunner().invoke(main, ["memory", "list", "task-sentinel/tasks/*", "--file", str(file)])
    assert listed.stdout.splitlines() == [
        "task-sentinel/tasks/task-123/lock",
        "task-sentinel/tasks/task-456/lock",
    ]
    monitor.removeTask("task-123")
    monitor.stop()
    memory = McpMemory(file, server)
    assert memory.keys("task-sentinel/tasks/*") == ["task-sentinel/tasks/task-456/lock"]
    assert memory.keys("task-sentinel/metrics/heartbeats/worker-local-1/*")
    memory.close()


def test_a_key_that_is_not_there_is_said(
    server: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIFESIGNS_MEMORY_COMMAND", " ".join(server))
    asked = CliRunner().invoke(main, ["memory", "get", "nothing", "--file", str(tmp_path / "m.jsonl")])
    assert asked.exit_code == 1


# --- without it ------------------------------------------------------------------------------------------------------


def test_a_server_that_ends_or_cannot_be_started_is_an_error_with_its_reason(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="ended before it answered"):
        McpMemory(tmp_path / "m.jsonl", (sys.executable, "-c", "pass")).get("a")
    with pytest.raises(AdapterError, match="cannot be started"):
        McpMemory(tmp_path / "m.jsonl", ("/no/such/program",)).get("a")


def test_a_memory_that_is_away_never_holds_the_worker_up_and_is_alerted_after_three(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Retries, counts, alerts; and the worker goes on."""
    monkeypatch.setenv("LIFESIGNS_MEMORY_COMMAND", f"{sys.executable} -c pass")
    alerts: list[Alert | WriteFailure] = []
    monitor = HeartbeatMonitor(
        "w",
        None,
        {"heartbeat_interval": 100, "retry_delay": 10},
        hub="memory://away",
        memory=tmp_path / "m.jsonl",
        on_alert=alerts.append,
    )
    monitor.start()
    began = time.monotonic()
    for n in range(100):
        monitor.add_task(f"t-{n}")
    assert time.monotonic() - began < 2.0
    until(lambda: any(isinstance(alert, WriteFailure) for alert in alerts))
    told = next(alert for alert in alerts if isinstance(alert, WriteFailure))
    assert told.consecutive_failures == 3
    assert "ended before it answered" in told.error
    assert monitor.get_failures()
    assert len(monitor.get_current_tasks()) == 100
    monitor.stop()


def test_of_a_key_the_newest_value_wins_and_the_queue_is_bounded(tmp_path: Path) -> None:
    class Slow:
        def __init__(self) -> None:
            self.values: dict[str, str] = {}
            self.go = threading.Event()

        def put(self, key: str, value: str) -> None:
            self.go.wait(10)
            self.values[key] = value

        def get(self, key: str) -> str | None:
            return self.values.get(key)

        def keys(self, pattern: str = "*") -> list[str]:
            return sorted(self.values)

        def delete(self, keys: object) -> None: ...
        def close(self) -> None: ...

    memory = Slow()
    writer = MemoryWriter(memory)
    writer.start()
    writer.put("first", "holds the thread")
    for n in range(5_000):
        writer.put("same", str(n))
        writer.put(f"key-{n}", "x")
    assert writer.dropped > 3_000
    memory.go.set()
    writer.stop(10)
    assert memory.values["same"] == "4999"
    assert len(memory.values) <= 1_001
