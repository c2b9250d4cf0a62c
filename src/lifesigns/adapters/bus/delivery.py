"""One subscription: a bounded queue between a bus and its subscriber.

The bus puts messages in, from any thread, and never waits. The subscriber gets them on its own loop, in short turns, so
that a slow one starves neither the others on that loop nor the reading of the socket. A subscriber that is too slow
loses its own oldest messages, and we count them: for signs of life the newest is worth most.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from time import monotonic
from typing import Final

from lifesigns.ports import Hear

logger = logging.getLogger("lifesigns.bus")

WAITING_MAX: Final = 65_536
"""Messages waiting for one subscriber: two thirds of a second at 100,000 a second, longer than any pause of the garbage
collector we measured."""
WAITING_BYTES_MAX: Final = 64 * 1024 * 1024
"""Their payloads together; a few batches at the 8 MiB limit must not become half a terabyte."""
_AT_ONCE: Final = 64
"""Messages taken from the queue together: one by one its lock would cost as much as the rest."""
_TURN_FOR: Final = 0.005
"""Seconds: short against every wait of ours, long against the 20 µs that a round of the loop costs."""


class Delivery:
    """The messages waiting for one subscriber. A `Subscription` of `lifesigns.ports`."""

    def __init__(
        self, pattern: str, hear: Hear, forget: Callable[[Delivery], Awaitable[None]], waiting_max: int
    ) -> None:
        """Deliver on the running loop; `forget` is the bus's part of an end."""
        self.pattern = pattern
        self._hear = hear
        self._forget = forget
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[str, bytes]] = deque()
        self._waiting_max = waiting_max
        self._waiting_bytes = 0
        self._few: Iterator[tuple[str, bytes]] = iter(())
        """Taken from the queue, and delivered next."""
        self._lock = threading.Lock()
        self._has_turn = False
        self._ended = False
        self._dropped = 0
        self._failures = 0

    @property
    def dropped(self) -> int:
        """Messages lost because the subscriber was too slow; the oldest go first."""
        return self._dropped

    @property
    def ended(self) -> bool:
        return self._ended

    async def end(self) -> None:
        """Deliver nothing more."""
        if not self._ended:
            self.cease()
            await self._forget(self)

    def cease(self) -> None:
        """The end without the bus's part, for a bus that closes as a whole."""
        with self._lock:
            self._ended = True
            self._waiting.clear()
            self._waiting_bytes = 0

    def put(self, subject: str, payload: bytes) -> None:
        """Queue a message. Callable from any thread; never waits."""
        with self._lock:
            if self._ended:
                return
            self._waiting.append((subject, payload))
            self._waiting_bytes += len(payload)
            lost = self._make_room()
            needs_turn, self._has_turn = not self._has_turn, True
        if lost and _is_milestone(self._dropped, lost):
            logger.warning(
                "who hears %s is too slow: %d messages dropped so far", self.pattern, self._dropped
            )
        if needs_turn:
            try:
                self._loop.call_soon_threadsafe(self._take_turn)
            except RuntimeError:  # The loop was closed without an end: no subscriber is left.
                self.cease()

    def _make_room(self) -> int:
        lost = 0
        while len(self._waiting) > self._waiting_max or self._waiting_bytes > WAITING_BYTES_MAX:
            _, payload = self._waiting.popleft()
            self._waiting_bytes -= len(payload)
            lost += 1
        self._dropped += lost
        return lost

    def _take_turn(self) -> None:
        until = monotonic() + _TURN_FOR
        while True:
            for message in self._few:
                if self._ended:
                    return
                try:
                    self._hear(*message)
                except Exception:  # noqa: BLE001 -- its own fault must not reach the others, nor later messages
                    self._failed()
                if monotonic() >= until:
                    self._loop.call_soon(self._take_turn)
                    return
            if not self._take_few():
                return

    def _take_few(self) -> bool:
        with self._lock:
            few = [self._waiting.popleft() for _ in range(min(len(self._waiting), _AT_ONCE))]
            self._waiting_bytes -= sum(len(payload) for _, payload in few)
            self._has_turn = bool(few)
        self._few = iter(few)
        return bool(few)

    def _failed(self) -> None:
        self._failures += 1
        if _is_milestone(self._failures, 1):
            logger.exception("who hears %s failed for the %d. time", self.pattern, self._failures)


def _is_milestone(count: int, added: int) -> bool:
    """Whether the count reached a power of two: the log has the first, and grows only logarithmically."""
    return count.bit_length() > (count - added).bit_length()
