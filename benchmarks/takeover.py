"""Takeover: two hubs on one PostgreSQL, a large fleet, and the one that judges is killed with -9, again and again; and first
of all it is stopped once, and hands over.

Everybody beats every ten seconds, in batches, to the hub that takes them; a batch that neither hub takes is lost. A few
agents fall silent right before the last kill. Measured from each kill: until the next hub has taken over (the epoch in
the ledger), until its first commit is stored, until it takes the first batch; how long its loop did not answer; at the
end, until the silent ones are found; which beats were lost; and whether anybody else was convicted.
"""

from __future__ import annotations

import asyncio
import json
import random
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
from typing import Any, Final, NamedTuple

import asyncpg

from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port

BATCH: Final = 500
INTERVAL: Final = 10.0
SILENCE: Final = {"interval": INTERVAL, "timeout": 3 * INTERVAL}
"""As these agents beat. A hub stores what changes in an agent, and every agent that beats later than its policy says
would change all the time."""
SILENT: Final = 5
WITHIN: Final = 300.0
FIND_WITHIN: Final = 120.0
LOOK_EVERY: Final = 0.01


@dataclass(frozen=True)
class Round:
    """Seconds from a kill."""

    taken_over_after: float
    """Until the next hub has raised the epoch: about six seconds of this are the lease."""
    commit_after: float
    judges_after: float
    """Until `/readyz` says so."""
    heard_after: float
    unanswered_for: float
    """The longest time in which the next hub did not answer `/healthz`."""


@dataclass(frozen=True)
class Measured:
    """All rounds, and what was lost."""

    unheard_for: float
    """The longest time in which nobody took a beat while the first hub was stopped, and handed over."""
    rounds: list[Round]
    found_after: float | None
    """When all that had fallen silent before the last kill were found; None: not in time. A hub on a starved machine is
    behind, knows it, and convicts nobody."""
    beats_sent: int
    beats_lost: int
    convicted: int
    """Agents that were found disconnected and are not."""


class HubProcess:
    """`lifesigns serve`, and its HTTP API. Its log is in its folder."""

    def __init__(self, folder: Path, store: str) -> None:
        self.state = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._store = store
        self._log = folder / "log"
        self._config = folder / "lifesigns.yaml"
        self._config.write_text(json.dumps({"policy": {"silence": SILENCE}}))  # JSON is YAML.
        self.launch()

    def launch(self) -> None:
        where = ("--port", str(self.port), "--state", str(self.state), "--store", self._store)
        words = ("serve", *where, "--config", str(self._config))
        with self._log.open("wb") as log:
            self.process = subprocess.Popen([sys.executable, "-m", "lifesigns", *words], stderr=log)

    def follows(self) -> bool:
        """Whether it stands by with a copy of all beliefs."""
        return '"following"' in self._log.read_text(errors="replace")

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
        answer = self.ask("/readyz", timeout=2.0)
        return answer is not None and answer["status"] == "ok"

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


class LedgerState(NamedTuple):
    """The row that every commit changes, and since when it is so."""

    at: float
    epoch: int
    commit: int


class LedgerWatch(threading.Thread):
    """Looks at the ledger in the database, whoever writes it."""

    def __init__(self, store: str) -> None:
        super().__init__(daemon=True)
        self._store = store
        self.seen: list[LedgerState] = []
        self.over = threading.Event()

    def run(self) -> None:
        asyncio.run(self._look())

    async def _look(self) -> None:
        connection = await asyncpg.connect(self._store)
        try:
            while not self.over.is_set():
                ((epoch, commit),) = await connection.fetch("SELECT epoch, page FROM lifesigns.hub")
                if not self.seen or self.seen[-1][1:] != (epoch, commit):
                    self.seen.append(LedgerState(time.monotonic(), epoch, commit))
                await asyncio.sleep(LOOK_EVERY)
        finally:
            await connection.close()

    def after(self, epoch: int) -> list[LedgerState]:
        """The states of later epochs: the first one is the takeover, the second one the first commit."""
        return [state for state in self.seen if state.epoch > epoch]


class LoopWatch(threading.Thread):
    """Asks a hub whether it lives, again and again."""

    def __init__(self, hub: HubProcess) -> None:
        super().__init__(daemon=True)
        self._hub = hub
        self.longest = 0.0
        self.over = threading.Event()

    def run(self) -> None:
        answered_at = time.monotonic()
        while not self.over.wait(LOOK_EVERY):
            if self._hub.ask("/healthz", timeout=5.0) is not None:
                now = time.monotonic()
                self.longest = max(self.longest, now - answered_at - LOOK_EVERY)
                answered_at = now


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
    longest_gap: float = 0.0
    """Between two batches that were taken."""
    over: threading.Event = field(default_factory=threading.Event)
    seq: int = 0

    def meet(self) -> None:
        """Everybody beats for the first time; a batch that is not taken is sent again."""
        self.seq += 1
        for batch in self._batches():
            _until(lambda batch=batch: self._post(batch), "a batch is taken", every=0.2)

    def run(self) -> None:
        """Everybody beats, spread over the interval, again and again."""
        while not self.over.is_set():
            self.seq += 1
            began_at, sent = time.monotonic(), 0
            for batch in self._batches():
                if not self._post(batch):
                    self.lost += len(batch)
                self.sent += len(batch)
                sent += BATCH
                if self.over.wait(max(0.0, began_at + INTERVAL * sent / self.agents - time.monotonic())):
                    return

    def _batches(self) -> Any:
        for first in range(0, self.agents, BATCH):
            names = [f"agent-{n:06}" for n in range(first, min(first + BATCH, self.agents))]
            yield [{"agent_id": name, "seq": self.seq} for name in names if name not in self.silent]

    def _post(self, batch: list[dict[str, object]]) -> bool:
        for hub in list(self.hubs):
            if hub.ask("/api/v1/beats", batch, timeout=5.0) is not None:
                self.hubs.sort(key=lambda one: one is not hub)
                now = time.monotonic()
                self.longest_gap, self.taken_at = max(self.longest_gap, now - self.taken_at), now
                return True
        return False


