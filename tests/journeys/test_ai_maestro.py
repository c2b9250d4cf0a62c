"""Seed 004 with nothing but us installed: every curl line of the document is typed as it stands; only the port differs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.journeys.outside import BOUND, Hub, Json, environment, free_port, serving

pytestmark = pytest.mark.skipif(
    shutil.which("curl") is None or shutil.which("jq") is None, reason="the document needs curl and jq"
)

PING = """
curl -X POST "http://localhost:23000/api/messages" \\
  -H "Content-Type: application/json" \\
  -d '{
    "from": "ecos-chief-of-staff",
    "to": "TARGET_AGENT_SESSION_NAME",
    "subject": "[HEARTBEAT] Health check",
    "priority": "low",
    "content": {
      "type": "heartbeat",
      "message": "ping",
      "timestamp": "2025-01-15T10:30:00Z",
      "sequence": 42
    }
  }'
"""

PONG = """
curl -X POST "http://localhost:23000/api/messages" \\
  -H "Content-Type: application/json" \\
  -d '{
    "from": "TARGET_AGENT_SESSION_NAME",
    "to": "ecos-chief-of-staff",
    "subject": "[HEARTBEAT] Response",
    "priority": "low",
    "content": {
      "type": "heartbeat-response",
      "message": "pong",
      "original_timestamp": "2025-01-15T10:30:00Z",
      "response_timestamp": "2025-01-15T10:30:05Z",
      "sequence": 42,
      "status": "healthy",
      "current_task": "Implementing feature X"
    }
  }'
"""

TASK = """
# Send a message and capture response
RESPONSE=$(curl -s -X POST "http://localhost:23000/api/messages" \\
  -H "Content-Type: application/json" \\
  -d '{
    "from": "ecos-chief-of-staff",
    "to": "target-agent",
    "subject": "Task assignment",
    "priority": "normal",
    "content": {"type": "task", "message": "Please complete X"}
  }')

# Check for delivery errors
echo "$RESPONSE" | jq -e '.error' && echo "DELIVERY FAILED"
"""

UNACKNOWLEDGED = """
curl -s "http://localhost:23000/api/messages?agent=ecos-chief-of-staff&action=sent&status=unacknowledged" | jq '.messages[]'
"""

INQUIRY = """
curl -X POST "http://localhost:23000/api/messages" \\
  -H "Content-Type: application/json" \\
  -d '{
    "from": "ecos-chief-of-staff",
    "to": "AGENT_SESSION_NAME",
    "subject": "[STATUS CHECK] Task progress inquiry",
    "priority": "high",
    "content": {
      "type": "status-inquiry",
      "message": "Your task (task-20250115-001) appears stalled. Please provide a status update within 5 minutes.",
      "task_id": "task-20250115-001",
      "expected_response_by": "2025-01-15T11:05:00Z"
    }
  }'
"""

STATUS = """
# Check if agent is online
curl -s "http://localhost:23000/api/agents/TARGET_AGENT_SESSION_NAME/status" | jq '.'
"""

HEALTH = "curl http://localhost:23000/health"

LOST_SOON = {"role": "hurried"}
CONFIG = {
    "roles": {
        "hurried": {"silence": {"interval": "1s", "timeout": "3s", "missed_max": 3, "ping_wait": "500ms"}}
    },
    "policy": {
        "message": {"urgent": "2s", "high": "2s"},
        "task": {"stalled_after": "1s", "inquiry_wait": "30s"},
    },
}


class Maestro:
    """A shell on the machine where the hub answers AI Maestro's calls."""

    def __init__(self, hub: Hub, port: int) -> None:
        self.hub = hub
        self._port = port

    def type(self, lines: str, **names: str) -> str:
        """Type lines of the document, with the port and the document's placeholders filled in."""
        lines = lines.replace("localhost:23000", f"localhost:{self._port}")
        for placeholder, name in names.items():
            lines = lines.replace(placeholder, name)
        done = subprocess.run(
            ["bash", "-c", lines], capture_output=True, text=True, timeout=BOUND, check=False
        )
        return done.stdout

    def curl(self, *args: str) -> Json:
        place = f"http://localhost:{self._port}"
        done = subprocess.run(
            ["curl", "-s", *(arg.replace("PLACE", place) for arg in args)],
            capture_output=True,
            text=True,
            timeout=BOUND,
            check=True,
        )
        return json.loads(done.stdout)

    def beat(self, name: str, **said: str) -> None:
        assert self.curl("-d", json.dumps(said), f"PLACE/api/agents/{name}/heartbeat")["success"]

    def inbox(self, name: str) -> list[Json]:
        found: list[Json] = self.curl(f"PLACE/api/messages?agent={name}")["messages"]
        return found


