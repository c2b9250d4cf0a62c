"""The client of the hooks beside hubs that are away, full, deaf or slow: it costs its agent a moment at most, and keeps what matters."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pytest

from tests.journeys.outside import Json

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the client of the hooks needs bash")

SESSION = "043381dc-b151-4818-bf59-b65753ec8421"
BOUND = 5.0
"""Seconds: a hundred times what the client allows itself, for a machine that is busy. One without a bound waits for a deaf hub for ever."""


@dataclass
class Client:
    """A state folder with the client in it, whose hub is at this port."""

    state: Path

    def knows(self, port: int) -> None:
        (self.state / "hub.url").write_text(f"http://127.0.0.1:{port}\n")

    def says(self, name: str, patience: str = "", **fields: Json) -> str:
        event = {"session_id": SESSION, "cwd": "/home/dev/shop", "hook_event_name": name, **fields}
        done = subprocess.run(
            [str(self.state / "hooks/client"), "claude-code"],
            input=json.dumps(event, separators=(",", ":")),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={"PATH": os.environ["PATH"], "LIFESIGNS_HOOK_PATIENCE": patience},
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def files(self) -> list[str]:
        """What lies beside it."""
        return sorted(path.name for path in (self.state / "hooks").iterdir())

    def spooled(self) -> int:
        folder = self.state / "hooks/spool"
        return len(list(folder.glob("*@claude-code"))) if folder.is_dir() else 0

    @property
    def left_alone(self) -> bool:
        """Whether it has noted that the hub is slow."""
        return (self.state / "hooks/slow").exists()


@pytest.fixture
def client(tmp_path: Path) -> Client:
    script = tmp_path / "hooks/client"
    script.parent.mkdir()
    script.write_text(files("lifesigns.integrations.hooks").joinpath("client.sh").read_text())
    script.chmod(0o700)
    (tmp_path / "hooks/token").write_text("secret\n")
    return Client(tmp_path)


@contextmanager
def deaf(backlog: int = 8) -> Iterator[int]:
    """A hub that hangs: it accepts nobody and reads nothing. Its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as server:
        yield server.getsockname()[1]


@contextmanager
def answering(*pieces: bytes, heard: list[bytes] | None = None) -> Iterator[int]:
    """A hub that says this to everybody, the pieces a moment apart, and writes down what it heard. Its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, suppress(OSError):
                        asked = b""
                        while not _is_whole(asked):  # Closing before that would take the answer back.
                            asked += connection.recv(65536)
                        if heard is not None:
                            heard.append(asked.partition(b"\r\n\r\n")[2])
                        for piece in pieces:
                            connection.sendall(piece)
                            time.sleep(0.2 if len(pieces) > 1 else 0)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def _is_whole(request: bytes) -> bool:
    head, _, body = request.partition(b"\r\n\r\n")
    size = head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]
    return bool(size) and len(body) >= int(size)


def seconds(client: Client, name: str, **fields: Json) -> float:
    began = time.monotonic()
    assert client.says(name, **fields) == ""
    return time.monotonic() - began


def test_a_hub_that_hangs_is_found_out_once_and_left_alone(client: Client) -> None:
    with deaf() as port:
        client.knows(port)
        assert seconds(client, "PreToolUse") < BOUND
        assert client.left_alone
        assert client.spooled() == 0
        assert seconds(client, "Stop") < BOUND
        assert client.spooled() == 1


@pytest.mark.parametrize(("until", "asked"), [(3600, 0), (-3600, 1)])
def test_a_hub_that_was_slow_is_asked_nothing_until_its_time_is_over(
    client: Client, until: int, asked: int
) -> None:
    heard: list[bytes] = []
    with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", heard=heard) as port:
        client.knows(port)
        (client.state / "hooks/slow").write_text(f"{int(time.time()) + until}\n")
        client.says("Stop", patience="30")
    assert len(heard) == asked
    assert client.spooled() == 1 - asked


def test_the_start_of_a_session_may_take_longer_and_gives_nobody_a_bad_name(client: Client) -> None:
    """The hub writes it down before it answers. It is in the spool, and the calls that follow are heard."""
    with deaf() as port:
        client.knows(port)
        assert seconds(client, "SessionStart") < BOUND
        assert client.spooled() == 1
        assert not client.left_alone


def test_a_hub_that_takes_no_more_connections_costs_no_more_than_one_that_hangs(client: Client) -> None:
    """A connection to a queue that is full waits for seconds, and nothing in a shell can hurry it."""
    with deaf(backlog=0) as port, ExitStack() as stack:
        for _ in range(8):
            one = stack.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        client.knows(port)
        assert seconds(client, "PreToolUse") < BOUND
        assert client.left_alone


def test_an_event_that_does_not_fit_into_the_socket_of_a_deaf_hub_holds_nobody_up(client: Client) -> None:
    with deaf() as port:
        client.knows(port)
        assert seconds(client, "PostToolUse", tool_response="x" * 7_000_000) < BOUND
        assert client.left_alone
        assert seconds(client, "PostToolUse", tool_response="x" * 7_000_000) < BOUND
        assert client.files() == ["client", "slow", "token"]


def test_an_answer_in_drops_has_one_bound_for_all_of_it(client: Client) -> None:
    drops = [b"HTTP/1.1 200 OK\r\n", *[b"x-more: 1\r\n"] * 30, b'content-length: 2\r\n\r\n{"a":1}']
    with answering(*drops) as port:
        client.knows(port)
        assert seconds(client, "PreToolUse") < BOUND
        assert client.left_alone


@pytest.mark.parametrize(
    "status", ["408 Request Timeout", "429 Too Many Requests", "503 Service Unavailable"]
)
def test_what_a_busy_hub_refuses_is_left_for_later_if_it_matters(client: Client, status: str) -> None:
    with answering(f"HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n".encode()) as port:
        client.knows(port)
        client.says("PreToolUse", patience="30")
        assert client.spooled() == 0
        client.says("Stop", patience="30")
        assert client.spooled() == 1
        assert not client.left_alone


def test_a_hub_that_is_gone_is_no_hub_that_hangs(client: Client) -> None:
    with deaf() as port:
        client.knows(port)
    client.says("Stop", patience="30")
    assert client.spooled() == 1
    assert not client.left_alone


def test_an_answer_is_printed_whole_and_an_empty_one_is_not(client: Client) -> None:
    said = '{"decision":"block","reason":"' + "wörd " * 2000 + '"}'
    for body, printed in ((said, said), ("{}", "")):
        head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body.encode())}\r\n\r\n"
        with answering((head + body).encode()) as port:
            client.knows(port)
            assert client.says("Stop", patience="30") == printed


@pytest.mark.parametrize("size", [0, 199_872, 199_873, 199_874, 1_000_000, 7_000_000])
def test_an_event_of_any_size_arrives_whole(client: Client, size: int) -> None:
    """From 200,000 bytes on (199,873 and what is around them) the rest goes around the shell."""
    heard: list[bytes] = []
    response = "x" * size
    with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", heard=heard) as port:
        client.knows(port)
        assert client.says("PostToolUse", patience="30", tool_response=response) == ""
    assert len(heard) == 1
    assert json.loads(heard[0])["tool_response"] == response
    assert client.files() == ["client", "token"]
