"""What a supervisor is ordered it does once, and says the same of it however often it is asked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from lifesigns.agent.supervise.life import Handoff, Life
from lifesigns.agent.supervise.orders import OrderHandler
from lifesigns.agent.supervise.settings import Settings
from lifesigns.agent.supervise.stopping import Stopping
from lifesigns.core.effects import SendNudge, TurnBreaker
from lifesigns.core.signals import BreakerAct, BreakerNotTurned, Signal


class Grave:
    """A supervisor whose program is gone."""

    def __init__(self) -> None:
        self.life: Life | None = None
        self.last: Life | None = None
        self.stopping: Stopping | None = None
        self.told: list[Signal] = []

    def stop(self, stopping: Stopping) -> None: ...

    def cancel_stop(self, order_id: str) -> None: ...

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


def test_a_nudge_that_is_given_again_by_the_next_hub_reaches_the_program_once() -> None:
    body = Grave()
    life = SimpleNamespace(incarnation="one", speaks=False, end=None, nudges=[])
    body.life = cast("Life", life)
    orders = OrderHandler(Settings(command=("true",), agent_id="a"), body)
    for epoch in (1, 2):
        orders.obey(SendNudge(0.0, "1-1", epoch, "a", "one", 1, "hello"), 1.0)
    orders.obey(SendNudge(0.0, "2-2", 2, "a", "another", 1, "hello"), 2.0)
    assert [nudge.order.order_id for nudge in life.nudges] == ["1-1"]
