"""The bus inside one process, for agents, monitors and tests that live together. It needs no server and no driver.

All `MemoryBus("memory://NAME")` of the same name in this process are connected, across threads and event loops. The
shared state of a name goes with its last bus.
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
from lifesigns.ports import Hear, MessageFilter

PAYLOAD_MAX: Final = 8 * 1024 * 1024
_BREATH_EVERY: Final = 64


class MemoryBus:
    """Carries messages within this process, between all users of the same name. Implements `lifesigns.ports.Bus`."""

    def __init__(self, url: str = "memory://", *, waiting_max: int = WAITING_MAX) -> None:
        scheme, separator, name = url.partition("://")
        if scheme != "memory" or not separator:
            raise UsageError(f"{url!r} is no address of a memory bus; it would be memory://NAME")
        self._name = name.rstrip("/")
        self._waiting_max = waiting_max
        self._exchange: _Exchange | None = None
        self._closed = False
        self._deliveries: set[Delivery] = set()
        self._unwanted: MessageFilter | None = None
        self._sent = 0

    @property
    def payload_max(self) -> int:
        return PAYLOAD_MAX

    @property
    def connected(self) -> bool:
        return self._exchange is not None

    async def connect(self) -> None:
        """Join the others of this name."""
        if self._closed:
            raise self._unavailable()
        self._exchange = _exchange(self._name)

    async def publish(self, subject: str, payload: bytes) -> None:
        """Pass it to all subscribers."""
        check_subject(subject)
        exchange = self._joined()
        check_payload(f"memory://{self._name}", subject, payload, PAYLOAD_MAX)
        exchange.carry(subject, bytes(payload))
        self._sent += 1
        if self._sent % _BREATH_EVERY == 0:
            await asyncio.sleep(
                0
            )  # A server makes a publisher wait now and then; here, too, others get their turn.

    async def flush(self) -> None:
        """Messages are never in transit here."""
        self._joined()

    async def subscribe(self, pattern: str, hear: Hear) -> Delivery:
        """Receive what is published from now on, on the running loop."""
        check_pattern(pattern)
        exchange = self._joined()

        def hear_wanted(subject: str, payload: bytes) -> None:
            if self._unwanted is None or not self._unwanted.drops(subject):
                hear(subject, payload)

        delivery = Delivery(pattern, hear_wanted, self._forget, self._waiting_max)
        self._deliveries.add(delivery)
        exchange.add(delivery)
        return delivery

    def drop(self, unwanted: MessageFilter | None) -> None:
        self._unwanted = unwanted

    async def close(self) -> None:
        """Leave; subscribers of this bus get nothing more."""
        self._closed = True
        for delivery in list(self._deliveries):
            await delivery.end()
        self._exchange = None

    async def _forget(self, delivery: Delivery) -> None:
        self._deliveries.discard(delivery)
        if self._exchange is not None:
            self._exchange.remove_ended(delivery.pattern)

    def _joined(self) -> _Exchange:
        if self._exchange is None:
            raise self._unavailable()
        return self._exchange

    def _unavailable(self) -> AdapterError:
        state = "is closed" if self._closed else "is not connected: connect() first"
        return AdapterError(f"the bus memory://{self._name} {state}", transient=not self._closed)


class _Exchange:
    """Connects the buses of one name. Plain subjects have an index: a thousand agents each listen to their own.

    `carry` reads values that we replace and never change, so that it needs no lock: a subscriber of the log may publish
    too.
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


_exchanges: weakref.WeakValueDictionary[str, _Exchange] = weakref.WeakValueDictionary()
_exchanges_lock = threading.Lock()


def _exchange(name: str) -> _Exchange:
    with _exchanges_lock:
        exchange = _exchanges.get(name)
        if exchange is None:
            exchange = _exchanges[name] = _Exchange()
        return exchange
