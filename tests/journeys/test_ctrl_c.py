"""Ctrl-C at a terminal: a command that takes long ends at once, with status 130 and without a traceback."""

from __future__ import annotations

import os
import pty
import select
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from tests.journeys.outside import BOUND, environment

CTRL_C = b"\x03"
AT_ONCE = 5.0
"""What came after it took minutes."""


class Terminal:
    """A command of ours at a terminal of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.shown = b""
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            env = environment(TERM="xterm", COLUMNS="100", HOME=str(folder), LIFESIGNS_STATE=str(folder))
            os.execve(sys.executable, [sys.executable, "-m", "lifesigns", *words], env)

    def look(self) -> bool:
        """Take what is shown by now; False at the end."""
        if select.select([self._terminal], [], [], 0.1)[0]:
            try:
                shown = os.read(self._terminal, 65536)
            except OSError:  # How Linux tells the end of a terminal.
                return False
            self.shown += shown
            return bool(shown)
        return True

    def interrupt(self) -> None:
        os.write(self._terminal, CTRL_C)

    def exit_status(self, within: float) -> int:
        """Raises if it goes on."""
        last = time.monotonic() + within
        try:
            while self.look():
                assert time.monotonic() < last, f"it still runs {within:g} s after Ctrl-C"
        except AssertionError:
            os.kill(self._pid, signal.SIGKILL)
            raise
        finally:
            status = os.waitpid(self._pid, 0)[1]
        return os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize(
    "words",
    [("agents",), ("nudge", "coder", "well?"), ("doctor",), ("beat", "coder")],
    ids=lambda words: words[0],
)
def test_who_waits_for_a_hub_that_does_not_answer_is_released(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Its status was 1: something unwell was found."""
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        deaf.settimeout(BOUND)
        terminal = Terminal(tmp_path, *words, "--hub", f"http://127.0.0.1:{deaf.getsockname()[1]}")
        accepted, _ = deaf.accept()
        with accepted:
            terminal.interrupt()
            assert terminal.exit_status(AT_ONCE) == 130
    assert terminal.shown.strip().endswith(b"^C")


def test_a_simulation_ends_with_the_table_so_far(tmp_path: Path) -> None:
    """It went on with its trials, deaf and without a sign, for half a minute and more."""
    terminal = Terminal(tmp_path, "simulate", "--agents", "20", "--days", "3")
    last = time.monotonic() + BOUND
    while b" 1 %" not in terminal.shown:
        assert terminal.look()
        assert time.monotonic() < last
    terminal.interrupt()
    assert terminal.exit_status(AT_ONCE) == 130
    assert b"Stopped before the end." in terminal.shown
    assert b"Traceback" not in terminal.shown
