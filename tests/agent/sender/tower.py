"""A tower: an engine that listens on a bus, as a hub will. Its own canary goes through the bus, too."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from lifesigns import wire
from lifesigns.core.effects import Effect, Fact, Order, SendCanary, SendPing
from lifesigns.core.engine import Engine
from lifesigns.core.signals import CanaryReturned
from lifesigns.errors import AdapterError
from lifesigns.ports import Bus
from lifesigns.wire.subjects import of_reports

CANARY = "lifesigns.canary"


class Tower:
    """Judges whoever it hears."""

    def __init__(self, bus: Bus) -> None:
        self.engine = Engine()
        self.facts: list[Fact] = []
        self.orders: list[Order] = []
        self.heard_at: dict[str, float] = {}
        """When each agent was last heard, by the monotonic clock."""
        self.first_after: dict[str, float] = {}
        self.mark = float("inf")
        """From here on, the first beat of everybody is noted in `first_after`."""
        self._bus = bus
        self._kept: set[str] = set()
        self._sending: set[asyncio.Task[None]] = set()

    async def watch(self) -> None:
        """Until cancelled."""
        await self._bus.connect()
        await self._bus.subscribe("heartbeat.>", self._hear_beats)
        await self._bus.subscribe("lifesigns.signal.>", self._hear_words)
        await self._bus.subscribe("lifesigns.report.>", self._hear_words)
        await self._bus.subscribe(CANARY, self._hear_canary)
        while True:
            self._note(self.engine.advance(time.time()))
            await asyncio.sleep(min(max(self.engine.wake_at() - time.time(), 0.01), 0.5))

    def _hear_beats(self, subject: str, payload: bytes) -> None:
        now = time.time()
        for beat in wire.decode_beats(payload, now=now).accepted:
            heard_at = self.heard_at[beat.agent_id] = time.monotonic()
            if heard_at >= self.mark:
                self.first_after.setdefault(beat.agent_id, heard_at)
            self._note(self.engine.hear(beat, now))

    def _hear_words(self, subject: str, payload: bytes) -> None:
        place = of_reports(subject)
        if place.number is not None:
            self._send(place.kept_on, str(place.number).encode())
            if subject in self._kept:
                return  # As a hub does: what is said again is not heard twice.
            self._kept.add(subject)
        now = time.time()
        for signal in wire.decode_signals(payload, now=now).accepted:
            self._note(self.engine.hear(signal, now))

    def _hear_canary(self, subject: str, payload: bytes) -> None:
        self._note(self.engine.hear(CanaryReturned(seq=int(payload)), time.time()))

    def _note(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case SendCanary():
                    self._send(CANARY, str(effect.seq).encode())
                case SendPing():
                    self._send(f"lifesigns.order.{effect.agent_id}", wire.encode_order(effect))
                case Order():
                    self.orders.append(effect)
                case Fact():
                    self.facts.append(effect)

    def _send(self, subject: str, payload: bytes) -> None:
        async def publish() -> None:
            try:
                await self._bus.publish(subject, payload)
            except AdapterError:
                return  # Lost, like everything now; the engine draws its conclusions.

        task = asyncio.create_task(publish())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)
