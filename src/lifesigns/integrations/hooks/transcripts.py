"""Transcripts: how much a session's file has grown, and which tokens it tells of.

A transcript's path comes from the agent, and an agent must not make the hub read other files. So a file is read only if it
is a regular file of the hub's own user, below the folder where the program keeps its transcripts, and named as one is;
at most `READ_MAX` bytes at a time. Only numbers and the ends of turns are taken from it.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

READ_MAX: Final = 256 * 1024
TURN_ENDED: Final = "turn_duration"
MESSAGES_MAX: Final = 32
"""Messages whose tokens we remember to have counted: a message is written in several lines, each with its usage."""

ROOTS: Final = {"claude-code": Path(".claude", "projects")}
"""Where each program keeps its transcripts, below the home folder."""


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class _Message(msgspec.Struct):
    id: str = ""
    usage: _Usage | None = None


class _Line(msgspec.Struct):
    type: str = ""
    subtype: str = ""
    timestamp: datetime | None = None
    message: _Message | None = None


_decode: Final = msgspec.json.Decoder(_Line).decode


@dataclass(slots=True)
class Growth:
    """What was added to a transcript since the last look."""

    size: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    rested_at: float = 0.0
    """When the last turn in it ended, on the program's clock. An interrupted turn ends here and with no hook."""


@dataclass(slots=True)
class Transcript:
    """One file, read from where it was when it was first seen."""

    path: Path
    offset: int
    counted: dict[str, tuple[int, int]] = field(default_factory=dict)

    def look(self) -> Growth:
        """Read on. A file that is away, or not one of ours any more, has not grown."""
        handle = _opened(self.path) if self.path.resolve() == self.path else None
        if handle is None:
            return Growth()
        try:
            size = os.fstat(handle).st_size
            if size <= self.offset:
                return Growth()
            chunk = os.pread(handle, READ_MAX, self.offset)
        finally:
            os.close(handle)
        whole = chunk.rfind(b"\n") + 1
        if not whole:
            # A line in the making, or one that is longer than we read: then its tokens are lost, and nothing else.
            self.offset += len(chunk) if len(chunk) == READ_MAX else 0
            return Growth(len(chunk))
        self.offset += whole
        growth = Growth(whole)
        for line in chunk[:whole].splitlines():
            self._count(line, growth)
        return growth

    def _count(self, line: bytes, growth: Growth) -> None:
        if b'"usage"' not in line and TURN_ENDED.encode() not in line:
            return
        try:
            said = _decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        if (said.type, said.subtype) == ("system", TURN_ENDED) and said.timestamp is not None:
            growth.rested_at = said.timestamp.timestamp()
        message = said.message
        if message is None or message.usage is None:
            return
        usage = message.usage
        # What was read from the cache costs a tenth, and is the whole conversation again each time: it is not work done.
        now = (max(0, usage.input_tokens + usage.cache_creation_input_tokens), max(0, usage.output_tokens))
        was = self.counted.pop(message.id, (0, 0)) if message.id else (0, 0)
        growth.tokens_in += max(0, now[0] - was[0])
        growth.tokens_out += max(0, now[1] - was[1])
        if message.id:
            self.counted[message.id] = (max(now[0], was[0]), max(now[1], was[1]))
            while len(self.counted) > MESSAGES_MAX:
                del self.counted[next(iter(self.counted))]


def transcript(program: str, path: str, home: Path) -> Transcript | None:
    """The transcript at this path, from its end on; None if it is none that we may read."""
    root = (home / ROOTS[program]).resolve()
    try:
        real = Path(path).resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    if real.suffix != ".jsonl" or not real.is_relative_to(root):
        return None
    handle = _opened(real)
    if handle is None:
        return Transcript(real, 0)  # It is made with the first message.
    try:
        return Transcript(real, os.fstat(handle).st_size)
    finally:
        os.close(handle)


def _opened(path: Path) -> int | None:
    """A handle of a regular file that is ours; the last step of its path is no link."""
    try:
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        return None
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or (hasattr(os, "geteuid") and found.st_uid != os.geteuid()):
        os.close(handle)
        return None
    return handle
