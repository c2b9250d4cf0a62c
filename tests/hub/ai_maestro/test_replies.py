"""What agents write is heard as what it means, and nothing they write is an error."""

from __future__ import annotations

from typing import Any

import pytest

from lifesigns.core import signals as s
from lifesigns.core.effects import AskStatus, Order, Remind, SendNudge, SendPing
from lifesigns.hub.ai_maestro.outgoing import ORDERS, message_of, ping
from lifesigns.hub.ai_maestro.questions import Questions
from lifesigns.hub.ai_maestro.replies import signals_of
from lifesigns.ports.messenger import IncomingMessage

OF = (1000.0, "o-1", 1, "worker", None)
INQUIRY = SendPing(*OF, seq=1, suspicion="nothing heard for 3 min")
TASK = AskStatus(*OF, task_id="t-1", text="Task t-1 stalls.", answer_by=1300.0)
NUDGE = SendNudge(*OF, attempt=1, text="Please go on.")
REMINDER = Remind(
    *OF, message_id="m-1", priority=s.Priority.HIGH, sender="planner", text="Message m-1 waits."
)


def heard(answered: Order | None, kind: str = "status", **context: Any) -> list[Any]:
    return [*signals_of(IncomingMessage("m", "worker", kind, "text", context), answered, source="x")]


@pytest.mark.parametrize("status", ["healthy", "busy", "degraded"])
def test_a_response_is_a_beat_with_its_status(status: str) -> None:
    (beat,) = heard(None, "heartbeat-response", status=status, current_task="feature X", sequence=4)
    assert isinstance(beat, s.BeatReceived)
    assert (beat.agent_id, beat.status, beat.progress, beat.source) == ("worker", status, "feature X", "x")


def test_who_answers_an_inquiry_is_busy_unless_it_says_otherwise() -> None:
    assert [one.status for one in heard(INQUIRY)] == ["busy"]
    assert [one.status for one in heard(INQUIRY, status="Healthy ")] == ["healthy"]


def test_the_answer_about_a_task_is_an_explanation_with_progress_or_gives_it_up() -> None:
    assert heard(TASK) == [s.PongReceived(agent_id="worker", status="busy", task_id="t-1", source="x")]
    pong, progress = heard(TASK, progress_percentage=70)
    assert (type(pong), progress.percent, progress.task_id) == (s.PongReceived, 70.0, "t-1")
    (failed,) = heard(TASK, status="failed")
    assert (type(failed), failed.task_id, failed.reason) == (s.TaskFailed, "t-1", "text")


def test_the_answer_to_a_nudge_is_one_of_ours_or_asks_for_time() -> None:
    assert [one.answer for one in heard(NUDGE, answer="blocked")] == [s.Answer.BLOCKED]
    assert [one.answer for one in heard(NUDGE, answer=["?"])] == [s.Answer.NEED_TIME]
    assert [one.nudge_id for one in heard(NUDGE)] == ["o-1"]


def test_a_reply_to_a_reminder_acknowledges_and_anything_else_is_a_sign_of_life() -> None:
    assert heard(REMINDER) == [s.MessageAcked(agent_id="worker", message_id="m-1", source="x")]
    assert heard(None) == [s.ActivitySeen(agent_id="worker", kind="message", source="x")]
    assert [one.status for one in heard(None, status="busy")] == ["busy"]
    assert heard(None, status=7) == heard(None)


def test_every_order_that_is_a_message_says_to_whom_how_urgent_and_until_when() -> None:
    sent = [message_of(order, 300.0) for order in (INQUIRY, TASK, NUDGE, REMINDER)]
    assert {type(order) for order in (INQUIRY, TASK, NUDGE, REMINDER)} == set(ORDERS)
    assert [one.kind for one in sent] == ["status-inquiry", "status-inquiry", "nudge", "reminder"]
    assert {one.priority for one in sent} == {s.Priority.HIGH}
    assert sent[0].context["expected_response_by"] == "1970-01-01T00:21:40Z"
    assert "within 5 min" in sent[0].text
    assert ping("worker", 42, 0.0).context == {"timestamp": "1970-01-01T00:00:00Z", "sequence": 42}


def test_questions_are_bounded_and_only_the_last_ping_is_open() -> None:
    questions = Questions(open_max=2)
    questions.sent("p-1", "worker", None, 0.0)
    questions.sent("p-2", "worker", None, 1.0)
    assert questions.about("p-1") is None
    questions.sent("n-1", "worker", NUDGE, 2.0)
    questions.sent("n-2", "worker", NUDGE, 3.0)
    assert [questions.about(one) is not None for one in ("p-2", "n-1", "n-2")] == [False, True, True]
    assert questions.announced_at("worker") == 3.0
    assert [one.message_id for one in questions.unread_nudges()] == ["n-1", "n-2"]
