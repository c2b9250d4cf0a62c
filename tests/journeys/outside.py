"""What a user has: the command `lifesigns`, HTTP, files and processes. Nothing of `src` is imported in this folder.

    with serving(folder, config={...}) as hub:
        hub.cli("beat", "coder")
        hub.until(lambda: hub.health("coder") == "healthy", "coder is healthy")
        agent = hub.python("agent.py", '''import lifesigns ...''')

A hub is `lifesigns serve` in a process of its own (a fork of one that has loaded it, see `tests/servers/forked.py`; a fresh
Python with `fresh=True`), on a free port, with its state in `folder`. It can be stopped, killed, frozen and started again on the
same port. Every process started through it has ended when the block ends.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from tests.servers.forked import ForkedProcess, completed, forked

BOUND: Final = 60.0
"""For one condition. It takes seconds; the rest is for a machine that is busy."""

DOCS: Final = Path(__file__).parents[2] / "docs" / "reference"
EVENTS: Final = frozenset(re.findall(r"`([A-Z]+(?:_[A-Z]+)*)`", (DOCS / "http-api.md").read_text("utf-8")))
"""The types of events that are documented."""

Json = Any


class Refused(Exception):
    """An answer of the hub that is not 2xx: its status, and its body."""

    def __init__(self, status: int, body: Json) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body


def until(condition: Callable[[], object], what: str, within: float = BOUND) -> None:
    """Wait for a condition; say which one never came. What takes long is looked for less often."""
    began_at = time.monotonic()
    while not condition():
        waited = time.monotonic() - began_at
        assert waited < within, f"not within {within:g} s: {what}"
        time.sleep(min(0.05 + waited / 20, 0.3))


def free_port() -> int:
    """A port nobody has, below those that the system lends to connections: such a one may be lent before a hub has it."""
    lent_from = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        with socket.socket() as attempt, suppress(OSError):
            attempt.bind(("127.0.0.1", port := random.SystemRandom().randrange(10_240, lent_from)))
            return port


def environment(**more: str) -> dict[str, str]:
    """The environment of this process without any word of ours in it, and `more`."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith("LIFESIGNS_")}
    return {**mine, "PYTHONUNBUFFERED": "1", **more}


