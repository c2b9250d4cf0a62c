"""Order gate: which orders the agent's side obeys. Only those of the current hub, for this life, and each once.

An order with an epoch lower than one already seen comes from a replaced hub. `replaced` names in `retired` the life
it is for, and in `incarnation` its successor. A repeated order gets the same answer again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from lifesigns.core.effects import Order, StopStranger
from lifesigns.core.signals import Signal

REMEMBERED_MAX: Final = 1_000


class OrderGate:
    """Remembers the current hub's epoch, and the last orders with their answers."""

    def __init__(self) -> None:
        self._epoch = 0
        self._known: OrderedDict[str, Signal | None] = OrderedDict()

    def is_deposed(self, order: Order) -> bool:
        """Whether it comes from a replaced hub."""
        if order.epoch < self._epoch:
            return True
        self._epoch = order.epoch
        return False

    def is_known(self, order_id: str) -> bool:
        """Whether the order was obeyed before; marks it as obeyed."""
        if order_id in self._known:
            return True
        self._remember(order_id, None)
        return False

    def answer_to(self, order_id: str) -> Signal | None:
        return self._known.get(order_id)

    def answered(self, order_id: str, answer: Signal) -> None:
        """Remember the answer, in case the order comes again."""
        self._remember(order_id, answer)

    def _remember(self, order_id: str, answer: Signal | None) -> None:
        self._known[order_id] = answer
        if len(self._known) > REMEMBERED_MAX:
            self._known.popitem(last=False)


def means(order: Order, incarnation: str) -> bool:
    """Whether an order is for this life."""
    if isinstance(order, StopStranger):
        return order.retired == incarnation
    return order.incarnation in (None, incarnation)
