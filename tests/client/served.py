"""A hub in a process of its own, as a user starts it; it can be killed, and comes back at the same place."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx2

from tests.servers.forked import ForkedProcess, forked
from tests.servers.process import free_port

ROOT: Final = Path(__file__).parents[2]
BOUND: Final = 40.0


def environ(state: Path, **more: str) -> dict[str, str]:
    """Ours, without what would lead to another hub."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LIFESIGNS_")}
    here = {"LIFESIGNS_STATE": str(state), "HOME": str(state), "XDG_CONFIG_HOME": str(state)}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), **here, **more}


class Served:
    """`lifesigns serve` over a folder."""

    def __init__(self, state: Path, profile: str = "swift") -> None:
        self.state = state
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._profile = profile
        self._process: ForkedProcess | None = None

    @property
    def token(self) -> str:
        return (self.state / "admin.token").read_text().strip()

    def start(self) -> None:
        """Returns when it answers."""
        command = ("serve", "--port", str(self.port), "--profile", self._profile)
        log = self.state / "log"
        self._process = forked(*command, cwd=self.state, env=environ(self.state), log=log)
        until = time.monotonic() + BOUND
        while not self._answers():
            assert self._process.poll() is None, (self.state / "log").read_text()
            assert time.monotonic() < until, "the hub did not start"
            time.sleep(0.05)

    def kill(self) -> None:
        """As a machine would that loses its power."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(BOUND)

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            try:
                self._process.wait(BOUND)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _answers(self) -> bool:
        try:
            return httpx2.get(f"{self.url}/healthz", trust_env=False, timeout=5).status_code == 200
        except httpx2.TransportError:
            return False


@contextmanager
def served(state: Path, profile: str = "swift") -> Iterator[Served]:
    """A hub that runs."""
    hub = Served(state, profile)
    try:
        hub.start()
        yield hub
    finally:
        hub.stop()
