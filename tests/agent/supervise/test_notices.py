"""`NOTIFY_SOCKET`: what a program says to systemd, said to `lifesigns run`; and what we say to systemd ourselves."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lifesigns.agent.service_manager import ServiceManager
from lifesigns.agent.supervise.notices import EXTENSION_MAX, Notices, NotifySocket
from lifesigns.agent.supervise.stopping import EXTENDED_FOR, Stopping
from tests.agent.supervise.running import BOUND, PYTHON, environ, eventually, run, said, started

NOTIFIES = """
import os, socket, sys, time
line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
def say(text): line.sendto(text.encode(), os.environ["NOTIFY_SOCKET"])
"""


@contextmanager
def listening(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """A service manager of ours: its address, and a list to be filled by `heard`."""
    path = folder / "manager"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind(str(path))
        line.setblocking(False)
        _lines[str(path)] = line
        yield str(path), []


_lines: dict[str, socket.socket] = {}


def heard(address: str, before: list[str]) -> list[str]:
    """Everything that was said to it so far."""
    try:
        while True:
            before += _lines[address].recv(4096).decode().split("\n")
    except BlockingIOError:
        return before


# --- the child's notices ---------------------------------------------------------------------------------


def test_a_watchdog_that_is_missed_is_a_freeze() -> None:
    """The program lives and prints, but its loop does not say that it goes round."""
    code = (
        NOTIFIES
        + "\nfor n in range(4): say('WATCHDOG=1'); time.sleep(0.4)\nwhile True: print(time.time()); time.sleep(0.3)"
    )
    with started("--id", "a", "--watchdog", "2", "--", *PYTHON, code) as process:
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        assert re.fullmatch(r"lifesigns: a is frozen: .* its loop has not moved for [\d.]+ s\.\n", line), line


def test_a_watchdog_that_is_met_is_well_and_a_child_knows_how_often() -> None:
    code = NOTIFIES + (
        "\nevery = int(os.environ['WATCHDOG_USEC']) / 1e6; print(every, flush=True)"
        "\nfor n in range(10): say('WATCHDOG=1'); time.sleep(0.5)"
    )
    done = run("--watchdog", "4", "--", *PYTHON, code)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"4.0\n", b"")


def test_a_child_that_names_its_watchdog_itself_is_held_to_it() -> None:
    code = NOTIFIES + "\nsay('READY=1\\nWATCHDOG_USEC=2000000'); time.sleep(300)"
    with started("--id", "a", "--profile", "swift", "--", *PYTHON, code) as process:
        assert process.stderr is not None
        assert b"a is frozen" in process.stderr.readline()


def test_without_a_watchdog_nothing_is_promised() -> None:
    code = NOTIFIES + "\nassert 'WATCHDOG_USEC' not in os.environ; say('WATCHDOG=1'); time.sleep(4)"
    done = run("--profile", "swift", "--", *PYTHON, code)
    assert (done.returncode, done.stderr) == (0, b"")


def test_another_status_is_progress_and_the_same_one_is_not() -> None:
    """It prints nothing, and would be stuck after two seconds."""
    moves = NOTIFIES + "\nfor n in range(12): say(f'STATUS=part {n}'); time.sleep(0.5)"
    assert said(run("--idle-after", "2", "--", *PYTHON, moves)) == []
    stands = NOTIFIES + "\nfor n in range(300): say('STATUS=part 1'); time.sleep(0.5)"
    with started("--id", "a", "--idle-after", "2", "--", *PYTHON, stands) as process:
        assert process.stderr is not None
        assert b"a is stuck: No output" in process.stderr.readline()


def test_a_child_that_needs_more_time_to_end_gets_it() -> None:
    """Two seconds are over when it has saved; without its word it would have been killed by then."""
    code = (
        NOTIFIES
        + """
import signal
def save(*_):
    for n in range(8):
        say("STOPPING=1\\nEXTEND_TIMEOUT_USEC=1500000")
        time.sleep(0.5)
    print("saved", flush=True); sys.exit(0)
signal.signal(15, save)
print("ready", flush=True)
time.sleep(300)
"""
    )
    source = """
