"""Which orders are taken, and which are left lying for somebody else."""

from __future__ import annotations

from msgspec.structs import replace

from lifesigns.agent.sender.beat_builder import BeatBuilder
from lifesigns.agent.sender.breaker_reports import BreakerReports
from lifesigns.agent.sender.order_handler import OrderHandler
from lifesigns.agent.sender.rhythm import rhythm
from lifesigns.agent.sender.session import AgentSession
from lifesigns.core.effects import SendNudge, StopStranger, Terminate, Withdraw

STOP = Terminate(0.0, "o-1", 1, "a", "one", reason="frozen", save_for=1.0, findings=(), seq_seen=0)
NUDGE = SendNudge(0.0, "o-2", 1, "a", "one", attempt=1, text="?")


class Agent(OrderHandler):
    """Writes down what it is told."""

    def __init__(self, incarnation: str = "one", *, supervised: bool = False) -> None:
        self.session = AgentSession("a", incarnation, BeatBuilder(), rhythm(None, None)[0])
        breakers = BreakerReports("a", incarnation, self.session.say)
        super().__init__(self.session, breakers, None, None, supervised=supervised)
        self.told: list[str] = []

    def nudged(self, nudge: SendNudge) -> None:
        self.told.append(nudge.order_id)

    def told_to_stop(self, order: Terminate | StopStranger) -> None:
        self.told.append(order.order_id)


def test_an_order_for_us_is_taken_and_obeyed_once() -> None:
    agent = Agent()
    assert [agent.obey(STOP), agent.obey(STOP), agent.obey(NUDGE)] == [True, True, True]
    assert agent.told == ["o-1", "o-2"]


def test_the_order_of_a_hub_that_was_replaced_is_taken_refused_and_counted() -> None:
    agent = Agent()
    assert [agent.obey(replace(NUDGE, order_id="o-3", epoch=2)), agent.obey(STOP)] == [True, True]
    assert (agent.told, agent.session.refused_orders) == (["o-3"], 1)


def test_the_news_that_another_life_was_replaced_is_not_for_us() -> None:
    """Also if that was replaced by another one than us: it lay in the mailbox while two more lives began."""
    replaced = StopStranger(0.0, "o-3", 1, "a", "two", "one was replaced", "one")
    for life in ("two", "three"):
        agent = Agent(life)
        assert not agent.obey(replaced)
        assert agent.told == []
    agent = Agent("one")
    assert agent.obey(replaced)
    assert agent.told == ["o-3"]


def test_beside_a_supervisor_a_stop_is_obeyed_and_left_for_it() -> None:
    """It can force what we cannot, and tells the outcome. If we took the order, it might never see it."""
    agent = Agent(supervised=True)
    assert [agent.obey(STOP), agent.obey(STOP), agent.obey(NUDGE)] == [False, False, True]
    assert agent.told == ["o-1", "o-2"]


def test_a_stop_that_comes_after_its_withdrawal_is_not_obeyed() -> None:
    """A bus may reorder. Beside a supervisor the news is left for it: it may have begun to end us."""
    withdrawn = Withdraw(0.0, "o-1-withdrawn", 1, "a", "one", withdrawn="o-1")
    for supervised in (False, True):
        agent = Agent(supervised=supervised)
        assert [agent.obey(withdrawn), agent.obey(STOP)] == [not supervised, not supervised]
        assert agent.told == []
