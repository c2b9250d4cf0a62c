"""Terminal: the one we run in. Raw while a child has it, as it was at all other times."""

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
    """Our terminal, by the file it is read from. `keys`: whether what is typed there is for the child."""

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
        """As it was before us: what a child's pty begins with."""
        return self._saved

    @property
    def foreground(self) -> bool:
        """Whether it is ours to read from; in the background, reading would stop us."""
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
        """As it was."""
        if self.is_raw:
            self.is_raw = False
            with suppress(termios.error), _not_stopped():
                termios.tcsetattr(self.fd, termios.TCSADRAIN, self._saved)

    def _keep_output_cooked(self) -> None:
        """Somebody else writes here too (`| tee log`): a line feed of theirs must still return the carriage."""
        modes = termios.tcgetattr(self.fd)
        modes[_OFLAG] = self._saved[_OFLAG]
        termios.tcsetattr(self.fd, termios.TCSADRAIN, modes)


@contextmanager
def _not_stopped() -> Iterator[None]:
    """Changing a terminal from the background stops who does it, and a shell may take it back at any moment."""
    was = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTTOU, was)


def for_nobody(modes: list[Any]) -> list[Any]:
    """For a pty nobody types at: what is fed into it is not shown as output."""
    modes = list(modes)
    modes[_LFLAG] &= ~termios.ECHO
    return modes


def unchanged(modes: list[Any]) -> list[Any]:
    """For a pty whose output goes to a place that makes its own line ends, or to a file: none are made twice."""
    modes = list(modes)
    modes[_OFLAG] &= ~termios.OPOST
    return modes


def makes_signals(pty: int) -> bool:
    """Whether the child's pty makes signals of Ctrl-C and Ctrl-Z, or a program reads them as keys."""
    with suppress(termios.error):
        return bool(termios.tcgetattr(pty)[_LFLAG] & termios.ISIG)
    return False


def takes_keys(pty: int) -> bool:
    """Whether a program at this pty takes single keys, not lines: it has drawn something that is answered by a key."""
    with suppress(termios.error):
        return not termios.tcgetattr(pty)[_LFLAG] & termios.ICANON
    return False


def key(pty: int, which: int) -> bytes:
    """The key that stands for something on this pty: `termios.VINTR`, `VSUSP`, `VEOF`."""
    with suppress(termios.error):
        found = termios.tcgetattr(pty)[_CC][which]
        if isinstance(found, bytes):
            return found
    return b""
