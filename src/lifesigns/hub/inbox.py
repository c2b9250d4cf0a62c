"""Inbox: signals that wait for the engine, bounded, taken in turns short enough for all other tasks of the loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from time import thread_time
from typing import Final, NamedTuple

from lifesigns.core.effects import Effect
from lifesigns.core.signals import Signal
from lifesigns.hub.last_beats import EncodedBatch
from lifesigns.hub.shares import TURN_FOR, Shares

TURN_MAX: Final = 2000
"""Signals taken before the loop gets back to its sockets: some ten milliseconds of calm beats. A turn of slower ones ends
after `TURN_FOR`."""

PIECE: Final = 100
"""Signals taken between two looks at the time: a few milliseconds at worst."""


class Delivery(NamedTuple):
    """Signals that came in together, and when."""

    at: float
    signals: Sequence[Signal]
    encoded: EncodedBatch | None = None
    """Their encoded message, if the hub holds on to it."""
    heard: asyncio.Future[None] | None = None
    """Resolved when the engine has taken them."""
    led_to: list[Effect] | None = None
    """Collects their effects for the waiter."""
    source: str = ""
    """The token that pays for the time they take."""
    correlation_id: str = ""
    """Of the request or the order they came by."""


class Inbox:
    """Deliveries in the order in which they came."""

    def __init__(self, shares: Shares, signals_max: int) -> None:
        self.deliveries: deque[Delivery] = deque()
        self.signals_max = signals_max
        self.waiting = 0
        """Signals in it."""
        self._shares = shares

    def put(self, delivery: Delivery) -> bool:
        """False if there is no room: none of its signals is taken."""
        waiting = self.waiting + len(delivery.signals)
        if waiting > self.signals_max:
            return False
        self.waiting = waiting
        self.deliveries.append(delivery)
        return True

    def drain(self, hear: Callable[[Delivery], None]) -> None:
        """Have what waits heard, piece by piece; not for longer than a turn. Its source pays for it."""
        deliveries, shares, room, now = self.deliveries, self._shares, TURN_MAX, thread_time()
        until = now + TURN_FOR
        while deliveries and room > 0 and now < until:
            delivery, began, heard = deliveries.popleft(), shares.own_time(now), 0
            count = len(delivery.signals)
            while True:
                hear(delivery if count <= PIECE else _piece(delivery, heard, count))
                heard = min(heard + PIECE, count)
                now = thread_time()
                if heard == count or heard >= room or now >= until:
                    break
            if heard < count:
                deliveries.appendleft(delivery._replace(signals=delivery.signals[heard:]))
            room -= heard
            self.waiting -= heard
            if delivery.source:
                shares.charge_apart(delivery.source, shares.own_time(now) - began)


def _piece(delivery: Delivery, begin: int, count: int) -> Delivery:
    """The next signals of a large delivery; its waiter waits for the last ones."""
    last = begin + PIECE >= count
    return delivery._replace(
        signals=delivery.signals[begin : begin + PIECE], heard=delivery.heard if last else None
    )
