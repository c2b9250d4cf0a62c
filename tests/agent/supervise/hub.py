"""A hub small enough for a test: a bus, an engine, and its orders carried out."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from lifesigns import wire
from lifesigns.adapters.bus.nats import NatsBus
from lifesigns.core.effects import Effect, Order
from lifesigns.core.engine import Engine
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.core.signals import Signal
from lifesigns.errors import AdapterError, UsageError
from lifesigns.wire.subjects import of_reports

T = TypeVar("T")
BOUND = 40.0


class Hub:
    """Hears everything, judges by the real engine, and sends orders. `heard` and `effects` are for the test."""

    def __init__(self, bus: NatsBus) -> None:
        self.heard: list[Signal] = []
        self.effects: list[Effect] = []
        self._bus = bus
        self._engine = Engine(PolicyBook(profile("swift")), FleetPolicy(canary_every=0))
        self._sending: set[asyncio.Task[None]] = set()

    def hear(self, signal: Signal) -> None:
        """As if it had come in; what a person does, too."""
        self.heard.append(signal)
        self._carry_out(self._engine.hear(signal, time.monotonic()))

    async def until(self, kind: type[T], holds: Callable[[T], object] = lambda _signal: True) -> T:
        """The first signal of a kind for which something holds; waits for it."""
        end = time.monotonic() + BOUND
        while True:
            for signal in self.heard:
                if isinstance(signal, kind) and holds(signal):
                    return signal
            assert time.monotonic() < end, (
                f"no such {kind.__name__} was heard, but {Counter(type(one).__name__ for one in self.heard)}"
            )
            await asyncio.sleep(0.02)

    def all(self, kind: type[T]) -> list[T]:
        return [signal for signal in self.heard if isinstance(signal, kind)]

    async def send(self, order: Order) -> None:
        with suppress(AdapterError, UsageError):  # Away, or an order for people.
            await self._bus.publish(f"lifesigns.order.{order.agent_id}", wire.encode_order(order))

    def _receive(self, subject: str, payload: bytes) -> None:
        now = time.monotonic()
        if subject.startswith("heartbeat."):
            signals: Sequence[Signal] = wire.decode_beats(payload, now=now).accepted
        else:
            signals = wire.decode_signals(payload, now=now).accepted
            self._say_kept(subject)
        for signal in signals:
            self.hear(signal)

    def _say_kept(self, subject: str) -> None:
        place = of_reports(subject)
        if place.number is not None:
            task = asyncio.ensure_future(self._bus.publish(place.kept_on, str(place.number).encode()))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    def _carry_out(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self.effects.append(effect)
            if isinstance(effect, Order):
                task = asyncio.ensure_future(self.send(effect))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)

    async def _live(self) -> None:
        while True:
            now = time.monotonic()
            self._carry_out(self._engine.advance(now))
            await asyncio.sleep(min(1.0, max(0.01, self._engine.wake_at() - now)))

    async def listen(self) -> None:
        await self._bus.connect()
        await self._bus.subscribe("heartbeat.>", self._receive)
        await self._bus.subscribe("lifesigns.signal.>", self._receive)
        await self._bus.subscribe("lifesigns.report.>", self._receive)


@asynccontextmanager
async def hub_at(url: str) -> AsyncIterator[Hub]:
    """A hub on the bus at this address."""
    bus = NatsBus(url)
    hub = Hub(bus)
    await hub.listen()
    living = asyncio.create_task(hub._live())
    try:
        yield hub
    finally:
        living.cancel()
        with suppress(asyncio.CancelledError):
            await living
        await bus.close()
