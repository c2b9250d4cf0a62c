"""A hub on a real loop, with a store that outlives it, and what it told and ordered."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Sequence
from typing import Self

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.core.effects import Order
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.hub.busyness import Busyness
from lifesigns.hub.hub import Hub
from lifesigns.hub.order_ledger import OpenOrder
from lifesigns.ports import Event, Store

WAIT_MAX = 10.0


class Ground:
    """Starts hubs one after the other over the same store; its clock moves when it is told to."""

    def __init__(self, store: Callable[[], Store] | None = None, policy: Policy | None = None) -> None:
        name = str(uuid.uuid4())
        self.another_store = store or (lambda: MemoryStore(name))
        self.policy = policy or profile("balanced")
        self.now = 1_000_000.0
        self.orders: list[Order] = []
        self.events: list[Event] = []
        self.busyness: Callable[[float], Busyness] = Busyness
        self.hub = self.another_hub()

    def another_hub(self) -> Hub:
        return Hub(
            self.another_store(),
            policies=PolicyBook(self.policy),
            fleet=FleetPolicy(canary_every=0),
            clock=lambda: self.now,
            busyness=self.busyness,
        )

    def carry_out(self, entry: OpenOrder) -> None:
        self.orders.append(entry.order)

    def withdraw(self, agent_id: str, order_id: str) -> None:
        self.hub.ledger.settle(agent_id, order_id)

    def publish(self, events: Sequence[Event]) -> None:
        self.events.extend(events)

    async def start(self) -> None:
        await self.hub.start(self, self)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.hub.stop()

    async def restart(self, *, cleanly: bool) -> None:
        """The hub ends, cleanly or in the middle of everything, and another one takes over."""
        if cleanly:
            await self.hub.stop()
        else:
            self.hub.abort()
        self.orders.clear()
        self.hub = self.another_hub()
        await self.start()

    async def pass_time(self, seconds: float, step: float = 0.5) -> None:
        """Let the clock run, and the hub look when it wants to."""
        end = self.now + seconds
        while self.now < end:
            self.now = min(end, self.now + step)
            self.hub.run_due()
            await asyncio.sleep(0)

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_MAX):
            while not condition():  # noqa: ASYNC110 -- what is waited for is not told by events
                await asyncio.sleep(0.001)

    def told(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.type == kind]
