"""Agents that a hub starts by a command on its own machine: their program, and what it wrote down of its lives."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.journeys.outside import Hub, Json

AGENT = """
import os, sys, time
with open("starts", "a") as starts:
    starts.write(f"{os.getpid()} {os.environ.get('LIFESIGNS_INCARNATION', '')}\\n")
time.sleep(float(sys.argv[1]) if len(sys.argv) > 1 else 0)
import lifesigns
with lifesigns.Sender("coder", task="t-1", interval=0.5) as life:
    with open("lives", "a") as lives:
        lives.write(f"{os.getpid()}\\n")
    while True:
        time.sleep(0.2)
"""
"""Says in files when it is started and when it speaks."""

SWIFT: Json = {
    "profile": "swift",
    "policy": {
        "silence": {"interval": 0.5, "timeout": 3.0},
        "ladder": {"hesitate_for": 0.2, "escalation_timeout": 1.0, "save_for": 0.5},
        "respawn": {"backoff": [0.5], "jitter": 0.0, "start_timeout": 4.0, "hesitate_for": 0.5},
    },
}


def config(command: str = "", **respawn: Any) -> Json:
    policy = {**SWIFT["policy"], "respawn": {**SWIFT["policy"]["respawn"], **respawn}}
    by = [{"agents": "coder", "command": command, "shell": True}] if command else []
    return {**SWIFT, "policy": policy, "respawn": by}


class Started:
    """What the agent's program wrote down in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "agent.py").write_text(AGENT)

    def command(self, sleeps: float = 0.0) -> str:
        return f"cd {self.folder} && exec {sys.executable} agent.py {sleeps}"

    @property
    def starts(self) -> list[int]:
        return [int(line.split()[0]) for line in self._lines("starts")]

    @property
    def lives(self) -> list[int]:
        return [int(line) for line in self._lines("lives")]

    def living(self) -> list[int]:
        return [pid for pid in self.starts if _incarnations(pid)]

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []


def _incarnations(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def started(folder: Path) -> Iterator[Started]:
    """Nobody whom the hub started stays behind."""
    those = Started(folder)
    try:
        yield those
    finally:
        for pid in those.living():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def crash(hub: Hub, agent_id: str = "coder") -> None:
    """A life of the agent that ended by an error, as its supervisor tells it."""
    hub.post("/api/v1/beats", {"agent_id": agent_id, "seq": 1, "incarnation": "first", "task_id": "t-1"})
    word = {"type": "exited", "agent_id": agent_id, "incarnation": "first", "status": 1}
    hub.post("/api/v1/signals", [word])


def interventions(hub: Hub, rung: str, stage: str) -> list[Json]:
    found = hub.events("INTERVENTION", agent="coder")
    return [event for event in found if (event["data"]["rung"], event["data"]["stage"]) == (rung, stage)]


def lost(hub: Hub) -> list[Json]:
    """When it was found to be disconnected."""
    flips = hub.events("HEALTH_STATE_CHANGED", agent="coder")
    return [event for event in flips if event["data"]["to"] == "disconnected"]
