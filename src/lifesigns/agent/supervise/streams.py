"""Streams: what connects one child to us.

Each stream of the child is like ours: a terminal where we have a terminal (or `--pty`), otherwise a pipe. The child
inherits our stdin if that is no terminal, so that we read no byte that the child did not want.
"""

from __future__ import annotations

import fcntl
import os
import select
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Protocol

from lifesigns.agent.supervise import terminal as modes
from lifesigns.agent.supervise.flows import CHUNK, Flow, Sink
from lifesigns.agent.supervise.terminal import Terminal

STDIN, STDOUT, STDERR = 0, 1, 2
DRAIN_FOR: Final = 0.2
"""A pty hands its last bytes on a moment after its last program ended."""
DRAIN_CHUNKS: Final = 64
"""More than a pipe holds."""


class Keys(Protocol):
    """Hears what the user does besides typing."""

    def interrupted(self) -> None: ...
    def suspended(self) -> bool:
        """Whether we handle the key; otherwise the child gets it."""


class OwnStreams:
    """Our own three streams and the terminal, for as long as we live."""

    def __init__(self) -> None:
        _fill_holes()
        self.tty = {fd: os.isatty(fd) for fd in (STDIN, STDOUT, STDERR)}
        self.out = Sink(STDOUT)
        self.err = Sink(STDERR, self.out.cursor if _same_place(STDOUT, STDERR) else None)
        self.terminal: Terminal | None = None
        shown = next((fd for fd in (STDIN, STDOUT, STDERR) if self.tty[fd]), None)
        if shown is not None:
            alone = self.tty[STDOUT] and self.tty[STDERR]
            self.terminal = Terminal(shown, keys=self.tty[STDIN], alone=alone)
        self._screen: Sink | None = None

    def screen(self) -> Sink:
        """Where a pty's output goes."""
        if self.tty[STDOUT] or not (self.tty[STDERR] or self.tty[STDIN]):
            return self.out
        if self.tty[STDERR]:
            return self.err
        if self._screen is None:
            self._screen = Sink(os.open(os.ttyname(STDIN), os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC))
        return self._screen

    def close(self) -> None:
        if self._screen is not None:
            os.close(self._screen.fd)


