"""A nudge reaches a program that knows nothing of us, in the way its user chose, or is told as failed."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.agent.supervise.running import BOUND, PYTHON, RUN, SILENT, on_screen, run, said, started

STUCK = ("--id", "a", "--idle-after", "1")


def test_by_stdin_as_a_line() -> None:
    with started(
        *STUCK, "--nudge", "stdin", "--", "sh", "-c", "read x; echo got $x", stdin=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert re.match(f"got {SILENT}, and no CPU used. You can report progress", line)
        assert process.wait(BOUND) == 0


def test_by_the_keys_of_its_terminal() -> None:
    with on_screen(*RUN, *STUCK, "--nudge", "stdin", "--", "sh", "-c", "read x; echo got $x") as screen:
        screen.expect(f"got {SILENT}")
        assert screen.ends() == 0


def test_never_into_a_line_that_is_being_typed() -> None:
    with on_screen(
        *RUN,
        *STUCK,
        "--nudge",
        "stdin",
        "--",
        "sh",
        "-c",
        "echo ready; read x; echo got $x; read y; echo got $y",
    ) as screen:
        screen.expect("ready")
        screen.type("half")
        screen.expect("is stuck")
        screen.type(" a line\r")
        screen.expect("got half a line\r\n")
        screen.expect("got No output for")
        assert screen.ends() == 0


def test_not_into_a_stdin_that_is_closed() -> None:
    done = run(*STUCK, "--nudge", "stdin", "--max-time", "4", "--", "sleep", "300")
    assert "lifesigns: a could not be nudged: its stdin is closed" in said(done)


def test_by_a_file() -> None:
    wait = "until [ -s $LIFESIGNS_NUDGES ]; do sleep 0.05; done; cat $LIFESIGNS_NUDGES"
    done = run(*STUCK, "--nudge", "file", "--", "sh", "-c", wait)
    nudge = json.loads(done.stdout)
    assert re.match(SILENT, nudge["text"])
    assert nudge["attempt"] == 1
    assert nudge["nudge_id"]


def test_by_a_signal_with_the_words_in_the_file() -> None:
    code = """
import os, signal
def nudged(*_):
    os.write(1, open(os.environ["LIFESIGNS_NUDGES"], "rb").read())
    os._exit(0)
signal.signal(signal.SIGUSR1, nudged)
while True: signal.pause()
"""
    done = run(*STUCK, "--nudge", "signal", "--", *PYTHON, code)
    assert json.loads(done.stdout)["attempt"] == 1


def test_not_by_a_signal_that_would_end_it() -> None:
    done = run(*STUCK, "--nudge", "signal", "--max-time", "4", "--", "sleep", "300")
    assert done.returncode == 124
    assert (
        "lifesigns: a could not be nudged: it has no handler for SIGUSR1, and would be ended by it"
        in said(done)
    )


def test_without_a_way_none_is_tried() -> None:
    done = run(*STUCK, "--max-time", "4", "--", "sleep", "300")
    assert not [line for line in said(done) if "nudge" in line]


@pytest.mark.parametrize("way", ["stdin", "none"])
def test_only_ways_with_a_file_name_one(way: str, tmp_path: Path) -> None:
    done = run("--nudge", way, "--", "sh", "-c", f"echo ${{LIFESIGNS_NUDGES-none}} > {tmp_path}/f")
    assert done.returncode == 0
    assert (tmp_path / "f").read_text() == "none\n"
