"""A command under `lifesigns run` is what it would be without it: status, signals, bytes."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.agent.supervise.running import BOUND, PYTHON, RUN, environ, run, said, started

LEN = 50 * 1024 * 1024


@pytest.mark.parametrize("status", [0, 1, 7, 126, 255])
def test_the_exit_status_is_the_childs(status: int) -> None:
    done = run("--", "sh", "-c", f"exit {status}")
    assert done.returncode == status
    assert len(said(done)) == (status != 0)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGABRT])
def test_a_child_that_died_of_a_signal_takes_us_with_it(number: signal.Signals) -> None:
    """Whoever waits for us sees the same as if they had waited for the child."""
    done = run("--id", "coder-7", "--", "sh", "-c", f"kill -{number.value} $$")
    assert done.returncode == -number
    assert f"coder-7 crashed: signal {number.value} ({number.name}) after" in said(done)[0]


def test_a_well_child_is_left_uncommented() -> None:
    done = run("--", "sh", "-c", "echo out; echo err >&2")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")


@pytest.mark.parametrize(
    ("command", "status"), [("/no/such/program", 127), ("nosuchprogram", 127), ("/etc", 126)]
)
def test_what_cannot_be_started_is_said_with_the_status_a_shell_gives(command: str, status: int) -> None:
    done = run("--", command)
    assert done.returncode == status
    assert len(said(done)) == 1
    assert command in said(done)[0]


def test_stdin_is_passed_through() -> None:
    sent = os.urandom(1_000_000)
    assert run("--", "cat", stdin=sent).stdout == sent


def test_stdin_is_passed_through_when_nudges_go_there_too() -> None:
    sent = os.urandom(1_000_000)
    assert run("--nudge", "stdin", "--", "cat", stdin=sent).stdout == sent


def test_not_a_byte_of_stdin_is_taken_that_the_child_does_not_want() -> None:
    """`while read x; do lifesigns run -- cmd; done < list` must not eat the list."""
    loop = f"while read x; do echo $x; {' '.join(RUN)} -- true; done"
    done = subprocess.run(
        ["sh", "-c", loop], input=b"1\n2\n3\n", capture_output=True, timeout=BOUND, check=True, env=environ()
    )
    assert done.stdout == b"1\n2\n3\n"


def test_much_output_arrives_byte_for_byte() -> None:
    code = f"import random, sys; sys.stdout.buffer.write(random.Random(1).randbytes({LEN}))"
    direct = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=BOUND, check=True)
    through = run("--", sys.executable, "-c", code)
    assert through.returncode == 0
    assert hashlib.sha256(through.stdout).digest() == hashlib.sha256(direct.stdout).digest()


def test_a_slow_reader_loses_nothing() -> None:
    """The child has long ended when its last bytes are read."""
    code = "import sys; sys.stdout.buffer.write(b'x' * 1_000_000 + b'end')"
    with started("--", *PYTHON, code) as process:
        assert process.stdout is not None
        read = bytearray()
        while chunk := process.stdout.read(65536):
            read += chunk
            time.sleep(0.02)
        assert bytes(read[-3:]) == b"end"
        assert len(read) == 1_000_003
        assert process.wait(BOUND) == 0


def test_when_nobody_reads_the_child_notices_as_it_would_without_us() -> None:
    """`lifesigns run -- yes | head -1` ends."""
    with started("--", "yes") as process:
        assert process.stdout is not None
        assert process.stdout.read(2) == b"y\n"
        process.stdout.close()
        assert process.wait(BOUND) == -signal.SIGPIPE
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_both_outputs_into_one_pipe_do_not_block_each_other() -> None:
    """We ask for room before each write, also when the other stream has just taken the last of it."""
    code = "import os\nfor i in range(2000): os.write(1, b'o' * 997); os.write(2, b'e' * 997)"
    command = [*RUN, "--", *PYTHON, code]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=BOUND, check=True, env=environ()
    )
    assert done.stdout.count(b"o") == done.stdout.count(b"e") == 2000 * 997


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_was_closed_before_us_harms_nobody(closed: str) -> None:
    command = f"{' '.join(RUN)} -- sh -c 'exit 5' {closed}"
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, timeout=BOUND, check=False, env=environ()
    )
    assert done.returncode == 5


def test_the_child_has_pythons_signals_as_every_other_program() -> None:
    """Python ignores SIGPIPE in itself; a child that inherited that would never end."""
    command = ("grep", "^SigIgn", "/proc/self/status")
    ignored = int(run("--", *command).stdout.split()[1], 16)
    assert not ignored & 1 << signal.SIGPIPE - 1
    assert not ignored & 1 << signal.SIGXFSZ - 1


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1]
)
def test_a_signal_to_us_is_a_signal_to_the_child(number: signal.Signals) -> None:
    code = (
        "import os, signal, sys\n"
        f"signal.signal({number.value}, lambda *_: (os.write(1, b'heard\\n'), os._exit(9)))\n"
        "os.write(1, b'ready\\n')\nwhile True: signal.pause()"
    )
    with started("--restart", "always", "--", *PYTHON, code) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == b"heard\n"
        if number is not signal.SIGUSR1:
            assert process.wait(BOUND) == 9


def test_what_nohup_ignores_stays_ignored() -> None:
    command = f"trap '' HUP; exec {' '.join(RUN)} -- sh -c 'echo ready; read x; echo $x'"
    process = subprocess.Popen(
        ["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ(), bufsize=0
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGHUP)
        process.stdin.write(b"still here\n")
        assert process.stdout.readline() == b"still here\n"
