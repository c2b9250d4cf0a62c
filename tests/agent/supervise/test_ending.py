"""Whatever ends us ends the child and everybody in its session; nobody is left, not even a zombie."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from lifesigns.agent.supervise.wakeup import Wakeup
from tests.agent.supervise.running import (
    BOUND,
    PYTHON,
    RUN,
    alive,
    environ,
    eventually,
    number_in,
    run,
    said,
    started,
    supervise,
)

STUBBORN = "import os, signal; signal.signal(15, signal.SIG_IGN); print('ready', flush=True)\nwhile True: signal.pause()"
"""Ignores SIGTERM."""


def test_a_supervisor_that_is_killed_takes_the_whole_group_with_it(tmp_path: Path) -> None:
    """By kill -9 nothing of ours runs any more; the guardian does."""
    family = f"sleep 1; echo $$ > {tmp_path}/child; sleep 300 & echo $! > {tmp_path}/grandchild; wait"
    with started("--", "sh", "-c", family) as process:
        child, grandchild = number_in(tmp_path / "child"), number_in(tmp_path / "grandchild")
        process.kill()
        eventually(lambda: not alive(child) and not alive(grandchild))


def test_who_ignores_the_guardians_request_is_forced(tmp_path: Path) -> None:
    with started(
        "--", *PYTHON, f"import os; print(os.getpid(), file=open('{tmp_path}/child', 'w'))\n{STUBBORN}"
    ) as process:
        child = number_in(tmp_path / "child")
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.kill()
        eventually(lambda: not alive(child))


def test_the_guardian_clears_up_the_folder(tmp_path: Path) -> None:
    with started("--", "sh", "-c", f"echo $LIFESIGNS_RUN > {tmp_path}/f; sleep 300") as process:
        eventually(lambda: (tmp_path / "f").exists() and (tmp_path / "f").read_text().endswith("\n"))
        folder = Path((tmp_path / "f").read_text().strip())
        assert folder.is_dir()
        assert folder.stat().st_mode & 0o777 == 0o700
        process.kill()
        eventually(lambda: not folder.exists())


KILLED_IN_THE_MOMENT = """
import os
from lifesigns.agent.supervise.guardian import Guardian
watch = Guardian.watch
Guardian.watch = lambda guardian, group: os.kill(os.getpid(), 9) if group else watch(guardian, group)
from lifesigns.cli import main
main()
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="it looks for the child in /proc")
def test_who_is_killed_in_the_moment_of_a_start_leaves_nobody_behind(tmp_path: Path) -> None:
    """The child lives, and the guardian was not told its number yet."""
    command = f"echo $LIFESIGNS_RUN > {tmp_path}/f; echo $$ > {tmp_path}/child; sleep 300"
    words = [sys.executable, "-c", KILLED_IN_THE_MOMENT, "run", "--", "sh", "-c", command]
    dead = subprocess.run(words, env=environ(), timeout=BOUND)
    assert dead.returncode == -signal.SIGKILL
    child = number_in(tmp_path / "child")
    eventually(lambda: not alive(child))
    folder = Path((tmp_path / "f").read_text().strip())
    eventually(lambda: not folder.exists())


def test_the_folder_goes_too_when_there_is_no_child(tmp_path: Path) -> None:
    with started(
        "--restart", "always", "--", "sh", "-c", f"echo $LIFESIGNS_RUN > {tmp_path}/f; exit 3"
    ) as process:
        eventually(lambda: (tmp_path / "f").exists() and (tmp_path / "f").read_text().endswith("\n"))
        folder = Path((tmp_path / "f").read_text().strip())
        process.kill()
        eventually(lambda: not folder.exists())


@pytest.mark.parametrize("leave", ["sleep 300 & echo $! > {}", "set -m; sleep 300 & echo $! > {}"])
def test_who_stays_behind_in_the_session_follows_the_child(leave: str, tmp_path: Path) -> None:
    """Also in a group of its own, as a shell with job control makes it."""
    done = run("--", "sh", "-c", leave.format(tmp_path / "pid") + "; exit 4")
    assert done.returncode == 4
    assert not alive(number_in(tmp_path / "pid"))


def test_who_stays_behind_and_ignores_the_request_is_forced(tmp_path: Path) -> None:
    family = f"(trap '' TERM; echo ready; while :; do sleep 300; done) & echo $! > {tmp_path}/pid; sleep 0.2"
    began = time.monotonic()
    assert run("--", "sh", "-c", family).returncode == 0
    assert not alive(number_in(tmp_path / "pid"))
    assert time.monotonic() - began < BOUND / 2


