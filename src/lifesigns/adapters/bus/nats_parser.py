"""Reads what a NATS server sends: messages at once and in turns, everything else as nats-py does it.

nats-py awaits each message and cuts its buffer twice for it. A flood comes in faster than the hub could take it, so what a
message costs before anyone looks at its subject decides whether the other messages are heard.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from time import thread_time
from typing import Any, Final

from nats.errors import ProtocolError
from nats.protocol.parser import AWAITING_CONTROL_LINE, MAX_CONTROL_LINE_SIZE, Parser

_message: Final = re.compile(rb"MSG ([^ \r\n]+) (\d+) (?:[^ \r\n]+ )?(\d+)\r\n").match
_END: Final = b"\r\n"

TURN_FOR: Final = 0.005
"""Seconds of reading after which everything else on the loop gets its turn: nats-py goes on while anything is there."""

Take = Callable[[int, bytes, bytes], None]
"""Number of the subscription, subject, payload."""


class TurnParser(Parser):
    """As nats-py's, for one connection. While `is_flooded` it reads for half of the time at most."""

    def __init__(self, client: Any, take: Take, is_flooded: Callable[[], bool]) -> None:
        super().__init__(client)
        self._take, self._is_flooded = take, is_flooded
        self._worked = 0.0
        """Seconds since the others had their turn."""

    async def parse(self, data: bytes = b"") -> None:
        began = thread_time()
        self.buf.extend(data)
        while self.buf:
            if self.state != AWAITING_CONTROL_LINE:
                await super().parse()  # A message with headers, begun before.
                break
            self._take_messages()
            if not self.buf or not await self._take_line():
                break
        self._worked += thread_time() - began
        if self._worked >= TURN_FOR:
            await asyncio.sleep(self._worked if self._is_flooded() else 0)
            self._worked = 0.0

    def _take_messages(self) -> None:
        """All whole messages at the beginning of the buffer."""
        buf, take, at, size = self.buf, self._take, 0, len(self.buf)
        while (head := _message(buf, at)) is not None:
            begin = head.end()
            subject, number, length = head.groups()
            end = begin + int(length)
            if end + len(_END) > size:
                break
            take(int(number), subject, bytes(buf[begin:end]))
            at = end + len(_END)
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