class Hub:
    """A hub as its user meets it."""

    def __init__(
        self,
        folder: Path,
        config: Json | None = None,
        *options: str,
        state: Path | None = None,
        env: Mapping[str, str] | None = None,
        fresh: bool = False,
    ) -> None:
        self.folder = folder
        self._env = dict(env or {})
        self._fresh = fresh
        self.state = folder / (state or "state")
        self._state_typed = str(state or self.state)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "hub.log"
        self._options = [*options]
        if config is not None:
            written = folder / "lifesigns.yaml"
            written.write_text(json.dumps(config))  # JSON is YAML.
            self._options += ["--config", str(written)]
        self._processes: list[subprocess.Popen[str] | ForkedProcess] = []
        self._logs: dict[int, Path] = {}
        self.process: subprocess.Popen[str] | ForkedProcess | None = None

    @property
    def store(self) -> str:
        """Its address, if it is set in the environment."""
        return self._env["LIFESIGNS_STORE"]

    # --- the hub's own life -------------------------------------------------------------------------

    def start(self) -> None:
        self.launch()
        until(self._answers, f"the hub answers; its log is {self.log.read_text()!r}")

    def launch(self) -> None:
        """Start it, without waiting until it judges."""
        command = ("serve", "--port", str(self.port), "--state", self._state_typed, *self._options)
        self.log.touch()
        if self._fresh:
            with self.log.open("a") as out:
                self.process = self._spawn(
                    [sys.executable, "-m", "lifesigns", *command],
                    stdout=out,
                    stderr=out,
                    cwd=self.folder,
                    env=environment(**self._env),
                )
            return
        self.process = forked(*command, cwd=self.folder, env=environment(**self._env), log=self.log)
        self._processes.append(self.process)

    def stop(self) -> None:
        """As Ctrl-C does."""
        self.signal(signal.SIGINT)
        assert self.process is not None
        self.process.wait(BOUND)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        assert self.process is not None
        self.process.wait(BOUND)

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"the hub ended: {self.log.read_text()}"
        try:
            self.get("/readyz")
        except (OSError, Refused):
            return False
        return True

    # --- what its user does ---------------------------------------------------------------------------

    @property
    def token(self) -> str:
        """The administrator's."""
        return (self.state / "admin.token").read_text().strip()

    @property
    def environ(self) -> dict[str, str]:
        """What a program needs to find it, and what the hub was given."""
        return {
            **self._env,
            "LIFESIGNS_HUB": self.url,
            "LIFESIGNS_TOKEN": self.token,
            "LIFESIGNS_STATE": str(self.state),
        }

    def cli(
        self, *args: str, check: bool = True, within: float = BOUND, **env: str
    ) -> subprocess.CompletedProcess[str]:
        """A command, as a shell starts it."""
        done = completed(*args, cwd=self.folder, env=environment(**{**self.environ, **env}), timeout=within)
        assert not check or done.returncode == 0, (
            f"lifesigns {args} ended with {done.returncode}: {done.stderr}"
        )
        return done

    def request(
        self, method: str, path: str, body: Json | bytes = None, token: str | None = None, **headers: str
    ) -> Json:
        """One HTTP request. An answer that is not 2xx is `Refused`."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.url + path, data=data, method=method)
        asked.add_header("Authorization", f"Bearer {self.token if token is None else token}")
        if data is not None and "Content_Type" not in headers:
            asked.add_header("Content-Type", "application/json")
        for name, value in headers.items():
            asked.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(asked, timeout=BOUND) as answer:
                return _decoded(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, _decoded(error.read())) from None

    def get(self, path: str) -> Json:
        return self.request("GET", path)

    def post(self, path: str, body: Json = None, **headers: str) -> Json:
        return self.request("POST", path, {} if body is None else body, **headers)

    def agent(self, agent_id: str) -> Json | None:
        """One agent as the API shows it; None if the hub does not know it."""
        try:
            return self.get(f"/api/v1/agents/{agent_id}")
        except Refused as refused:
            if refused.status != 404:
                raise
            return None

    def health(self, agent_id: str) -> str | None:
        agent = self.agent(agent_id)
        return None if agent is None else str(agent["state"])

    def events(self, *types: str, agent: str | None = None) -> list[Json]:
        """Everything that is on record, oldest first: `id`, `type`, `at`, `agent_id`, `data`."""
        unknown = set(types) - EVENTS
        assert not unknown, f"nothing is ever on record as {unknown}: who looks for it finds nothing wrong"
        conditions = [f"types={name}" for name in types] + ([f"agent={agent}"] if agent else [])
        found: list[Json] = []
        after: int | None = 0
        while after is not None:
            page = self.get("/api/v1/events/list?" + "&".join([f"after={after}", "limit=1000", *conditions]))
            found += page["events"]
            after = page["after"]
        return found

    def disconnected(self) -> set[str]:
        """Everybody who was ever found disconnected."""
        flips = self.events("HEALTH_STATE_CHANGED")
        return {flip["agent_id"] for flip in flips if flip["data"]["to"] == "disconnected"}

    def is_blind(self) -> bool:
        try:
            return bool(self.get("/readyz")["blind"])
        except Refused as refused:
            return bool(refused.body["blind"])

    def python(self, name: str, program: str, *args: str, **env: str) -> subprocess.Popen[str]:
        """A Python program of the user's that finds this hub by its environment."""
        path = self.folder / name
        if not path.exists() or path.read_text() != program:  # Who has just been started may be reading it.
            path.write_text(program)
        return self.started(sys.executable, str(path), *args, **env)

    def started(self, *command: str, **env: str) -> subprocess.Popen[str]:
        """Any command that finds this hub by its environment. `lifesigns` is ours."""
        if command[0] == "lifesigns":
            command = (sys.executable, "-m", *command)
        log = self.folder / f"process-{len(self._processes)}.log"
        with log.open("w") as out:
            process = self._spawn(
                [*command],
                stdout=out,
                stderr=out,
                cwd=self.folder,
                env=environment(**{**self.environ, **env}),
            )
        self._logs[process.pid] = log
        return process

    def output(self, process: subprocess.Popen[str]) -> str:
        """What a program has printed so far."""
        return self._logs[process.pid].read_text()

    def until(self, condition: Callable[[], object], what: str, within: float = BOUND) -> None:
        try:
            until(condition, what, within)
        except AssertionError as error:
            logs = "".join(
                f"\n--- {log.name}\n{log.read_text()[-3000:]}" for log in self.folder.glob("*.log")
            )
            raise AssertionError(f"{error}{logs}") from None

    def _spawn(self, command: list[str], **more: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL, **more)
        self._processes.append(process)
        return process

    def end(self) -> None:
        """Nobody stays behind, also who is frozen."""
        for process in reversed(self._processes):
            if process.poll() is None:
                with suppress(ProcessLookupError):
                    process.send_signal(signal.SIGCONT)
                    process.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


def _decoded(content: bytes) -> Json:
    try:
        return json.loads(content) if content else None
    except ValueError:
        return content.decode(errors="replace")


@contextmanager
def serving(
    folder: Path,
    config: Json | None = None,
    *options: str,
    state: Path | None = None,
    env: Mapping[str, str] | None = None,
    fresh: bool = False,
) -> Iterator[Hub]:
    """A running hub; `config` is its `lifesigns.yaml`, `options` go to `lifesigns serve`; its state is in `state`, said as it
    is here; `env` is for the hub and for every program beside it; a `fresh` one reads what Python reads at its start."""
    hub = Hub(folder, config, *options, state=state, env=env, fresh=fresh)
    try:
        hub.start()
        yield hub
    finally:
        hub.end()
