"""Reads what a Redis server sends (RESP 2): messages at once, runs of unwanted ones not at all (`skipping.py`).

redis-py awaits each reply, which takes longer than all we do with a beat: beside a flood the others were heard seconds late.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from lifesigns.adapters.bus.skipping import length_and_bytes, skip
from lifesigns.ports import MessageFilter

LINE_MAX: Final = 64 * 1024
"""Bytes of a line: the longest is an error of the server."""
NESTED_MAX: Final = 4

_END: Final = b"\r\n"
_MARK: Final = b"\r\npmessage\r\n"
"""In each message."""
_PMESSAGE: Final = rb"\*4\r\n\$8\r\npmessage\r\n\$\d+\r\n([^\r\n]+)\r\n\$(\d+)\r\n"
"""Up to its channel. We gave its glob, so that there is no line's end in it."""
_pmessage: Final = re.compile(_PMESSAGE).match
_length: Final = re.compile(rb"\r\n\$(\d+)\r\n").match
_numbers: Final = re.compile(rb"(?::\d+\r\n)+").match
"""Answers to PUBLISH: how many heard it is nothing to us."""

Take = Callable[[bytes, bytes, bytes], None]
"""Glob, channel, payload."""


class Refusal(Exception):
    """What the server answers if it will not: its words."""


class ReplyParser:
    """Of one connection: messages that match a glob go to `take`, other replies to `answer`."""

    def __init__(self, take: Take, answer: Callable[[object], None]) -> None:
        self._take, self._answer = take, answer
        self._buf = bytearray()

    def feed(self, data: bytes, unwanted: MessageFilter | None = None) -> None:
        """Read what has come, without the unwanted. Raises `ValueError` if it is no RESP."""
        buf = self._buf
        buf += data
        at = end = 0
        while at < len(buf):
            if unwanted is not None:
                at = skip(unwanted, _run_of(unwanted.subjects), _MARK, buf, at)
            if (head := _pmessage(buf, at)) is not None:
                end = self._message(head)
            elif (numbers := _numbers(buf, at)) is not None:
                end = numbers.end()
            else:
                end = self._reply(at)
            if not end:
                break  # The rest of it has not come yet.
            at = end
        del buf[:at]

    def _message(self, head: re.Match[bytes]) -> int:
        """Where it ends; 0 if that has not come yet."""
        buf, begin = self._buf, head.end()
        channel_ends = begin + int(head[2])
        if (length := _length(buf, channel_ends)) is None:
            if len(buf) > channel_ends + LINE_MAX:
                raise ValueError("a message of the server has no end")
            return 0
        begins = length.end()
        ends = begins + int(length[1])
        if len(buf) < ends + len(_END):
            return 0
        self._take(head[1], bytes(buf[begin:channel_ends]), bytes(buf[begins:ends]))
        return ends + len(_END)

    def _reply(self, at: int) -> int:
        read = _read(self._buf, at)
        if read is None:
            return 0
        reply, end = read
        self._answer(reply)
        return end


def _read(buf: bytearray, at: int, depth: int = 0) -> tuple[object, int] | None:
    """Any reply, and where it ends; None if that has not come yet."""
    line_ends = buf.find(_END, at)
    if line_ends < 0:
        if len(buf) - at > LINE_MAX:
            raise ValueError("a line of the server has no end")
        return None
    kind, text, end = buf[at : at + 1], bytes(buf[at + 1 : line_ends]), line_ends + len(_END)
    match kind:
        case b"+":
            return text, end
        case b"-":
            return Refusal(text.decode(errors="replace")), end
        case b":":
            return int(text), end
        case b"$" if (size := int(text)) >= 0:
            whole = len(buf) >= end + size + len(_END)
            return (bytes(buf[end : end + size]), end + size + len(_END)) if whole else None
        case b"*" if depth < NESTED_MAX:
            return _read_array(buf, end, int(text), depth)
        case b"$":
            return None, end
    raise ValueError(f"the server says {bytes(buf[at:line_ends][:40])!r}, which is no RESP")


def _read_array(buf: bytearray, at: int, size: int, depth: int) -> tuple[object, int] | None:
    replies: list[object] = []
    for _ in range(size):
        read = _read(buf, at, depth + 1) if at < len(buf) else None
        if read is None:
            return None
        reply, at = read
        replies.append(reply)
    return replies, at


_CHANNEL: Final = length_and_bytes(r"[^\r\n]")
_PAYLOAD: Final = length_and_bytes(".")


@lru_cache(maxsize=32)
def _run_of(subjects: str) -> re.Pattern[bytes]:
    """Whole messages on such channels, one after the other; its group is the subject in that of the last one. A channel may have a
    line's end in it, and pretend that it ends there: so its length is looked at first. Behind a space may be anything: no id has one."""
    head = r"\*4\r\n\$8\r\npmessage\r\n\$\d++\r\n[^\r\n]++\r\n"
    message = rf"{head}\$(?={_CHANNEL}\r\n)\d++\r\n({subjects})(?: [^\r\n]*+)?\r\n\${_PAYLOAD}\r\n"
    return re.compile(rf"(?>{message})++".encode(), re.DOTALL)
