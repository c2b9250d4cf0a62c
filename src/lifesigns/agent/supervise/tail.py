"""Tail: the last lines of a child's output, kept as evidence. Bounded, and cheap until it is read."""

from __future__ import annotations

import re
from collections import deque
from typing import Final

LINES_MAX: Final = 100
BYTES_MAX: Final = 64 * 1024

_LINE_END: Final = re.compile(r"\r+\n")
"""A program that writes a carriage return itself gets another one from its terminal."""
CONTROL: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|[\x00-\x08\x0b-\x1f\x7f]"
)
"""Colours, titles, cursor movements: what makes sense on a screen only."""


class Tail:
    """Counts a child's output, and remembers the end of it."""

    def __init__(self) -> None:
        self.bytes = 0
        self.lines = 0
        self._chunks: deque[bytes] = deque()
        self._kept = 0

    def add(self, data: bytes) -> None:
        """The child wrote this."""
        self.bytes += len(data)
        self.lines += data.count(b"\n")
        kept = data[-BYTES_MAX:]
        self._chunks.append(kept)
        self._kept += len(kept)
        while self._kept - len(self._chunks[0]) >= BYTES_MAX:
            self._kept -= len(self._chunks.popleft())

    @property
    def open(self) -> bool:
        """Whether its last line has no end yet."""
        return bool(self._chunks) and self._chunks[-1][-1:] not in (b"\n", b"\r")

    def fresh(self, count: int) -> str:
        """The last `count` bytes as text, with the beginning of their first line; as much of it as we keep."""
        kept = b"".join(self._chunks)[-BYTES_MAX:]
        start = max(0, len(kept) - count)
        return kept[max(kept.rfind(b"\n", 0, start), kept.rfind(b"\r", 0, start)) + 1 :].decode(
            errors="replace"
        )

    def last(self, lines: int = LINES_MAX, bytes_max: int = BYTES_MAX) -> list[str]:
        """The last lines as text without control codes, newest last; together at most `bytes_max` of UTF-8."""
        text = b"".join(self._chunks)[-BYTES_MAX:].decode(errors="replace")
        text = _LINE_END.sub("\n", text)
        found = [CONTROL.sub("", line.rpartition("\r")[2]).rstrip() for line in text.split("\n")]
        while found and not found[-1]:
            found.pop()
        kept: deque[str] = deque()
        room = bytes_max
        for line in reversed(found[-lines:]):
            room -= len(line.encode()) + 1
            if room < 0:
                break
            kept.appendleft(line)
        return list(kept)
