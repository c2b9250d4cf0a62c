"""Servers to be told, on loopback: they take, refuse, hang, and check what they are given as the real ones would."""

from __future__ import annotations

import asyncio
import base64
import json
import socketserver
import ssl
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, Self

from lifesigns.ports import Notice, NoticeSeverity, NoticeStage

AT = 1_800_000_000.0


def notice(stage: str = "opened", severity: str = "warning", **changes: Any) -> Notice:
    values: dict[str, Any] = {
        "key": "stuck_agent:coder-7",
        "kind": "stuck_agent",
        "title": "coder-7 is disconnected (crash)",
        "text": "No beat for 15 s.",
        "since": AT,
        "at": AT + 5,
        "agents": ("coder-7",),
        "count": 1,
        "link": "http://127.0.0.1:8710/agents/coder-7",
        "details": {"state": "disconnected", "attempts": 3.0},
    }
    return Notice(stage=NoticeStage(stage), severity=NoticeSeverity(severity), **(values | changes))


@dataclass
class Request:
    """What came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Reply:
    """What is answered; `hangs`: nothing ever, `hangs_up`: the connection ends."""

    status: int = 200
    body: bytes = b"ok"
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    hangs_up: bool = False


class Peer:
    """An HTTP server. What is in `replies` is answered first; then what `check` says, as a rule 200."""

    def __init__(self, check: Callable[[Request], Reply] = lambda _: Reply()) -> None:
        self.requests: list[Request] = []
        self.replies: deque[Reply] = deque()
        self._check = check
        self._writers: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while (request := await _read(reader)) is not None:
                self.requests.append(request)
                reply = self.replies.popleft() if self.replies else self._check(request)
                if reply.hangs:
                    await asyncio.Event().wait()
                if reply.hangs_up:
                    break
                headers = {"Content-Length": str(len(reply.body)), **reply.headers}
                head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
                writer.write(f"HTTP/1.1 {reply.status} said\r\n{head}\r\n".encode() + reply.body)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Request | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *lines = head.decode().split("\r\n")
    method, path, _ = first.split(" ")
    assert method == "POST"
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    return Request(path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


# --- Slack -------------------------------------------------------------------------------------------------


class Slack:
    """Slack's rules for messages: 50 blocks, 3000 characters in a section, 2000 in a field, ten fields; 1 message/s is left
    to the teller. As a workspace it gives every message a `ts` and knows only those it gave."""

    def __init__(self) -> None:
        self.messages: dict[str, dict[str, Any]] = {}
        self.token = "xoxb-1-secret"

    def webhook(self, request: Request) -> Reply:
        problem = _slack_problem(request.json)
        return Reply(400, problem.encode()) if problem else Reply(200, b"ok")

    def api(self, request: Request) -> Reply:
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return _said(ok=False, error="invalid_auth")
        body = request.json
        problem = _slack_problem(body)
        if problem:
            return _said(ok=False, error="invalid_blocks", detail=problem)
        if request.path.endswith("/chat.update"):
            if body["ts"] not in self.messages:
                return _said(ok=False, error="message_not_found")
            self.messages[body["ts"]] = body
            return _said(ok=True, channel="C1", ts=body["ts"])
        if request.path.endswith("/chat.postMessage"):
            if "thread_ts" in body and body["thread_ts"] not in self.messages:
                return _said(ok=False, error="thread_not_found")
            ts = f"{len(self.messages) + 1}.0001"
            self.messages[ts] = body
            return _said(ok=True, channel="C1", ts=ts)
        return _said(ok=False, error="unknown_method")


def _said(**values: object) -> Reply:
    return Reply(200, json.dumps(values).encode(), {"Content-Type": "application/json"})


def _slack_problem(body: dict[str, Any]) -> str:
    if not body.get("text"):
        return "no_text"
    if len(body["text"]) > 40_000 or not 1 <= len(body["blocks"]) <= 50:
        return "invalid_blocks"
    for block in body["blocks"]:
        texts = [block["text"]] if "text" in block else []
        texts += [*block.get("fields", ()), *block.get("elements", ())]
        if not texts or len(block.get("fields", ())) > 10 or len(block.get("elements", ())) > 10:
            return "invalid_blocks"
        limit = 2000 if "fields" in block else 3000
        for text in texts:
            if text["type"] not in ("mrkdwn", "plain_text") or not 1 <= len(text["text"]) <= limit:
                return "invalid_blocks"
    return ""


# --- PagerDuty ---------------------------------------------------------------------------------------------


class PagerDuty:
    """The rules of Events API v2, and the incidents that are open."""

    def __init__(self) -> None:
        self.routing_key = "R" * 32
        self.open: dict[str, str] = {}

    def enqueue(self, request: Request) -> Reply:
        body = request.json
        problem = self._problem(request, body)
        if problem:
            said = {"status": "invalid event", "message": "Event object is invalid", "errors": [problem]}
            return Reply(400, json.dumps(said).encode())
        match body["event_action"]:
            case "trigger":
                self.open.setdefault(body["dedup_key"], "triggered")
            case "acknowledge" if body["dedup_key"] in self.open:
                self.open[body["dedup_key"]] = "acknowledged"
            case "resolve":
                self.open.pop(body["dedup_key"], None)
        return Reply(202, json.dumps({"status": "success", "dedup_key": body["dedup_key"]}).encode())

    def _problem(self, request: Request, body: dict[str, Any]) -> str:
        if request.path != "/v2/enqueue" or len(request.body) > 512 * 1024:
            return "wrong place or too large"
        if body.get("routing_key") != self.routing_key:
            return "invalid routing key"
        if body.get("event_action") not in ("trigger", "acknowledge", "resolve"):
            return "event_action"
        if not 1 <= len(body.get("dedup_key", "")) <= 255:
            return "dedup_key"
        if body["event_action"] != "trigger":
            return ""
        payload = body.get("payload", {})
        if not 1 <= len(payload.get("summary", "")) <= 1024:
            return "summary"
        if not payload.get("source"):
            return "source"
        if payload.get("severity") not in ("critical", "error", "warning", "info"):
            return "severity"
        return "" if isinstance(payload.get("custom_details"), dict) else "custom_details"


# --- SMTP --------------------------------------------------------------------------------------------------


class Mailer(socketserver.ThreadingTCPServer):
    """A mail server. `refuse` answers a command with something else than usual."""

    allow_reuse_address = True
    daemon_threads = False
    block_on_close = True

    def __init__(self, *, tls: ssl.SSLContext | None = None, wrapped: bool = False, login: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.port: int = self.server_address[1]
        self.tls, self.wrapped, self.login = tls, wrapped, login
        self.letters: list[tuple[list[str], EmailMessage, bool]] = []
        """To whom, what, and whether nobody could read it on the way."""
        self.refuse: dict[str, str] = {}


class _Session(socketserver.StreamRequestHandler):
    server: Mailer
    timeout = 20

    def handle(self) -> None:
        self.secure = False
        try:
            if self.server.wrapped:
                self._wrap()
            self._talk()
        except (OSError, ssl.SSLError, ValueError):
            return

    def _wrap(self) -> None:
        assert self.server.tls is not None
        self.connection = self.server.tls.wrap_socket(self.connection, server_side=True)
        self.rfile = self.connection.makefile("rb")
        self.secure = True

    def _say(self, line: str) -> None:
        self.connection.sendall(f"{line}\r\n".encode())

    def _talk(self) -> None:
        self._say("220 here")
        to: list[str] = []
        while line := self.rfile.readline().decode().strip():
            verb = line.split(" ")[0].upper()
            if verb in self.server.refuse:
                self._say(self.server.refuse[verb])
                continue
            match verb:
                case "EHLO":
                    self._greet()
                case "STARTTLS":
                    self._say("220 go on")
                    self._wrap()
                case "AUTH":
                    given = base64.b64decode(line.split(" ")[2]).decode().replace("\0", ":").lstrip(":")
                    self._say("235 welcome" if given == self.server.login else "535 5.7.8 who are you?")
                case "RCPT":
                    to.append(line.partition("<")[2].partition(">")[0])
                    self._say("250 ok")
                case "DATA":
                    self._take(to)
                    to = []
                case "QUIT":
                    self._say("221 bye")
                    break
                case _:
                    self._say("250 ok")
        if self.secure:
            self.connection.close()

    def _greet(self) -> None:
        offers = ["here", *(["STARTTLS"] if self.server.tls and not self.secure else [])]
        offers += ["AUTH PLAIN"] if self.server.login else []
        for n, offer in enumerate(offers):
            self._say(f"250{' ' if n == len(offers) - 1 else '-'}{offer}")

    def _take(self, to: list[str]) -> None:
        self._say("354 go on")
        lines: list[bytes] = []
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            lines.append(line[1:] if line.startswith(b"..") else line)
        letter = message_from_bytes(b"".join(lines), policy=policy.default)
        assert isinstance(letter, EmailMessage)
        if "." in self.server.refuse:
            self._say(self.server.refuse["."])
            return
        self.server.letters.append((to, letter, self.secure))
        self._say("250 taken")


@contextmanager
def mailer(**settings: Any) -> Iterator[Mailer]:
    with Mailer(**settings) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
