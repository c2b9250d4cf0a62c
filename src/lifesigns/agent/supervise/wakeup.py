"""Wakeup: signals and calls from other threads, as something the loop can wait for."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from types import FrameType
from typing import Final

HEARD: Final = (
    signal.SIGCHLD,
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
    signal.SIGTSTP,
    signal.SIGCONT,
)


class Wakeup:
    """A pipe that signals write their number into. Signals that we were started to ignore (`nohup`) stay ignored."""

    def __init__(self) -> None:
        self.fd, self._write = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._write, False)
        self._before = {
            number: signal.signal(number, _written_by_python)
            for number in HEARD
            if number is signal.SIGCHLD or signal.getsignal(number) is not signal.SIG_IGN
        }
        self._fd_before = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def wake(self) -> None:
        """Wake the loop, from any thread."""
        with suppress(OSError):  # Full: the loop wakes anyway; closed: it has ended.
            os.write(self._write, b"\0")

    def take(self) -> list[int]:
        """The signals since the last time, in order: each once, but every interrupt. How often Ctrl-C was pressed says how
        hard it is meant, and we may have been too busy to look in between."""
        try:
            numbers = [number for number in os.read(self.fd, 4096) if number]
        except BlockingIOError:
            return []
        return [n for at, n in enumerate(numbers) if n == signal.SIGINT or n not in numbers[:at]]

    def stop_here(self, group: int) -> None:
        """Stop as Ctrl-Z would, and return when we are continued (at once, if nothing could continue us)."""
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(group, signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, _written_by_python)

    def close(self) -> None:
        signal.set_wakeup_fd(self._fd_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.fd)
        os.close(self._write)


def _written_by_python(_number: int, _frame: FrameType | None) -> None:
    """Python writes the number into the pipe before it calls this."""