import sys
from lifesigns.agent.supervise.settings import *
from lifesigns.assembly.supervision import supervise
from lifesigns.core.profiles import profile
supervise(Settings(command=tuple(sys.argv[1:]), agent_id="a", save_for=2.0, max_for=3.0), profile("swarm"))
"""
    command = (sys.executable, "-c", source, *PYTHON, code)
    done = subprocess.run(command, capture_output=True, timeout=BOUND, check=False, env=environ())
    assert done.stdout == b"ready\nsaved\n", done.stderr


def test_what_a_child_says_is_read_within_bounds() -> None:
    notices = Notices()
    for wrong in (
        "WATCHDOG_USEC=x",
        "WATCHDOG_USEC=" + "9" * 99,
        "MAINPID=-1",
        "MAINPID=" + "9" * 20,
        "=",
        "EXTEND_TIMEOUT_USEC=-5",
    ):
        name, _, value = wrong.partition("=")
        notices.hear({name: value}, 1.0)
    assert notices == Notices()
    notices.hear({"EXTEND_TIMEOUT_USEC": "9" * 15, "STATUS": "x" * 10_000, "MAINPID": "12"}, 1.0)
    assert (notices.more_time, len(notices.status), notices.main_pid) == (EXTENSION_MAX, 200, 12)


@pytest.mark.parametrize(("now", "lag"), [(9.9, 0.0), (10.0, 0.0), (10.1, 10.1)])
def test_a_watchdog_is_missed_when_its_time_is_over(now: float, lag: float) -> None:
    assert Notices(watchdog_every=10.0, pinged_at=0.0).lag(now) == lag
    assert Notices().lag(now) == 0.0


def test_nobody_extends_its_end_for_ever() -> None:
    stopping = Stopping("x", 0.0, 10.0)
    stopping.extend(50.0, 0.0)
    assert stopping.due(0.0) is not None
    for moment in range(1, 2000, 5):
        if stopping.due(float(moment)) is not None:
            break
        stopping.extend(60.0, float(moment))
    assert 10.0 + EXTENDED_FOR <= moment <= 16.0 + EXTENDED_FOR
    stopping.extend(60.0, float(moment))
    assert stopping.forced


def test_a_folder_with_too_long_a_name_offers_nothing(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    notify = NotifySocket(folder)
    assert notify.environ({"NOTIFY_SOCKET": "/run/x"}, 5.0) == {"NOTIFY_SOCKET": "/run/x"}
    notify.close()


# --- our own ---------------------------------------------------------------------------------------------


def test_run_tells_its_own_manager_and_passes_the_status_on(tmp_path: Path) -> None:
    code = NOTIFIES + "\nassert 'WATCHDOG_USEC' not in os.environ; say('STATUS=half done'); time.sleep(300)"
    with listening(tmp_path) as (address, lines):
        command = ("--id", "a", "--hub", "none", "--", *PYTHON, code)
        with started(*command, NOTIFY_SOCKET=address, WATCHDOG_USEC="400000") as process:
            eventually(lambda: heard(address, lines).count("WATCHDOG=1") >= 3)
            eventually(lambda: "STATUS=half done" in heard(address, lines))
            process.terminate()
            process.wait(20)
        assert lines.index("READY=1") < lines.index("STATUS=half done")
        eventually(lambda: "STOPPING=1" in heard(address, lines))


@pytest.mark.parametrize(
    ("told", "every"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
    ],
)
def test_how_often_a_manager_wants_to_hear_of_us(told: dict[str, str], every: float | None) -> None:
    assert ServiceManager(told).every == every


@pytest.mark.parametrize("address", ["", "relative", "/nonexistent/socket", "@nobody-listens", "vsock:2:1"])
def test_a_manager_that_is_not_there_costs_nothing(address: str) -> None:
    ServiceManager({"NOTIFY_SOCKET": address}).say(READY="1", STATUS="two\nlines")


def test_an_abstract_address_is_one() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        line.bind("\0lifesigns-test-notices")
        ServiceManager({"NOTIFY_SOCKET": "@lifesigns-test-notices"}).say(STATUS="two\nREADY=1")
        assert line.recv(99) == b"STATUS=two READY=1"
