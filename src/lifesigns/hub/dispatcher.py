"""Dispatcher: delivers stored orders, and publishes events on the bus.

The hub offers an order for an agent until the agent's side fetches and acknowledges it, or its outcome arrives. With a
bus it also publishes the order, and again while no answer comes, because a subscriber that was away missed it. The
agent's side carries each id out once, however often it gets the order.

From the moment the engine withdraws an order, no way delivers it: not fetching, not the queue of a bus that is away,
not an executor between two tries. A supervisor that holds a withdrawn termination (it gives its child time to save) is
notified.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

from lifesigns import wire
from lifesigns.core.effects import (
    AskBack,
    AskStatus,
    EscalateMessage,
    OfferTask,
    ReleaseClaim,
    Remind,
    Respawn,
    SendNudge,
    SendPing,
    SetInterval,
    StopStranger,
    Terminate,
    TurnBreaker,
    Withdraw,
)
from lifesigns.errors import AdapterError, UsageError
from lifesigns.events import message
from lifesigns.hub.executors import Executors
from lifesigns.hub.order_ledger import OpenOrder, OrderLedger
from lifesigns.ports import Bus, Event
from lifesigns.wire import subjects

EVENTS: Final = "lifesigns.event"

FOR_AGENTS: Final = (
    SendPing,
    SetInterval,
    SendNudge,
    Terminate,
    Withdraw,
    AskStatus,
    Remind,
    StopStranger,
    Respawn,
    TurnBreaker,
    OfferTask,
    AskBack,
)
FOR_PEOPLE: Final = (ReleaseClaim, EscalateMessage)
"""The event that comes with them has all they say: publishing it is all there is to do."""

REPUBLISH_AFTER: Final = 10.0
"""How long after publishing an order the hub publishes it again."""

OUTGOING_MAX: Final = 50_000
"""Messages for a slow bus. Events are also in the store, orders in their mailboxes."""

log: Final = logging.getLogger("lifesigns.hub")


class Dispatcher:
    """Takes open orders and events. `executors` carry out orders that are more than a message."""

    def __init__(self, ledger: OrderLedger, executors: Executors, bus: Bus | None = None) -> None:
        self._ledger = ledger
        self._executors = executors
        self._bus = bus
        self._outgoing: deque[tuple[str, bytes, OpenOrder | None]] = deque(maxlen=OUTGOING_MAX)
        """Subject and message; and the order it carries, which may be settled or withdrawn before it is published."""
        self._woken = asyncio.Event()

    def carry_out(self, entry: OpenOrder) -> None:
        """Deliver a stored order."""
        order = entry.order
        if isinstance(order, FOR_PEOPLE):
            self._ledger.settle(order.agent_id, order.order_id)
            return
        taken = self._executors.take(entry)
        if taken and not isinstance(order, Terminate):
            return  # The agent's side gets it, too: it may have something to save.
        if isinstance(order, FOR_AGENTS):
            self._ledger.offer(entry)
            self._publish_order(entry)

    def withdraw(self, agent_id: str, order_id: str) -> None:
        """Withdraw an order: deliver it no more, and notify the holder of a termination."""
        entry = self._ledger.find(agent_id, order_id)
        if entry is None:
            return
        order, acknowledged = entry.order, not entry.stored
        self._ledger.settle(agent_id, order_id)
        if isinstance(order, Terminate) and not acknowledged:
            notice = self._ledger.open(
                Withdraw(
                    self._ledger.now(),
                    f"{order_id}-withdrawn",
                    order.epoch,
                    agent_id,
                    order.incarnation,
                    withdrawn=order_id,
                )
            )
            assert notice is not None
            self.carry_out(notice)

    def publish(self, events: Sequence[Event]) -> None:
        """Publish events on the bus."""
        if self._bus is not None:
            for event in events:
                self._enqueue(f"{EVENTS}.{event.type}", message(event))

    def withdraw_unawaited(self) -> None:
        """Withdraw the orders that the engine no longer waits for, also where it did not say so."""
        for entry in self._ledger:
            if not self._ledger.awaits(entry.order):
                self.withdraw(entry.order.agent_id, entry.order.order_id)

    def republish(self, now: float) -> None:
        """Publish again the orders that no side has answered."""
        for entry in self._ledger:
            if entry.stored and entry.offered and now - entry.published_at >= REPUBLISH_AFTER:
                entry.published_at = now
                self._publish_order(entry)

    async def run(self) -> None:
        """Publish queued messages, for ever."""
        assert self._bus is not None
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._outgoing:
                subject, payload, entry = self._outgoing.popleft()
                if entry is not None and not entry.offered:
                    continue  # It was settled or withdrawn while it waited.
                try:
                    await self._bus.publish(subject, payload)
                except (AdapterError, UsageError) as error:
                    # The bus is away, or refuses this one. Events can be read from the store, orders are published
                    # again.
                    log.debug("%s was not published: %s", subject, error, extra={"action": "not_published"})
                except Exception:  # A bug of ours, in one message: the next one must go out all the same.
                    log.exception("%s was not published", subject, extra={"action": "publish_failed"})

    def _publish_order(self, entry: OpenOrder) -> None:
        if self._bus is not None:
            self._enqueue(
                f"{subjects.ORDERS}.{subjects.ending(entry.order.agent_id)}",
                wire.encode_order(entry.order),
                entry,
            )

    def _enqueue(self, subject: str, payload: bytes, entry: OpenOrder | None = None) -> None:
        self._outgoing.append((subject, payload, entry))
        self._woken.set()