@pytest.fixture
def maestro(tmp_path: Path) -> Iterator[Maestro]:
    port = free_port()
    with serving(tmp_path, CONFIG, "--ai-maestro", f"127.0.0.1:{port}") as hub:
        yield Maestro(hub, port)


def test_a_heartbeat_is_asked_for_and_answered_as_the_document_types_it(maestro: Maestro) -> None:
    """1.3.1 and 1.6.1: the response is a beat, and acknowledges the request."""
    agent = "libs-svg-svgbbox"
    assert json.loads(maestro.type(HEALTH))["status"] == "healthy"
    assert json.loads(maestro.type(STATUS, TARGET_AGENT_SESSION_NAME=agent))["status"] == "not_found"
    maestro.beat(agent, host="workstation-1")
    sent = json.loads(maestro.type(PING, TARGET_AGENT_SESSION_NAME=agent))
    assert (sent["message"]["status"], sent["notified"]) == ("unread", True)
    status = json.loads(maestro.type(STATUS, TARGET_AGENT_SESSION_NAME=agent))
    assert (status["session_name"], status["status"], status["unread_messages"]) == (agent, "online", 1)
    assert status["host"] == "workstation-1"
    waiting = json.loads(maestro.type(UNACKNOWLEDGED))
    assert (waiting["id"], waiting["content"]["sequence"]) == (sent["message"]["id"], 42)
    (ping,) = maestro.inbox(agent)
    assert ping["content"]["message"] == "ping"
    assert json.loads(maestro.type(PONG, TARGET_AGENT_SESSION_NAME=agent))["notified"]
    assert maestro.type(UNACKNOWLEDGED) == ""
    (pong,) = maestro.inbox("ecos-chief-of-staff")
    assert pong["content"]["message"] == "pong"
    believed = maestro.hub.get(f"/api/v1/agents/{agent}")
    assert (believed["state"], believed["role"]) == ("healthy", "active-development")
    assert believed["metrics"]["total_heartbeats"] == 2


def test_what_cannot_be_delivered_is_an_error_with_the_documents_code(maestro: Maestro) -> None:
    """1.4.1: no agent of that name, then one that is connected, then the same one disconnected."""
    assert maestro.type(TASK).split() == ['"agent_not_found"', "DELIVERY", "FAILED"]
    maestro.beat("target-agent", **LOST_SOON)
    assert maestro.type(TASK).split() == ["null"]
    maestro.hub.until(lambda: maestro.hub.health("target-agent") == "disconnected", "the agent is lost")
    assert maestro.type(TASK).split() == ['"agent_offline"', "DELIVERY", "FAILED"]
    status = json.loads(maestro.type(STATUS, TARGET_AGENT_SESSION_NAME="target-agent"))
    assert (status["status"], bool(status["offline_since"])) == ("offline", True)
    assert status["consecutive_missed"] >= 3
    waiting = json.loads(maestro.type(UNACKNOWLEDGED))
    assert waiting["subject"] == "Task assignment"


def test_an_inquiry_is_delivered_read_and_acknowledged_one_after_the_other(maestro: Maestro) -> None:
    """1.5.3: it stays listed until it is acknowledged, and its recipient is reminded of it."""
    maestro.beat("worker")
    sent = json.loads(maestro.type(INQUIRY, AGENT_SESSION_NAME="worker"))["message"]
    assert (sent["priority"], sent["delivered_at"], sent["read_at"]) == ("high", None, None)
    (listed,) = maestro.inbox("worker")
    assert (bool(listed["delivered_at"]), listed["read_at"], listed["status"]) == (True, None, "unread")
    read = maestro.curl(f"PLACE/api/messages?agent=worker&id={sent['id']}")["messages"][0]
    assert (read["status"], read["acknowledged_at"]) == ("read", None)
    maestro.hub.until(lambda: maestro.inbox("worker")[0]["reminded_at"], "the recipient is reminded")
    maestro.hub.until(
        lambda: json.loads(maestro.type(UNACKNOWLEDGED))["overdue_at"], "it is overdue, and listed"
    )
    reply = {
        "from": "worker",
        "to": "ecos-chief-of-staff",
        "inReplyTo": sent["id"],
        "content": {"type": "status", "message": "the tests take long"},
    }
    maestro.curl("-d", json.dumps(reply), "PLACE/api/messages")
    assert maestro.inbox("worker")[0]["status"] == "acknowledged"
    assert maestro.type(UNACKNOWLEDGED) == ""


