"""The bus inside one process: for agents, monitors and tests that live together. It needs no server and no driver.

Every `MemoryBus("memory://NAME")` of the same name in this process meets the others, across threads and event loops.
When the last of a name is gone, so is what they shared.
"""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable
from typing import Final

from lifesigns.adapters.bus.delivery import WAITING_MAX, Delivery
from lifesigns.adapters.bus.subjects import check_pattern, check_payload, check_subject, is_plain, matcher
from lifesigns.errors import AdapterError, UsageError
from lifesigns.ports import Hear

PAYLOAD_MAX: Final = 8 * 1024 * 1024
_BREATH_EVERY: Final = 64


class MemoryBus:
    """Carries messages between everybody in this process who names the same bus. Implements `lifesigns.ports.Bus`."""

    def __init__(self, url: str = "memory://", *, waiting_max: int = WAITING_MAX) -> None:
        scheme, separator, name = url.partition("://")
        if scheme != "memory" or not separator:
            raise UsageError(f"{url!r} is no address of a memory bus; it would be memory://NAME")
        self._name = name.rstrip("/")
        self._waiting_max = waiting_max
        self._place: _Place | None = None
        self._closed = False
        self._deliveries: set[Delivery] = set()
        self._sent = 0

    @property
    def payload_max(self) -> int:
        """The largest message it carries."""
        return PAYLOAD_MAX

    @property
    def connected(self) -> bool:
        return self._place is not None

    async def connect(self) -> None:
        """Meet the others of this name."""
        if self._closed:
            raise self._absence()
        self._place = _place(self._name)

    async def publish(self, subject: str, payload: bytes) -> None:
        """Give it to everybody who wants to hear it."""
        check_subject(subject)
        place = self._there()
        check_payload(f"memory://{self._name}", subject, payload, PAYLOAD_MAX)
        place.carry(subject, bytes(payload))
        self._sent += 1
        if self._sent % _BREATH_EVERY == 0:
            await asyncio.sleep(
                0
            )  # A server makes a publisher wait now and then; here, too, others get their turn.

    async def flush(self) -> None:
        """Nothing is ever on its way."""
        self._there()

    async def subscribe(self, pattern: str, hear: Hear) -> Delivery:
        """Hear what is published from now on, on the running loop."""
        check_pattern(pattern)
        place = self._there()
        delivery = Delivery(pattern, hear, self._forget, self._waiting_max)
        self._deliveries.add(delivery)
        place.add(delivery)
        return delivery

    async def close(self) -> None:
        """Leave; who hears through this bus hears nothing more."""
        self._closed = True
        for delivery in list(self._deliveries):
            await delivery.end()
        self._place = None

    async def _forget(self, delivery: Delivery) -> None:
        self._deliveries.discard(delivery)
        if self._place is not None:
            self._place.remove_ended(delivery.pattern)

    def _there(self) -> _Place:
        if self._place is None:
            raise self._absence()
        return self._place

    def _absence(self) -> AdapterError:
        state = "is closed" if self._closed else "is not connected: connect() first"
        return AdapterError(f"the bus memory://{self._name} {state}", transient=not self._closed)


class _Place:
    """Where the buses of one name meet. Plain subjects are found by name: a thousand agents each hear their own.

    What `carry` reads is replaced, never changed, so that it needs no lock: a subscriber of the log may publish too.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._plain: dict[str, tuple[Delivery, ...]] = {}
        self._wild: tuple[tuple[Callable[[str], bool], Delivery], ...] = ()

    def carry(self, subject: str, payload: bytes) -> None:
        for delivery in self._plain.get(subject, ()):
            delivery.put(subject, payload)
        for is_meant, delivery in self._wild:
            if is_meant(subject):
                delivery.put(subject, payload)

    def add(self, delivery: Delivery) -> None:
        pattern = delivery.pattern
        with self._lock:
            if is_plain(pattern):
                self._plain[pattern] = (*_living(self._plain.get(pattern, ())), delivery)
            else:
                self._wild = (*self._wild, (matcher(pattern), delivery))

    def remove_ended(self, pattern: str) -> None:
        with self._lock:
            self._wild = tuple(pair for pair in self._wild if not pair[1].ended)
            left = _living(self._plain.pop(pattern, ()))
            if left:
                self._plain[pattern] = left


def _living(deliveries: tuple[Delivery, ...]) -> tuple[Delivery, ...]:
    return tuple(delivery for delivery in deliveries if not delivery.ended)


_places: weakref.WeakValueDictionary[str, _Place] = weakref.WeakValueDictionary()
_places_lock = threading.Lock()


def _place(name: str) -> _Place:
    with _places_lock:
        place = _places.get(name)
        if place is None:
            place = _places[name] = _Place()
        return place
