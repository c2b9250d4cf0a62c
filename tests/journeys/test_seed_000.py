"""Seed 000, typed from the document: its agent, its monitor, its acceptance criteria AC1 to AC3, in processes of their own.
AC4, a minute of a hundred agents, is in `tests/acceptance/test_seed_000.py`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.outside import environment

PRELUDE = """
import asyncio, json, os, time
from lifesigns import AgentHealthMonitor

class Agent:
    "An EventEmitter that sets up its heartbeat, as in the document."
    def __init__(self, name):
        self.name, self.listeners = name, {}
        self.on("heartbeat-ping", lambda ping: self.emit("heartbeat-response-" + ping["id"]))
    def on(self, event, listener):
        self.listeners.setdefault(event, []).append(listener)
    def emit(self, event, *data):
        for listener in list(self.listeners.get(event, ())):
            listener(*data)
    def removeAllListeners(self, event):
        self.listeners.pop(event, None)

def say(what, **more):
    os.write(1, json.dumps({"what": what, "at": time.time(), **more}).encode() + b"\\n")  # Whole, from any thread.

def tell(event):
    say(event.name, agent=event.agent, code=event.code, type=event.type, downtime=event.downtime)

async def until(holds):
    while not holds():
        await asyncio.sleep(0.02)

monitor = AgentHealthMonitor()
monitor.on("*", tell)
agent = Agent("TestAgent")
"""
PROGRAMS = {
    "terminated": """
async def main():
    monitor.registerAgent(agent)
    await until(lambda: monitor.getHealth("TestAgent").status == "healthy")
    say("removed")
    agent.removeAllListeners("heartbeat-ping")
    await until(lambda: monitor.getHealth("TestAgent").status == "disconnected")
    say("end", all={name: state.status for name, state in monitor.getAllHealth().items()},
        count=monitor.getMetrics("TestAgent").disconnection_count)
""",
    "idle": """
async def main():
    monitor.registerAgent(agent)
    await asyncio.sleep(10)  # twice the activity timeout
    metrics = monitor.getMetrics("TestAgent")
    say("end", status=monitor.getHealth("TestAgent").status, beats=metrics.total_heartbeats,
        idle=time.time() - metrics.last_activity)
""",
    "frozen": """
async def main():
    monitor.registerAgent(agent)
    await until(lambda: monitor.getHealth("TestAgent").status == "healthy")
    monitor.on("agent-disconnected", lambda event: os._exit(0))
    def freeze(ping):
        say("frozen")
        while True: pass
    agent.on("heartbeat-ping", freeze)
    await asyncio.sleep(60)
""",
    "back": """
async def main():
    monitor.registerAgent(agent)
    await until(lambda: monitor.getHealth("TestAgent").status == "healthy")
    answering = agent.listeners["heartbeat-ping"]
    agent.removeAllListeners("heartbeat-ping")
    await until(lambda: monitor.getHealth("TestAgent").status == "disconnected")
    agent.listeners["heartbeat-ping"] = answering
    await until(lambda: monitor.getHealth("TestAgent").status == "healthy")
    agent.emit("agent-removed")
    await until(lambda: monitor.getHealth("TestAgent") is None)
    say("end", all=list(monitor.getAllHealth()))
""",
}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What each program printed; they run at once."""
    folder, running = tmp_path_factory.mktemp("seed-000"), dict[str, subprocess.Popen[str]]()
    for name, program in PROGRAMS.items():
        script = Path(folder / f"{name}.py")
        script.write_text(f"{PRELUDE}{program}\nasyncio.run(main())\n")
        running[name] = subprocess.Popen(
            [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment()
        )
    try:
        said = {name: process.communicate(timeout=60)[0] for name, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    assert [name for name, process in running.items() if process.returncode] == []
    return {name: [json.loads(line) for line in lines.splitlines()] for name, lines in said.items()}


def first(said: list[dict[str, Any]], what: str) -> dict[str, Any]:
    return next(line for line in said if line["what"] == what)


def test_an_agent_that_stops_answering_is_disconnected_within_five_seconds(
    told: dict[str, list[dict[str, Any]]],
) -> None:
    """AC1."""
    said = told["terminated"]
    event = first(said, "agent-disconnected")
    assert event["at"] - first(said, "removed")["at"] < 5
    assert (event["agent"], event["code"], event["type"]) == (
        "TestAgent",
        "missed_heartbeats",
        "event-loop-freeze",
    )
    end = first(said, "end")
    assert (end["all"], end["count"]) == ({"TestAgent": "disconnected"}, 1)


def test_an_idle_agent_remains_healthy(told: dict[str, list[dict[str, Any]]]) -> None:
    """AC2: its heartbeats succeed, and an answer is no activity."""
    end = first(told["idle"], "end")
    assert end["status"] == "healthy"
    assert end["beats"] >= 3
    assert end["idle"] >= 9.5
    assert [line["what"] for line in told["idle"]] == ["agent-healthy", "end"]


def test_a_frozen_event_loop_is_found_within_five_seconds(told: dict[str, list[dict[str, Any]]]) -> None:
    """AC3."""
    event = first(told["frozen"], "agent-disconnected")
    assert event["type"] == "event-loop-freeze"
    assert event["at"] - first(told["frozen"], "frozen")["at"] < 5


def test_a_reconnected_agent_recovers_and_a_removed_one_is_forgotten(
    told: dict[str, list[dict[str, Any]]],
) -> None:
    said = told["back"]
    names = [line["what"] for line in said if line["what"].startswith("agent-")]
    assert names[:4] == ["agent-healthy", "agent-disconnected", "agent-reconnected", "agent-healthy"]
    assert first(said, "agent-reconnected")["downtime"] > 0
    assert first(said, "end")["all"] == []
