"""The order executor: carries out an order that is more than a message to the agent's own side."""

from __future__ import annotations

from typing import Protocol

from lifesigns.core.effects import Order
from lifesigns.core.signals import Signal
from lifesigns.ports.not_taken import NotTaken


class NotExecuted(NotTaken):
    """An order could not be carried out."""


class OrderExecutor(Protocol):
    """Carries out orders of one kind.

    The law: an order may come again, after a crash of the hub or of the executor, and is still the same order
    (`sameness`). Its effect on the world happens once.
    """

    async def carry_out(self, order: Order) -> Signal | None:
        """Do it. Return the outcome, or None if the outcome comes another way and nothing is left to do here. Raises
        `AdapterError` if it fails: transient if a retry may help, as `NotExecuted` if it is known when."""

    async def close(self) -> None: ...


def sameness(order: Order) -> str:
    """The identity of an order: its id and its time, because a hub with a new store counts from one again."""
    return f"{order.order_id}@{round(order.at * 1000)}"
