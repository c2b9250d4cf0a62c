"""No field of a beat is accepted and ignored: another value changes something that its user sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.outside import Hub, serving

JUDGED: dict[str, tuple[Any, Any]] = {
    "incarnation": ("life-1", "life-2"),
    "status": ("healthy", "degraded"),
    "doing": ("working", "idle"),
    "load": (0.1, 9),
    "task_id": ("t-1", "t-2"),
    "tasks": (["t-1"], ["t-2"]),
    "token_count": (5000, 7000),
    "cost_usd": (1.5, 5.0),
    "error_count": (1, 3),
    "capacity_available": (1, 4),
    "loop_lag_ms": (1, 120_000),
    "host": ("ws-1", "ws-2"),
    "role": ("active-development", "background"),
}
"""What changes how an agent is seen: its state, its metrics or a finding."""

SHOWN: dict[str, tuple[Any, Any]] = {
    "timestamp": ("2026-11-15T18:00:00.000Z", "2026-11-15T18:00:01.000Z"),
    "seq": (1, 2),
    "phase": ("build", "test"),
    "progress": ("1/7", "2/7"),
    "last_tool_call": ("2026-11-15T18:00:00Z", "2026-11-15T18:00:01Z"),
    "last_checkpoint": ("2026-11-15T18:00:00Z", "2026-11-15T18:00:01Z"),
    "metrics": ({"cpu_percent": 1, "tasks_completed": 1}, {"cpu_percent": 2, "tasks_completed": 2}),
    "pid": (1, 2),
    "metadata": ({"a": "1"}, {"a": "2"}),
    "current_phase": ("build", "test"),
    "last_tool_call_timestamp": ("2026-11-15T18:00:00Z", "2026-11-15T18:00:01Z"),
    "progress_indicator": ("1/7", "2/7"),
}
"""What is in the last beat as people see it; some of it is judged when it stands still for long."""

DIALECTS: dict[str, tuple[str, dict[str, tuple[Any, Any]]]] = {
    "IMPL-REQ-003": (
        "agentId",
        {
            "taskId": ("t-1", "t-2"),
            "tokenCount": (5000, 7000),
            "errorCount": (1, 2),
            "phase": ("build", "test"),
            "lastToolCall": ("2026-11-15T18:00:00Z", "2026-11-15T18:00:01Z"),
            "progressIndicator": ("1/7", "2/7"),
        },
    ),
    "Task Sentinel": (
        "worker_id",
        {
            "health_status": ("healthy", "unhealthy"),
            "current_tasks": (["t-1"], ["t-2"]),
            "capacity_available": (1, 3),
            "metrics": ({"cpu_usage": 1, "memory_usage": 5}, {"cpu_usage": 2, "memory_usage": 6}),
        },
    ),
    "agentkit": (
        "agent_id",
        {
            "status": ("idle", "degraded"),
            "metadata": ({"tokens_in": "5", "tokens_out": "1"}, {"tokens_in": "7", "tokens_out": "1"}),
        },
    ),
}

VOLATILE = {
    "agent_id",
    "last_heartbeat",
    "state_changed_at",
    "since_heartbeat_s",
    "doing_since",
    "received_at",
    "phi",
}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    folder: Path = tmp_path_factory.mktemp("fields")
    with serving(folder) as running:
        yield running


def seen(hub: Hub, agent_id: str, path: str = "") -> Any:
    view = hub.get(f"/api/v1/agents/{agent_id}{path}")
    return _lasting(view)


def _lasting(view: Any) -> Any:
    if isinstance(view, dict):
        return {
            key: _lasting(value)
            for key, value in view.items()
            if key not in VOLATILE and key != "uptime_seconds"
        }
    if isinstance(view, list):
        return [_lasting(value) for value in view]
    return view


def differs(hub: Hub, id_name: str, field: str, values: tuple[Any, Any], path: str) -> bool:
    agents = [f"{field}-{id_name}-{number}" for number in (1, 2)]
    for agent, value in zip(agents, values, strict=True):
        hub.post("/api/v1/beats", {id_name: agent, field: value})
    first, second = (seen(hub, agent, path) for agent in agents)
    return bool(first != second)


@pytest.mark.parametrize("field", JUDGED)
def test_another_value_is_another_agent(hub: Hub, field: str) -> None:
    assert differs(hub, "agent_id", field, JUDGED[field], "")


@pytest.mark.parametrize("field", SHOWN)
def test_another_value_is_shown(hub: Hub, field: str) -> None:
    assert differs(hub, "agent_id", field, SHOWN[field], "/heartbeat")


@pytest.mark.parametrize(
    ("dialect", "field"), [(name, field) for name, (_, fields) in DIALECTS.items() for field in fields]
)
def test_another_value_in_another_dialect_is_shown(hub: Hub, dialect: str, field: str) -> None:
    id_name, fields = DIALECTS[dialect]
    assert differs(hub, id_name, field, fields[field], "/heartbeat")


def test_until_keeps_a_busy_agent_from_being_missed(hub: Hub) -> None:
    """Its effect is a deadline: `tests/core/test_said_and_meant.py` has the moments."""
    assert differs(
        hub, "agent_id", "until", ("2026-11-15T18:00:00.000Z", "2026-11-15T18:00:05.000Z"), "/heartbeat"
    )


def test_every_field_that_the_api_documents_is_walked_through_here(hub: Hub) -> None:
    documented = hub.get("/openapi.json")["components"]["schemas"]["WireBeat"]["properties"]
    assert set(documented) == {"agent_id", "until", *JUDGED, *SHOWN}


def test_the_api_documents_what_becomes_of_a_load_beyond_its_bounds(hub: Hub) -> None:
    """Refusing the beat of an agent under load would make it silent: it lives, and its load counts as 1."""
    load = hub.get("/openapi.json")["components"]["schemas"]["WireBeat"]["properties"]["load"]
    assert "maximum" not in str(load)
    hub.post("/api/v1/beats", {"agent_id": "hot", "load": 9})
    agent = hub.agent("hot")
    assert agent is not None
    assert agent["load"] == 1.0
