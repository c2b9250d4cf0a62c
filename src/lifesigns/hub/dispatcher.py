"""Dispatcher: brings kept orders to whom they are for, and tells the bus what happened.

An order for an agent is offered until it is fetched and acknowledged, or its outcome is heard; on a bus it is also said
aloud, and said again while nothing comes back, because who was away heard nothing. The agent's side carries it
out once, by its id, however often it is told.

An order that the engine withdraws is handed out no more, from that moment and by no way: not to who fetches it, not from
the queue of a bus that is away, not by a hand that waits for its next try. Who holds a termination that was withdrawn (a
supervisor gives its child time to save) is told so.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

from lifesigns import wire
from lifesigns.core.effects import (
    AskStatus,
    EscalateMessage,
    ReleaseClaim,
    Remind,
    Respawn,
    SendNudge,
    SendPing,
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
    SendNudge,
    Terminate,
    Withdraw,
    AskStatus,
    Remind,
    StopStranger,
    Respawn,
    TurnBreaker,
)
FOR_PEOPLE: Final = (ReleaseClaim, EscalateMessage)
"""What they say stands in the event that came with them: telling it is all there is to do."""

AGAIN_AFTER: Final = 10.0
"""How long after an order was said on the bus it is said again."""

OUTGOING_MAX: Final = 50_000
"""Messages for a bus that takes them slowly. Events are in the store too, orders in their mailboxes."""

log: Final = logging.getLogger("lifesigns.hub")


class Dispatcher:
    """Takes open orders and events. `executors` carry out what is more than a message."""

    def __init__(self, ledger: OrderLedger, executors: Executors, bus: Bus | None = None) -> None:
        self._ledger = ledger
        self._executors = executors
        self._bus = bus
        self._outgoing: deque[tuple[str, bytes, OpenOrder | None]] = deque(maxlen=OUTGOING_MAX)
        """Subject and message; and the order it brings, which may be settled or withdrawn before it is said."""
        self._woken = asyncio.Event()

    def carry_out(self, entry: OpenOrder) -> None:
        """An order was kept: now it may be known outside."""
        order = entry.order
        if isinstance(order, FOR_PEOPLE):
            self._ledger.settle(order.agent_id, order.order_id)
            return
        taken = self._executors.take(entry)
        if taken and not isinstance(order, Terminate):
            return  # An end is asked for by the agent's own way, too: it may have something to save.
        if isinstance(order, FOR_AGENTS):
            self._ledger.offer(entry)
            self._say_order(entry)

    def withdraw(self, agent_id: str, order_id: str) -> None:
        """The engine took this order back: it is not handed out any more, and a termination not carried out by who has
        it already."""
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

    def tell(self, events: Sequence[Event]) -> None:
        """Events for everybody on the bus."""
        if self._bus is not None:
            for event in events:
                self._say(f"{EVENTS}.{event.type}", message(event))

    def let_go(self) -> None:
        """Withdraw what the engine no longer waits for, also where it did not say so."""
        for entry in self._ledger:
            if not self._ledger.awaits(entry.order):
                self.withdraw(entry.order.agent_id, entry.order.order_id)

    def say_again(self, now: float) -> None:
        """Say on the bus again what may not have been heard."""
        for entry in self._ledger:
            if entry.stored and entry.offered and now - entry.said_at >= AGAIN_AFTER:
                entry.said_at = now
                self._say_order(entry)

    async def speak(self) -> None:
        """Publish what is to be said on the bus, for ever."""
        assert self._bus is not None
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._outgoing:
                subject, payload, entry = self._outgoing.popleft()
                if entry is not None and not entry.offered:
                    continue  # It was settled or withdrawn while the bus was away.
                try:
                    await self._bus.publish(subject, payload)
                except (AdapterError, UsageError) as error:
                    # Away, or it does not take this one. Events can be read from the store, orders are said again.
                    log.debug("%s was not published: %s", subject, error, extra={"action": "not_published"})
                except (
                    Exception
                ):  # A bug of ours, about one message: the next one has to be said all the same.
                    log.exception("%s was not published", subject, extra={"action": "publish_failed"})

    def _say_order(self, entry: OpenOrder) -> None:
        if self._bus is not None:
            self._say(
                f"{subjects.ORDERS}.{subjects.ending(entry.order.agent_id)}",
                wire.encode_order(entry.order),
                entry,
            )

    def _say(self, subject: str, payload: bytes, entry: OpenOrder | None = None) -> None:
        self._outgoing.append((subject, payload, entry))
        self._woken.set()
