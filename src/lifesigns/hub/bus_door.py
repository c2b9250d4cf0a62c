"""Bus door: beats and words that come over the bus, and the canary that shows whether the bus can be heard.

The hub starts whether the bus is there or not, and says which. What cannot be read is counted and shown now and then; a
peer that sends nonsense is no reason to stop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

from lifesigns import wire
from lifesigns.core.signals import Beat, CanaryReturned, Signal
from lifesigns.errors import AdapterError, WireError
from lifesigns.hub.clock import Clock
from lifesigns.hub.pulse import Pulse
from lifesigns.ports import Bus, Subscription

BEATS: Final = "heartbeat.>"
WORDS: Final = "lifesigns.signal.>"
CANARY: Final = "lifesigns.canary"
SOURCE: Final = "bus"

RETRY_AFTER: Final = 2.0
SLOW_RETRY_AFTER: Final = 30.0
"""When trying again is not expected to help: a wrong password, until somebody mends it on the other side."""

COMPLAIN_EVERY: Final = 60.0

log: Final = logging.getLogger("lifesigns.hub")


class Ear(Protocol):
    """Who is given what was heard, and counts what could not be read."""

    pulse: Pulse

    def hear(self, signals: Sequence[Signal], at: float) -> bool: ...
    def hear_beats(self, beats: Sequence[Beat], raw: bytes, source: str, at: float) -> bool: ...
    def ask_turn(self) -> None: ...


class BusDoor:
    """Listens on the bus and gives what it hears to the hub."""

    def __init__(self, bus: Bus, name: str, ear: Ear, clock: Clock) -> None:
        self.bus = bus
        self._canary_subject = f"{CANARY}.{name}"
        self._ear = ear
        self._clock = clock
        self._wanted = ((BEATS, self._beats), (WORDS, self._words), (self._canary_subject, self._canary))
        self._subscriptions: dict[str, Subscription] = {}
        self._why = ""
        """Why it was not reached the last time."""
        self._complained_at = -COMPLAIN_EVERY
        self._gathered: list[tuple[str, bytes]] = []
        self._gathered_at = 0.0

    @property
    def state(self) -> str:
        """`ok`, or what is wrong."""
        if len(self._subscriptions) < len(self._wanted):
            return self._why or "not reached yet"
        return "ok" if self.bus.connected else "connection lost"

    @property
    def dropped(self) -> int:
        """Messages that came faster than they were heard."""
        return sum(subscription.dropped for subscription in self._subscriptions.values())

    async def open(self) -> None:
        """Reach the bus and listen; if it is away, for as long as it takes."""
        while True:
            try:
                await self.bus.connect()
                for pattern, hear in self._wanted:
                    if pattern not in self._subscriptions:
                        self._subscriptions[pattern] = await self.bus.subscribe(pattern, hear)
            except AdapterError as error:
                if not self._why:
                    log.error("the bus is not reached: %s", error, extra={"action": "bus_unreachable"})
                self._why = str(error)
                await asyncio.sleep(RETRY_AFTER if error.transient else SLOW_RETRY_AFTER)
            else:
                self._why = ""
                log.info("listening on the bus", extra={"action": "bus_reached"})
                return

    async def close(self) -> None:
        await self.bus.close()

    async def send_canary(self, seq: int) -> None:
        """Our own beat, out through the bus and back in."""
        with suppress(AdapterError):  # Then it will not return, and that is what it is for.
            await self.bus.publish(self._canary_subject, str(seq).encode())

    def hand_over(self) -> None:
        """Give the hub what was gathered: beats that came one a message are read together."""
        if not self._gathered:
            return
        gathered, self._gathered = self._gathered, []
        at = self._gathered_at
        together = wire.decode_together([payload for _, payload in gathered], SOURCE, at)
        if together is not None:
            self._ear.hear_beats(together.beats, together.raw, SOURCE, at)
        else:
            for subject, payload in gathered:
                self._read(subject, payload, at)

    def _beats(self, subject: str, payload: bytes) -> None:
        if wire.fits_together(payload):
            gathered = self._gathered
            if not gathered:
                self._gathered_at = self._clock()
                self._ear.ask_turn()
            gathered.append((subject, payload))
            if len(gathered) >= wire.TOGETHER_MAX:
                self.hand_over()
        else:
            self.hand_over()
            self._read(subject, payload, self._clock())

    def _read(self, subject: str, payload: bytes, at: float) -> None:
        try:
            batch = wire.decode_beats(payload, SOURCE, at)
        except WireError as error:
            self._unreadable(subject, 1, str(error))
        else:
            self._rejected(subject, batch.rejected)
            self._ear.hear_beats(batch.accepted, payload, SOURCE, at)

    def _words(self, subject: str, payload: bytes) -> None:
        self.hand_over()
        now = self._clock()
        try:
            batch = wire.decode_signals(payload, now=now, source=SOURCE)
        except WireError as error:
            self._unreadable(subject, 1, str(error))
        else:
            self._rejected(subject, batch.rejected)
            self._ear.hear(batch.accepted, now)

    def _canary(self, subject: str, payload: bytes) -> None:
        try:
            self._ear.hear((CanaryReturned(seq=int(payload)),), self._clock())
        except ValueError:
            self._unreadable(subject, 1, "is no canary of ours")

    def _rejected(self, subject: str, rejected: Sequence[wire.Rejected]) -> None:
        if rejected:
            first = rejected[0]
            self._unreadable(subject, len(rejected), f"{first.field} {first.detail}".strip())

    def _unreadable(self, subject: str, count: int, why: str) -> None:
        self._ear.pulse.unreadable += count
        now = self._clock()
        if now - self._complained_at >= COMPLAIN_EVERY:
            self._complained_at = now
            log.warning(
                "a message on %s cannot be read: %s", subject, why, extra={"action": "message_unreadable"}
            )
