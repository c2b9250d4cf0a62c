"""A forked command is like one that a shell starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.servers.forked import ForkedProcess, forked

LONG = 60.0


def started(folder: Path, *command: str, env: Mapping[str, str] | None = None) -> tuple[ForkedProcess, Path]:
    log = folder / "log"
    return forked(*command, cwd=folder, env={**os.environ, **(env or {})}, log=log), log


def serving(folder: Path) -> tuple[ForkedProcess, Path]:
    process, log = started(folder, "serve", "--port", "0", "--state", "state")
    until = time.monotonic() + LONG
    while "listens on" not in (said := log.read_text() if log.exists() else ""):
        assert process.poll() is None, said
        assert time.monotonic() < until, said
        time.sleep(0.02)
    return process, log


def test_it_prints_into_its_log_and_ends_with_its_status(tmp_path: Path) -> None:
    for command in (("--version",), ("nonsense",), ("serve", "--port", "no number")):
        really = subprocess.run(
            [sys.executable, "-m", "lifesigns", *command], capture_output=True, text=True, check=False
        )
        process, log = started(tmp_path, *command)
        assert process.wait(LONG) == process.poll() == process.returncode == really.returncode
        assert log.read_text() == really.stdout + really.stderr
        log.unlink()


def test_it_has_its_own_folder_umask_and_environment(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        process, log = started(tmp_path, "config", "check", "x.yaml", env={"LIFESIGNS_STORE": "nothing"})
    finally:
        os.umask(mask)
    assert process.wait(LONG) == 2
    assert str(tmp_path) in log.read_text() or "x.yaml" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_it_heeds_signals(tmp_path: Path, number: int, status: int) -> None:
    process, _ = serving(tmp_path)
    assert (tmp_path / "state" / "admin.token").exists()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.05)
    process.send_signal(number)
    assert process.wait(LONG) == status
    process.kill()  # It is gone, and nobody else is hit.


ORPHANED = """
import os, pathlib, sys, time
from tests.servers.forked import forked
folder = pathlib.Path(sys.argv[1])
hub = forked("serve", "--port", "0", "--state", "state", cwd=folder, env=os.environ, log=folder / "log")
print(hub.pid, flush=True)
time.sleep(600)
"""


def test_it_ends_with_the_tests_however_they_end(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", ORPHANED, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as tests:
        assert tests.stdout is not None
        hub = Path("/proc") / tests.stdout.readline().strip()
        assert hub.exists()
        tests.kill()
    until = time.monotonic() + LONG
    while hub.exists() and "Z" not in (hub / "stat").read_text().rpartition(")")[2].split()[0]:
        assert time.monotonic() < until
        time.sleep(0.02)
