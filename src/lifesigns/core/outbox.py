"""Outbox: collects the effects of one call to the engine, numbers its orders and notes which agents they concern.

An order's id is made of the hub's epoch and a counter that is part of the snapshot: the same history
gives the same ids, and no two orders ever share one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lifesigns.core.agent import Agent
from lifesigns.core.changed_keys import ChangedKeys, NoChangedKeys
from lifesigns.core.effects import Brake, Effect, Fact, Intervention, Order, Refusal, SendPing

AnOrder = TypeVar("AnOrder", bound=Order)


class Outbox:
    """The effects of one call to the engine."""

    __slots__ = ("changes", "effects", "epoch", "numbered")

    def __init__(self, epoch: int, numbered: int = 0, changes: ChangedKeys | None = None) -> None:
        self.epoch = epoch
        self.numbered = numbered
        self.changes = changes if changes is not None else NoChangedKeys()
        self.effects: list[Effect] = []

    def add(self, effect: Effect) -> None:
        self.effects.append(effect)

    def fact(self, fact: Fact) -> None:
        self.effects.append(fact)
        if isinstance(fact, Brake):
            self.changes.fleet = True
        elif not isinstance(fact, Refusal) and (agent_id := getattr(fact, "agent_id", "")):
            self.changes.agents[agent_id] = None

    def number(self) -> str:
        """The next id, unique in this engine's whole life."""
        self.numbered += 1
        return f"{self.epoch}-{self.numbered}"

    def order(
        self,
        make: Callable[..., AnOrder],
        agent: Agent,
        now: float,
        *,
        order_id: str | None = None,
        **details: Any,
    ) -> AnOrder:
        """Make an order for an agent; `order_id` repeats one that was given before."""
        order = make(
            at=now,
            order_id=order_id or self.number(),
            epoch=self.epoch,
            agent_id=agent.id,
            incarnation=agent.incarnation,
            **details,
        )
        self.effects.append(order)
        if make is not SendPing:  # A question changes nothing that is stored.
            self.changes.agents[agent.id] = None
        return order

    def withdraw(self, order_id: str) -> bool:
        """Take back an order of this very call, and the facts about it. False if it has already left."""
        kept = [
            effect
            for effect in self.effects
            if not (isinstance(effect, Order) and effect.order_id == order_id)
            and not (isinstance(effect, Intervention) and effect.id == order_id)
        ]
        here = self.holds(order_id)
        if here:
            self.effects = kept
        return here

    def holds(self, order_id: str) -> bool:
        """Whether this order is of this very call, so that it has not left yet."""
        return any(isinstance(effect, Order) and effect.order_id == order_id for effect in self.effects)

    def take(self) -> Sequence[Effect]:
        """Everything collected since the last time."""
        if not self.effects:
            return ()
        effects, self.effects = self.effects, []
        return effects
