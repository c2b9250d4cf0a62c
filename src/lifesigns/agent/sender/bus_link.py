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
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from lifesigns import wire
from lifesigns.core.effects import Order
from lifesigns.core.signals import Beat, Word
from lifesigns.errors import LifesignsError, WireError
from lifesigns.ports import Bus, Subscription
from lifesigns.wire.limits import ITEMS_MAX

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
        self._obey: Callable[[Order], None] | None = None
        self._subscriptions: dict[str, Subscription] = {}
        host = re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname())[:64]
        self._name = f"relay:{host}:{os.getpid()}"

    async def open(self, obey: Callable[[Order], None]) -> None:
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
        await self._publish(WORDS, words, wire.encode_signal)
        await self._bus.flush()

    async def close(self) -> None:
        self._subscriptions.clear()
        await self._bus.close()

    async def _publish(self, under: str, items: Sequence[T], encode: Callable[..., bytes]) -> None:
        if not items:
            return
        speakers = {item.agent_id for item in items if hasattr(item, "agent_id")}
        subject = f"{under}.{speakers.pop() if len(speakers) == 1 else self._name}"
        for payload in parcels(await written(items, encode), self._bus.payload_max):
            await self._bus.publish(subject, payload)

    def _hear(self, subject: str, payload: bytes) -> None:
        try:
            order = wire.decode_order(payload)
        except WireError as error:
            log.warning("an order on %s cannot be read: %s", subject, error)
            return
        if self._obey is not None:
            self._obey(order)


async def written(items: Sequence[T], encode: Callable[..., bytes]) -> list[bytes]:
    """Every message that can be written; one that cannot must not hold up the others for ever."""
    parts: list[bytes] = []
    for number, item in enumerate(items, 1):
        try:
            parts.append(encode(item))
        except (LifesignsError, ValueError, TypeError) as error:
            log.error("%s cannot be written and is left out: %s", type(item).__name__, error)
        if number % BREATH == 0:
            await asyncio.sleep(BREATH_FOR)
    return parts


def parcels(parts: Sequence[bytes], size_max: int) -> Iterator[bytes]:
    """One message as it is, several as arrays, none larger than the bus carries."""
    parcel: list[bytes] = []
    size = 2
    for part in parts:
        if len(part) + 2 > size_max:
            log.error("a message of %d bytes is left out: the bus carries %d", len(part), size_max)
            continue
        if parcel and (size + len(part) + 1 > size_max or len(parcel) >= ITEMS_MAX):
            yield _parcel(parcel)
            parcel, size = [], 2
        parcel.append(part)
        size += len(part) + 1
    if parcel:
        yield _parcel(parcel)


def _parcel(parts: list[bytes]) -> bytes:
    return parts[0] if len(parts) == 1 else b"[" + b",".join(parts) + b"]"
