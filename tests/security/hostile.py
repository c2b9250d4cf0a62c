"""Tokens of hostile agents at full speed, in a process of their own: they say what costs the hub most, over many connections at
once, and take no refusal for an answer.

    with attacking(folder, port, tokens, "new_ids", "reports") as attack: ...

Imports nothing of `src`. Plain sockets and requests made beforehand: who attacks from one core should not be the one that is slow.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, cycle
from pathlib import Path
from typing import Any, Final

LINES: Final = 8
"""Connections of one attack."""
BATCH: Final = 400
REPORTED_EVERY: Final = 0.2
BURST: Final = 1_000
"""Messages of a bus in one write."""
NICE: Final = 5
"""The neighbour that measures lives on the same machine."""


def _post(path: str, token: str, body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _signals(token: str, messages: list[dict[str, Any]]) -> bytes:
    return _post("/api/v1/signals", token, json.dumps(messages).encode())


def new_ids(token: str) -> Iterator[bytes]:
    """Made-up agents on the neighbour's host, and those made up before, that are late and back again."""
    for made in count(BATCH, BATCH):
        names = range(max(0, made - 3 * BATCH), made)
        beats = [{"agent_id": f"evil-{n}", "host": "h", "metadata": {"k": "x" * 200}} for n in names]
        yield _post("/api/v1/beats", token, json.dumps(beats).encode())


def large(token: str) -> Iterator[bytes]:
    """As many made-up agents as a body holds."""
    for life in count():
        beats = [{"agent_id": f"evil-l{n}", "incarnation": f"i{life}"} for n in range(9_900)]
        yield _post("/api/v1/beats", token, json.dumps(beats).encode())


def reports(token: str) -> Iterator[bytes]:
    """What leads to events."""
    said: list[dict[str, Any]] = [
        {"type": "breaker", "agent_id": f"evil-{n}", "name": "b", "state": state}
        for n in range(200)
        for state in ("open", "closed")
    ]
    said += [
        {"type": "error", "agent_id": f"evil-{n}", "message": "x" * 500, "recoverable": False}
        for n in range(200)
    ]
    return cycle([_signals(token, said)])


def claims(token: str) -> Iterator[bytes]:
    """Tasks and messages."""
    for first in count(0, 200):
        things: list[dict[str, Any]] = [
            {"type": "message_sent", "agent_id": f"evil-{n % 50}", "message_id": f"m-{n}", "to": "good-1"}
            for n in range(first, first + 200)
        ]
        things += [
            {"type": "claim", "agent_id": f"evil-{n % 50}", "task_id": f"t-{n}"}
            for n in range(first, first + 200)
        ]
        yield _signals(token, things)


def singles(token: str) -> Iterator[bytes]:
    """One beat a request."""
    return cycle(
        [_post("/api/v1/beats", token, json.dumps({"agent_id": f"evil-{n}"}).encode()) for n in range(100)]
    )


def garbage(token: str) -> Iterator[bytes]:
    """What takes long to be found wrong."""
    body = b"[" + b",".join(b'{"agent_id":"evil-%d","load":"much"}' % n for n in range(1500)) + b"]"
    return cycle([_post("/api/v1/beats", token, body)])


def asks(token: str) -> Iterator[bytes]:
    """What takes long to be answered."""
    head = "GET /api/v1/agents/evil-1 HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer " + token
    return cycle([f"{head}\r\n\r\n".encode()])


def hooks(token: str) -> Iterator[bytes]:
    """What takes long to be read, of a coding agent."""
    result = "[" + '{"a":1},' * 900_000 + "0]"
    event = f'{{"session_id":"evil-session","hook_event_name":"PostToolUse","tool_response":{result}}}'
    return cycle([_post("/hooks/claude-code", token, event.encode())])


