"""Flows: bytes from one file to another, unchanged, without ever blocking us and without losing one.

Other programs may share our files, so we do not make them non-blocking (that would change them there, too). Instead
we ask before each write whether there is room, and write no more than what then certainly fits: `PIPE_BUF` bytes.
While a sink has bytes pending we do not read its source, so a slow reader slows the child down, as it would without
us.
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Callable
from typing import Final

CHUNK: Final = 64 * 1024
STEP: Final = select.PIPE_BUF

_SCREEN_TAKEN: Final = b"\x1b[?1049h"
_SCREEN_GIVEN_BACK: Final = b"\x1b[?1049l"


class Cursor:
    """Where the next byte goes on a screen or in a file. Sinks to the same place share it."""

    def __init__(self) -> None:
        self.at_start = True
        self.full_screen = False
        """An editor or the like uses the whole screen: there is no place between lines."""

    def passed(self, data: bytes | bytearray) -> None:
        self.at_start = data[-1] in b"\r\n"
        if b"\x1b[?1049" in data:
            self.full_screen = data.rfind(_SCREEN_TAKEN) > data.rfind(_SCREEN_GIVEN_BACK)


class Sink:
    """A file we write to, as fast as it accepts bytes."""

    def __init__(self, fd: int, cursor: Cursor | None = None) -> None:
        self.fd = fd
        self.cursor = cursor or Cursor()
        self.pending = bytearray()
        self.error: OSError | None = None
        self._room = select.poll()
        self._room.register(fd, select.POLLOUT)
        self._step = CHUNK if stat.S_ISREG(os.fstat(fd).st_mode) else STEP

    def put(self, data: bytes) -> None:
        """Write this, now or later."""
        if data and self.error is None:
            self.cursor.passed(data)
            self.pending += data
            self.push()

    def push(self) -> None:
        """Write what there is room for."""
        while self.pending and self._room.poll(0):
            try:
                with memoryview(self.pending) as waiting:
                    written = os.write(self.fd, waiting[: self._step])
            except BlockingIOError:
                return
            except OSError as error:
                self.error = error
                self.pending.clear()
                return
            del self.pending[:written]

    def finish(self, within: float) -> None:
        """Write what is pending, if that takes no longer than this."""
        until = time.monotonic() + within
        while self.pending and (left := until - time.monotonic()) > 0:
            self._room.poll(left * 1000)
            self.push()


class Flow:
    """Copies from `source` to `sink`, and calls `seen` with the bytes."""

    def __init__(self, source: int, sink: Sink, seen: Callable[[bytes], None]) -> None:
        self.source = source
        self.sink = sink
        self.ended = False
        self.resting = False
        """A pty that no program has open at the moment."""
        self._seen = seen

    @property
    def hungry(self) -> bool:
        return not self.ended and not self.resting and not self.sink.pending

    def pump(self) -> bool:
        """Pass one chunk on. False if there was none."""
        if not self.hungry:
            return False
        try:
            data = os.read(self.source, CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            self.resting = True  # The error of a pty that its last program has closed.
            return False
        if not data:
            self.ended = True
            return False
        self._seen(data)
        self.sink.put(data)
        if self.sink.error is not None:
            self.ended = True  # Our reader is gone; the child must notice as it would without us.
        return True
