"""Dispatcher: brings kept orders to whom they are for, and tells the bus what happened.

An order for an agent lies in its mailbox until it is fetched and acknowledged, or its outcome is heard; on a bus it is
also said aloud, and said again while nothing comes back, because who was away heard nothing. The agent's side carries it
out once, by its id, however often it is told.

An order that the engine withdraws is handed out no more, from that moment and by no way: not from the mailbox, not from
the queue of a bus that is away, not by a hand that waits for its next try. Who holds a termination that was withdrawn (a
supervisor gives its child time to save) is told so.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from lifesigns import wire
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.effects import (
    AskStatus,
    CleanUp,
    Escalate,
    EscalateMessage,
    Order,
    ReleaseClaim,
    Remind,
    Respawn,
    SendNudge,
    SendPing,
    StopStranger,
    Terminate,
    TurnBreaker,
    VerifyCheckpoint,
    Withdraw,
)
from lifesigns.core.respawn import Phase
from lifesigns.errors import AdapterError
from lifesigns.hub import telling
from lifesigns.hub.executors import Executors
from lifesigns.hub.mailboxes import Mailboxes
from lifesigns.ports import Bus, Event

ORDERS: Final = "lifesigns.order"
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

UNANSWERED_FOR: Final = 600.0
"""An order that nobody answers to (`replaced`) is over after this."""

OUTGOING_MAX: Final = 50_000
"""Messages for a bus that takes them slowly. Events are in the store too, orders in their mailboxes."""

log: Final = logging.getLogger("lifesigns.hub")


class Dispatcher:
    """Takes kept orders and events. `settle` is called with orders that need nothing more; `executors` carry out what is more
    than a message."""

    def __init__(
        self,
        mailboxes: Mailboxes,
        bus: Bus | None,
        settle: Callable[[str], None],
        executors: Executors | None = None,
    ) -> None:
        self._mailboxes = mailboxes
        self._bus = bus
        self._settle = settle
        self._executors = executors
        self._outgoing: deque[tuple[str, bytes, str | None]] = deque(maxlen=OUTGOING_MAX)
        """Subject and message; and the order it brings, if that may be settled or withdrawn before it is said."""
        self._woken = asyncio.Event()
        self._open: dict[str, tuple[Order, float]] = {}
        """Orders without an outcome, and when they were last said."""

    def __contains__(self, order_id: str) -> bool:
        """Whether this order would be given again after a restart."""
        return order_id in self._open

    def carry_out(self, order: Order, now: float) -> None:
        """An order was kept: now it may be known outside."""
        if isinstance(order, FOR_PEOPLE):
            self._settle(order.order_id)
            return
        if not isinstance(order, SendPing):
            self._open[order.order_id] = (order, now)
        taken = self._executors is not None and self._executors.take(order)
        if taken and not isinstance(order, Terminate):
            return  # An end is asked for by the agent's own way, too: it may have something to save.
        if isinstance(order, FOR_AGENTS):
            self._mailboxes.put(order)
            self._say_order(order)

    def settled(self, order_id: str) -> None:
        """Its outcome was heard."""
        if self._executors is not None:
            self._executors.drop(order_id)
        order, _ = self._open.pop(order_id, (None, 0.0))
        if order is not None:
            self._mailboxes.drop(order.agent_id, order_id)

    def withdrawn(self, order_id: str, now: float) -> None:
        """The engine took this order back: it is not handed out any more, and a termination not carried out by who has
        it already."""
        order, _ = self._open.get(order_id, (None, 0.0))
        if order is None:
            return
        self._settle(order_id)
        self.settled(order_id)
        if isinstance(order, Terminate):
            notice = Withdraw(
                now,
                f"{order_id}-withdrawn",
                order.epoch,
                order.agent_id,
                order.incarnation,
                withdrawn=order_id,
            )
            self._mailboxes.put(notice)
            self._say_order(notice)

    def acknowledged(self, agent_id: str, order_id: str) -> bool:
        """The agent's side has it and carries it out: it is not given again. Whether there was one."""
        order, _ = self._open.get(order_id, (None, 0.0))
        if order is not None and order.agent_id == agent_id and isinstance(order, FOR_AGENTS):
            del self._open[order_id]
            self._settle(order_id)
        return self._mailboxes.drop(agent_id, order_id)

    def stand_down(self) -> None:
        """Another hub acts now, or what we order can never be kept: give no orders any more."""
        self._open.clear()
        self._mailboxes.clear()
        if self._executors is not None:
            self._executors.stand_down()

    def tell(self, events: Sequence[Event]) -> None:
        """Events for everybody on the bus."""
        if self._bus is not None:
            for event in events:
                self._say(f"{EVENTS}.{event.type}", telling.message(event))

    def let_go(self, beliefs: Beliefs, now: float) -> None:
        """Withdraw what the engine no longer waits for, also where it did not say so."""
        for order, _ in list(self._open.values()):
            if not awaited(order, beliefs, now):
                self.withdrawn(order.order_id, now)

    def sweep(self, beliefs: Beliefs, now: float) -> None:
        """Let go of what the engine no longer waits for; say again what may not have been heard."""
        self._mailboxes.sweep(now)
        self.let_go(beliefs, now)
        for order, said_at in list(self._open.values()):
            if isinstance(order, FOR_AGENTS) and now - said_at >= AGAIN_AFTER:
                if self._mailboxes.holds(order.agent_id, order.order_id):
                    self._say_order(order)
                self._open[order.order_id] = (order, now)

    async def speak(self) -> None:
        """Publish what is to be said on the bus, for ever."""
        assert self._bus is not None
        while True:
            await self._woken.wait()
            self._woken.clear()
            while self._outgoing:
                subject, payload, order_id = self._outgoing.popleft()
                if order_id is not None and order_id not in self._open:
                    continue  # It was settled or withdrawn while the bus was away.
                try:
                    await self._bus.publish(subject, payload)
                except AdapterError as error:
                    # Away, or it does not take this one. Events can be read from the store, orders are said again.
                    log.debug("%s was not published: %s", subject, error, extra={"action": "not_published"})

    def _say_order(self, order: Order) -> None:
        if self._bus is not None:
            order_id = order.order_id if order.order_id in self._open else None
            self._say(f"{ORDERS}.{order.agent_id}", wire.encode_order(order), order_id)

    def _say(self, subject: str, payload: bytes, order_id: str | None = None) -> None:
        self._outgoing.append((subject, payload, order_id))
        self._woken.set()


def awaited(order: Order, beliefs: Beliefs, now: float) -> bool:
    """Whether the engine still waits for the outcome of this order."""
    match order:
        case SendNudge() | Escalate() | Terminate():
            agent = beliefs.agents.get(order.agent_id)
            case = agent.case if agent is not None else None
            return case is not None and order.order_id == case.order_id
        case Respawn() | VerifyCheckpoint():
            lineage = beliefs.lineages.get(order.agent_id)
            return (
                lineage is not None
                and lineage.order_id == order.order_id
                and lineage.phase in (Phase.VERIFYING, Phase.STARTING)  # else the agent came back by itself
            )
        case TurnBreaker() | CleanUp():
            return order.order_id in beliefs.side_orders.get(order.agent_id, ())
        case AskStatus():
            return now < order.answer_by
        case Remind():
            return order.message_id in beliefs.messages and now - order.at < UNANSWERED_FOR
        case _:
            return now - order.at < UNANSWERED_FOR
