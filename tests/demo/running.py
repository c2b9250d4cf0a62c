"""`lifesigns demo` as a user starts it, and what is left of it afterwards."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from tests.agent.supervise.running import environ

DEMO = (sys.executable, "-m", "lifesigns", "demo", "--port", "0")


def processes_of(place: Path) -> list[psutil.Process]:
    """Everybody who was started in a folder below this one, guardians included."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            told = [*process.cmdline(), process.environ().get("LIFESIGNS_STATE", "")]
            if process.status() != psutil.STATUS_ZOMBIE and any(str(place) in word for word in told):
                found.append(process)
    return found


def nothing_is_left(place: Path) -> bool:
    return not processes_of(place) and not list(place.iterdir())


@contextmanager
def demo_in(place: Path, *args: str) -> Iterator[subprocess.Popen[str]]:
    """The demo, with its folder below this one; ended and reaped whatever happens."""
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(
        [*DEMO, *args], stdin=subprocess.DEVNULL, env=environ(TMPDIR=str(place)), **pipes
    )
    with process:
        try:
            yield process
        finally:
            process.kill()
            for left in processes_of(place):
                with suppress(psutil.Error):
                    left.kill()
