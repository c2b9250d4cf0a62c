"""At a terminal the child has a terminal: size, keys, colours; and ours is as it was when it is over."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.agent.supervise.running import PYTHON, RUN, WAITS, eventually, number_in, on_screen, run

SHOW = (
    "import os\nprint([os.isatty(fd) for fd in (0, 1, 2)], os.get_terminal_size(), flush=True)\n"
    "print('tty' if os.open('/dev/tty', os.O_RDWR) > 2 else '', os.tcgetpgrp(0) == os.getpgrp(), flush=True)"
)


def test_the_child_has_a_terminal_as_large_as_ours() -> None:
    with on_screen(*RUN, "--", *PYTHON, SHOW, rows=33, columns=111) as screen:
        screen.expect(r"\[True, True, True\] os.terminal_size\(columns=111, lines=33\)\r\n")
        screen.expect(r"tty True\r\n")
        assert screen.ends() == 0


def test_a_new_size_reaches_the_child() -> None:
    code = (
        "import os, signal\n"
        "signal.signal(signal.SIGWINCH, lambda *_: os.write(1, b'now %d' % os.get_terminal_size().columns))\n"
        "print('ready', flush=True)\nwhile True: signal.pause()"
    )
    with on_screen(*RUN, "--", *PYTHON, code) as screen:
        screen.expect("ready")
        screen.resize(40, 99)
        screen.expect("now 99")


def test_what_is_typed_reaches_the_child_and_is_shown_once() -> None:
    with on_screen(*RUN, "--", "sh", "-c", "read x; echo got $x") as screen:
        eventually(lambda: not (screen.modes()[3] & 8))  # type: ignore[operator]
        screen.type("hello\r")
        screen.expect("^hello\r\ngot hello\r\n$")
        assert screen.ends() == 0


def test_the_terminal_is_as_it_was_afterwards() -> None:
    with on_screen("sh", "-c", f"{' '.join(RUN)} -- sh -c 'echo in; read x'; stty -a; echo done") as screen:
        before = screen.modes()
        screen.expect("in\r\n")
        eventually(lambda: screen.modes() != before)
        screen.type("\r")
        screen.expect("done")
        assert screen.modes() == before


def test_the_terminal_is_as_it_was_even_if_we_are_killed(tmp_path: Path) -> None:
    script = f"{' '.join(RUN)} -- sh -c 'echo $PPID > {tmp_path}/pid; sleep 300'; echo over; read x"
    with on_screen("sh", "-c", script) as screen:
        before = screen.modes()
        supervisor = number_in(tmp_path / "pid")
        eventually(lambda: screen.modes() != before)
        os.kill(supervisor, signal.SIGKILL)
        screen.expect("over")
        eventually(lambda: screen.modes() == before)


@pytest.mark.parametrize(("key", "number"), [("\x03", signal.SIGINT), ("\x1c", signal.SIGQUIT)])
def test_ctrl_c_ends_the_child_and_it_stays_ended(key: str, number: signal.Signals) -> None:
    with on_screen(*RUN, "--restart", "always", "--", *WAITS) as screen:
        screen.expect("ready")
        screen.type(key)
        assert screen.ends() == -number
        assert "lifesigns" not in screen.shown


def test_a_child_that_makes_its_own_of_ctrl_c_goes_on() -> None:
    code = (
        "import os, signal\nsignal.signal(2, lambda *_: os.write(1, b'not now'))\n"
        "print('ready', flush=True)\nwhile True: signal.pause()"
    )
    with on_screen(*RUN, "--", *PYTHON, code) as screen:
        screen.expect("ready")
        screen.type("\x03")
        screen.expect("not now")
        screen.type("\x03")
        screen.expect("not now")
        assert screen.process.poll() is None
        screen.type("\x03")
        assert screen.ends() == -signal.SIGTERM


def test_ctrl_c_twice_ends_who_does_not_answer() -> None:
    code = "import signal\nsignal.signal(2, signal.SIG_IGN)\nprint('ready', flush=True)\nwhile True: signal.pause()"
    with on_screen(*RUN, "--", *PYTHON, code) as screen:
        screen.expect("ready")
        screen.type("\x03")
        screen.expect(r"\^C")
        assert screen.process.poll() is None
        screen.type("\x03")
        assert screen.ends() == -signal.SIGTERM


def test_who_reads_ctrl_c_as_a_key_gets_a_key() -> None:
    code = "import os, tty\ntty.setraw(0)\nprint('ready', flush=True)\nprint(os.read(0, 1), os.read(0, 1))"
    with on_screen(*RUN, "--", *PYTHON, code) as screen:
        screen.expect("ready")
        screen.type("\x03")
        screen.type("\x1a")
        screen.expect(r"b'\\x03' b'\\x1a'")
        assert screen.ends() == 0


@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="needs a shell with job control")
def test_ctrl_z_stops_both_and_fg_lets_both_go_on() -> None:
    with on_screen("/bin/bash", "--norc", "-i", PS1="prompt> ") as screen:
        screen.expect("prompt> ")
        screen.type(f"{' '.join(RUN)} -- sh -c 'echo ready; read x; echo got $x'\r")
        screen.expect("ready\r\n")
        before = screen.modes()
        screen.type("\x1a")
        screen.expect("Stopped")
        screen.expect("prompt> ")
        screen.type("fg\r")
        screen.expect("lifesigns")
        eventually(lambda: screen.modes() == before)
        screen.type("hello\r")
        screen.expect("got hello")
        screen.expect("prompt> ")
        screen.type("exit\r")
        assert screen.ends() == 0


def test_output_into_a_pipe_stays_a_pipe_while_keys_come_from_the_terminal() -> None:
    """`lifesigns run -- agent | tee log`: each stream is what ours is."""
    read, write = os.pipe()
    code = "import os\nprint([os.isatty(fd) for fd in (0, 1, 2)], input(), flush=True)"
    with on_screen(*RUN, "--", *PYTHON, code, stdout=write) as screen:
        os.close(write)
        eventually(lambda: not (screen.modes()[3] & 8))  # type: ignore[operator]
        screen.type("typed\r")
        assert screen.ends() == 0
        assert os.read(read, 1000) == b"[True, False, True] typed\n"
    os.close(read)


def test_a_piped_stdin_stays_a_pipe_at_a_terminal() -> None:
    code = "import os\nprint([os.isatty(fd) for fd in (0, 1, 2)], input(), flush=True)"
    read, write = os.pipe()
    os.write(write, b"piped\n")
    os.close(write)
    with on_screen(*RUN, "--", *PYTHON, code, stdin=read) as screen:
        os.close(read)
        screen.expect(r"\[False, True, True\] piped\r\n")
        assert screen.ends() == 0


def test_a_pty_can_be_had_without_a_terminal() -> None:
    """For colours in a log. What is fed into it is not shown as output, and its end is an end."""
    done = run(
        "--pty", "--", *PYTHON, f"{SHOW}\nimport sys\nprint(sys.stdin.read())", stdin=b"fed\nwith two lines"
    )
    assert done.stdout.startswith(b"[True, True, True] os.terminal_size(columns=80, lines=24)\ntty True\n")
    assert done.stdout.endswith(b"\nfed\nwith two lines\n")
    assert done.stdout.count(b"fed") == 1
    assert done.returncode == 0


def test_the_last_words_to_a_pty_are_not_lost() -> None:
    done = run("--pty", "--", *PYTHON, "import sys; sys.stdout.write('x' * 100_000 + 'end')")
    assert len(done.stdout) == 100_003
    assert done.stdout.endswith(b"end")


def test_a_hangup_of_the_terminal_ends_the_child(tmp_path: Path) -> None:
    with on_screen(*RUN, "--", "sh", "-c", f"echo $$ > {tmp_path}/pid; echo ready; sleep 300") as screen:
        screen.expect("ready")
        child = number_in(tmp_path / "pid")
        screen.process.send_signal(signal.SIGHUP)
        assert screen.ends() == -signal.SIGHUP
        eventually(lambda: not Path(f"/proc/{child}").exists())


def test_a_child_that_leaves_its_terminal_lives_on() -> None:
    """A pty that no program has open must not be closed by us: that would be a hangup."""
    script = "exec </dev/null >/dev/null 2>&1; sleep 1; exec >/dev/tty; echo back"
    with on_screen(*RUN, "--profile", "swift", "--", "sh", "-c", script) as screen:
        screen.expect("back")
        assert screen.ends() == 0


def test_in_the_background_of_a_terminal_nothing_is_read_from_it() -> None:
    """ReadsInput there would stop us."""
    script = f"{' '.join(RUN)} -- sh -c 'echo ready; sleep 0.5; echo done' </dev/tty & wait; echo over"
    with on_screen("/bin/sh", "-m", "-c", script) as screen:
        screen.expect("ready")
        screen.expect("done")
        screen.expect("over")
