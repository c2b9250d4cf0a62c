"""Fields of signals are not accepted and ignored: another value changes something that its user sees over HTTP.

Not every field is here yet: those of orders' outcomes, of nudges and messages that were received, digests, and what shows
only in a list of checkpoints or in a text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.journeys.outside import Hub, serving
from tests.journeys.test_every_field_of_a_beat import VOLATILE

Said = dict[str, Any]
TASK = {"type": "task_assigned", "task_id": "{}-t"}
STARTED = {"type": "tool_started", "call_id": "c1", "tool": "bash", "args": "ls"}
FINISHED = {"type": "tool_finished", "call_id": "c1", "tool": "bash", "args": "ls", "result": "r"}

ROWS: dict[str, tuple[list[Said], dict[str, tuple[Any, Any]]]] = {
    "registered": (
        [],
        {
            "incarnation": ("1", "2"),
            "role": ("background", "plain"),
            "host": ("ws-1", "ws-2"),
            "task_id": ("{}-t1", "{}-t2"),
        },
    ),
    "activity": ([], {"incarnation": ("1", "2")}),
    "tool_started": ([], {"incarnation": ("1", "2")}),
    "tool_finished": (
        [FINISHED | {"call_id": "c0"}] * 3,
        {
            "tool": ("bash", "ls"),
            "args": ("ls", "cd"),
            "result": ("r", "s"),
            "ok": (True, False),
            "incarnation": ("1", "2"),
            "retry": (True, False),
        },
    ),
    "model_finished": (
        [],
        {
            "tokens_in": (1, 2),
            "tokens_out": (1, 2),
            "cost_usd": (1.0, 2.0),
            "cost": (1.0, 2.0),
            "ok": (True, False),
            "incarnation": ("1", "2"),
        },
    ),
    "checkpoint": (
        [TASK],
        {
            "task_id": ("{}-t1", "{}-t2"),
            "incarnation": ("1", "2"),
        },
    ),
    "progress": ([TASK], {"task_id": ("{}-t1", "{}-t2"), "incarnation": ("1", "2")}),
    "error": (
        [],
        {"recoverable": (True, False), "incarnation": ("1", "2")},
    ),
    "doing": (
        [],
        {
            "doing": ("idle", "waiting_for_human"),
            "note": ("a", "b"),
            "incarnation": ("1", "2"),
        },
    ),
    "pong": ([], {"status": ("ok", "degraded"), "incarnation": ("1", "2")}),
    "task_assigned": (
        [],
        {"task_id": ("{}-t1", "{}-t2"), "expected_for": (60, 600), "incarnation": ("1", "2")},
    ),
    "task_done": ([TASK], {"task_id": ("{}-t", "{}-u"), "incarnation": ("1", "2")}),
    "task_failed": ([TASK], {"task_id": ("{}-t", "{}-u"), "incarnation": ("1", "2")}),
    "claim": ([], {"task_id": ("{}-t", "{}-u"), "incarnation": ("1", "2")}),
    "message_sent": (
        [],
        {
            "message_id": ("{}-m", "{}-n"),
            "to": ("{}", "other"),
            "priority": ("normal", "high"),
            "incarnation": ("1", "2"),
        },
    ),
    "breaker": (
        [],
        {
            "name": ("a", "b"),
            "state": ("open", "half_open"),
            "failures": (1, 2),
            "until": (2e9, 2e9 + 60),
            "incarnation": ("1", "2"),
        },
    ),
    "left": ([], {"reason": ("done", "bored"), "incarnation": ("1", "2")}),
    "exited": ([], {"status": (0, 1), "signal": (9, 15), "detail": ("a", "b"), "incarnation": ("1", "2")}),
}
BASE: dict[str, Said] = {
    "activity": {"kind": "output"},
    "tool_started": STARTED,
    "tool_finished": FINISHED | {"call_id": "c9"},
    "model_finished": {"call_id": "m"},
    "checkpoint": {"checkpoint_id": "c"},
    "error": {"message": "no"},
    "doing": {"doing": "busy"},
    "task_assigned": {"task_id": "{}-t"},
    "task_done": {"task_id": "{}-t"},
    "task_failed": {"task_id": "{}-t"},
    "claim": {"task_id": "{}-t"},
    "message_sent": {"message_id": "{}-m", "to": "somebody"},
    "breaker": {"name": "a", "state": "open"},
}
CASES = [(kind, field) for kind, (_, fields) in ROWS.items() for field in fields]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with serving(tmp_path_factory.mktemp("signals")) as running:
        running.post("/api/v1/beats", [{"agent_id": "somebody"}, {"agent_id": "other"}])
        yield running


def named(agent: str, value: Any) -> Any:
    return json.loads(json.dumps(value).replace("{}", agent))


VARYING = VOLATILE | {
    "id",
    "at",
    "uptime_seconds",
    "sent_at",
    "since",
    "deadline",
    "last_checkpoint",
    "created_at",
    "expires_at",
    "text",
}


def lasting(view: Any, agent: str) -> Any:
    if isinstance(view, dict):
        return {key: lasting(value, agent) for key, value in view.items() if key not in VARYING}
    if isinstance(view, list):
        return [lasting(value, agent) for value in view]
    return view.replace(agent, "{}") if isinstance(view, str) else view


def story(hub: Hub, agent: str) -> Any:
    """All that is shown of an agent: itself, its tasks, its messages, what happened."""
    views = [hub.agent(agent), hub.events(agent=agent)]
    views += [[row for row in hub.get(path)[rows] if agent in str(row)] for path, rows in LISTS]
    return lasting(views, agent)


LISTS = (("/api/v1/tasks", "tasks"), ("/api/v1/messages", "messages"))


@pytest.mark.parametrize(("kind", "field"), CASES)
def test_another_value_is_another_story(hub: Hub, kind: str, field: str) -> None:
    setup, fields = ROWS[kind]
    stories = []
    for number, value in enumerate(fields[field]):
        agent = f"{kind}.{field}.{number}"
        hub.post("/api/v1/beats", {"agent_id": agent, "incarnation": "1"})
        for said in setup:
            hub.post("/api/v1/signals", named(agent, {"agent_id": agent, **said}))
        base = {name: known for name, known in BASE.get(kind, {}).items() if f"{name}_digest" != field}
        hub.post("/api/v1/signals", named(agent, {"agent_id": agent, **base, "type": kind, field: value}))
        stories.append(story(hub, agent))
    assert stories[0] != stories[1]
