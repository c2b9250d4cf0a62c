"""Sent, delivered, read and acknowledged are different things, and only the last one counts."""

import pytest

from lifesigns.core.effects import EscalateMessage, MessageOverdue, Order, Refusal, Remind
from lifesigns.core.health import Doing
from lifesigns.core.policy import HOUR, MINUTE, Policy
from lifesigns.core.signals import (
    AgentLeft,
    DoingChanged,
    MessageAcked,
    MessageSent,
    MessageWithdrawn,
    ModelStarted,
    Priority,
    Signal,
)
from tests.core.harness import START, Watch

DEADLINES = {
    Priority.URGENT: 2 * MINUTE,
    Priority.HIGH: 5 * MINUTE,
    Priority.NORMAL: 15 * MINUTE,
    Priority.LOW: HOUR,
}


def sent(priority: Priority, *about_b: Signal) -> Watch:
    """`a` sent `m` to `b`, about whom this is known."""
    watch = Watch()
    watch.beat("a")
    watch.beat("b")
    for signal in about_b:
        watch.hear(signal)
    watch.forget()
    watch.hear(MessageSent(agent_id="a", message_id="m", to="b", priority=priority))
    return watch


def overdue(watch: Watch) -> list[tuple[float, float]]:
    return [(fact.at - START, fact.overdue_for) for fact in watch.facts(MessageOverdue)]


def acted(watch: Watch) -> list[tuple[type[Order], str, float]]:
    orders = [o for o in watch.orders(Order) if isinstance(o, Remind | EscalateMessage)]
    return [(type(order), order.agent_id, order.at - START) for order in orders]


@pytest.mark.parametrize("priority", Priority)
def test_a_message_is_overdue_on_its_moment_and_not_before(priority: Priority) -> None:
    watch, wait = sent(priority), DEADLINES[priority]
    watch.live(START + wait - 0.01, "a", "b")
    assert overdue(watch) == []
    watch.run_until(START + wait)
    assert overdue(watch) == [(wait, wait)]


@pytest.mark.parametrize("priority", Priority)
def test_an_acknowledged_message_is_over(priority: Priority) -> None:
    watch = sent(priority)
    watch.hear(MessageAcked(agent_id="b", message_id="m"), START + 60)
    watch.live(START + 3 * HOUR, "a", "b")
    assert overdue(watch) == []
    assert acted(watch) == []


def test_an_urgent_message_escalates() -> None:
    watch = sent(Priority.URGENT)
    watch.live(START + HOUR, "a", "b")
    assert acted(watch) == [(EscalateMessage, "a", 2 * MINUTE)]
    order = watch.orders(EscalateMessage)[0]
    assert (order.message_id, order.to, order.reason) == ("m", "b", "it was not acknowledged")


def test_a_high_message_reminds_and_then_escalates() -> None:
    watch = sent(Priority.HIGH)
    watch.live(START + HOUR, "a", "b")
    assert acted(watch) == [(Remind, "b", 5 * MINUTE), (EscalateMessage, "a", 10 * MINUTE)]
    assert watch.orders(EscalateMessage)[0].reason == "it was not acknowledged after a reminder"


def test_a_normal_message_reminds_once() -> None:
    watch = sent(Priority.NORMAL)
    watch.live(START + 2 * HOUR, "a", "b")
    assert acted(watch) == [(Remind, "b", 15 * MINUTE)]


def test_a_low_message_is_only_written_down() -> None:
    watch = sent(Priority.LOW)
    watch.live(START + 3 * HOUR, "a", "b")
    assert overdue(watch) == [(HOUR, HOUR)]
    assert acted(watch) == []


@pytest.mark.parametrize("priority", Priority)
def test_an_overdue_message_stays_listed_until_it_is_acknowledged(priority: Priority) -> None:
    """Also when everything its priority asks for was done: it is still not acknowledged."""
    watch = sent(priority)
    watch.live(START + 3 * HOUR, "a", "b")
    message = watch.engine.beliefs.messages["m"]
    assert (message.overdue_at, message.watched) == (START + DEADLINES[priority], False)
    watch.hear(MessageAcked(agent_id="b", message_id="m"))
    assert not watch.engine.beliefs.messages


def test_a_withdrawn_message_is_over() -> None:
    watch = sent(Priority.HIGH)
    watch.hear(MessageWithdrawn(agent_id="b", message_id="m"))
    assert [fact.reason for fact in watch.facts(Refusal)] == ["withdrew a message of somebody else"]
    watch.hear(MessageWithdrawn(agent_id="a", message_id="m"))
    watch.live(START + HOUR, "a", "b")
    assert not watch.engine.beliefs.messages
    assert overdue(watch) == []


def test_a_reminder_says_of_whose_message_it_is() -> None:
    watch = sent(Priority.HIGH)
    watch.live(START + 6 * MINUTE, "a", "b")
    reminder = watch.orders(Remind)[0]
    assert (reminder.sender, reminder.message_id) == ("a", "m")
    assert reminder.text == "Message m from a (high) waits for your acknowledgement since 5 min."


def test_an_acknowledgement_after_the_reminder_ends_it() -> None:
    watch = sent(Priority.HIGH)
    watch.live(START + 6 * MINUTE, "a", "b")
    watch.hear(MessageAcked(agent_id="b", message_id="m"))
    watch.live(START + HOUR, "a", "b")
    assert acted(watch) == [(Remind, "b", 5 * MINUTE)]


