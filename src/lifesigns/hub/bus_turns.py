"""Turns: messages of a bus that take long to read, in pieces of a few milliseconds. Between two of them everyone else is heard.

Most messages are read on the spot. What is not done after a turn waits here, and what its sender reports after it waits
behind it: reports count in their order.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Generator
from math import inf
from time import thread_time
from typing import Final, NamedTuple

from lifesigns.hub.bus_shares import BusShares
from lifesigns.hub.shares import TURN_FOR
from lifesigns.wire.subjects import sender

Reading = Generator[None, None, None]
"""Reads a message and passes it on; pauses where that takes long."""

WAITING_BYTES_MAX: Final = 32 * 1024 * 1024

log: Final = logging.getLogger("lifesigns.hub")


class Unread(NamedTuple):
    """A message that waits, or is read in part."""

    size: int
    reading: Reading


class BusTurns:
    """Reads messages, those of one sender in order."""

    def __init__(self, shares: BusShares) -> None:
        self._shares = shares
        self._waiting: dict[str, deque[Unread]] = {}
        self._size = 0
        self._task: asyncio.Task[None] | None = None

    def read(self, subject: str, size: int, reading: Reading) -> None:
        """Read this message of that size: now, or in turns."""
        if self._waiting and (name := sender(subject)) in self._waiting:
            self._wait(name, Unread(size, reading))
        elif not _is_read(reading):
            self._wait(sender(subject), Unread(size, reading))

    @property
    def waiting(self) -> int:
        """Senders with messages that are not read yet."""
        return len(self._waiting)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _wait(self, name: str, unread: Unread) -> None:
        self._shares.put_off(name)
        if self._size + unread.size > WAITING_BYTES_MAX:
            self._shares.dropped += 1
            return
        self._size += unread.size
        self._waiting.setdefault(name, deque()).append(unread)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._take_turns())

    async def _take_turns(self) -> None:
        """A turn for each sender that has not used up its share, again and again."""
        while self._waiting:
            await asyncio.sleep(min(map(self._shares.owes, self._waiting)))
            for name in [one for one in self._waiting if self._shares.owes(one) <= 0]:
                self._turn(name)
                await asyncio.sleep(0)

    def _turn(self, name: str) -> None:
        self._shares.put_off(name)
        began, messages = self._shares.own_time(), self._waiting[name]
        try:
            done = _is_read(messages[0].reading)
        except Exception:  # one message's fault must not reach the others
            log.exception("a message of %s could not be taken", name, extra={"action": "message_failed"})
            done = True
        if done:
            self._size -= messages.popleft().size
            if not messages:
                del self._waiting[name]
        self._shares.charge(name, self._shares.own_time() - began)


def _is_read(reading: Reading) -> bool:
    """Whether it was read within one turn, counted from its first pause: most messages have none."""
    turn_ends = inf
    for _ in reading:
        now = thread_time()
        if now >= turn_ends:
            return False
        turn_ends = min(turn_ends, now + TURN_FOR)
    return True
