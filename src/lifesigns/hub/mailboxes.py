"""Mailboxes: orders that wait for agents who come and fetch them.

Fetching is not taking: an order stays until the agent's side acknowledges it, its outcome comes back, or it is too
old to make sense. A ping is worth something only now, so the newest replaces the one before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from lifesigns.core.effects import Order, SendPing, StopStranger, Withdraw

PER_AGENT_MAX: Final = 64
"""The ladder gives one order at a time; more than this waits for nobody who ever comes."""

PING_FOR: Final = 60.0
STRANGER_FOR: Final = 600.0


class Mailboxes:
    """Orders by agent, and those who stand waiting for them."""

    def __init__(self) -> None:
        self._boxes: dict[str, dict[str, Order]] = {}
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._ended = False

    def put(self, order: Order) -> None:
        """An order for somebody; who waits for it is woken."""
        box = self._boxes.setdefault(order.agent_id, {})
        if isinstance(order, SendPing):
            for known in [o.order_id for o in box.values() if isinstance(o, SendPing)]:
                del box[known]
        while len(box) >= PER_AGENT_MAX:
            del box[next(iter(box))]
        box[order.order_id] = order
        for waiting in self._waiting.pop(order.agent_id, ()):
            if not waiting.done():
                waiting.set_result(None)

    def waiting_for(self, agent_id: str, now: float) -> list[Order]:
        """What an agent has to fetch, oldest first."""
        box = self._boxes.get(agent_id)
        if box is None:
            return []
        for order in [order for order in box.values() if _stale(order, now)]:
            self.drop(agent_id, order.order_id)
        return list(box.values())

    def sweep(self, now: float) -> None:
        """Let go of what is too old for those who never came."""
        for agent_id in list(self._boxes):
            self.waiting_for(agent_id, now)

    def clear(self) -> None:
        """Nothing is to be fetched here any more."""
        self._boxes.clear()

    def end(self) -> None:
        """The hub stops: nobody waits any more."""
        self._ended = True
        for waiting in (one for many in self._waiting.values() for one in many):
            if not waiting.done():
                waiting.set_result(None)

    def drop(self, agent_id: str, order_id: str) -> bool:
        """An order was acknowledged or is settled. Whether it was there."""
        box = self._boxes.get(agent_id)
        if box is None or box.pop(order_id, None) is None:
            return False
        if not box:
            del self._boxes[agent_id]
        return True

    def drop_pings(self, agent_id: str) -> None:
        """A pong came: pings are not acknowledged, and need no answer any more."""
        for order in list(self._boxes.get(agent_id, {}).values()):
            if isinstance(order, SendPing):
                self.drop(agent_id, order.order_id)

    def holds(self, agent_id: str, order_id: str) -> bool:
        """Whether an order still waits to be acknowledged."""
        return order_id in self._boxes.get(agent_id, {})

    def __contains__(self, agent_id: str) -> bool:
        """Whether anything waits for this agent."""
        return agent_id in self._boxes

    def __bool__(self) -> bool:
        """Whether anything waits for anybody."""
        return bool(self._boxes)

    def __len__(self) -> int:
        """How many orders wait."""
        return sum(map(len, self._boxes.values()))

    async def wait(self, agent_ids: Iterable[str], wait_for: float) -> None:
        """Return when one of these agents gets an order, or after a while, or when the hub stops."""
        if self._ended:
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        names = tuple(agent_ids)
        for name in names:
            self._waiting.setdefault(name, set()).add(woken)
        try:
            async with asyncio.timeout(wait_for):
                await woken
        except TimeoutError:
            pass
        finally:
            for name in names:
                others = self._waiting.get(name)
                if others is not None:
                    others.discard(woken)
                    if not others:
                        del self._waiting[name]


def _stale(order: Order, now: float) -> bool:
    if isinstance(order, SendPing):
        return now - order.at > PING_FOR
    return isinstance(order, StopStranger | Withdraw) and now - order.at > STRANGER_FOR
