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

from lifesigns.integrations.hooks.events import line as line_of

READ_MAX: Final = 256 * 1024
TURN_ENDED: Final = "turn_duration"
TELLING: Final = (b'"usage"', TURN_ENDED.encode(), b'"tokens"', b'"usageMetadata"', b'"status_code"')
"""What stands in a line that we read."""
TOO_MANY, BROKEN = 429, 500
MESSAGES_MAX: Final = 32
"""Messages whose tokens we remember to have counted: a message is written in several lines, each with its usage."""


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0


class _Message(msgspec.Struct):
    id: str = ""
    usage: _Usage | None = None


class _GeminiUsage(msgspec.Struct):
    input: int = 0
    output: int = 0
    cached: int = 0


class _QwenUsage(msgspec.Struct, rename="camel"):
    prompt_token_count: int = 0
    candidates_token_count: int = 0
    cached_content_token_count: int = 0


class _QwenEvent(msgspec.Struct):
    status_code: int = 0
    error_message: str = ""


class _QwenPayload(msgspec.Struct, rename="camel"):
    ui_event: _QwenEvent | None = None


class _CopilotUsage(msgspec.Struct, rename="camel"):
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0


class _CopilotData(msgspec.Struct):
    usage: _CopilotUsage | None = None


class _Line(msgspec.Struct, rename={"usage_metadata": "usageMetadata", "system_payload": "systemPayload"}):
    """A line of any program; each tells of tokens in a place of its own."""

    type: str = ""
    subtype: str = ""
    timestamp: datetime | None = None
    message: _Message | None = None
    id: str = ""
    tokens: _GeminiUsage | None = None
    usage_metadata: _QwenUsage | None = None
    system_payload: _QwenPayload | None = None
    data: _CopilotData | None = None

    def used(self) -> tuple[str, int, int] | None:
        """The message, and its tokens in and out, without what was read from the cache: that costs a tenth, and is the whole
        conversation again each time. It is not work done."""
        if self.message is not None and self.message.usage is not None:
            one = self.message.usage
            return self.message.id, one.input_tokens + one.cache_creation_input_tokens, one.output_tokens
        if self.tokens is not None:
            return self.id, self.tokens.input - self.tokens.cached, self.tokens.output
        if self.usage_metadata is not None:
            two = self.usage_metadata
            return "", two.prompt_token_count - two.cached_content_token_count, two.candidates_token_count
        if self.data is not None and self.data.usage is not None:
            three = self.data.usage
            return "", three.input_tokens - three.cache_read_tokens, three.output_tokens
        return None

    def refusal(self) -> str:
        """Why the model had no time."""
        event = None if self.system_payload is None else self.system_payload.ui_event
        if event is None or not (event.status_code == TOO_MANY or event.status_code >= BROKEN):
            return ""
        return line_of(event.error_message) or str(event.status_code)


_decode: Final = msgspec.json.Decoder(_Line).decode


@dataclass(slots=True)
class Growth:
    """What was added to a transcript since the last look."""

    size: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    rested_at: float = 0.0
    """When the last turn in it ended, on the program's clock. An interrupted turn ends here and with no hook."""
    refused: str = ""
    """Why the model, asked last, had no time."""


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
        if not any(word in line for word in TELLING):
            return
        try:
            said = _decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        if (said.type, said.subtype) == ("system", TURN_ENDED) and said.timestamp is not None:
            growth.rested_at = said.timestamp.timestamp()
        growth.refused = said.refusal() or growth.refused
        used = said.used()
        if used is None:
            return
        growth.refused = ""
        message, now = used[0], (max(0, used[1]), max(0, used[2]))
        was = self.counted.pop(message, (0, 0)) if message else (0, 0)
        growth.tokens_in += max(0, now[0] - was[0])
        growth.tokens_out += max(0, now[1] - was[1])
        if message:
            self.counted[message] = (max(now[0], was[0]), max(now[1], was[1]))
            while len(self.counted) > MESSAGES_MAX:
                del self.counted[next(iter(self.counted))]


def transcript(folder: Path, path: str, home: Path) -> Transcript | None:
    """The transcript at this path, from its end on; None if it is none that we may read."""
    root = (home / folder).resolve()
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
