"""Takeover: two hubs on one PostgreSQL, a large fleet, and the one that judges is killed with -9.

Everybody beats every ten seconds, in batches, to the hub that takes them; a batch that neither hub takes is lost. A few
agents fall silent right before the kill. Measured from the kill: until the next hub judges, until it takes the first
batch, until it has found the silent ones; which beats were lost; and whether anybody else was convicted.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port

BATCH: Final = 500
INTERVAL: Final = 10.0
SILENT: Final = 5
WITHIN: Final = 180.0


@dataclass(frozen=True)
class Measured:
    """Seconds from the kill, and what was lost."""

    judges_after: float
    heard_after: float
    found_after: float
    """When all that had fallen silent before the kill were found."""
    beats_sent: int
    beats_lost: int
    convicted: int
    """Agents that were found disconnected and are not."""
    loop_late_max: float
    """How late the new hub was for a deadline, at worst: its loop was blocked for so long, or starved."""


class HubProcess:
    """`lifesigns serve`, and its HTTP API."""

    def __init__(self, folder: Path, store: str) -> None:
        self.state = folder
        self.url = f"http://127.0.0.1:{free_port()}"
        port = self.url.rpartition(":")[2]
        words = ("serve", "--port", port, "--state", str(folder), "--store", store, "--log-level", "error")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lifesigns", *words], stderr=subprocess.DEVNULL
        )

    def ask(self, path: str, body: object = None, timeout: float = 10.0) -> Any:
        """The answer, or None if there is none or it is no 2xx."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data)
        try:
            request.add_header("Authorization", f"Bearer {(self.state / 'admin.token').read_text().strip()}")
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.loads(answer.read() or b"null") or True
        except (OSError, urllib.error.URLError):
            return None

    def judges(self) -> bool:
        return self.ask("/readyz", timeout=2.0) is not None

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class Crowd:
    """The agents, who speak to the hub that takes their beats."""

    agents: int
    hubs: list[HubProcess]
    silent: set[str] = field(default_factory=set)
    sent: int = 0
    lost: int = 0
    taken_at: float = 0.0
    """When the last batch was taken."""
    over: threading.Event = field(default_factory=threading.Event)
    seq: int = 0

    def beat_once(self, pace: float) -> None:
        """Everybody, spread over so many seconds."""
        self.seq += 1
        began_at = time.monotonic()
        for first in range(0, self.agents, BATCH):
            if self.over.is_set():
                return
            names = [f"agent-{n:06}" for n in range(first, min(first + BATCH, self.agents))]
            self._post([{"agent_id": name, "seq": self.seq} for name in names if name not in self.silent])
            self.over.wait(max(0.0, began_at + pace * (first + BATCH) / self.agents - time.monotonic()))

    def _post(self, batch: list[dict[str, object]]) -> None:
        self.sent += len(batch)
        for hub in self.hubs:
            if hub.ask("/api/v1/beats", batch, timeout=5.0) is not None:
                self.hubs.sort(key=lambda one: one is not hub)
                self.taken_at = time.monotonic()
                return
        self.lost += len(batch)

    def run(self) -> None:
        while not self.over.is_set():
            self.beat_once(INTERVAL)


def measure(agents: int) -> Measured:
    """Run it once."""
    folder = Path(tempfile.mkdtemp(prefix="lifesigns-takeover-"))
    hubs: list[HubProcess] = []
    try:
        with PostgresServer("-c", "shared_buffers=128MB") as server:
            _say(f"two hubs, {agents:,} agents")
            for name in ("first", "second"):
                (folder / name).mkdir(mode=0o700)
            hubs.append(HubProcess(folder / "first", server.url))
            _until(hubs[0].judges, "the first hub judges")
            for key in ("tokens.key", "audit.key"):
                shutil.copy(folder / "first" / key, folder / "second")
            hubs.append(HubProcess(folder / "second", server.url))
            _until(
                lambda: len((hubs[0].ask("/api/v1/hubs") or {"hubs": []})["hubs"]) == 2, "the second is there"
            )
            return _killed(hubs[0], hubs[1], Crowd(agents, list(hubs)))
    finally:
        for hub in hubs:
            hub.end()
        shutil.rmtree(folder, ignore_errors=True)


def _killed(first: HubProcess, second: HubProcess, crowd: Crowd) -> Measured:
    crowd.beat_once(0.0)
    _say("all are met")
    crowd.beat_once(INTERVAL)
    thread = threading.Thread(target=crowd.run)
    thread.start()
    try:
        time.sleep(INTERVAL)
        crowd.silent = {f"agent-{n:06}" for n in range(0, crowd.agents, crowd.agents // SILENT)}
        _until(
            lambda: first.ask(
                "/api/v1/signals", {"type": "doing", "agent_id": "agent-000001", "doing": "working"}
            ),
            "it stores",
        )
        _say("all is stored; the first hub is killed")
        crowd.sent = crowd.lost = 0
        killed_at = time.monotonic()
        first.end()
        _until(second.judges, "the second one judges")
        judges_after = time.monotonic() - killed_at
        _until(lambda: crowd.taken_at > killed_at + 0.5, "it takes a batch")
        heard_after = crowd.taken_at - killed_at
        _until(lambda: crowd.silent <= _disconnected(second), "it finds those who fell silent")
        found_after = time.monotonic() - killed_at
        return Measured(
            judges_after,
            heard_after,
            found_after,
            crowd.sent,
            crowd.lost,
            len(_disconnected(second) - crowd.silent),
            second.ask("/api/v1/fleet")["hub"]["look_late_max_s"],
        )
    finally:
        crowd.over.set()
        thread.join()


def _say(what: str) -> None:
    """Who waits wants to know what for."""
    print(f"takeover: {what} ...", file=sys.stderr, flush=True)


def _disconnected(hub: HubProcess) -> set[str]:
    page = hub.ask("/api/v1/agents?state=disconnected&limit=1000") or {"agents": []}
    return {one["agent_id"] for one in page["agents"]}


def _until(condition: Any, what: str) -> None:
    ends_at = time.monotonic() + WITHIN
    while not condition():
        if time.monotonic() > ends_at:
            raise TimeoutError(f"not within {WITHIN:g} s: {what}")
        time.sleep(0.02)
