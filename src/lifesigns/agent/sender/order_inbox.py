"""Order inbox: orders from the hub, obeyed once, by the right life, never from a hub that was deposed.

Under `lifesigns run` a stop is heard here and left lying for the supervisor, who can force it and tells what became of it:
if we took it, a supervisor that looks a moment later would not find it.

An order with an epoch lower than one already seen is refused and counted. An order seen before is not obeyed twice. An
order for another life of this agent is not ours; `replaced` says in `retired` which life it is for, and in `incarnation` who
took its place. A stop that was withdrawn is not obeyed, should it come after the news of that.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Protocol

from lifesigns.core.effects import (
    AskStatus,
    Order,
    Remind,
    Respawn,
    SendNudge,
    SendPing,
    StopStranger,
    Terminate,
    TurnBreaker,
    Withdraw,
)

REMEMBERED_MAX: Final = 1_000


class OrderReceiver(Protocol):
    """Who carries orders out. Called in the relay's thread: nothing here may wait."""

    def pinged(self, ping: SendPing) -> None: ...

    def nudged(self, nudge: SendNudge) -> None: ...

    def asked(self, question: AskStatus) -> None: ...

    def reminded(self, reminder: Remind) -> None: ...

    def told_to_stop(self, stop: Terminate | StopStranger) -> None: ...

    def told_to_turn(self, order: TurnBreaker) -> None: ...


class OrderInbox:
    """Decides which orders are obeyed."""

    def __init__(
        self, incarnation: str, agent: OrderReceiver, refused: Callable[[], None], *, supervised: bool = False
    ) -> None:
        self._incarnation = incarnation
        self._supervised = supervised
        self._agent = agent
        self._refused = refused
        self._epoch = 0
        self._seen: OrderedDict[str, None] = OrderedDict()

    def obey(self, order: Order) -> bool:
        """Carry it out, if it is for us, new, and of a hub in office. False if it is for somebody else (too): a supervisor,
        or another life."""
        if not self._is_ours(order) or isinstance(order, Respawn):
            return False
        if order.epoch < self._epoch:
            self._refused()
            return True
        self._epoch = order.epoch
        taken = not (self._supervised and isinstance(order, Terminate | Withdraw))
        if self._is_known(order.order_id):
            return taken
        match order:
            case SendPing():
                self._agent.pinged(order)
            case SendNudge():
                self._agent.nudged(order)
            case AskStatus():
                self._agent.asked(order)
            case Remind():
                self._agent.reminded(order)
            case Terminate() | StopStranger():
                self._agent.told_to_stop(order)
            case TurnBreaker():
                self._agent.told_to_turn(order)
            case Withdraw():
                self._is_known(order.withdrawn)
            case _:
                pass  # Something a later hub may say.
        return taken

    def _is_ours(self, order: Order) -> bool:
        if isinstance(order, StopStranger):
            return order.retired == self._incarnation
        return order.incarnation in (None, self._incarnation)

    def _is_known(self, order_id: str) -> bool:
        if order_id in self._seen:
            return True
        self._seen[order_id] = None
        if len(self._seen) > REMEMBERED_MAX:
            self._seen.popitem(last=False)
        return False
