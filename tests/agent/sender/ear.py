"""An ear: the hub's side of a bus, in a thread of its own, so that it hears whatever the agent's loop is doing."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any, Self, TypeVar

from lifesigns import wire
from lifesigns.assembly.links import bus_at
from lifesigns.core.effects import Order
from lifesigns.core.signals import Signal
from lifesigns.wire import WireBeat
from lifesigns.wire.subjects import of_reports

W = TypeVar("W")
WITHIN = 10.0
"""A bound for what should happen at once; on a machine that does other things too."""


class Ear:
    """Hears beats and words, and gives orders."""

    def __init__(self, url: str | None = None) -> None:
        self.url = url or f"memory://{uuid.uuid4()}"
        self.beats: list[WireBeat] = []
        self.words: list[Signal] = []
        self.subjects: list[str] = []
        self.payloads: list[bytes] = []
        self.heard_at: list[float] = []
        self.told = threading.Condition()
        self.keeps = True
        """Whether it says so, as a hub does when it has kept reports."""
        self._kept: set[str] = set()
        self._answers: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._bus = bus_at(self.url)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(WITHIN)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._bus.close(), self._loop).result(WITHIN)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WITHIN)
        self._loop.close()

    def order(self, order: Order) -> None:
        payload = wire.encode_order(order)
        subject = f"lifesigns.order.{order.agent_id}"

        async def publish() -> None:
            await self._bus.publish(subject, payload)
            await self._bus.flush()

        asyncio.run_coroutine_threadsafe(publish(), self._loop).result(WITHIN)

    def until(self, holds: Callable[[], Any], within: float = WITHIN) -> None:
        """Wait until something holds of what was heard."""
        with self.told:
            assert self.told.wait_for(holds, within), (
                f"not within {within} s; heard {self.words}, {self.beats}"
            )

    async def auntil(self, holds: Callable[[], Any], within: float = WITHIN) -> None:
        """The same without holding the running loop."""
        await asyncio.to_thread(self.until, holds, within)

    def of(self, kind: type[W]) -> list[W]:
        """The words of a kind."""
        return [word for word in list(self.words) if isinstance(word, kind)]

    def until_word(self, kind: type[W], within: float = WITHIN) -> W:
        self.until(lambda: self.of(kind), within)
        return self.of(kind)[0]

    async def auntil_word(self, kind: type[W], within: float = WITHIN) -> W:
        await self.auntil(lambda: self.of(kind), within)
        return self.of(kind)[0]

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _listen(self) -> None:
        await self._bus.connect()
        await self._bus.subscribe("heartbeat.>", self._hear_beats)
        await self._bus.subscribe("lifesigns.signal.>", self._hear_words)
        await self._bus.subscribe("lifesigns.report.>", self._hear_words)
        await self._bus.flush()

    def _hear_beats(self, subject: str, payload: bytes) -> None:
        batch = wire.decode_beats(payload)
        assert not batch.rejected, batch.rejected
        self._note(subject, payload)
        with self.told:
            self.beats += batch.accepted
            self.heard_at += [time.monotonic()] * len(batch.accepted)
            self.told.notify_all()

    def _hear_words(self, subject: str, payload: bytes) -> None:
        batch = wire.decode_signals(payload, now=time.time())
        assert not batch.rejected, batch.rejected
        self._note(subject, payload)
        if self._is_new(subject):
            with self.told:
                self.words += batch.accepted
                self.told.notify_all()
        if self.keeps:
            self._say_kept(subject)

    def _is_new(self, subject: str) -> bool:
        """As a hub does: what is said again by the same number is heard once."""
        again = subject in self._kept and self.keeps
        self._kept.add(subject)
        return not again or of_reports(subject).number is None

    def _say_kept(self, subject: str) -> None:
        place = of_reports(subject)
        if place.number is not None:
            task = self._loop.create_task(self._bus.publish(place.kept_on, str(place.number).encode()))
            self._answers.add(task)
            task.add_done_callback(self._answers.discard)

    def _note(self, subject: str, payload: bytes) -> None:
        self.subjects.append(subject)
        self.payloads.append(payload)