def measure(agents: int, rounds: int = 1) -> Measured:
    """Kill the hub that judges so many times."""
    folder = Path(tempfile.mkdtemp(prefix="lifesigns-takeover-"))
    hubs: list[HubProcess] = []
    try:
        with PostgresServer("-c", "shared_buffers=128MB", "-c", "autovacuum=on") as server:
            _say(f"two hubs, {agents:,} agents")
            for name in ("first", "second"):
                (folder / name).mkdir(mode=0o700)
            hubs.append(HubProcess(folder / "first", server.url))
            _until(hubs[0].judges, "the first hub judges")
            for key in ("tokens.key", "audit.key"):
                shutil.copy(folder / "first" / key, folder / "second")
            hubs.append(HubProcess(folder / "second", server.url))
            return _rounds(hubs, server.url, Crowd(agents, list(hubs)), rounds)
    finally:
        for hub in hubs:
            hub.end()
        shutil.rmtree(folder, ignore_errors=True)


def _rounds(hubs: list[HubProcess], store: str, crowd: Crowd, rounds: int) -> Measured:
    crowd.meet()
    _say("all are met")
    ledger, thread = LedgerWatch(store), threading.Thread(target=crowd.run)
    ledger.start()
    thread.start()
    try:
        measured: list[Round] = []
        leader, standby = hubs
        unheard_for = _handed_over(leader, standby, crowd)
        _say(f"handed over: nobody was heard for {unheard_for:.2f} s")
        leader.launch()
        leader, standby = standby, leader
        while True:
            _until(standby.follows, "the other hub stands by with a copy")
            time.sleep(random.uniform(INTERVAL, INTERVAL + 1.0))  # Any moment between two renewals.
            last = len(measured) == rounds - 1
            if last:
                crowd.silent = {f"agent-{n:06}" for n in range(0, crowd.agents, crowd.agents // SILENT)}
            crowd.sent = crowd.lost = 0
            killed_at, one = _killed(leader, standby, ledger, crowd)
            _say(f"round {len(measured) + 1}: {one}")
            measured.append(one)
            if last:
                break
            leader.launch()
            leader, standby = standby, leader
        found_after = _found_after(killed_at, crowd, standby)
        convicted = len(_disconnected(standby) - crowd.silent)
        return Measured(unheard_for, measured, found_after, crowd.sent, crowd.lost, convicted)
    finally:
        crowd.over.set()
        ledger.over.set()
        thread.join()
        ledger.join()


def _handed_over(leader: HubProcess, standby: HubProcess, crowd: Crowd) -> float:
    """Stop the leader; the longest time in which no batch was taken."""
    _until(standby.follows, "the other hub stands by with a copy")
    time.sleep(INTERVAL)
    crowd.longest_gap = 0.0
    leader.process.terminate()
    _until(lambda: leader.process.poll() is not None, "it has stopped")
    _until(standby.judges, "the other one judges")
    stopped_at = time.monotonic()
    _until(lambda: crowd.taken_at > stopped_at + 1.0, "it takes batches")
    return crowd.longest_gap


def _killed(
    leader: HubProcess, standby: HubProcess, ledger: LedgerWatch, crowd: Crowd
) -> tuple[float, Round]:
    report = {"type": "doing", "agent_id": "agent-000001", "doing": "working"}
    _until(lambda: leader.ask("/api/v1/signals", report), "it stores")
    epoch, loop = ledger.seen[-1].epoch, LoopWatch(standby)
    loop.start()
    killed_at = time.monotonic()
    leader.end()
    _until(standby.judges, "the other one judges")
    judges_at = time.monotonic()
    _until(lambda: crowd.taken_at > killed_at + 0.5, "it takes a batch")
    heard_at = crowd.taken_at
    _until(lambda: len(ledger.after(epoch)) > 1, "it has stored a commit")
    loop.over.set()
    loop.join()
    taken_over, committed, *_ = ledger.after(epoch)
    return killed_at, Round(
        taken_over.at - killed_at,
        committed.at - killed_at,
        judges_at - killed_at,
        heard_at - killed_at,
        loop.longest,
    )


def _found_after(killed_at: float, crowd: Crowd, hub: HubProcess) -> float | None:
    while not crowd.silent <= _disconnected(hub):
        if time.monotonic() - killed_at > FIND_WITHIN:
            return None
        time.sleep(0.1)
    return time.monotonic() - killed_at


def _say(what: str) -> None:
    """Who waits wants to know what for."""
    print(f"takeover: {what} ...", file=sys.stderr, flush=True)


def _disconnected(hub: HubProcess) -> set[str]:
    page = hub.ask("/api/v1/agents?state=disconnected&limit=1000") or {"agents": []}
    return {one["agent_id"] for one in page["agents"]}


def _until(condition: Any, what: str, every: float = 0.02) -> None:
    ends_at = time.monotonic() + WITHIN
    while not condition():
        if time.monotonic() > ends_at:
            raise TimeoutError(f"not within {WITHIN:g} s: {what}")
        time.sleep(every)
