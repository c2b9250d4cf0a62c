"""Plain beats: exactly the fields of the seed documents, without an incarnation or a sequence."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from lifesigns.core import signals as s
from lifesigns.core.health import Doing
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.simulated_agent import SimulatedAgent

BEGINNING: Final = 1_767_225_600.0
"""The simulated world begins with 2026."""


def moment(agent: SimulatedAgent, at: float) -> str:
    """A timestamp of the agent's own clock."""
    return datetime.fromtimestamp(BEGINNING + at + agent.skew, UTC).isoformat()


def beat(agent: SimulatedAgent, **fields: Any) -> s.BeatReceived:
    """A beat with these fields and the time."""
    return s.BeatReceived(agent.id, sent_at=agent.now + agent.skew, **fields)


def seven_fields(agent: SimulatedAgent, number: int, **other: Any) -> dict[str, Any]:
    """Seed 002: the fields of FR-002, of an agent that makes progress."""
    return {
        "task_id": "task-1",
        "phase": "implementing",
        "last_tool_call": moment(agent, agent.now - 30.0),
        "token_count": 2000 * number,
        "error_count": 0,
        "progress": f"{number} files",
    } | other


def metrics(agent: SimulatedAgent, done: int, cpu: float, memory: float) -> dict[str, Any]:
    """Seed 003: a worker's beat."""
    of = s.Metrics(cpu, memory, tasks_completed=done, tasks_failed=0, uptime_s=agent.now)
    return {"status": "healthy", "tasks": ("task-123", "task-456"), "capacity_available": 3, "metrics": of}


def swarm(agent: SimulatedAgent) -> s.BeatReceived:
    """Seed 001: agent, timestamp, status, load, metadata."""
    doing = Doing.WORKING if agent.now // (20 * MINUTE) % 2 else Doing.IDLE
    return beat(agent, status=str(doing), doing=doing, load=0.6, metadata={"version": "1.4"})


def fleet(agent: SimulatedAgent) -> s.BeatReceived:
    """Seed 002, with progress."""
    return beat(agent, **seven_fields(agent, int(agent.now // MINUTE)))


def worker(agent: SimulatedAgent) -> s.BeatReceived:
    """Seed 003, at a moderate pace."""
    return beat(agent, **metrics(agent, int(agent.now // MINUTE), 45.2, 2048.0))
