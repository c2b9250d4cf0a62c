"""A hub as a user starts it, in a state folder of its own: for what can only be measured from outside."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STARTS_WITHIN = 60.0


@dataclass
class RealHub:
    """`lifesigns serve`, and how to reach it."""

    process: subprocess.Popen[bytes]
    state: Path
    environ: Mapping[str, str]

    @property
    def url(self) -> str:
        return (self.state / "hub.url").read_text().strip()

    @property
    def token(self) -> str:
        return (self.state / "admin.token").read_text().strip()

    def cpu(self) -> float:
        """Processor seconds of all its threads so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def cli(self, *command: str) -> None:
        """A command of ours that finds this hub."""
        subprocess.run(
            [sys.executable, "-m", "lifesigns", *command],
            env=self.environ,
            check=True,
            stdout=subprocess.DEVNULL,
        )


@contextmanager
def served(
    folder: Path,
    *options: str,
    python: Path = Path(sys.executable),
    core: int | None = None,
) -> Iterator[RealHub]:
    """A hub that answers; killed in the end. By default ours, on any core."""
    state = folder / "state"
    environ = {**os.environ, "HOME": str(folder), "LIFESIGNS_STATE": str(state)}
    pinned = [] if core is None else ["taskset", "-c", str(core)]
    command = [*pinned, str(python), "-m", "lifesigns", "serve", "--port", "0", *options]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        hub = RealHub(process, state, environ)
        ends_at = time.monotonic() + STARTS_WITHIN
        while not (hub.state / "hub.url").exists():
            assert process.poll() is None, "the hub did not start"
            assert time.monotonic() < ends_at, "the hub did not start in time"
            time.sleep(0.1)
        yield hub
    finally:
        process.kill()
        process.wait()