@pytest.mark.parametrize(
    "excuse",
    [
        ModelStarted(agent_id="b"),
        DoingChanged(agent_id="b", doing=Doing.BUSY),
        DoingChanged(agent_id="b", doing=Doing.WAITING_FOR_HUMAN),
        DoingChanged(agent_id="b", doing=Doing.RATE_LIMITED, until=START + HOUR),
    ],
)
def test_a_recipient_with_an_excuse_is_reminded_before_an_urgent_message_escalates(excuse: Signal) -> None:
    """Correlate with what is known of the recipient before anybody is bothered."""
    watch = sent(Priority.URGENT, excuse)
    watch.live(START + HOUR, "a", "b")
    assert acted(watch) == [(Remind, "b", 2 * MINUTE), (EscalateMessage, "a", 4 * MINUTE)]


def test_a_recipient_that_left_is_not_reminded_of_anything() -> None:
    watch = sent(Priority.HIGH, AgentLeft(agent_id="b"))
    watch.live(START + HOUR, "a")
    assert acted(watch) == [(EscalateMessage, "a", 5 * MINUTE)]
    assert watch.orders(EscalateMessage)[0].reason == "its recipient is terminated"


def test_a_recipient_that_is_disconnected_is_escalated_at_once() -> None:
    watch = sent(Priority.HIGH)
    watch.live(START + HOUR, "a")
    assert acted(watch) == [(EscalateMessage, "a", 5 * MINUTE)]
    assert watch.orders(EscalateMessage)[0].reason == "its recipient is disconnected"


def test_nobody_reminds_the_dead() -> None:
    watch = sent(Priority.NORMAL, AgentLeft(agent_id="b"))
    watch.live(START + 2 * HOUR, "a")
    assert overdue(watch) == [(15 * MINUTE, 15 * MINUTE)]
    assert acted(watch) == []


@pytest.mark.parametrize("priority", [Priority.URGENT, Priority.HIGH])
def test_a_recipient_nobody_ever_heard_of_is_escalated(priority: Priority) -> None:
    watch = Watch()
    watch.beat("a")
    watch.hear(MessageSent(agent_id="a", message_id="m", to="ghost", priority=priority))
    watch.live(START + HOUR, "a")
    assert watch.orders(EscalateMessage)[0].reason == "its recipient was never heard of"


def test_nobody_acknowledges_for_another() -> None:
    watch = sent(Priority.URGENT)
    watch.hear(MessageAcked(agent_id="c", message_id="m"))
    assert [fact.reason for fact in watch.facts(Refusal)] == ["acknowledged a message to somebody else"]
    watch.live(START + 2 * MINUTE, "a", "b")
    assert len(watch.orders(EscalateMessage)) == 1


def test_the_same_message_sent_again_has_one_deadline() -> None:
    watch = sent(Priority.URGENT)
    watch.hear(MessageSent(agent_id="a", message_id="m", to="b", priority=Priority.URGENT), START + 60)
    watch.live(START + HOUR, "a", "b")
    assert len(overdue(watch)) == 1


def test_open_messages_are_bounded() -> None:
    watch = Watch(Policy().with_changes({"message": {"open_max": 10}}))
    watch.beat("a")
    for n in range(15):
        watch.hear(MessageSent(agent_id="a", message_id=f"m-{n}", to="b"))
    assert len(watch.engine.beliefs.messages) == 10
    assert [fact.reason for fact in watch.facts(Refusal)] == ["more than 10 open messages"]


def test_old_messages_about_which_everything_was_done_make_room_for_new_ones() -> None:
    watch = Watch(Policy().with_changes({"message": {"open_max": 3}}))
    watch.beat("a")
    watch.beat("b")
    for n in range(3):
        watch.hear(MessageSent(agent_id="a", message_id=f"m-{n}", to="b", priority=Priority.LOW))
    watch.live(START + 2 * HOUR, "a", "b")
    watch.hear(MessageSent(agent_id="a", message_id="new", to="b"))
    assert list(watch.engine.beliefs.messages) == ["m-1", "m-2", "new"]
    assert not watch.facts(Refusal)


def test_the_messages_of_a_forgotten_sender_are_forgotten() -> None:
    watch = Watch(Policy().with_changes({"silence": {"forget_after": 2 * HOUR}}))
    watch.beat("a")
    watch.hear(MessageSent(agent_id="a", message_id="m", to="b", priority=Priority.LOW))
    watch.hear(AgentLeft(agent_id="a"))
    watch.live(START + 3 * HOUR, "b")
    assert watch.engine.agent("a") is None
    assert not watch.engine.beliefs.messages


def test_one_senders_flood_does_not_keep_another_from_sending() -> None:
    watch = Watch(Policy().with_changes({"message": {"open_max": 10}}))
    for n in range(15):
        watch.hear(MessageSent(agent_id="flood", message_id=f"m-{n}", to="b"))
    watch.hear(MessageSent(agent_id="a", message_id="mine", to="b", priority=Priority.URGENT))
    assert "mine" in watch.engine.beliefs.messages


def test_the_time_we_slept_is_not_the_recipients() -> None:
    watch = sent(Priority.URGENT)
    watch.live(START + 60, "a", "b")
    watch.jump_to(START + 60 + 600)
    watch.live(START + 119.99 + 600, "a", "b")
    assert overdue(watch) == []
    watch.run_until(START + 120 + 600)
    assert len(overdue(watch)) == 1
