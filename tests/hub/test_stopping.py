"""A hub that is told to stop answers everybody, keeps everything and is gone within seconds; two never share a place."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.hub import memory
from tests.servers.process import free_port

READY_WITHIN = 30.0
END_WITHIN = 5.0


class Serving:
    """A real `lifesigns serve`."""

    def __init__(self, state: Path, *arguments: str) -> None:
        self.state = state
        self.port = free_port()
        command = [sys.executable, "-m", "lifesigns", "serve", "--state", str(state)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LIFESIGNS_")}
        self.process = subprocess.Popen(
            [*command, "--port", str(self.port), *arguments],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
        )

    def wait_until_ready(self) -> None:
        until = time.monotonic() + READY_WITHIN
        while not (self.state / "hub.url").exists():
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < until
            time.sleep(0.01)

    def connect(self, method: str, path: str, headers: str = "", body: bytes = b"") -> socket.socket:
        """A connection on which a request has begun."""
        token = (self.state / "admin.token").read_text().strip()
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n{headers}\r\n"
        )
        connection.sendall(head.encode() + body)
        return connection

    def said(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def end(self) -> tuple[int, float]:
        """Its exit status, and how long that took."""
        began_at = time.monotonic()
        status = self.process.wait(30)
        return status, time.monotonic() - began_at


@contextmanager
def serving(state: Path, *arguments: str) -> Iterator[Serving]:
    hub = Serving(state, *arguments)
    try:
        hub.wait_until_ready()
        yield hub
    finally:
        hub.process.kill()
        hub.process.wait()
        assert hub.process.stderr is not None
        hub.process.stderr.close()


def answer(connection: socket.socket) -> bytes:
    """Everything until the other side hangs up."""
    with connection:
        return b"".join(iter(lambda: connection.recv(65536), b""))


def await_bytes(connection: socket.socket, expected: bytes) -> bytes:
    received = b""
    while expected not in received:
        more = connection.recv(65536)
        assert more, received
        received += more
    return received


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_hub_that_is_told_to_stop_answers_keeps_and_ends(
    tmp_path: Path, number: signal.Signals
) -> None:
    """The listener's stream ends as a stream ends, who waits for orders gets none, who is in the middle of a request gets
    its answer, and what beats said is remembered."""
    word = json.dumps({"type": "checkpoint", "agent_id": "a", "checkpoint_id": "cp-7"}).encode()
    with serving(tmp_path) as hub:
        beats = b"".join(b'{"agent_id": "a", "seq": %d}\n' % n for n in range(1, 40))
        length = f"Content-Length: {len(beats)}\r\nConnection: close\r\n"
        assert b'"accepted":39' in answer(hub.connect("POST", "/api/v1/beats", length, beats))
        listening = hub.connect("GET", "/api/v1/events?after=0")
        await_bytes(listening, b"HEALTH_STATE_CHANGED")
        polling = hub.connect("GET", "/api/v1/agents/a/orders?wait=30")
        speaking = hub.connect("POST", "/api/v1/signals", f"Content-Length: {len(word)}\r\n", word[:10])
        idle = hub.connect("GET", "/healthz")
        await_bytes(idle, b'{"status":"ok"}')

        hub.process.send_signal(number)
        assert answer(listening).endswith(b"0\r\n\r\n")
        assert b'{"orders":[]}' in answer(polling)
        speaking.sendall(word[10:])
        assert answer(speaking).startswith(b"HTTP/1.1 202 ")
        assert answer(idle) == b""
        status, took = hub.end()
        assert (status, took < END_WITHIN) == (0, True)
        assert not (tmp_path / "hub.url").exists()
    store = SqliteStore(tmp_path / "lifesigns.db")
    beliefs = memory.recalled((await store.open()).beliefs)
    await store.close()
    agent = beliefs.agents["a"]
    assert agent.work is not None
    assert (agent.beats, agent.seq, agent.work.checkpoint_id) == (39, 39, "cp-7")


def test_the_second_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    """Somebody who does not finish his request is not waited for."""
    with serving(tmp_path) as hub:
        stuck = hub.connect("POST", "/api/v1/beats", "Content-Length: 100\r\n", b"{")
        ended = hub.connect("GET", "/api/v1/agents/a/orders?wait=30")
        assert b"ok" in answer(hub.connect("GET", "/healthz", "Connection: close\r\n"))
        hub.process.send_signal(signal.SIGINT)
        answer(ended)
        hub.process.send_signal(signal.SIGINT)
        status, took = hub.end()
        assert (status, took < 4.0) == (128 + signal.SIGINT, True)
        stuck.close()


def test_a_second_hub_on_the_same_folder_or_port_is_refused_with_the_reason(tmp_path: Path) -> None:
    with serving(tmp_path / "one") as hub:
        same_folder = Serving(tmp_path / "one")
        same_port = Serving(tmp_path / "two", "--port", str(hub.port))
        for second, why in (
            (same_folder, f"(process {hub.process.pid}) serves from"),
            (same_port, "cannot be listened on"),
        ):
            with second.process:
                assert (second.end()[0], why in second.said()) == (2, True)
        assert hub.process.poll() is None
        assert b"ok" in answer(hub.connect("GET", "/healthz", "Connection: close\r\n"))
