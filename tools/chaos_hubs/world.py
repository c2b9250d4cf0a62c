"""The world: PostgreSQL, NATS, three hubs on a machine each, and agents that do nothing wrong."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Self

from tests.servers.nats import NatsServer
from tests.servers.postgres import PostgresServer
from tools.chaos_hubs.machines import BUS, NET, STORE, WITH_US, Machine

HUBS: Final = 3
PORT: Final = 8710
PROCESSES: Final = 4
"""Of agents: every other one speaks over NATS."""
PER_PROCESS: Final = 5
CONFIG: Final = {
    "profile": "balanced",
    "policy": {"ladder": {"hesitate_for": 1.0, "escalation_timeout": 10.0, "save_for": 2.0}},
}
"""Whoever was convicted and not helped within seconds would be ended: a false verdict shows."""
WITHIN: Final = 300.0
ASK_WITHIN: Final = 180.0
"""Both are for a machine that is busy with other things, too: how long it really took is told."""

Json = Any


class NoAnswer(Exception):
    """No hub took the call, or one refused it."""


class Store(PostgresServer):
    """PostgreSQL, for all machines."""

    def start(self) -> Self:
        super().start()
        rules = self.folder / "data" / "pg_hba.conf"
        if NET not in rules.read_text():
            rules.write_text(f"{rules.read_text()}\nhost all all {NET}.0/24 trust\n")
            self.restart()
        return self


class HubMachine:
    """A hub, and the machine it runs on."""

    def __init__(self, number: int, folder: Path, store: str, bus: str, judge: str) -> None:
        self.machine = Machine(number)
        self.folder = folder / f"hub-{number}"
        self.state = self.folder / "state"
        self.state.mkdir(parents=True, mode=0o700)
        self.url = f"http://{self.machine.address}:{PORT}"
        (self.folder / "lifesigns.yaml").write_text(json.dumps({**CONFIG, "hubs": {"judge": judge}}))
        where = ("--host", self.machine.address, "--port", str(PORT), "--behind-proxy")
        self._command = (
            *(sys.executable, "-m", "lifesigns", "serve", *where, "--state", str(self.state)),
            *("--store", store, "--bus", bus, "--config", str(self.folder / "lifesigns.yaml")),
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        if self._process is None or self._process.poll() is not None:
            env = {**os.environ, "LIFESIGNS_INSECURE": "1"}
            with (self.folder / "log").open("ab") as log:
                self._process = self.machine.start(self._command, env=env, stdout=log, stderr=log)

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait()

    def stop(self) -> None:
        self.signal(signal.SIGTERM)
        assert self._process is not None
        self._process.wait(WITHIN)

    def end(self) -> None:
        if self._process is not None:
            self.signal(signal.SIGCONT)
            self.kill()
        self.machine.end()


class World:
    """Everything there is. What people do goes to any hub that answers."""

    def __init__(self, judge: str) -> None:
        self.judged_by = judge
        """`one` hub, or `all` of them: each its slots of agents."""
        self.folder = Path(tempfile.mkdtemp(prefix="lifesigns-chaos-hubs-"))
        self.ledgers = self.folder / "ledgers"
        self.ledgers.mkdir()
        self.store = Store("-h", "0.0.0.0", "-c", "max_connections=100")
        self.bus = NatsServer("--addr", "0.0.0.0")
        self.hubs: list[HubMachine] = []
        self.agents: dict[str, subprocess.Popen[bytes]] = {}
        self.killed: dict[str, float] = {}
        """The agents that were killed, and when."""

    def __enter__(self) -> Self:
        try:
            self.store.start()
            self.bus.start()
            store = f"postgres://lifesigns@{STORE}:{self.store.port}/postgres"
            self.bus_url = f"nats://{BUS}:{self.bus.port}"
            self.hubs = [
                HubMachine(number, self.folder, store, self.bus_url, judge=self.judged_by)
                for number in range(HUBS)
            ]
            self.hubs[0].start()
            until(lambda: self.judge(), "the first hub judges")
            for hub in self.hubs[1:]:
                for key in ("tokens.key", "audit.key"):
                    shutil.copy(self.hubs[0].state / key, hub.state)
                hub.start()
            self.token = (self.hubs[0].state / "admin.token").read_text().strip()
            for number in range(PROCESSES):
                self.start_agents(
                    [f"p{number}-{life}" for life in range(PER_PROCESS)], over_bus=number % 2 == 1
                )
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in {id(process): process for process in self.agents.values()}.values():
            process.kill()
            process.wait()
        for hub in self.hubs:
            hub.end()
        self.bus.close()
        self.store.thaw()
        self.store.close()

    # --- agents ---------------------------------------------------------------------------------------

    def start_agents(self, names: list[str], *, over_bus: bool) -> None:
        where = self.bus_url if over_bus else ",".join(random.sample([hub.url for hub in self.hubs], HUBS))
        env = {**os.environ, "LIFESIGNS_HUB": where, "LIFESIGNS_TOKEN": self.token, "LIFESIGNS_INSECURE": "1"}
        program = str(Path(__file__).with_name("agents.py"))
        with (self.folder / f"{names[0]}.log").open("ab") as log:
            process = subprocess.Popen(
                [*WITH_US, sys.executable, program, str(self.ledgers), *names],
                env={**env, "LIFESIGNS_STATE": str(self.folder / f"state-{names[0]}")},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.agents |= dict.fromkeys(names, process)

    def kill_agent(self, name: str) -> None:
        """It has a process for itself."""
        self.agents[name].kill()
        self.killed[name] = time.time()

    @property
    def living(self) -> set[str]:
        return self.agents.keys() - self.killed.keys()

    def ledger(self, name: str) -> list[Json]:
        path = self.ledgers / f"{name}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")]

    # --- people ---------------------------------------------------------------------------------------

    def ask(
        self, method: str, path: str, body: Json = None, key: str = "", within: float = ASK_WITHIN
    ) -> Json:
        """Of any hub that answers, tried again and again: an `Idempotency-Key` makes one act of it."""
        ends_at = time.monotonic() + within
        while True:
            for hub in random.sample(self.hubs, HUBS):
                try:
                    return self.ask_hub(hub, method, path, body, key)
                except urllib.error.HTTPError as error:
                    with error:
                        if error.code < 500 and error.code != 429:
                            said = error.read().decode()[:300]
                            raise NoAnswer(f"{method} {path}: {error.code} {said}") from None
                except OSError:
                    pass
            if time.monotonic() > ends_at:
                raise NoAnswer(f"{method} {path}: nobody answered within {within:g} s")
            time.sleep(0.3)

    def ask_hub(self, hub: HubMachine, method: str, path: str, body: Json = None, key: str = "") -> Json:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(hub.url + path, data=data, method=method)
        request.add_header("Authorization", f"Bearer {self.token}")
        request.add_header("Content-Type", "application/json")
        if key:
            request.add_header("Idempotency-Key", key)
        with urllib.request.urlopen(request, timeout=5.0) as answer:
            return json.loads(answer.read() or b"null")

    def judge(self) -> HubMachine | None:
        """The hub that judges, if one says so; if all do, one to whom all slots are judged."""
        for hub in self.hubs:
            try:
                with urllib.request.urlopen(f"{hub.url}/readyz", timeout=2.0) as answer:
                    if json.loads(answer.read())["status"] == "ok":
                        return hub
            except OSError:
                pass
        return None

    def events(self, *types: str) -> list[Json]:
        """Everything on record."""
        found: list[Json] = []
        after: int | None = 0
        while after is not None:
            wanted = "".join(f"&types={name}" for name in types)
            page = self.ask("GET", f"/api/v1/events/list?after={after}&limit=1000{wanted}")
            found += page["events"]
            after = page["after"]
        return found


def until(condition: Callable[[], object], what: str, within: float = WITHIN) -> float:
    """Wait for it; how long it took."""
    began_at = time.monotonic()
    while not condition():
        if time.monotonic() - began_at > within:
            raise TimeoutError(f"not within {within:g} s: {what}")
        time.sleep(0.1)
    return time.monotonic() - began_at
