"""Bus link: the way to a hub over a message bus.

One agent's beat goes to `heartbeat.<id>`, as any sender's would. What several agents say at once goes out as one array
under the relay's own name; a hub reads who speaks from the messages, not from the subject.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from lifesigns import wire
from lifesigns.core.effects import Order
from lifesigns.core.signals import Beat, Word
from lifesigns.errors import WireError
from lifesigns.ports import Bus, SavedState, Subscription

log: Final = logging.getLogger("lifesigns.sender")

BEATS: Final = "heartbeat"
WORDS: Final = "lifesigns.signal"
ORDERS: Final = "lifesigns.order"
BREATH: Final = 20
BREATH_FOR: Final = 0.001
"""After so many messages written the GIL is let go: see `rounds.py`."""

T = TypeVar("T", Beat, Word)


class BusLink:
    """A `Link` over any `Bus`. Owns the bus: opens and closes it."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._obey: Callable[[Order], bool] | None = None
        self._subscriptions: dict[str, Subscription] = {}
        host = re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname())[:64]
        self._name = f"relay:{host}:{os.getpid()}"

    async def open(self, obey: Callable[[Order], bool]) -> None:
        self._obey = obey
        await self._bus.connect()

    async def follow(self, agent_id: str) -> None:
        if agent_id not in self._subscriptions:
            self._subscriptions[agent_id] = await self._bus.subscribe(f"{ORDERS}.{agent_id}", self._hear)

    async def unfollow(self, agent_id: str) -> None:
        subscription = self._subscriptions.pop(agent_id, None)
        if subscription is not None:
            await subscription.end()

    async def carry(self, beats: Sequence[Beat], words: Sequence[Word]) -> None:
        await self._publish(BEATS, beats, wire.encode_beat)
        await self._publish(WORDS, words, partial(wire.encode_signal, sent_at=time.time()))
        await self._bus.flush()

    async def upload(self, state: SavedState) -> bool:
        return False  # A bus keeps nothing, and its messages are small.

    async def close(self) -> None:
        self._subscriptions.clear()
        await self._bus.close()

    async def _publish(self, under: str, items: Sequence[T], encode: Callable[..., bytes]) -> None:
        if not items:
            return
        speakers = {item.agent_id for item in items if hasattr(item, "agent_id")}
        subject = f"{under}.{speakers.pop() if len(speakers) == 1 else self._name}"
        parts: list[bytes] = []
        for part in wire.write_each(items, encode):
            parts.append(part)
            if len(parts) % BREATH == 0:
                await asyncio.sleep(BREATH_FOR)
        for payload in wire.pack(parts, self._bus.payload_max):
            await self._bus.publish(subject, payload)

    def _hear(self, subject: str, payload: bytes) -> None:
        try:
            order = wire.decode_order(payload)
        except WireError as error:
            log.warning("an order on %s cannot be read: %s", subject, error)
            return
        if self._obey is not None:
            self._obey(order)
