"""Seed 004: a message that is not acknowledged is noticed. Its recipient is reminded, and it does not vanish."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, Refused, serving

CONFIG: dict[str, object] = {"profile": "swift", "policy": {"message": {"urgent": "2s", "high": "2s"}}}

RECIPIENT = """
import time
import lifesigns

with lifesigns.Sender("reviewer", on_nudge=lambda nudge: print(nudge.text, flush=True)):
    time.sleep(60)
"""


def test_a_reminder_reaches_the_recipient_and_the_message_stays_listed(tmp_path: Path) -> None:
    with serving(tmp_path, CONFIG) as hub:
        hub.cli("beat", "planner")
        with pytest.raises(Refused) as unknown:
            hub.post("/api/v1/messages", {"agent_id": "planner", "to": "reviewer"})
        assert unknown.value.status == 404
        recipient = hub.python("reviewer.py", RECIPIENT)
        hub.until(lambda: hub.health("reviewer") == "healthy", "the recipient is there")
        hub.post(
            "/api/v1/messages",
            {"agent_id": "planner", "to": "reviewer", "priority": "high", "message_id": "m-1"},
        )
        hub.until(
            lambda: "Message m-1 from planner (high)" in hub.output(recipient), "the recipient is reminded"
        )
        hub.until(lambda: len(hub.events("MESSAGE_OVERDUE")) == 2, "it is overdue after the reminder, too")
        (listed,) = hub.get("/api/v1/messages")["messages"]
        assert (listed["message_id"], listed["due_at"]) == ("m-1", None)
        assert listed["overdue_at"] is not None
        hub.post("/api/v1/messages/m-1/ack", {"agent_id": "reviewer"})
        assert json.dumps(hub.get("/api/v1/messages")["messages"]) == "[]"


def test_what_cannot_be_delivered_has_a_code_and_what_can_is_delivered_read_and_acknowledged(
    tmp_path: Path,
) -> None:
    """1.4.1, over the REST API: unknown, then there, then lost. The content is carried; each step is its own."""
    with serving(tmp_path, CONFIG) as hub:
        hub.cli("beat", "planner")
        message = {"agent_id": "planner", "to": "reviewer", "subject": "Task", "content": {"message": "do X"}}
        assert refusal(hub, message) == (404, "agent_not_found")
        hub.post("/api/v1/beats", {"agent_id": "reviewer"})
        sent = hub.post("/api/v1/messages", {**message, "message_id": "m-2"})
        assert (sent["subject"], sent["delivered_at"], sent["read_at"]) == ("Task", None, None)
        (found,) = hub.get("/api/v1/agents/reviewer/messages")["messages"]
        assert (found["content"], found["read_at"]) == ({"message": "do X"}, None)
        (listed,) = hub.get("/api/v1/messages")["messages"]
        assert (listed["delivered_at"] is not None, listed["read_at"]) == (True, None)
        opened = hub.post("/api/v1/messages/m-2/read", {"agent_id": "reviewer"})
        assert (opened["read_at"] is not None, opened["acknowledged_at"]) == (True, None)
        assert hub.get("/api/v1/messages")["messages"][0]["read_at"] is not None
        hub.post("/api/v1/messages/m-2/ack", {"agent_id": "reviewer"})
        assert hub.get("/api/v1/agents/reviewer/messages")["messages"] == []
        hub.until(lambda: hub.health("reviewer") == "disconnected", "the recipient is lost")
        assert refusal(hub, message) == (409, "agent_offline")


def refusal(hub: Hub, message: Mapping[str, object]) -> tuple[int, str]:
    with pytest.raises(Refused) as refused:
        hub.post("/api/v1/messages", message)
    return refused.value.status, refused.value.body["code"]


def test_urgent_escalates_at_once_high_after_a_reminder_and_busy_is_reminded_first(tmp_path: Path) -> None:
    """1.4.3: always correlated with beats: a recipient that is busy is reminded before an urgent message escalates."""
    with serving(tmp_path, CONFIG) as hub:
        for name in ("planner", "free", "works"):
            hub.post("/api/v1/signals", {"type": "registered", "agent_id": name, "role": "standby"})
            hub.post("/api/v1/beats", {"agent_id": name, "doing": "busy" if name == "works" else None})
        for number, (to, priority) in enumerate((("free", "urgent"), ("works", "urgent"), ("free", "high"))):
            sent = {"agent_id": "planner", "to": to, "priority": priority, "message_id": f"m-{number}"}
            hub.post("/api/v1/messages", sent)

        def overdue() -> list[str]:
            return [one["data"]["message_id"] for one in hub.events("MESSAGE_OVERDUE")]

        hub.until(lambda: len(overdue()) == 5, "all is done that their priorities ask for")
        assert [overdue().count(f"m-{number}") for number in range(3)] == [1, 2, 2]
        listed = {one["message_id"]: one for one in hub.get("/api/v1/messages")["messages"]}
        assert [listed[f"m-{number}"]["reminded_at"] is not None for number in range(3)] == [
            False,
            True,
            True,
        ]
        hub.request("DELETE", "/api/v1/messages/m-0")
        assert {one["message_id"] for one in hub.get("/api/v1/messages")["messages"]} == {"m-1", "m-2"}
