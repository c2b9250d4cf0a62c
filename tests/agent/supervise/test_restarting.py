"""A child that failed is started again, a little later each time, until that helps nobody any more."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.agent.supervise.running import BOUND, PYTHON, WAITS, run, said, started, supervise

QUICK = "RestartPolicy(when=Restart.ON_FAILURE, wait_first=0.05, wait_max=0.2, jitter=0.0)"


def test_who_fails_is_started_again_until_it_is_well(tmp_path: Path) -> None:
    script = f"echo x >> {tmp_path}/lives; [ $(wc -l < {tmp_path}/lives) -ge 3 ]"
    done = supervise(f"restart={QUICK}", "sh", "-c", script)
    assert done.returncode == 0
    assert (tmp_path / "lives").read_text() == "x\nx\nx\n"
    assert [line.rpartition(";")[2] for line in said(done)] == [
        " restarting in 0.1 s (1 of 5).",
        " restarting in 0.1 s (2 of 5).",
    ]


def test_a_crash_loop_is_quarantined_and_ends_with_the_childs_status(tmp_path: Path) -> None:
    done = supervise(f"restart={QUICK}", "sh", "-c", f"echo x >> {tmp_path}/lives; exit 9")
    assert done.returncode == 9
    assert (tmp_path / "lives").read_text() == "x\n" * 6
    assert said(done)[-1].endswith("it was restarted 5 times within 15 min, and is not restarted any more.")


def test_by_default_nothing_is_started_again(tmp_path: Path) -> None:
    assert run("--", "sh", "-c", f"echo x >> {tmp_path}/lives; exit 9").returncode == 9
    assert (tmp_path / "lives").read_text() == "x\n"


def test_always_means_also_after_a_good_end(tmp_path: Path) -> None:
    always = QUICK.replace("ON_FAILURE", "ALWAYS")
    done = supervise(f"restart={always}, max_for=3.0", "sh", "-c", f"echo x >> {tmp_path}/lives")
    assert done.returncode == 124
    assert (tmp_path / "lives").read_text().count("x") > 6


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_was_ended_by_its_user_stays_ended(number: signal.Signals) -> None:
    with started("--restart", "always", "--", *WAITS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.wait(BOUND) == -number


def test_the_wait_for_the_next_life_can_be_ended() -> None:
    with started("--restart", "on-failure", "--", "false") as process:
        assert process.stderr is not None
        assert b"restarting" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(BOUND) == -signal.SIGINT


def test_a_life_knows_who_it_is_and_what_became_of_the_one_before() -> None:
    code = """
import json, os, pathlib
told = {name[10:]: value for name, value in os.environ.items() if name.startswith("LIFESIGNS_")}
print(json.dumps(told), flush=True)
if told["ATTEMPT"] == "1":
    pathlib.Path(told["RUN"], "checkpoint").write_text("cp-3")
    os._exit(3)
"""
    done = supervise(f"task_id='t-19', restart={QUICK}", *PYTHON, code)
    first, second = (json.loads(line) for line in done.stdout.splitlines())
    assert (first["AGENT_ID"], first["TASK"], first["ATTEMPT"]) == ("a", "t-19", "1")
    assert first.keys() == {"AGENT_ID", "TASK", "ATTEMPT", "INCARNATION", "RUN"}
    assert second["ATTEMPT"] == "2"
    assert second["INCARNATION"] != first["INCARNATION"]
    assert second["CHECKPOINT"] == "cp-3"
    assert second["HANDOFF"].startswith("The life before this one (attempt 1) failed: status 3 after ")
    assert '"ATTEMPT": "1"' in second["HANDOFF"], "its last output"


def test_a_handoff_has_its_bounds() -> None:
    code = "import os\nif os.environ['LIFESIGNS_ATTEMPT'] == '1': os.write(1, b'\\xff\\x00\\x1b[1m\\xe2\\x82' * 100_000 + b'\\n'); os._exit(1)\nos.write(2, b'%d' % len(os.environb[b'LIFESIGNS_HANDOFF']))"
    done = supervise(f"restart={QUICK}", *PYTHON, code)
    assert done.returncode == 0
    assert int(done.stderr.splitlines()[-1]) <= 4096


def test_what_an_outer_supervisor_told_us_is_not_told_to_the_child() -> None:
    """A supervisor inside a supervised program speaks for somebody else."""
    script = "echo $LIFESIGNS_AGENT_ID $LIFESIGNS_TASK $LIFESIGNS_CHECKPOINT"
    done = run(
        "--id",
        "inner",
        "--",
        "sh",
        "-c",
        script,
        LIFESIGNS_AGENT_ID="outer",
        LIFESIGNS_TASK="t",
        LIFESIGNS_CHECKPOINT="c",
    )
    assert done.stdout == b"inner\n"
