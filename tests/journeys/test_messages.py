"""Seed 004: a message that is not acknowledged is noticed. Its recipient is reminded, and it does not vanish."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.journeys.outside import Refused, serving

CONFIG = {"profile": "swift", "policy": {"message": {"urgent": "2s", "high": "2s"}}}

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