def spans(token: str) -> Iterator[bytes]:
    """Calls that an exporter tells of, none of them twice."""
    told = [_pair("gen_ai.operation.name", "execute_tool"), _pair("gen_ai.tool.name", "x")]
    resource = {"attributes": [_pair("service.name", "evil-1")]}
    for first in count(1, 20_000):
        at = str(time.time_ns())
        some = [
            {"spanId": f"{n:016x}", "endTimeUnixNano": at, "attributes": told}
            for n in range(first, first + 20_000)
        ]
        body = {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": some}]}]}
        yield _post("/v1/traces", token, json.dumps(body, separators=(",", ":")).encode())


def _pair(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


ATTACKS: Final[dict[str, Callable[[str], Iterator[bytes]]]] = {
    each.__name__: each for each in (new_ids, large, reports, claims, singles, garbage, asks, hooks, spans)
}


def _published(command: str, bodies: list[bytes], heads: bytes = b"") -> bytes:
    """A burst of these, on the subjects of ten agents. `heads` are the headers of each."""
    burst = []
    for n, body in enumerate(bodies):
        sizes = f"{len(heads)} {len(heads) + len(body)}" if heads else str(len(body))
        line = f"{command.format(n % 10)} {sizes}\r\n"
        burst.append(line.encode() + heads + body + b"\r\n")
    return b"".join(burst)


def _beats() -> list[bytes]:
    return [json.dumps({"agent_id": f"evil.b-{n % 10}"}).encode() for n in range(BURST)]


FLOODS: Final[dict[str, Callable[[], bytes]]] = {
    "bus_beats": lambda: _published("PUB heartbeat.evil.b-{}", _beats()),
    "bus_empty": lambda: _published("PUB heartbeat.evil.b-{}", [b""] * BURST),
    "bus_reports": lambda: _published("PUB lifesigns.report.relay:{}.7.evil", [b'{"type":"left"}'] * BURST),
    "bus_replies": lambda: _published("PUB heartbeat.evil.b-{} to.me", _beats()),
    "bus_headers": lambda: _published("HPUB heartbeat.evil.b-{}", _beats(), b"NATS/1.0\r\nk: v\r\n\r\n"),
    "bus_any_length": lambda: _published(
        "PUB heartbeat.evil.b-{}", [b"x" * (n % 1000) for n in range(BURST)]
    ),
    "bus_long": lambda: _published("PUB heartbeat.evil.b-{}", [b"[" * 2_000] * BURST),
    "bus_ten_names": lambda: _published("PUB heartbeat.evil-{}", _beats()),
}
"""What a user of a NATS server publishes as fast as it can, on subjects of its own."""


def _redis_command(*parts: bytes) -> bytes:
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


def _redis_published(channel: bytes, bodies: list[bytes]) -> bytes:
    return b"".join(_redis_command(b"PUBLISH", channel % (n % 10), body) for n, body in enumerate(bodies))


REDIS_FLOODS: Final[dict[str, Callable[[], bytes]]] = {
    "redis_beats": lambda: _redis_published(b"heartbeat.evil.b-%d", _beats()),
    "redis_empty": lambda: _redis_published(b"heartbeat.evil.b-%d", [b""] * BURST),
    "redis_any_length": lambda: _redis_published(
        b"heartbeat.evil.b-%d", [b"x" * (n % 1000) for n in range(BURST)]
    ),
    "redis_odd_channels": lambda: _redis_published(b"heartbeat.evil.b \xff-%d", _beats()),
    "redis_ten_names": lambda: _redis_published(b"heartbeat.evil-%d", _beats()),
}
"""The same of a Redis server."""

GREETINGS: Final = {
    "bus": b'CONNECT {"verbose":false,"headers":true}\r\n',
    "redis": _redis_command(b"CLIENT", b"REPLY", b"OFF"),
}


class _Line:
    """A connection that says the next thing when the last one was answered."""

    def __init__(self, port: int, messages: Iterator[bytes]) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setblocking(False)
        self._messages = messages
        self._unsent = memoryview(next(messages))

    def write(self) -> bool:
        """Whether all is said."""
        with suppress(BlockingIOError):
            self._unsent = self._unsent[self.socket.send(self._unsent) :]
        return not self._unsent

    def read(self) -> bytes:
        """The first line of an answer; empty if there is none. Whatever it is, on with the next."""
        answer = self.socket.recv(1 << 20)
        if not answer:
            raise ConnectionResetError
        if answer.startswith(b"HTTP/1.1 ") and not self._unsent:
            self._unsent = memoryview(next(self._messages))
        return answer[9:12] if answer.startswith(b"HTTP/1.1 ") else b""


def _with_ids_of(n: int, messages: Iterator[bytes]) -> Iterator[bytes]:
    """The same for the ids of the nth token."""
    return (message.replace(b"evil-", b"evi%d-" % n) for message in messages)


def _attack(port: int, tokens: list[str], bus: int, names: list[str]) -> None:
    """For ever; how often it was answered how goes to the standard output, now and then."""
    os.nice(NICE)
    streams = [
        _with_ids_of(n, ATTACKS[name](token))
        for n, token in enumerate(tokens)
        for name in names
        if name in ATTACKS
    ]
    poll, lines = select.epoll(), dict[int, tuple[_Line, Iterator[bytes]]]()
    answers: dict[str, int] = {}

    def begin(stream: Iterator[bytes]) -> None:
        line = _Line(port, stream)
        lines[line.socket.fileno()] = (line, stream)
        poll.register(line.socket.fileno(), select.EPOLLIN | select.EPOLLOUT)

    for stream in streams:
        for _ in range(LINES):
            begin(stream)
    floods = {name: make for name, make in {**FLOODS, **REDIS_FLOODS}.items() if name in names}
    flood = _Flood(bus, floods) if floods else None
    told_at = 0.0
    while True:
        for number, ready in poll.poll(0 if flood else 0.05):
            line, stream = lines[number]
            try:
                if ready & select.EPOLLIN and (status := line.read()):
                    answers[status.decode()] = answers.get(status.decode(), 0) + 1
                done = line.write()
                poll.modify(number, select.EPOLLIN if done else select.EPOLLIN | select.EPOLLOUT)
            except OSError:
                poll.unregister(number)
                line.socket.close()
                del lines[number]
                begin(stream)
        if flood is not None:
            answers["published"] = flood.go_on()
        if time.monotonic() - told_at > REPORTED_EVERY:
            told_at = time.monotonic()
            sys.stdout.write(json.dumps(answers) + "\n")
            sys.stdout.flush()


class _Flood:
    """A connection to the server of a bus; all floods are of one kind."""

    def __init__(self, port: int, floods: dict[str, Callable[[], bytes]]) -> None:
        self._line = socket.create_connection(("127.0.0.1", port))
        self._line.sendall(GREETINGS[next(iter(floods)).partition("_")[0]])
        self._bursts = cycle([make() for make in floods.values()])
        self._published = 0

    def go_on(self) -> int:
        self._line.sendall(next(self._bursts))
        self._published += BURST
        return self._published


class Attack:
    """How an attack goes."""

    def __init__(self, told: Path) -> None:
        self._told = told

    @property
    def answers(self) -> dict[str, int]:
        """By status; and what was `published`."""
        lines = self._told.read_text().rpartition("\n")[0].splitlines()
        return dict(json.loads(lines[-1])) if lines else {}


@contextmanager
def attacking(folder: Path, port: int, tokens: list[str], *names: str, bus: int = 0) -> Iterator[Attack]:
    """With each of these tokens; the nth is for `evi<n>-*`. Attack until the block ends, by what is named. `bus` is the port of the server to flood."""
    told = folder / "attack.log"
    with told.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.security.hostile", str(port), ",".join(tokens), str(bus), *names],
            stdout=log,
            cwd=Path(__file__).parents[2],
        )
    try:
        yield Attack(told)
        assert process.poll() is None, "who attacks has ended"
    finally:
        process.kill()
        process.wait()


if __name__ == "__main__":
    _attack(int(sys.argv[1]), sys.argv[2].split(","), int(sys.argv[3]), sys.argv[4:])
