"""The servers of the tests keep their own promises."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.servers.nats import NatsServer
from tests.servers.process import Server
from tests.servers.valkey import ValkeyServer


def is_there(pid: int) -> bool:
    """Running, not merely unburied."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("kind", [NatsServer, ValkeyServer])
def test_a_server_keeps_its_port_and_leaves_nothing_behind(kind: type[Server]) -> None:
    with kind() as server:
        url, first = server.url, server.pid
        server.restart()
        assert (server.url, server.pid != first) == (url, True)
        server.freeze()
        server.restart()
        server.stop()
        server.start()
        server.freeze()
        last = server.pid
    assert not is_there(first)
    assert not is_there(last)
    assert not server.folder.exists()


@pytest.mark.parametrize("kind", [NatsServer, ValkeyServer])
def test_a_server_that_cannot_start_says_why(kind: type[Server]) -> None:
    server = kind("--no-such-argument")
    with pytest.raises(RuntimeError, match="no-such-argument"):
        server.start()
    server.close()


def test_a_server_ends_when_its_tests_are_killed() -> None:
    """Also by the signal nobody can catch."""
    code = (
        "import time; from tests.servers.nats import NatsServer;"
        "server = NatsServer().start(); print(server.pid, server.folder, flush=True); time.sleep(600)"
    )
    root = Path(__file__).parents[2]
    tests = subprocess.Popen([sys.executable, "-c", code], cwd=root, stdout=subprocess.PIPE, text=True)
    assert tests.stdout is not None
    with tests.stdout:
        pid, folder = tests.stdout.readline().split()
    assert is_there(int(pid))
    tests.send_signal(signal.SIGKILL)
    tests.wait()
    until = time.monotonic() + 10
    while is_there(int(pid)) and time.monotonic() < until:
        time.sleep(0.01)
    ended = not is_there(int(pid))
    if not ended:
        os.kill(int(pid), signal.SIGKILL)
    assert ended
    while Path(folder).exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert not Path(folder).exists()
