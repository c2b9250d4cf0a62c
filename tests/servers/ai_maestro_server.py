"""A small AI Maestro: agents, sessions and messages as its API has them. `python ai_maestro_server.py PORT STATE_FILE`.

It does what the real one does, also where that surprises: of a message's content only `type`, `message` and `context` are
kept; lists have summaries; an unknown recipient is a 500 `operation_failed`; a message to an offline agent is taken, with
`notified: false`; a heartbeat is never announced; there is no `/health`. What it knows is in a file, so it can be killed
and started again. `/_fake` is for the test: it changes sessions, and lets the server fail.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

ANNOUNCED_NOT = {"heartbeat"}


class State:
    """Everything it knows, on disk after each change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.RLock()
        self.data: dict[str, Any] = {"agents": {}, "messages": [], "fault": "", "only": "", "stored": 0}
        if path.exists():
            self.data.update(json.loads(path.read_text()))

    def save(self) -> None:
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(self.data))
        fresh.replace(self.path)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: State

    def log_message(self, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._handle("GET")

    def do_POST(self) -> None:
        self._handle("POST")

    def do_PATCH(self) -> None:
        self._handle("PATCH")

    def _handle(self, method: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length)) if length else {}
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path == "/_fake":
            self._change(body)
            return
        if not self._fails(parts.path):
            with self.state.lock:
                status, answer = self._answer(method, unquote(parts.path), query, body)
                self.state.save()
            self._send(status, answer)

    def _fails(self, path: str) -> bool:
        """The fault that is set, if this request has it."""
        fault = self.state.data["fault"] if self.state.data["only"] in path else ""
        if fault == "hang":
            time.sleep(3600)
        elif fault == "cut":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif fault == "500":
            self._send(500, {"error": "internal_error"})
        elif fault == "nonsense":
            self._send(200, "what?")
        elif fault == "slow":
            time.sleep(0.4)
            return False
        return bool(fault)

    def _change(self, body: dict[str, Any]) -> None:
        with self.state.lock:
            for name, changes in body.pop("agents", {}).items():
                new = {"id": str(uuid.uuid4()), "session": True, "lastActivity": 1, "status": "idle"}
                self.state.data["agents"].setdefault(name, new).update(changes)
            self.state.data.update(body)
            self.state.save()
        self._send(200, self.state.data)

    def _send(self, status: int, answer: object) -> None:
        content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    # --- the API --------------------------------------------------------------------------------------

    def _answer(
        self, method: str, path: str, query: dict[str, str], body: dict[str, Any]
    ) -> tuple[int, object]:
        agents = self.state.data["agents"]
        words = path.strip("/").split("/")
        if path == "/api/v1/health":
            online = sum(agent["session"] for agent in agents.values())
            return 200, {"status": "healthy", "version": "0.30", "agents_online": online, "uptime_seconds": 1}
        if path == "/api/sessions/activity":
            keys = ("lastActivity", "status", "hookStatus", "notificationType")
            live = {name: agent for name, agent in agents.items() if agent["session"]}
            return 200, {"activity": {n: {k: a[k] for k in keys if k in a} for n, a in live.items()}}
        if words[:3] == ["api", "agents", "by-name"]:
            found = agents.get(words[3])
            return 200, {"exists": False} if found is None else {
                "exists": True,
                "agent": {"id": found["id"], "name": words[3]},
            }
        if words[:2] == ["api", "agents"] and words[-1] == "session":
            return self._session(words[2])
        if path == "/api/messages":
            call = {"GET": self._list, "POST": self._post, "PATCH": self._patch}[method]
            return call(query, body)
        return 404, {"error": "not_found"}

    def _session(self, agent_id: str) -> tuple[int, object]:
        for name, agent in self.state.data["agents"].items():
            if agent["id"] == agent_id:
                return 200, {
                    "success": True,
                    "agentId": agent_id,
                    "sessionName": name,
                    "hasSession": agent["session"],
                    "exists": agent["session"],
                    "idle": agent["status"] == "idle",
                    "lastActivity": agent["lastActivity"],
                    "timeSinceActivity": 0,
                    "idleThreshold": 30000,
                }
        return 404, {"error": "not_found"}

    def _post(self, query: dict[str, str], body: dict[str, Any]) -> tuple[int, object]:
        content = body.get("content") or {}
        if not body.get("from") or not body.get("to") or not content.get("message"):
            return 400, {"error": "missing_fields"}
        agent = self.state.data["agents"].get(body["to"])
        if agent is None:
            return 500, {"error": "operation_failed"}
        self.state.data["stored"] += 1
        message = {
            "id": f"msg-{self.state.data['stored']}-{uuid.uuid4().hex[:8]}",
            "timestamp": f"{time.time():.6f}",
            "from": body["from"],
            "to": body["to"],
            "subject": body.get("subject", ""),
            "priority": body.get("priority", "normal"),
            "inReplyTo": body.get("inReplyTo"),
            "status": "unread",
            "content": {key: content[key] for key in ("type", "message", "context") if key in content},
        }
        self.state.data["messages"].append(message)
        announced = agent["session"] and content.get("type") not in ANNOUNCED_NOT
        if announced:  # It is typed into the session, which moves it.
            agent["lastActivity"] += 1
        return 201, {"message": {"id": message["id"], "status": "unread"}, "notified": announced}

    def _list(self, query: dict[str, str], body: dict[str, Any]) -> tuple[int, object]:
        mine = [one for one in self.state.data["messages"] if one["to"] == query.get("agent")]
        if "id" in query:
            for message in mine:
                if message["id"] == query["id"]:
                    return 200, message
            return 404, {"error": "Message not found"}
        if "status" in query:
            mine = [one for one in mine if one["status"] == query["status"]]
        newest = mine[::-1][: int(query.get("limit", 25))]
        return 200, {"messages": [_summary(one) for one in newest], "limit": 25}

    def _patch(self, query: dict[str, str], body: dict[str, Any]) -> tuple[int, object]:
        for message in self.state.data["messages"]:
            if message["id"] == query.get("id") and message["to"] == query.get("agent"):
                message["status"] = "read"
                return 200, {"success": True}
        return 404, {"error": "Message not found"}


def _summary(message: dict[str, Any]) -> dict[str, Any]:
    kept = ("id", "from", "to", "timestamp", "subject", "priority", "status")
    content = message["content"]
    summary = {key: message[key] for key in kept}
    return {**summary, "type": content.get("type"), "preview": content["message"][:100]}


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is gone is no news."""


if __name__ == "__main__":
    Handler.state = State(Path(sys.argv[2]))
    Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