def test_busy_and_degraded_are_what_the_document_says_of_them(maestro: Maestro) -> None:
    """1.3.3: busy extends the timeout, degraded is watched closely."""
    maestro.beat("calm", **LOST_SOON)
    maestro.beat("builder", status="busy", **LOST_SOON)
    maestro.beat("ill", status="degraded")
    assert maestro.hub.health("ill") == "degraded"
    maestro.hub.until(lambda: maestro.hub.health("builder") == "disconnected", "the busy one is lost, too")
    maestro.hub.until(lambda: {"builder", "calm"} <= lost_at(maestro).keys(), "both are on record")
    found = lost_at(maestro)
    assert found["builder"] - found["calm"] > timedelta(seconds=3)


def lost_at(maestro: Maestro) -> dict[str, datetime]:
    """When each agent was found to be lost. A flip is seen before it is stored."""
    return {
        flip["agent_id"]: datetime.fromisoformat(flip["at"])
        for flip in maestro.hub.events("HEALTH_STATE_CHANGED")
        if flip["data"]["to"] == "disconnected"
    }


def test_the_hubs_own_questions_are_in_the_agents_inbox_and_its_replies_count(maestro: Maestro) -> None:
    """An agent that only reads messages gets nudges and inquiries there, and answers them by a reply."""
    agent = "libs-svg-svgbbox"
    maestro.beat(agent)
    task = {"type": "task_assigned", "agent_id": agent, "task_id": "task-20250115-001", "expected_for": 1}
    maestro.hub.post("/api/v1/signals", task)

    def asked(kind: str) -> list[Json]:
        return [one for one in maestro.inbox(agent) if one["content"]["type"] == kind]

    maestro.hub.until(lambda: asked("status-inquiry"), "its inbox has the inquiry")
    (inquiry,) = asked("status-inquiry")
    assert (inquiry["from"], inquiry["priority"]) == ("lifesigns", "high")
    assert inquiry["content"]["task_id"] == "task-20250115-001"
    reply = {"from": agent, "to": "lifesigns", "inReplyTo": inquiry["id"]}
    content = {"type": "status", "message": "the tests take long", "progress_percentage": 70}
    maestro.curl("-d", json.dumps({**reply, "content": content}), "PLACE/api/messages")
    shown = maestro.hub.get("/api/v1/tasks/task-20250115-001")["due"]
    assert (shown["percent"], shown["status"]) == (70, "in_progress")
    maestro.hub.cli("nudge", agent, "Please save a checkpoint.")
    maestro.hub.until(lambda: asked("nudge"), "the nudge is there, too")
    (nudge,) = asked("nudge")
    maestro.curl(f"PLACE/api/messages?agent={agent}&id={nudge['id']}")
    reply = {
        **reply,
        "inReplyTo": nudge["id"],
        "content": {"type": "answer", "message": "soon", "answer": "progress"},
    }
    maestro.curl("-d", json.dumps(reply), "PLACE/api/messages")
    (done,) = maestro.hub.get("/api/v1/interventions")["interventions"]
    assert [one["stage"] for one in done["stages"]] == ["ordered", "delivered", "seen", "answered"]


def test_other_names_pages_and_agents_have_no_business_here(maestro: Maestro) -> None:
    """The door needs no token on the loopback, so a page in a browser must not get in; nor is there anything else behind it."""
    beat = "PLACE/api/agents/x/heartbeat"
    assert maestro.curl("-H", "Host: evil.example", "PLACE/health")["status"] == 421
    assert maestro.curl("-H", "Origin: http://evil.example", "-d", "{}", beat)["status"] == 403
    assert maestro.curl("-H", "Sec-Fetch-Site: cross-site", "-d", "{}", beat)["status"] == 403
    taken = maestro.curl("-H", "Sec-Fetch-Site: cross-site", "PLACE/api/messages?agent=x")
    assert taken["status"] == 403  # Who is given a message by that has been delivered it.
    assert maestro.curl("PLACE/api/v1/agents")["status"] == 404
    assert maestro.curl("-X", "POST", "PLACE/api/v1/agents/x/terminate")["status"] == 404
    assert maestro.curl("-d", '{"agent_id": "x"}', "PLACE/api/v1/beats")["status"] in (401, 404)
    assert maestro.hub.agent("x") is None


def test_the_door_does_not_open_to_others_without_tls(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lifesigns", "serve", "--port", "0", "--state", str(tmp_path)]
    done = subprocess.run(
        [*command, "--ai-maestro", "0.0.0.0:0"],
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
        env=environment(),
    )
    assert (done.returncode, "which others can reach" in done.stderr) == (2, True)
