"""systemd and Kubernetes: a program speaks to its service manager and the hub knows; the hub speaks to its own; a probe asks."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, Refused, serving

SERVICE = """
import os, socket, time
line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
def say(text): line.sendto(text.encode(), os.environ["NOTIFY_SOCKET"])
say(f"READY=1\\nSTATUS=12 of 30 files\\nMAINPID={os.getpid()}")
while True:
    say("WATCHDOG=1")
    time.sleep(0.3)
"""


def status_of(hub: Hub, path: str) -> int:
    try:
        hub.get(path)
    except Refused as refused:
        return refused.status
    return 200


def test_what_a_service_says_is_seen_at_the_hub_and_its_probe_follows(tmp_path: Path) -> None:
    """A watchdog that is missed is a freeze: SIGSTOP keeps the loop from going round as any deadlock would."""
    with serving(tmp_path) as hub:
        (tmp_path / "service.py").write_text(SERVICE)
        assert status_of(hub, "/healthz/svc") == 404
        hub.started("lifesigns", "run", "--id", "svc", "--watchdog", "3", "--", "python3", "service.py")
        hub.until(
            lambda: (hub.agent("svc") or {}).get("doing_note") == "12 of 30 files", "its status is shown"
        )
        hub.until(lambda: hub.get("/healthz/svc")["status"] == "ok", "its probe is well")
        pid = hub.get("/api/v1/agents/svc/heartbeat")["beat"]["pid"]
        assert "service.py" in Path(f"/proc/{pid}/cmdline").read_text()
        os.kill(pid, signal.SIGSTOP)
        hub.until(lambda: status_of(hub, "/healthz/svc") == 503, "its probe fails")
        with pytest.raises(Refused) as refused:
            hub.get("/healthz/svc")
        assert (refused.value.body["status"], refused.value.body["state"]) == ("unwell", "disconnected")
        os.kill(pid, signal.SIGCONT)
        hub.until(lambda: status_of(hub, "/healthz/svc") == 200, "it goes on")


def test_a_probe_may_ask_for_more_than_life(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        hub.post("/api/v1/beats", {"agent_id": "a", "status": "failing"})
        assert hub.get("/api/v1/agents/a")["state"] == "degraded"
        assert status_of(hub, "/healthz/a") == status_of(hub, "/healthz/a?at=stuck") == 200
        assert status_of(hub, "/healthz/a?at=degraded") == 503
        assert status_of(hub, "/healthz/a?at=unhappy") == 400
        hub.post("/api/v1/signals", {"agent_id": "a", "type": "left"})
        assert status_of(hub, "/healthz/a") == 503


def test_the_hub_tells_its_own_service_manager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(tmp_path / "manager"))
        line.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "manager"))
        monkeypatch.setenv("WATCHDOG_USEC", "500000")
        with serving(tmp_path) as hub:
            assert line.recv(999).startswith(b"READY=1\nSTATUS=listens on http://")
            for _ in range(3):
                assert line.recv(999).startswith(b"WATCHDOG=1\nSTATUS=listens on http://")
            hub.signal(signal.SIGINT)
            while line.recv(999) != b"STOPPING=1":
                pass
