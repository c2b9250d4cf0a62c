"""Which orders are taken, and which are left lying for somebody else."""

from __future__ import annotations

from lifesigns.agent.sender.order_inbox import OrderInbox
from lifesigns.core.effects import (
    AskStatus,
    Remind,
    SendNudge,
    SendPing,
    StopStranger,
    Terminate,
    TurnBreaker,
    Withdraw,
)

STOP = Terminate(0.0, "o-1", 1, "a", "one", reason="frozen", save_for=1.0, findings=(), seq_seen=0)
NUDGE = SendNudge(0.0, "o-2", 1, "a", "one", attempt=1, text="?")


class Agent:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def pinged(self, ping: SendPing) -> None:
        self.told.append(ping.order_id)

    def nudged(self, nudge: SendNudge) -> None:
        self.told.append(nudge.order_id)

    def asked(self, question: AskStatus) -> None:
        self.told.append(question.order_id)

    def reminded(self, reminder: Remind) -> None:
        self.told.append(reminder.order_id)

    def told_to_stop(self, stop: Terminate | StopStranger) -> None:
        self.told.append(stop.order_id)

    def told_to_turn(self, order: TurnBreaker) -> None:
        self.told.append(order.order_id)


def test_an_order_for_us_is_taken_and_obeyed_once() -> None:
    agent = Agent()
    inbox = OrderInbox("one", agent, lambda: None)
    assert [inbox.obey(STOP), inbox.obey(STOP), inbox.obey(NUDGE)] == [True, True, True]
    assert agent.told == ["o-1", "o-2"]


def test_the_news_that_another_life_was_replaced_is_not_for_us() -> None:
    """Also if that was replaced by another one than us: it lay in the mailbox while two more lives began."""
    agent = Agent()
    for life in ("two", "three"):
        inbox = OrderInbox(life, agent, lambda: None)
        assert not inbox.obey(StopStranger(0.0, "o-3", 1, "a", "two", "one was replaced", "one"))
    assert agent.told == []
    assert OrderInbox("one", agent, lambda: None).obey(
        StopStranger(0.0, "o-3", 1, "a", "two", "one was replaced", "one")
    )
    assert agent.told == ["o-3"]


def test_beside_a_supervisor_a_stop_is_obeyed_and_left_for_it() -> None:
    """It can force what we cannot, and tells the outcome. If we took the order, it might never see it."""
    agent = Agent()
    inbox = OrderInbox("one", agent, lambda: None, supervised=True)
    assert [inbox.obey(STOP), inbox.obey(STOP), inbox.obey(NUDGE)] == [False, False, True]
    assert agent.told == ["o-1", "o-2"]


def test_a_stop_that_comes_after_its_withdrawal_is_not_obeyed() -> None:
    """A bus may reorder. Beside a supervisor the news is left for it: it may have begun to end us."""
    withdrawn = Withdraw(0.0, "o-1-withdrawn", 1, "a", "one", withdrawn="o-1")
    for supervised in (False, True):
        agent = Agent()
        inbox = OrderInbox("one", agent, lambda: None, supervised=supervised)
        assert [inbox.obey(withdrawn), inbox.obey(STOP)] == [not supervised, not supervised]
        assert agent.told == []
