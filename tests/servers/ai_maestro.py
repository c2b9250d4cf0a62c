"""AI Maestro and its agents for tests: the server is a process of its own, agents are threads that poll their inboxes."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

SERVER: Final = Path(__file__).with_name("ai_maestro_server.py")
CHIEF: Final = "ecos-chief-of-staff"
BOUND: Final = 30.0


class FakeMaestro:
    """A running server; it can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self._state = folder / "ai-maestro.json"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen([sys.executable, str(SERVER), str(self.port), str(self._state)])
        ends_at = time.monotonic() + BOUND
        while True:
            try:
                self.ask("GET", "/api/v1/health")
                return
            except OSError:
                assert time.monotonic() < ends_at, "the fake AI Maestro does not start"
                time.sleep(0.05)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(BOUND)
            self._process = None

    def ask(self, method: str, path: str, body: object = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.url + path, data=data, method=method)
        with urllib.request.urlopen(asked, timeout=BOUND) as answer:
            return json.loads(answer.read())

    def fails(self, fault: str, only: str = "") -> None:
        """`hang`, `cut`, `500`, `slow`, `nonsense`, or nothing; only for paths with this in them."""
        self.ask("POST", "/_fake", {"fault": fault, "only": only})

    def session(self, name: str, **changes: object) -> None:
        """An agent's session: `session` (whether it is there), `status`, `lastActivity`, `notificationType`."""
        self.ask("POST", "/_fake", {"agents": {name: changes}})

    def messages(self, to: str, kind: str | None = None) -> list[dict[str, Any]]:
        """Everything that was sent to an agent, oldest first."""
        sent = self.ask("POST", "/_fake", {})["messages"]
        return [one for one in sent if one["to"] == to and kind in (None, one["content"].get("type"))]

    def send(self, sender: str, kind: str, text: str, **more: Any) -> Any:
        context = {key: value for key, value in more.items() if key != "inReplyTo"}
        return self.ask(
            "POST",
            "/api/messages",
            {
                "from": sender,
                "to": CHIEF,
                "subject": "Re",
                "inReplyTo": more.get("inReplyTo"),
                "content": {"type": kind, "message": text, "context": context},
            },
        )


@contextmanager
def ai_maestro(folder: Path) -> Iterator[FakeMaestro]:
    """One with the chief of staff registered."""
    maestro = FakeMaestro(folder)
    try:
        maestro.start()
        maestro.session(CHIEF)
        yield maestro
    finally:
        maestro.kill()


class FakeAgent:
    """An agent with AI Maestro's hook: it polls its inbox, and answers what `answers` says for each kind of message."""

    def __init__(self, maestro: FakeMaestro, name: str, status: str = "healthy") -> None:
        self.maestro = maestro
        self.name = name
        self.status = status
        self.answers: dict[str, Callable[[Any], dict[str, Any] | None]] = {"heartbeat": self._pong}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        maestro.session(name)
        self._thread.start()

    def stop(self) -> None:
        """It falls silent; its session stays."""
        self._stopped.set()
        self._thread.join(BOUND)

    def _pong(self, ping: Any) -> dict[str, Any]:
        asked = ping["content"]["context"]
        return {
            "type": "heartbeat-response",
            "message": "pong",
            "context": {
                "sequence": asked["sequence"],
                "original_timestamp": asked["timestamp"],
                "status": self.status,
                "current_task": "Implementing feature X",
            },
        }

    def _run(self) -> None:
        while not self._stopped.wait(0.1):
            with suppress(OSError):
                self._look()

    def _look(self) -> None:
        inbox = f"/api/messages?agent={self.name}"
        for one in self.maestro.ask("GET", f"{inbox}&status=unread")["messages"]:
            message = self.maestro.ask("GET", f"{inbox}&id={one['id']}")
            answer = self.answers.get(message["content"]["type"])
            content = None if answer is None else answer(message)
            if content is not None:
                self.maestro.ask("PATCH", f"{inbox}&id={one['id']}&action=read")
                reply = {"from": self.name, "to": message["from"], "subject": "Re", "inReplyTo": one["id"]}
                self.maestro.ask("POST", "/api/messages", {**reply, "content": content})