class Streams:
    """Made before a child starts, followed while it lives, drained when it has ended."""

    def __init__(
        self, ours: OwnStreams, keys: Keys, seen: Callable[[bytes], None], *, pty: bool, feed: bool
    ) -> None:
        self._ours = ours
        self._keys = keys
        self._seen = seen
        self._theirs: list[int] = []
        """Ends that belong to the child; closed as soon as it has them."""
        self._own: list[int] = []
        self.pty: int | None = None
        self.input: Sink | None = None
        self.outputs: list[Flow] = []
        self.file_actions: list[tuple[Any, ...]] = []
        self._reading = False
        on_pty = {fd for fd in (STDIN, STDOUT, STDERR) if pty or ours.tty[fd]}
        if on_pty:
            self._open_pty(on_pty)
        if STDIN not in on_pty and feed:
            self._open_input()
        for fd, sink in ((STDOUT, ours.out), (STDERR, ours.err)):
            if fd not in on_pty:
                self._open_output(fd, sink)

    # --- making -------------------------------------------------------------------------------------

    def _open_pty(self, fds: set[int]) -> None:
        self.pty, slave = os.openpty()
        self._own.append(self.pty)
        self._theirs.append(slave)
        os.set_blocking(self.pty, False)
        terminal = self._ours.terminal
        begin = termios.tcgetattr(slave) if terminal is None else terminal.modes
        if terminal is None or not terminal.keys:
            begin = modes.for_nobody(begin)
        if terminal is None or not terminal.takes_all:
            begin = modes.unchanged(begin)
        termios.tcsetattr(slave, termios.TCSANOW, begin)
        self.resize()
        # Opened by the child itself: the first terminal a new session opens becomes its own.
        name = os.ttyname(slave)
        self.file_actions += [(os.POSIX_SPAWN_OPEN, fd, name, os.O_RDWR, 0) for fd in sorted(fds)]
        self.outputs.append(Flow(self.pty, self._ours.screen(), self._seen))
        if STDIN in fds:
            self.input = Sink(self.pty)
            self._reading = True

    def _open_input(self) -> None:
        read, write = os.pipe()
        self._theirs.append(read)
        self._own.append(write)
        os.set_blocking(write, False)
        self.file_actions.append((os.POSIX_SPAWN_DUP2, read, STDIN))
        self.input = Sink(write)
        self._reading = True

    def _open_output(self, fd: int, sink: Sink) -> None:
        read, write = os.pipe()
        self._own.append(read)
        self._theirs.append(write)
        os.set_blocking(read, False)
        self.file_actions.append((os.POSIX_SPAWN_DUP2, write, fd))
        self.outputs.append(Flow(read, sink, self._seen))

    def started(self) -> None:
        """The child has its ends; our copies would keep its streams open for ever."""
        while self._theirs:
            os.close(self._theirs.pop())

    # --- following ----------------------------------------------------------------------------------

    def wants(self) -> dict[int, int]:
        """What to wait for, as `poll` has it."""
        events: dict[int, int] = {}
        for flow in self.outputs:
            if flow.hungry:
                events[flow.source] = events.get(flow.source, 0) | select.POLLIN
            elif flow.sink.pending:
                events[flow.sink.fd] = events.get(flow.sink.fd, 0) | select.POLLOUT
        if self.input is not None:
            if self.input.pending:
                events[self.input.fd] = events.get(self.input.fd, 0) | select.POLLOUT
            elif self._may_read():
                events[STDIN] = events.get(STDIN, 0) | select.POLLIN
        return events

    def follow(self, ready: set[int]) -> None:
        """Pass on what can be passed on."""
        for flow in self.outputs:
            if flow.sink.pending:
                flow.sink.push()
            elif flow.source in ready:
                flow.pump()
            if flow.ended:
                self._close(flow.source)
        self.outputs = [flow for flow in self.outputs if not flow.ended]
        if self.input is not None:
            self.input.push()
            if self.input.error is not None:
                self._reading = False  # The child has closed its stdin.
            elif STDIN in ready and self._may_read() and not self.input.pending:
                self._read_input(self.input)

    def wake(self) -> None:
        """Look again at a pty that no program had open: one may have opened it since."""
        for flow in self.outputs:
            flow.resting = False

    def _may_read(self) -> bool:
        if not self._reading:
            return False
        terminal = self._ours.terminal
        return not self._ours.tty[STDIN] or (terminal is not None and terminal.is_raw)

    def _read_input(self, sink: Sink) -> None:
        try:
            data = os.read(STDIN, CHUNK)
        except OSError:
            data = b""  # The terminal is gone.
        if not data:
            self._end_input(sink)
            return
        if self.pty is not None and modes.makes_signals(self.pty):
            data = self._hear_keys(self.pty, data)
        sink.put(data)

    def _hear_keys(self, pty: int, data: bytes) -> bytes:
        for which in (termios.VINTR, termios.VQUIT):
            if (key := modes.key(pty, which)) and key in data:
                self._keys.interrupted()
        suspend = modes.key(pty, termios.VSUSP)
        if suspend and suspend in data and self._keys.suspended():
            data = data.replace(suspend, b"")
        return data

    def _end_input(self, sink: Sink) -> None:
        self._reading = False
        if self.pty is None:
            sink.error = BrokenPipeError("its stdin was closed, as ours was")
            self._close(sink.fd)
        else:
            end = modes.key(self.pty, termios.VEOF) or b"\x04"
            sink.put(end if sink.cursor.at_start else end + end)

    def resize(self) -> None:
        """The child's terminal is as large as ours."""
        if self.pty is not None:
            size = modes.SIZE_UNKNOWN if self._ours.terminal is None else self._ours.terminal.size()
            with suppress(OSError):
                fcntl.ioctl(self.pty, termios.TIOCSWINSZ, size)

    # --- ending -------------------------------------------------------------------------------------

    def drained(self) -> bool:
        """Whether all output has been passed on; passes on what is there."""
        self.wake()
        for flow in self.outputs:
            flow.sink.push()
            for _ in range(
                DRAIN_CHUNKS
            ):  # A daemon it left behind may hold the other end and write for ever.
                if not flow.pump():
                    break
        return not any(flow.sink.pending for flow in self.outputs)

    @property
    def open(self) -> bool:
        """Whether more output may come."""
        return any(not flow.ended and not flow.resting for flow in self.outputs)

    @property
    def broken(self) -> OSError | None:
        """Why our output has no reader any more."""
        return self._ours.out.error or self._ours.err.error

    def close(self) -> None:
        self.started()
        for fd in list(self._own):
            self._close(fd)

    def _close(self, fd: int) -> None:
        if fd in self._own:
            self._own.remove(fd)
            os.close(fd)
        if fd == self.pty:
            self.pty = self.input = None


def _fill_holes() -> None:
    """If we were started with a closed stream, one of our pipes would otherwise take its place."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= STDERR:
        os.set_inheritable(fd, True)
    os.close(fd)


def _same_place(one: int, other: int) -> bool:
    a, b = os.fstat(one), os.fstat(other)
    return (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