def test_a_daemon_with_a_session_of_its_own_is_not_waited_for(tmp_path: Path) -> None:
    """It left on purpose, and holds our pipe: we must not wait for it to be closed."""
    daemon_ = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 30' &"
    done = run("--", "sh", "-c", f"{daemon_} until [ -s {tmp_path}/pid ]; do sleep 0.05; done")
    assert done.returncode == 0
    daemon = number_in(tmp_path / "pid")
    assert alive(daemon)
    os.kill(daemon, signal.SIGKILL)


def test_we_leave_no_children_of_ours(tmp_path: Path) -> None:
    with started("--", "sh", "-c", f"echo $$ > {tmp_path}/pid; read x", stdin=subprocess.PIPE) as process:
        number_in(tmp_path / "pid")
        of_ours = psutil.Process(process.pid).children(recursive=True)
        assert {child.name() for child in of_ours} <= {"sh"}
        assert len(of_ours) == 2, "the child and the guardian"
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(BOUND) == 1
        assert not [child for child in of_ours if child.is_running()]


def test_time_that_is_up_ends_it_with_the_status_of_timeout() -> None:
    done = run("--id", "coder-7", "--max-time", "1", "--", "sleep", "300")
    assert done.returncode == 124
    (line,) = said(done)
    words = r"lifesigns: coder-7 was stopped after \d\.\d s: it ran longer than 1\.0 s \(--max-time\)\."
    assert re.fullmatch(words, line)


def test_who_ignores_that_its_time_is_up_is_forced() -> None:
    done = supervise("max_for=1.0, save_for=0.5", *PYTHON, STUBBORN)
    assert done.returncode == 124
    assert "was killed" in said(done)[0]


def test_asked_to_end_twice_there_is_no_more_time_to_save() -> None:
    with started("--", *PYTHON, STUBBORN) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        time.sleep(0.2)
        assert process.poll() is None
        process.terminate()
        assert process.wait(BOUND) == -signal.SIGKILL


def test_two_interrupts_nobody_answers_are_more_than_an_interrupt(tmp_path: Path) -> None:
    """The second is sent when the first has reached the child: the kernel makes one of two that nobody has taken."""
    interrupted = tmp_path / "interrupted"
    deaf = f"""import signal
signal.signal(2, lambda *_: open({str(interrupted)!r}, "w").close())
print("ready", flush=True)
while True: signal.pause()"""
    with started("--", *PYTHON, deaf) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        eventually(interrupted.exists)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(BOUND) == -signal.SIGTERM


def test_every_interrupt_counts_however_late_we_look() -> None:
    wakeup = Wakeup()
    try:
        for number in (signal.SIGINT, signal.SIGUSR1, signal.SIGINT, signal.SIGUSR1):
            signal.raise_signal(number)
        assert wakeup.take() == [signal.SIGINT, signal.SIGUSR1, signal.SIGINT]
    finally:
        wakeup.close()


def test_a_stopped_child_can_be_ended(tmp_path: Path) -> None:
    """It could not hear SIGTERM; it is continued for that."""
    with started("--", "sh", "-c", f"echo $$ > {tmp_path}/pid; kill -STOP $$; sleep 300") as process:
        child = number_in(tmp_path / "pid")
        eventually(lambda: psutil.Process(child).status() == psutil.STATUS_STOPPED)
        process.terminate()
        assert process.wait(BOUND) == -signal.SIGTERM


def test_the_end_does_not_wait_for_a_reader_that_reads_no_more() -> None:
    """The child has ended, its output waits for us, ours for nobody: whoever wants us gone is obeyed."""
    with started(
        "--", *PYTHON, "import os; os.write(1, b'x' * 60_000); os.write(1, b'x' * 60_000)"
    ) as process:
        ours = psutil.Process(process.pid)
        eventually(
            lambda: [child.name() for child in ours.children()].count("sh") == 1 and len(ours.children()) == 2
        )
        eventually(lambda: any(child.status() == psutil.STATUS_ZOMBIE for child in ours.children()))
        assert process.poll() is None
        process.terminate()
        assert process.wait(BOUND) == 0


def test_as_the_first_process_of_a_container_we_reap_everybodys_orphans(tmp_path: Path) -> None:
    unshare = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let us make a container")
    script = "(setsid true &) ; sleep 2.5; ps -eo stat,ppid | grep -c '^Z' ; exit 6"
    command = [*unshare, *RUN, "--profile", "swift", "--", "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, timeout=BOUND, check=False, env=environ())
    assert (done.returncode, done.stdout) == (6, b"0\n")
