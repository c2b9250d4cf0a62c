"""Processes: their end is seen at once, and taken away from nobody."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifesigns.agent.monitor import Monitor
from lifesigns.errors import UsageError
from tests.agent.monitor.heard import QUICK, WITHIN, Heard

DESCRIPTORS = Path("/proc/self/fd")
SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


@pytest.fixture(params=["pidfd", "polled"])
def monitor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Monitor]:
    """With pidfds, and as on a platform that has none."""
    if request.param == "polled":
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    with Monitor(policy=QUICK) as monitor:
        yield monitor


def test_a_killed_process_is_a_crash_by_that_signal_and_its_owner_still_learns_its_status(
    monitor: Monitor,
) -> None:
    """We look at how it ended without reaping it."""
    heard = Heard(monitor)
    with subprocess.Popen(SLEEP) as process:
        monitor.watch(process, "worker")
        heard.wait("agent-healthy", "worker")
        process.kill()
        event = heard.wait("agent-disconnected", "worker")
        assert event.type == "process-crash"
        assert event.reason == "The process was ended by SIGKILL"
        assert process.wait(WITHIN) == -signal.SIGKILL


@pytest.mark.parametrize(("status", "told"), [(0, "agent-left"), (3, "agent-disconnected")])
def test_an_exit_with_status_0_is_no_crash_and_any_other_is(monitor: Monitor, status: int, told: str) -> None:
    heard = Heard(monitor)
    with subprocess.Popen([sys.executable, "-c", f"raise SystemExit({status})"]) as process:
        monitor.watch(process, "worker")
        event = heard.wait(told, "worker")
        assert f"with status {status}" in event.reason
        assert process.wait(WITHIN) == status


def test_a_process_that_somebody_else_waits_for_is_known_by_what_they_learned(monitor: Monitor) -> None:
    """Whoever reaps it first, the status is told."""
    heard = Heard(monitor)
    with subprocess.Popen(SLEEP) as process:
        monitor.watch(process, "worker")
        process.terminate()
        process.wait(WITHIN)
        assert heard.wait("agent-disconnected", "worker").reason == "The process was ended by SIGTERM"


def test_a_pid_that_is_not_our_child_is_watched_as_well(monitor: Monitor) -> None:
    """Its end is seen; how it ended nobody tells us."""
    heard = Heard(monitor)
    code = "import subprocess,sys; p=subprocess.Popen(['sleep','60']); print(p.pid, flush=True); sys.stdin.read(); p.kill(); p.wait()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        watched = monitor.watch(pid)
        assert watched.name == f"pid-{pid}"
        heard.wait("agent-healthy", watched.name)
        parent.communicate(timeout=WITHIN)
        assert "not known" in heard.wait("agent-disconnected", watched.name).reason


def test_a_multiprocessing_process_is_watched_by_its_name(monitor: Monitor) -> None:
    heard = Heard(monitor)
    process = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(60,), name="worker")
    process.start()
    monitor.watch(process)
    heard.wait("agent-healthy", "worker")
    process.terminate()
    assert heard.wait("agent-disconnected", "worker").reason == "The process was ended by SIGTERM"
    process.join(WITHIN)
    assert process.exitcode == -signal.SIGTERM
    process.close()


async def test_an_asyncio_process_is_watched_and_asyncio_still_learns_its_status() -> None:
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        process = await asyncio.create_subprocess_exec(*SLEEP)
        monitor.watch(process, "worker")
        await heard.comes("agent-healthy", "worker")
        process.kill()
        assert (
            await heard.comes("agent-disconnected", "worker")
        ).reason == "The process was ended by SIGKILL"
        assert await process.wait() == -signal.SIGKILL


def test_nobody_can_be_watched_who_is_not_there() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait(WITHIN)
    with Monitor() as monitor, pytest.raises(UsageError, match=f"no process with pid {process.pid}"):
        monitor.watch(process.pid)


@pytest.mark.skipif(not DESCRIPTORS.is_dir(), reason="descriptors cannot be counted here")
def test_descriptors_are_given_back() -> None:
    """Also of a process that could not be watched after all."""
    before = len(list(DESCRIPTORS.iterdir()))
    with Monitor(policy=QUICK) as monitor, subprocess.Popen([sys.executable, "-c", ""]) as process:
        heard = Heard(monitor)
        with pytest.raises(UsageError):
            monitor.watch(process, "worker", beats_every=-1)
        monitor.watch(process, "worker")
        heard.wait("agent-left", "worker")
        monitor.watch(os.getpid(), "me")
    assert len(list(DESCRIPTORS.iterdir())) == before
