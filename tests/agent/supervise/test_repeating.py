"""Real programs under `lifesigns run`, at a terminal and without one: what they write is evidence."""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lifesigns.agent.supervise.traffic import MOVED_MIN, Traffic
from tests.agent.supervise.running import PYTHON, RUN, burning, on_screen, run

AWAITED = ("--id", "a", "--idle-after", "2", "--max-time", "60")

RETRIES = "n=0; while :; do n=$((n + 1)); echo \"$(date +%T) attempt $n\"; echo 'Error: no route to host'; sleep 0.1; done"
CIRCLE = "while :; do echo reading plan.md; echo thinking; echo nothing to do; sleep 0.1; done"
SPINNER = """
import itertools, sys, time
for n, frame in enumerate(itertools.cycle("|/-\\\\")):
    sys.stdout.write(f"\\r{frame} Waiting for the model ({n // 10}s)")
    sys.stdout.flush()
    time.sleep(0.1)
"""


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (
            ("sh", "-c", RETRIES),
            r"is stuck: Its output has only repeated itself for \S+ s: Error: no route to host",
        ),
        (("sh", "-c", CIRCLE), r"is degraded: Its output has only repeated itself for \S+ s: nothing to do"),
        (
            (*PYTHON, SPINNER),
            r"is degraded: Its output has only repeated itself for \S+ s: . Waiting for the model",
        ),
    ],
    ids=["the same error", "a circle", "a spinner"],
)
def test_a_program_at_a_terminal_that_only_repeats_itself_is_found(
    command: tuple[str, ...], found: str
) -> None:
    with on_screen(*RUN, "--verbose", *AWAITED, "--", *command, columns=200) as screen:
        screen.expect(f"a {found}")


WORKS = """
import sys, time
for n in range(60):
    for frame in "|/-\\\\":
        sys.stdout.write(WHAT)
        sys.stdout.flush()
        time.sleep(0.025)
"""


GOES_ON = {
    "a bar that advances": 'f"\\r{frame} {n * 100 // 60}% done"',
    "a test runner": 'f"tests/test_{n}.py::test_it PASSED\\n"',
    "a log of one line": 'f"10:00:{n:02} GET /health 200\\n"',
    "a screen that changes": 'f"\\x1b[H\\x1b[2Jworker state\\x1b[2;1Ha {n} of 60 done\\x1b[3;1Hb pending"',
}


def test_a_program_that_goes_on_is_well() -> None:
    """Three times as long as it takes to find one that does not. All at once, because they mostly sleep."""

    def stderr_of(what: str) -> bytes:
        return run(*AWAITED, "--pty", "--verbose", "--", *PYTHON, WORKS.replace("WHAT", what)).stderr

    with ThreadPoolExecutor(len(GOES_ON)) as threads:
        told = dict(zip(GOES_ON, threads.map(stderr_of, GOES_ON.values()), strict=True))
    for name, stderr in told.items():
        assert b"a ended with status 0" in stderr, (name, stderr)
        assert b"repeated" not in stderr, (name, stderr)


def test_a_spinner_over_work_is_well() -> None:
    """It shows by the CPU that is used. Four work, so that they get some of it however busy the machine is."""
    script = """
for n in 1 2 3 4; do while :; do :; done & done
for n in $(seq 12); do for frame in '|' / - '\\'; do printf '\\r%s Compiling' "$frame"; sleep 0.1; done; done
kill $(jobs -p)
"""
    with burning():
        done = run(*AWAITED, "--verbose", "--", "bash", "-c", script)
    assert b"a ended with status 0" in done.stderr, done.stderr
    assert b"repeated" not in done.stderr


def test_what_comes_over_the_network_is_traffic() -> None:
    traffic, us = Traffic(), [os.getpid()]
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
        with ours, theirs:
            assert traffic.moved(us), "unknown at first"
            ours.sendall(b"x" * (4 * MOVED_MIN))
            assert theirs.recv(4 * MOVED_MIN)
            assert traffic.moved(us)
            until = time.monotonic() + 10
            while traffic.moved(us) and time.monotonic() < until:
                pass  # Others of this process may write to the disk.
            assert time.monotonic() < until
