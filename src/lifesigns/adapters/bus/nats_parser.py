"""Reads what a NATS server sends: messages at once and in turns, everything else as nats-py does it.

nats-py awaits each message and cuts its buffer twice for it. A flood comes in faster than the hub could take it, so what a
message costs before anyone looks at its subject decides whether the other messages are heard. A server sends more than a
million a second, and holds back 64 MB of them. So a run of unwanted messages is skipped (`skipping.py`): 0.25 µs for each
instead of 1.3.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from functools import lru_cache
from time import monotonic, thread_time
from typing import Any, Final

from nats.errors import ProtocolError
from nats.protocol.parser import AWAITING_CONTROL_LINE, MAX_CONTROL_LINE_SIZE, Parser

from lifesigns.adapters.bus.skipping import (
    SKIPPED_LENGTH_MAX,
    TURN_FOR,
    WhatIsUnwanted,
    length_and_bytes,
    skip,
)
from lifesigns.ports import MessageFilter

_message: Final = re.compile(rb"MSG ([^ \r\n]+) (\d+) (?:[^ \r\n]+ )?(\d+)\r\n").match
_END: Final = b"\r\n"
_MARK: Final = b"MSG "
"""In each message."""

Take = Callable[[int, bytes, bytes], None]
"""Number of the subscription, subject, payload."""


class TurnParser(Parser):
    """As nats-py's, for one connection. While anything is unwanted it reads for half of the time at most."""

    def __init__(self, client: Any, take: Take, unwanted: WhatIsUnwanted) -> None:
        super().__init__(client)
        self._take, self._unwanted = take, unwanted
        self._worked = 0.0
        """Seconds since the others had their turn."""

    async def parse(self, data: bytes = b"") -> None:
        # While all is wanted a turn only lets others go first: then the clock that costs a tenth is good enough.
        clock = monotonic if self._unwanted() is None else thread_time
        began = clock()
        self.buf.extend(data)
        while self.buf:
            if self.state != AWAITING_CONTROL_LINE:
                await super().parse()  # A message with headers, begun before.
                break
            self._take_messages()
            if not self.buf or not await self._take_line():
                break
        self._worked += clock() - began
        if self._worked >= TURN_FOR:
            await asyncio.sleep(self._worked if self._unwanted() else 0)
            self._worked = 0.0

    def _take_messages(self) -> None:
        """All whole messages at the beginning of the buffer."""
        buf, take, size = self.buf, self._take, len(self.buf)
        unwanted = self._unwanted()
        at = 0 if unwanted is None else _skip(unwanted, buf, 0, size)
        with memoryview(buf) as view:  # A slice of the buffer itself would copy each payload twice.
            while (head := _message(buf, at)) is not None:
                begin = head.end()
                subject, number, length = head.groups()
                end = begin + int(length)
                if end + len(_END) > size:
                    break
                take(int(number), subject, bytes(view[begin:end]))
                at = end + len(_END)
                if unwanted is not None:
                    at = _skip(unwanted, buf, at, size)
        del buf[:at]

    async def _take_line(self) -> bool:
        """What is no message: one line, or a message with headers. False if the rest of it has not come yet."""
        if self.buf.startswith(b"HMSG"):
            await super().parse()
            return False
        if _message(self.buf) is not None:
            return False
        end = self.buf.find(_END)
        if end < 0 and len(self.buf) <= MAX_CONTROL_LINE_SIZE:
            return False
        if end < 0 or self.buf.startswith(b"MSG"):
            raise ProtocolError
        after = end + len(_END)
        rest, self.buf = self.buf[after:], self.buf[:after]
        await super().parse()
        self.buf = rest
        return True


def _skip(unwanted: MessageFilter, buf: bytearray, at: int, size: int) -> int:
    """The end of the unwanted messages that begin here: short ones by the run, long ones one after the other."""
    run, head_of = _run_of(unwanted.subjects), _head_of(unwanted.subjects)
    while True:
        at = skip(unwanted, run, _MARK, buf, at)
        head, subject, count = head_of(buf, at), b"", 0
        while head is not None and (end := head.end() + int(head[2]) + len(_END)) <= size:
            at, subject, count = end, head[1], count + 1
            head = head_of(buf, at) if int(head[2]) > SKIPPED_LENGTH_MAX else None
        if not count:
            return at
        unwanted.drops(subject.decode(errors="replace"), count)


@lru_cache(maxsize=32)
def _head_of(subjects: str) -> Callable[[bytearray, int], re.Match[bytes] | None]:
    """The head of a message on such a subject."""
    return re.compile(rf"MSG ({subjects}) \d++ (?:[^ \r\n]++ )?+(\d++)\r\n".encode()).match


@lru_cache(maxsize=32)
def _run_of(subjects: str) -> re.Pattern[bytes]:
    """Whole messages on such subjects, one after the other; its group is the subject of the last one."""
    message = rf"MSG ({subjects}) \d++ (?:[^ \r\n]++ )?+{_LENGTH_AND_PAYLOAD}\r\n"
    return re.compile(rf"(?>{message})++".encode(), re.DOTALL)


_LENGTH_AND_PAYLOAD: Final = length_and_bytes(".")
