"""Bus link: the way to a hub over a message bus.

One agent's beat goes to `heartbeat.<id>`, as any sender's would. What several agents say at once goes out as one array
under the relay's own name; a hub reads who speaks from the messages, not from the subject.

A bus keeps nothing, so a hub that is away would miss what is said once. Reports therefore go to
`lifesigns.signal.<relay>.<number>`, and a hub answers on `lifesigns.kept.<relay>` with the number when it has kept them. Until
then they are carried again, by the same number, so that a hub that has heard them does not hear them twice.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from lifesigns import wire
from lifesigns.core.effects import Order
from lifesigns.core.signals import Beat, Report
from lifesigns.errors import AdapterError, WireError
from lifesigns.ports import Bus, SavedState, Subscription

log: Final = logging.getLogger("lifesigns.sender")

BEATS: Final = "heartbeat"
REPORTS: Final = "lifesigns.signal"
KEPT: Final = "lifesigns.kept"
ORDERS: Final = "lifesigns.order"
SAID_AGAIN_AFTER: Final = (0.3, 0.6, 1.2, 0.9)
"""How long an answer is waited for before the same is said again. After an outage we may be on the bus before the hub is, and
nothing else is said meanwhile: then it should not take long. A hub that is there answers in milliseconds, and drops what
it has heard before by its number, unread."""
KEPT_WITHIN: Final = sum(SAID_AGAIN_AFTER)
"""A hub keeps reports within 1.5 s or not at all; the rest is for the way."""
BREATH: Final = 20
BREATH_FOR: Final = 0.001
"""After so many messages written the GIL is let go: see `rounds.py`."""

T = TypeVar("T", Beat, Report)


class BusLink:
    """A `Link` over any `Bus`. Owns the bus: opens and closes it."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._obey: Callable[[Order], bool] | None = None
        self._subscriptions: dict[str, Subscription] = {}
        host = re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname())[:64]
        self._name = f"relay:{host}:{os.getpid()}:{secrets.token_hex(4)}"
        self._listens = False
        self._number = 0
        """Of the load whose messages wait to be kept."""
        self._unkept: dict[int, bytes] = {}
        self._message_numbers = itertools.count(1)
        self._kept = asyncio.Event()

    async def open(self, obey: Callable[[Order], bool]) -> None:
        self._obey = obey
        await self._bus.connect()
        if not self._listens:
            await self._bus.subscribe(f"{KEPT}.{self._name}", self._hear_kept)
            self._listens = True

    async def follow(self, agent_id: str) -> None:
        if agent_id not in self._subscriptions:
            self._subscriptions[agent_id] = await self._bus.subscribe(f"{ORDERS}.{agent_id}", self._hear)

    async def unfollow(self, agent_id: str) -> None:
        subscription = self._subscriptions.pop(agent_id, None)
        if subscription is not None:
            await subscription.end()

    async def carry_beats(self, beats: Sequence[Beat]) -> bool:
        speakers = {beat.agent_id for beat in beats}
        subject = f"{BEATS}.{speakers.pop() if len(speakers) == 1 else self._name}"
        for payload in await self._packed(beats, wire.encode_beat):
            await self._bus.publish(subject, payload)
        await self._bus.flush()
        return False

    async def carry_reports(self, number: int, reports: Sequence[Report]) -> None:
        if number != self._number:
            payloads = await self._packed(reports, partial(wire.encode_signal, sent_at=time.time()))
            self._unkept = {next(self._message_numbers): payload for payload in payloads}
            self._number = number
        for wait_for in SAID_AGAIN_AFTER:
            for message, payload in list(self._unkept.items()):
                await self._bus.publish(f"{REPORTS}.{self._name}.{message}", payload)
            await self._bus.flush()
            if await self._all_kept(wait_for):
                return
        raise AdapterError(
            f"no hub has said within {KEPT_WITHIN:g} s that it has kept {len(reports)} reports"
        )

    async def _all_kept(self, wait_for: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_for):
                while self._unkept:
                    self._kept.clear()
                    await self._kept.wait()
        return not self._unkept

    async def upload(self, state: SavedState) -> bool:
        return False  # A bus keeps nothing, and its messages are small.

    async def close(self) -> None:
        self._subscriptions.clear()
        await self._bus.close()

    async def _packed(self, items: Sequence[T], encode: Callable[..., bytes]) -> list[bytes]:
        parts: list[bytes] = []
        for part in wire.write_each(items, encode):
            parts.append(part)
            if len(parts) % BREATH == 0:
                await asyncio.sleep(BREATH_FOR)
        return list(wire.pack(parts, self._bus.payload_max))

    def _hear(self, subject: str, payload: bytes) -> None:
        try:
            order = wire.decode_order(payload)
        except WireError as error:
            log.warning("an order on %s cannot be read: %s", subject, error)
            return
        if self._obey is not None:
            self._obey(order)

    def _hear_kept(self, subject: str, payload: bytes) -> None:
        try:
            self._unkept.pop(int(payload), None)
        except ValueError:
            log.warning("%s says %r, which is no number of ours", subject, payload[:60])
        self._kept.set()
