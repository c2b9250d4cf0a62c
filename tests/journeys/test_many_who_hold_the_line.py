"""Connections that say nothing, and listeners that do not read, by the hundred: agents are heard beside them, the living are
spared, the dead found, and the hub holds no memory for who does not read.

`IDLE_CONNECTIONS=9000 DEAF_LISTENERS=300` are the numbers in `make soak`; the suite opens fewer.
"""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, serving

IDLE = int(os.environ.get("IDLE_CONNECTIONS", "1000"))
DEAF = int(os.environ.get("DEAF_LISTENERS", "50"))
EVENTS = 40
GROWTH_MAX_MB = 32 + (IDLE + DEAF) * 0.06
"""A connection takes about 30 kB."""

AGENT = """
import sys, time
from lifesigns import Sender

with Sender(sys.argv[1]):
    time.sleep(600)
"""


@pytest.mark.timeout(300)
def test_agents_are_heard_beside_many_who_hold_the_line(tmp_path: Path) -> None:
    with serving(tmp_path, {"profile": "swift"}) as hub, ExitStack() as lines:
        hub.python("agent.py", AGENT, "lives")
        mortal = hub.python("agent.py", AGENT, "dies")
        hub.until(lambda: hub.health("lives") == hub.health("dies") == "healthy", "both are healthy")
        before = memory_mb(hub)
        for _ in range(IDLE):
            lines.enter_context(line(hub))
        for _ in range(DEAF):
            lines.enter_context(deaf(hub))
        hub.until(lambda: hub.get("/api/v1/agents/lives")["state"] == "healthy", "it is still answered")
        for number in range(EVENTS):
            words = {
                "type": "error",
                "agent_id": f"loud-{number}",
                "message": "x" * 2000,
                "recoverable": False,
            }
            hub.post("/api/v1/signals", words)
        hub.cli("beat", "newcomer")
        mortal.kill()
        hub.until(lambda: hub.health("dies") == "disconnected", "the dead one is found")
        assert memory_mb(hub) - before < GROWTH_MAX_MB
        assert "lives" not in hub.disconnected()


def line(hub: Hub) -> socket.socket:
    """A connection on which nothing is said after its first request."""
    peer = socket.create_connection(("127.0.0.1", hub.port), timeout=60)
    peer.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    return peer


def deaf(hub: Hub) -> socket.socket:
    """A listener to all events that does not read them."""
    peer = socket.socket()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    peer.connect(("127.0.0.1", hub.port))
    head = "GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {}\r\n\r\n"
    peer.sendall(head.format(hub.token).encode())
    return peer


def memory_mb(hub: Hub) -> float:
    assert hub.process is not None
    status = Path(f"/proc/{hub.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024
