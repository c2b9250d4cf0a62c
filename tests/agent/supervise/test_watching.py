"""Alone, the engine in the supervisor's own process judges the child, and says what is wrong with it."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path

import psutil

from tests.agent.supervise.running import PYTHON, SILENT, burning, eventually, number_in, run, said, started

SPIN = "spin() { while :; do :; done; }; spin & spin & spin & spin & wait"
"""Four, so that they get half a core together, however busy the machine is."""


def test_a_child_that_is_silent_and_does_nothing_is_stuck() -> None:
    with started("--id", "coder-7", "--idle-after", "2", "--", "sleep", "300") as process:
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        assert re.fullmatch(f"lifesigns: coder-7 is stuck: {SILENT}, and no CPU used.\n", line)


def test_a_child_that_spins_without_output_is_stuck_for_another_reason() -> None:
    with burning(), started("--id", "coder-7", "--idle-after", "2", "--", "sh", "-c", SPIN) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith(
            b"lifesigns: coder-7 is stuck: Burns CPU, but has put nothing out for "
        )


def test_a_child_that_puts_something_out_is_well() -> None:
    script = "i=0; while [ $i -lt 10 ]; do echo $i; sleep 0.5; i=$((i + 1)); done"
    done = run("--idle-after", "2", "--", "sh", "-c", script)
    assert (done.returncode, done.stderr) == (0, b"")


def test_output_makes_it_well_again() -> None:
    done = run("--idle-after", "1", "--id", "a", "--", "sh", "-c", "sleep 4; echo there; sleep 1")
    stuck, well = said(done)[:2]
    assert re.fullmatch(f"lifesigns: a is stuck: {SILENT}, and no CPU used.", stuck)
    assert well == "lifesigns: a is well again."


def test_the_work_of_grandchildren_is_the_childs_work() -> None:
    """A shell that waits for its compiler does not idle."""
    with burning(), started("--idle-after", "2", "--", "sh", "-c", f"sh -c '{SPIN}'; true") as process:
        assert process.stderr is not None
        assert b"Burns CPU" in process.stderr.readline()


def test_a_child_that_uses_all_the_cpu_it_can_get_and_talks_is_well() -> None:
    code = (
        "import time\nend = time.monotonic() + 6\nwhile time.monotonic() < end: print(sum(range(2_000_000)))"
    )
    done = run("--profile", "swift", "--", *PYTHON, code)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_child_that_a_signal_stopped_is_frozen(tmp_path: Path) -> None:
    with started(
        "--profile", "swift", "--", "sh", "-c", f"echo $$ > {tmp_path}/pid; while :; do sleep 0.1; done"
    ) as run_:
        child = number_in(tmp_path / "pid")
        os.kill(child, signal.SIGSTOP)
        assert run_.stderr is not None
        line = run_.stderr.readline().decode()
        assert (
            line == f"lifesigns: sh is frozen: a signal has stopped it; `kill -CONT {child}` lets it go on.\n"
        )
        os.kill(child, signal.SIGCONT)
        assert run_.stderr.readline() == b"lifesigns: sh is well again.\n"


def test_verdicts_can_be_had_as_json() -> None:
    done = run(
        "--json",
        "--id",
        "coder-7",
        "--",
        "sh",
        "-c",
        "echo \x1b[31mred\x1b[0m; echo 'last words' >&2; exit 3",
    )
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith(b"{")]
    assert [line["type"] for line in lines] == [
        "HEALTH_STATE_CHANGED",
        "HEALTH_STATE_CHANGED",
        "PROCESS_EXITED",
    ]
    assert (lines[1]["to"], lines[1]["cause"]) == ("disconnected", "crash")
    assert lines[2]["status"] == 3
    assert lines[2]["last_output"] == ["red", "last words"]
    assert {line["agent_id"] for line in lines} == {"coder-7"}


def test_quiet_is_quiet() -> None:
    assert run("--quiet", "--max-time", "1", "--", "sleep", "300").stderr == b""
    assert run("--quiet", "--", "false").stderr == b""


def test_we_never_speak_in_the_middle_of_a_line() -> None:
    script = "printf half >&2; sleep 3; echo ' a line' >&2; sleep 3"
    done = run("--idle-after", "1", "--id", "a", "--", "sh", "-c", script)
    lines = done.stderr.decode().splitlines()
    assert "half a line" not in lines, "we waited a second for the rest of it"
    assert lines[0] == "half"
    assert re.fullmatch(f"lifesigns: a is stuck: {SILENT}, and no CPU used.", lines[1])


def test_a_line_that_ends_soon_is_waited_for() -> None:
    script = "printf half >&2; sleep 0.3; echo ' a line' >&2; exit 1"
    lines = run("--id", "a", "--", "sh", "-c", script).stderr.decode().splitlines()
    assert lines[0] == "half a line"
    assert lines[1].startswith("lifesigns: a failed: status 1 after")


def test_an_idle_supervisor_costs_next_to_nothing(tmp_path: Path) -> None:
    """A look at the child every 5 s, and nothing in between."""
    with started("--", "sh", "-c", f"echo $$ > {tmp_path}/pid; sleep 300") as process:
        number_in(tmp_path / "pid")
        ours = psutil.Process(process.pid)
        eventually(lambda: ours.status() == psutil.STATUS_SLEEPING)
        before, woken = sum(ours.cpu_times()[:2]), ours.num_ctx_switches().voluntary
        began = time.monotonic()
        eventually(lambda: time.monotonic() - began > 12)
        assert sum(ours.cpu_times()[:2]) - before <= 0.05
        assert ours.num_ctx_switches().voluntary - woken <= 40
