"""Terminal: the one we run in. Raw while a child has it, unchanged at all other times."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

SIZE_UNKNOWN: Final = struct.pack("HHHH", 24, 80, 0, 0)
_IFLAG, _OFLAG, _CFLAG, _LFLAG, _ISPEED, _OSPEED, _CC = range(7)


class Terminal:
    """Our terminal, by the file it is read from. `keys`: whether typed keys go to the child."""

    def __init__(self, fd: int, *, keys: bool, alone: bool) -> None:
        self.fd = fd
        self.keys = keys
        self.is_raw = False
        self._alone = alone
        self._saved: list[Any] = termios.tcgetattr(fd)

    @property
    def takes_all(self) -> bool:
        """Whether it becomes raw altogether while the child has it."""
        return self.keys and self._alone

    @property
    def modes(self) -> list[Any]:
        """Its settings before us: a child's pty begins with them."""
        return self._saved

    @property
    def foreground(self) -> bool:
        """Whether we may read from it; in the background, reading would stop us."""
        with suppress(OSError):
            return os.tcgetpgrp(self.fd) == os.getpgrp()
        return False

    def size(self) -> bytes:
        """Rows and columns, as ioctl has them."""
        with suppress(OSError):
            return fcntl.ioctl(self.fd, termios.TIOCGWINSZ, SIZE_UNKNOWN)
        return SIZE_UNKNOWN

    def make_raw(self) -> None:
        """Every key goes to the child as it is; its own pty makes signals and lines of them."""
        if self.is_raw or not self.keys or not self.foreground:
            return
        with suppress(termios.error), _not_stopped():
            self._saved = termios.tcgetattr(self.fd)
            tty.setraw(self.fd, termios.TCSADRAIN)
            if not self._alone:
                self._keep_output_cooked()
            self.is_raw = True

    def restore(self) -> None:
        """Restore its settings."""
        if self.is_raw:
            self.is_raw = False
            with suppress(termios.error), _not_stopped():
                termios.tcsetattr(self.fd, termios.TCSADRAIN, self._saved)

    def _keep_output_cooked(self) -> None:
        """Another program writes here too (`| tee log`): its line feeds must still return the carriage."""
        modes = termios.tcgetattr(self.fd)
        modes[_OFLAG] = self._saved[_OFLAG]
        termios.tcsetattr(self.fd, termios.TCSADRAIN, modes)


@contextmanager
def _not_stopped() -> Iterator[None]:
    """A process that changes a terminal from the background is stopped, and a shell may take the terminal back at any
    time."""
    was = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTTOU, was)


def for_nobody(modes: list[Any]) -> list[Any]:
    """For a pty without a user: its input must not appear as output."""
    modes = list(modes)
    modes[_LFLAG] &= ~termios.ECHO
    return modes


def unchanged(modes: list[Any]) -> list[Any]:
    """For a pty whose output goes to a file, or to a place that makes its own line ends: make none twice."""
    modes = list(modes)
    modes[_OFLAG] &= ~termios.OPOST
    return modes


def makes_signals(pty: int) -> bool:
    """Whether the child's pty makes signals of Ctrl-C and Ctrl-Z, or a program reads them as keys."""
    with suppress(termios.error):
        return bool(termios.tcgetattr(pty)[_LFLAG] & termios.ISIG)
    return False


def takes_keys(pty: int) -> bool:
    """Whether a program at this pty reads single keys, not lines: it has drawn something to answer by a key."""
    with suppress(termios.error):
        return not termios.tcgetattr(pty)[_LFLAG] & termios.ICANON
    return False


def key(pty: int, which: int) -> bytes:
    """The key for a function of this pty: `termios.VINTR`, `VSUSP`, `VEOF`."""
    with suppress(termios.error):
        found = termios.tcgetattr(pty)[_CC][which]
        if isinstance(found, bytes):
            return found
    return b""
