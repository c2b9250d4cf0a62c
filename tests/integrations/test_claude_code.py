"""Claude Code's events as signals: each row was written from what the program itself sent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lifesigns.core.health import Doing
from lifesigns.core.signals import (
    AgentLeft,
    DoingChanged,
    ErrorReported,
    ModelFinished,
    NudgeSeen,
    Signal,
    ToolFinished,
    ToolStarted,
)
from lifesigns.integrations.hooks import claude_code
from lifesigns.integrations.hooks.events import Origin, read
from lifesigns.integrations.hooks.sessions import agent_id
from tests.integrations.hooked import event, heard, kinds, recorded, session, who

CALL = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1"}


def replayed(name: str) -> list[Signal]:
    """A recorded run as signals."""
    events = [read(json.dumps(one).encode()) for one in recorded("claude-code", name)]
    return heard(session(), *events)


def doings(signals: list[Signal]) -> list[Doing]:
    return [one.doing for one in signals if isinstance(one, DoingChanged)]


@pytest.mark.parametrize(
    ("fields", "signals"),
    [
        ({"hook_event_name": "SessionStart", "source": "startup"}, ["DoingChanged"]),
        ({"hook_event_name": "SessionStart", "source": "compact"}, []),
        (
            {"hook_event_name": "UserPromptSubmit", "prompt": "go"},
            ["ActivitySeen", "DoingChanged", "ModelStarted"],
        ),
        ({"hook_event_name": "PreToolUse", **CALL}, ["ToolStarted"]),
        (
            {"hook_event_name": "PostToolUse", **CALL, "tool_response": "a", "duration_ms": 3},
            ["ToolFinished"],
        ),
        ({"hook_event_name": "PostToolUseFailure", **CALL, "error": "Exit code 1"}, ["ToolFinished"]),
        ({"hook_event_name": "PostToolBatch", "tool_calls": [CALL]}, ["ModelStarted"]),
        ({"hook_event_name": "PermissionRequest", **CALL}, ["ActivitySeen"]),
        (
            {"hook_event_name": "Notification", "notification_type": "permission_prompt", "message": "?"},
            ["DoingChanged"],
        ),
        ({"hook_event_name": "Notification", "notification_type": "auth_success", "message": "ok"}, []),
        (
            {"hook_event_name": "SubagentStart", "agent_id": "abc123", "agent_type": "Explore"},
            ["DoingChanged", "ModelStarted"],
        ),
        ({"hook_event_name": "SubagentStop", "agent_id": "never-began"}, []),
        ({"hook_event_name": "PreCompact", "trigger": "auto"}, ["ActivitySeen", "ModelStarted"]),
        ({"hook_event_name": "PostCompact", "trigger": "auto"}, ["ActivitySeen"]),
        ({"hook_event_name": "Stop"}, ["DoingChanged"]),
        ({"hook_event_name": "StopFailure", "error": "rate_limit"}, ["DoingChanged"]),
        ({"hook_event_name": "StopFailure", "error": "billing_error"}, ["ErrorReported", "DoingChanged"]),
        ({"hook_event_name": "SessionEnd", "reason": "other"}, ["AgentLeft"]),
        ({"hook_event_name": "ConfigChange"}, []),
    ],
)
def test_each_event_alone_says_this(fields: dict[str, Any], signals: list[str]) -> None:
    assert kinds(heard(session(), event(**fields))) == signals


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("other", "the session ended"),
        ("", "the session ended"),
        ("logout", "the session ended: logout"),
    ],
)
def test_a_reason_that_says_nothing_is_not_said(reason: str, said: str) -> None:
    (left,) = heard(session(), event(hook_event_name="SessionEnd", reason=reason))
    assert isinstance(left, AgentLeft)
    assert left.reason == said


def test_we_ask_for_no_hook_after_each_call() -> None:
    """The hook after a batch says it too, and each hook costs the agent milliseconds."""
    asked = set(claude_code.PROGRAM.events)
    assert "PostToolBatch" in asked
    assert "PostToolUse" not in asked
    assert len(asked) == 14


def test_a_run_of_three_calls_begins_and_ends_each_call_once() -> None:
    """Calls by the model between them: one after the prompt and one after each batch, all of them ended."""
    said = replayed("three-calls")
    started = [one.call_id for one in said if isinstance(one, ToolStarted)]
    finished = [one for one in said if isinstance(one, ToolFinished)]
    assert started == [one.call_id for one in finished]
    assert [one.ok for one in finished] == [True, False, False]
    assert finished[2].error == "Exit code 1"
    assert finished[0].duration_s == 0.172
    assert kinds(said).count("ModelStarted") == kinds(said).count("ModelFinished") == 4
    assert doings(said) == [Doing.IDLE, Doing.WORKING, Doing.IDLE]
    assert isinstance(said[-1], AgentLeft)


def test_equal_calls_have_equal_digests_and_other_arguments_have_not() -> None:
    one = [s for s in replayed("three-calls") if isinstance(s, ToolFinished)]
    again = [s for s in replayed("three-calls") if isinstance(s, ToolFinished)]
    assert [s.args_digest for s in one] == [s.args_digest for s in again]
    assert len({s.args_digest for s in one}) == 3


def test_a_denied_call_ends_with_its_batch() -> None:
    """Without a terminal nobody is asked: a denial is an end, and waits for nobody."""
    said = replayed("permission-denied")
    assert Doing.WAITING_FOR_HUMAN not in doings(said)
    ended = [one for one in said if isinstance(one, ToolFinished)]
    assert [one.ok for one in ended] == [True]
    assert ended[0].result_digest


def test_a_subagent_is_an_agent_of_its_own() -> None:
    said = replayed("subagent")
    ids = {who(one) for one in said}
    main = "claude/shop/043381dc"
    assert ids == {main, f"{main}/general-purpose-9c88b2"}
    child = [one for one in said if who(one) != main]
    assert kinds(child).count("ToolStarted") == kinds(child).count("ToolFinished") == 3
    assert isinstance(child[-1], AgentLeft)


def test_a_rate_limit_parks_and_a_missing_key_asks_its_user() -> None:
    assert doings(replayed("rate-limit"))[-1] is Doing.RATE_LIMITED
    limited = [one for one in replayed("rate-limit") if isinstance(one, ModelFinished)]
    assert [(one.ok, one.error_kind) for one in limited] == [(False, "ratelimit")]
    said = replayed("no-key")
    assert doings(said)[-1] is Doing.WAITING_FOR_HUMAN
    assert any(isinstance(one, ErrorReported) for one in said)


def test_waiting_for_permission_carries_the_question_and_ends_with_what_comes_next() -> None:
    one = session()
    said = heard(
        one,
        event(hook_event_name="PreToolUse", **CALL),
        event(hook_event_name="PermissionRequest", **CALL),
        event(
            hook_event_name="Notification",
            notification_type="permission_prompt",
            message="Claude needs your permission",
        ),
    )
    assert isinstance(said[-1], DoingChanged)
    assert said[-1].doing is Doing.WAITING_FOR_HUMAN
    assert said[-1].note == "Claude needs your permission (may it use Bash: ls?)"
    after = heard(one, event(hook_event_name="PostToolUse", **CALL, tool_response="x"))
    assert doings(after) == [Doing.WORKING]


@pytest.mark.parametrize(
    ("tool", "args", "question"),
    [
        ("AskUserQuestion", {"questions": [{"question": "Which database?"}]}, "Which database?"),
        ("ExitPlanMode", {"plan": "1. Write it\n2. Test it"}, "1. Write it"),
        ("AskUserQuestion", {"questions": "?"}, "AskUserQuestion asks"),
    ],
)
def test_a_question_of_the_model_waits_for_a_human(tool: str, args: dict[str, Any], question: str) -> None:
    call = {"tool_name": tool, "tool_input": args, "tool_use_id": "t"}
    said = heard(session(), event(hook_event_name="PreToolUse", **call))
    assert isinstance(said[-1], DoingChanged)
    assert (said[-1].doing, said[-1].note) == (Doing.WAITING_FOR_HUMAN, question)


def test_a_call_that_its_user_interrupted_has_not_failed() -> None:
    failure = event(
        hook_event_name="PostToolUseFailure", **CALL, error="[Request interrupted]", is_interrupt=True
    )
    said = heard(session(), failure)
    assert isinstance(said[0], ToolFinished)
    assert (said[0].ok, said[0].error) == (True, None)


def test_the_end_of_a_turn_ends_what_has_no_end_of_its_own() -> None:
    one = session()
    heard(one, event(hook_event_name="PreToolUse", **CALL))
    said = heard(one, event(hook_event_name="Stop"))
    assert kinds(said) == ["ToolFinished", "DoingChanged"]


def test_a_nudge_is_seen_with_the_next_answer_of_the_model_and_not_before() -> None:
    one = session()
    one.main.unseen = ["n-1"]
    assert not [
        s for s in heard(one, event(hook_event_name="PostToolUse", **CALL)) if isinstance(s, NudgeSeen)
    ]
    said = heard(one, event(hook_event_name="PostToolBatch"), event(hook_event_name="PreToolUse", **CALL))
    assert [s.nudge_id for s in said if isinstance(s, NudgeSeen)] == ["n-1"]
    assert one.main.unseen == []


def test_a_failed_model_call_has_read_nothing() -> None:
    one = session()
    one.main.unseen = ["n-1"]
    heard(
        one,
        event(hook_event_name="UserPromptSubmit"),
        event(hook_event_name="StopFailure", error="rate_limit"),
    )
    assert one.main.unseen == ["n-1"]


def test_ids_say_folder_and_session_and_nothing_that_is_no_id() -> None:
    said = claude_code.PROGRAM.signals(session(), event(hook_event_name="Stop"))
    assert who(said[0]) == "claude/shop/043381dc"
    odd = event(hook_event_name="Stop", cwd="/home/dev/mein Büro\n/../x y")
    assert agent_id("claude-code", odd, Origin()) == "claude/x-y/043381dc"
    assert agent_id("claude-code", odd, Origin(project="..")) == "claude/root/043381dc"


@pytest.mark.parametrize(
    "fields",
    [
        {"hook_event_name": "PreToolUse", "tool_input": None, "tool_name": "", "tool_use_id": ""},
        {"hook_event_name": "StopFailure", "error": {"a": [1]}},
        {"hook_event_name": "PermissionRequest", "tool_input": "text"},
        {"hook_event_name": "PostToolBatch", "tool_calls": [{}] * 500},
        {"hook_event_name": "SubagentStart", "agent_id": "../../x", "agent_type": "\x1b[31m"},
    ],
)
def test_strange_values_raise_nothing_and_make_no_strange_id(fields: dict[str, Any]) -> None:
    for signal in heard(session(), event(**fields)):
        assert ".." not in who(signal).split("/")
        assert who(signal).isprintable()
