"""Bus link: the way to a hub over a message bus.

What one agent says goes to its own subject, so that the server of the bus can watch over who speaks for whom. What several agents
say at once goes out as one array under the relay's own name; where the server or the hub refuses that, each agent's words go
out by themselves. `wire/subjects.py` has the subjects.

A bus keeps nothing, so a hub that is away would miss reports. Reports therefore have a number, and a hub answers with
it when it has kept them. Until then they are carried again, by the same number, so that a hub that has heard them
does not hear them twice.
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
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from lifesigns import wire
from lifesigns.core.effects import Order
from lifesigns.core.signals import Beat, Report
from lifesigns.errors import AdapterError, WireError
from lifesigns.ports import Bus, SavedState, Signer, Subscription
from lifesigns.wire import subjects
from lifesigns.wire.signed import LINE_MAX, Seal
from lifesigns.wire.subjects import Place, ending

log: Final = logging.getLogger("lifesigns.sender")

SAID_AGAIN_AFTER: Final = (0.3, 0.6, 1.2, 0.9)
"""How long we wait for an answer before we repeat ourselves. After an outage we may be on the bus before the hub, and
nothing else goes out meanwhile, so the wait is short. A hub that is there answers in milliseconds, and drops repeated
numbers unread."""
KEPT_WITHIN: Final = sum(SAID_AGAIN_AFTER)
"""A hub stores reports within 1.5 s or not at all; the rest is for the transport."""
BREATH: Final = 20
BREATH_FOR: Final = 0.001
"""After so many messages we release the GIL: see `relay_loop.py`."""

T = TypeVar("T", Beat, Report)


class BusLink:
    """A `Link` over any `Bus`. Owns the bus: opens and closes it."""

    tells_stopping = True

    def __init__(self, bus: Bus, signer: Signer | None = None) -> None:
        self._bus = bus
        self._seals = None if signer is None else (Seal(signer), Seal(signer))
        """Of beats and of reports: they overtake each other."""
        self._obey: Callable[[Order], bool] | None = None
        self._subscriptions: dict[str, Subscription] = {}
        host = re.sub(r"[^A-Za-z0-9_-]", "-", socket.gethostname())[:64]
        self._name = f"relay:{host}:{os.getpid()}:{secrets.token_hex(4)}"
        self._shares = True
        """Several agents speak in one message, under our own name."""
        self._answered_on: set[str] = set()
        """Subjects on which we hear what is kept."""
        self._number = 0
        """Of the load whose messages the hub has not stored yet."""
        self._unkept: dict[int, tuple[Place, bytes]] = {}
        self._message_numbers = itertools.count(1)
        self._kept = asyncio.Event()

    async def open(self, obey: Callable[[Order], bool]) -> None:
        self._obey = obey
        await self._bus.connect()

    async def follow(self, agent_id: str) -> None:
        if agent_id not in self._subscriptions:
            self._subscriptions[agent_id] = await self._bus.subscribe(
                f"{subjects.ORDERS}.{ending(agent_id)}", self._hear
            )

    async def unfollow(self, agent_id: str) -> None:
        subscription = self._subscriptions.pop(agent_id, None)
        if subscription is not None:
            await subscription.end()

    async def carry_beats(self, beats: Sequence[Beat]) -> bool:
        await self._apart_if_refused(partial(self._say_beats, beats))
        return False

    async def carry_reports(self, number: int, reports: Sequence[Report]) -> None:
        await self._apart_if_refused(partial(self._say_reports, number, reports))

    async def _apart_if_refused(self, say: Callable[[], Coroutine[None, None, None]]) -> None:
        """Say it. If that is refused for good, it may be because several agents spoke in one message: then say it again, each
        agent for itself, and everything else from now on."""
        shared = self._shares
        try:
            await say()
        except AdapterError as error:
            if not shared or (error.transient and self._shares):
                raise
            self._part()
            await say()

    def _part(self) -> None:
        if self._shares:
            log.info("a message of several agents is refused: from now on each of them speaks by itself")
            self._shares = False
            self._number = 0
            self._kept.set()

    async def _say_beats(self, beats: Sequence[Beat]) -> None:
        for place, said in self._places_of_beats(beats):
            end = self._name if place.speaker is None else ending(place.speaker)
            for payload in await self._packed(said, wire.encode_beat):
                signed = payload if self._seals is None else self._seals[0].signed(payload)
                await self._bus.publish(f"{subjects.BEATS}.{end}", signed)
        await self._bus.flush()

    async def _say_reports(self, number: int, reports: Sequence[Report]) -> None:
        shared = self._shares
        if number != self._number:
            encode = partial(wire.encode_signal, sent_at=time.time())
            self._unkept = {
                next(self._message_numbers): (place, payload)
                for place, said in self._places(reports)
                for payload in await self._packed(said, encode)
            }
            self._number = number
        for wait_for in SAID_AGAIN_AFTER:
            for message, (place, payload) in list(self._unkept.items()):
                await self._hear_answers(place.kept_on)
                # Signed each time: a number that was overtaken is not heard any more.
                signed = payload if self._seals is None else self._seals[1].signed(payload)
                await self._bus.publish(_subject(place, message), signed)
            await self._bus.flush()
            if await self._all_kept(wait_for):
                return
            if shared is not self._shares:
                break
        raise AdapterError(
            f"no hub has said within {KEPT_WITHIN:g} s that it has kept {len(reports)} reports"
        )

    def _places(self, said: Sequence[T]) -> list[tuple[Place, Sequence[T]]]:
        """Who says what, and where."""
        by_speaker: dict[str, list[T]] = {}
        for one in said:
            by_speaker.setdefault(getattr(one, "agent_id", ""), []).append(one)
        if len(by_speaker) > 1 and self._shares:
            return [(Place(None, self._name), said)]
        return [(Place(speaker, self._name), own) for speaker, own in by_speaker.items()]

    def _places_of_beats(self, beats: Sequence[Beat]) -> list[tuple[Place, Sequence[Beat]]]:
        """Like any, but a last beat goes out by itself: it is for those who listen without a hub, one agent a message."""
        last = [beat for beat in beats if beat.status == subjects.STOPPING]
        others = [beat for beat in beats if beat.status != subjects.STOPPING]
        alone = [(Place(beat.agent_id, self._name), [beat]) for beat in last]
        return [*(self._places(others) if others else []), *alone]

    async def _hear_answers(self, subject: str) -> None:
        if subject not in self._answered_on:
            await self._bus.subscribe(subject, self._hear_kept)
            self._answered_on.add(subject)

    async def _all_kept(self, wait_for: float) -> bool:
        shared = self._shares
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_for):
                while self._unkept and self._shares is shared:
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
        return list(wire.pack(parts, self._bus.payload_max - (0 if self._seals is None else LINE_MAX)))

    def _hear(self, subject: str, payload: bytes) -> None:
        try:
            order = wire.decode_order(payload)
        except WireError as error:
            log.warning("an order on %s cannot be read: %s", subject, error)
            return
        if self._obey is not None:
            self._obey(order)

    def _hear_kept(self, subject: str, payload: bytes) -> None:
        if payload == subjects.APART:
            self._part()
            return
        try:
            self._unkept.pop(int(payload), None)
        except ValueError:
            log.warning("%s says %r, which is no number of ours", subject, payload[:60])
        self._kept.set()


def _subject(place: Place, number: int) -> str:
    if place.speaker is None:
        return f"{subjects.SIGNALS}.{place.relay}.{number}"
    return f"{subjects.REPORTS}.{place.relay}.{number}.{ending(place.speaker)}"
