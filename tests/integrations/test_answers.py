"""What a hook is answered: facts for the model, a denial, an end; and never a run without end."""

from __future__ import annotations

import pytest

from lifesigns.core.effects import Order, SendNudge, Terminate
from lifesigns.core.signals import NudgeDelivered, TerminationFailed
from lifesigns.integrations.hooks.answers import PROLONGED_MAX, Reply, reply_to
from lifesigns.integrations.hooks.programs import PROGRAMS
from lifesigns.integrations.hooks.sessions import Session
from tests.integrations.hooked import event, session

NUDGE = SendNudge(
    0.0, "n-1", 1, "claude/shop/043381dc", None, attempt=1, text="grep failed 5 times in a row."
)


def stop(*, on_silence: bool = False) -> Terminate:
    return Terminate(
        *(0.0, "t-1", 1, "claude/shop/043381dc", None),
        reason="enough",
        save_for=0.0,
        findings=(),
        seq_seen=0,
        on_silence=on_silence,
    )


def replied(session: Session, name: str, *orders: Order, refusal: str = "") -> Reply:
    return reply_to(
        PROGRAMS[session.program], session, session.main, event(hook_event_name=name), orders, refusal, 5.0
    )


@pytest.mark.parametrize(
    "name", ["UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch"]
)
def test_a_nudge_is_context_for_the_model_and_delivered(name: str) -> None:
    one = session()
    reply = replied(one, name, NUDGE)
    said = reply.answer["hookSpecificOutput"]
    assert said["hookEventName"] == name
    assert NUDGE.text in said["additionalContext"]
    assert [type(outcome) for outcome in reply.outcomes] == [NudgeDelivered]
    assert one.main.unseen == ["n-1"]


@pytest.mark.parametrize(
    "name", ["SessionStart", "Notification", "SubagentStart", "StopFailure", "SessionEnd"]
)
def test_where_the_model_reads_nothing_a_nudge_waits(name: str) -> None:
    assert replied(session(), name, NUDGE) == Reply()


def test_a_nudge_puts_the_end_of_a_turn_off_only_so_often_until_the_user_speaks() -> None:
    one = session()
    for _ in range(PROLONGED_MAX):
        assert replied(one, "Stop", NUDGE).answer["decision"] == "block"
    for _ in range(100):
        assert replied(one, "Stop", NUDGE) == Reply()


def test_an_open_breaker_denies_the_call_with_its_reason() -> None:
    said = replied(session(), "PreToolUse", NUDGE, refusal="The breaker 'Bash' is open").answer
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "breaker 'Bash'" in said["hookSpecificOutput"]["permissionDecisionReason"]


@pytest.mark.parametrize("name", ["UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolBatch"])
def test_a_stop_ends_the_run_where_the_program_heeds_it(name: str) -> None:
    one = session()
    said = replied(one, name, NUDGE, stop()).answer
    assert said["continue"] is False
    assert "enough" in said["stopReason"]
    assert ("hookSpecificOutput" in said) == (name == "PreToolUse")  # The pending call would still be made.
    assert one.stopping == "t-1"


def test_a_stop_where_the_program_ignores_it_waits() -> None:
    one = session()
    assert replied(one, "PostToolUseFailure", stop()).answer == {}
    assert one.stopping == ""


def test_a_stop_for_silence_is_refuted_by_whoever_reads_it() -> None:
    one = session()
    reply = replied(one, "PostToolUse", stop(on_silence=True))
    assert reply.answer == {}
    assert [type(outcome) for outcome in reply.outcomes] == [TerminationFailed]
