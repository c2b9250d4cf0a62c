"""Breakers are in the program: a supervisor whose program has ended says so, and otherwise leaves the answer to it."""

from __future__ import annotations

from lifesigns.agent.supervise.life import Handoff, Life
from lifesigns.agent.supervise.orders import OrderHandler
from lifesigns.agent.supervise.settings import Settings
from lifesigns.agent.supervise.stopping import Stopping
from lifesigns.core.effects import TurnBreaker
from lifesigns.core.signals import BreakerAct, BreakerNotTurned, Signal


class Grave:
    """A supervisor whose program is gone."""

    def __init__(self) -> None:
        self.life: Life | None = None
        self.last: Life | None = None
        self.stopping: Stopping | None = None
        self.told: list[Signal] = []

    def stop(self, stopping: Stopping) -> None: ...

    def spare(self, order_id: str) -> None: ...

    def start_now(self, inherited: Handoff, now: float) -> None: ...

    def tell(self, signal_: Signal, now: float) -> None:
        self.told.append(signal_)


def test_nobody_is_waited_for_who_is_gone() -> None:
    """The same answer however often it is asked, and none to a hub that was deposed."""
    body = Grave()
    orders = OrderHandler(Settings(command=("true",), agent_id="a"), body)
    order = TurnBreaker(0.0, "2-1", 2, "a", "one", "search", BreakerAct.RESET, "ann")
    orders.obey(order, 1.0)
    orders.obey(order, 2.0)
    orders.obey(TurnBreaker(0.0, "1-9", 1, "a", "one", "search", BreakerAct.RESET, "ann"), 3.0)
    assert [type(word) for word in body.told] == [BreakerNotTurned] * 2
    assert {getattr(word, "order_id", "") for word in body.told} == {"2-1"}
