"""Claude Code: its hooks as signals. Written against 2.1.325, and checked with the program itself by `make integrations`.

What its hooks do not tell: a denied call has no end of its own (only the batch it was in), `/compact` ends a subagent that
never began, and a model call in progress is silent. So a model call begins when the model is due to be called (a prompt, the
end of a batch), and ends with whatever it led to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from lifesigns.core.digests import digest
from lifesigns.core.health import Doing
from lifesigns.core.signals import (
    ActivitySeen,
    AgentLeft,
    DoingChanged,
    ErrorReported,
    Signal,
    ToolFinished,
    ToolStarted,
)
from lifesigns.integrations.hooks.events import CALLS_MAX, HookEvent, line
from lifesigns.integrations.hooks.sessions import Session, Speaker, begin_thought, end_thought, subagent

EVENTS: Final = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionRequest",
    "Notification",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "Stop",
    "StopFailure",
    "SessionEnd",
)
"""The hooks we ask for."""

ASKING: Final = {"AskUserQuestion", "ExitPlanMode"}
"""Tools that are a question to the user."""
PARKED: Final = {"rate_limit": "ratelimit", "overloaded": "overloaded", "server_error": "server"}
"""Ends of a run that pass by themselves, and the kind of error they are."""
WAITS: Final = {"permission_prompt", "elicitation_dialog", "agent_needs_input"}
"""Notifications that the user is asked something."""
IDLE: Final = "idle_prompt"
"""The notification that nobody has typed for a minute. An interrupted run has no other end."""


def signals(session: Session, event: HookEvent) -> list[Signal]:
    """What this event says about the session's agents; the session is changed by it."""
    handle = _HANDLERS.get(event.hook_event_name)
    if handle is None:
        return []
    speaker = session.main
    if event.agent_id is not None and event.hook_event_name != "SubagentStop":
        speaker = subagent(session, event.agent_id, event.agent_type or "agent")
    return list(handle(session, speaker, event))


def _named(session: Session, speaker: Speaker) -> dict[str, Any]:
    return {"agent_id": speaker.id, "incarnation": session.incarnation}


def _session_start(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    # After a compaction the same session "starts" again, in the middle of its work.
    if event.source != "compact":
        yield DoingChanged(**_named(session, speaker), doing=Doing.IDLE)


def _prompt(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    session.prolonged = 0
    speaker.waits, speaker.question = False, ""
    yield ActivitySeen(**_named(session, speaker), kind="message")
    yield DoingChanged(**_named(session, speaker), doing=Doing.WORKING)
    yield from begin_thought(session, speaker)


def _tool_started(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    yield from end_thought(session, speaker)
    yield from _goes_on(session, speaker)
    speaker.begin_call(event.tool_use_id, event.tool_name)
    yield ToolStarted(
        **_named(session, speaker),
        call_id=event.tool_use_id,
        tool=event.tool_name,
        args_digest=digest(event.tool_input, exact=True),
    )
    if event.tool_name in ASKING:
        yield from _asks(session, speaker, _question_in(event.tool_input) or f"{event.tool_name} asks")


def _tool_finished(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    speaker.calls.pop(event.tool_use_id, None)
    yield from _goes_on(session, speaker)
    yield ToolFinished(
        **_named(session, speaker),
        call_id=event.tool_use_id,
        tool=event.tool_name,
        args_digest=digest(event.tool_input, exact=True),
        result_digest=digest(event.tool_response),
        duration_s=_seconds(event.duration_ms),
    )


def _tool_failed(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """A call that its user interrupted has not failed."""
    speaker.calls.pop(event.tool_use_id, None)
    yield from _goes_on(session, speaker)
    yield ToolFinished(
        **_named(session, speaker),
        call_id=event.tool_use_id,
        tool=event.tool_name,
        args_digest=digest(event.tool_input, exact=True),
        result_digest="" if event.is_interrupt else digest(event.error),
        duration_s=_seconds(event.duration_ms),
        ok=event.is_interrupt,
        error=None if event.is_interrupt else line(event.error) or "failed",
    )


def _batch(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """All calls of a turn are over. Those without an end of their own were denied: that is an end, and no failure."""
    yield from _goes_on(session, speaker)
    for call in event.tool_calls[:CALLS_MAX]:
        tool = speaker.calls.pop(call.tool_use_id, None)
        if tool is not None:
            yield ToolFinished(
                **_named(session, speaker),
                call_id=call.tool_use_id,
                tool=tool,
                args_digest=digest(call.tool_input, exact=True),
                result_digest=digest(call.tool_response),
            )
    yield from begin_thought(session, speaker)


def _permission(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """Without a terminal nobody is asked, and the call is denied at once. So this only notes the question: that it is
    put to somebody, a notification says."""
    wish = event.tool_input.get("command") if isinstance(event.tool_input, dict) else None
    if not isinstance(wish, str):
        wish = event.tool_input.get("file_path") if isinstance(event.tool_input, dict) else None
    asked = f"{event.tool_name}: {line(wish)}" if isinstance(wish, str) else event.tool_name
    speaker.question = f"may it use {asked}?"
    yield ActivitySeen(**_named(session, speaker), kind="permission")


def _notified(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    if event.notification_type in WAITS:
        message = line(event.message)
        question = f"{message} ({speaker.question})" if speaker.question else message
        yield from _asks(session, speaker, question)
    elif event.notification_type == IDLE:
        yield from rest(session, speaker)


def _subagent_start(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    yield DoingChanged(**_named(session, speaker), doing=Doing.WORKING)
    yield from begin_thought(session, speaker)


def _subagent_stop(session: Session, _: Speaker, event: HookEvent) -> Iterator[Signal]:
    speaker = session.subagents.pop(event.agent_id or "", None)
    if speaker is not None:  # A compaction ends one that never began.
        yield from end_thought(session, speaker)
        yield AgentLeft(**_named(session, speaker), reason="the subagent has finished")


def _compacts(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    yield ActivitySeen(**_named(session, speaker), kind="compaction")
    yield from begin_thought(session, speaker)


def _compacted(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    yield from end_thought(session, speaker)
    yield ActivitySeen(**_named(session, speaker), kind="compaction")


def _stop(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    return rest(session, speaker)


def rest(session: Session, speaker: Speaker) -> Iterator[Signal]:
    """The turn is over: the agent is idle until its user speaks."""
    yield from end_thought(session, speaker)
    yield from _forget_calls(session, speaker)
    speaker.waits, speaker.question = False, ""
    yield DoingChanged(**_named(session, speaker), doing=Doing.IDLE)


def _stop_failure(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """The run ended in an error of the model's side. A rate limit passes; anything else is for its user."""
    kind, said = line(event.error) or "unknown", line(event.last_assistant_message)
    yield from end_thought(session, speaker, ok=False, error_kind=PARKED.get(kind, kind))
    yield from _forget_calls(session, speaker)
    if kind in PARKED:
        yield DoingChanged(**_named(session, speaker), doing=Doing.RATE_LIMITED, note=said)
    else:
        yield ErrorReported(**_named(session, speaker), message=f"{kind}: {said}")
        yield from _asks(session, speaker, f"the run ended with {kind}: {said}")


def _session_end(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    for one in session.speakers():
        yield AgentLeft(**_named(session, one), reason=f"the session ended: {line(event.reason) or 'other'}")


# --- parts --------------------------------------------------------------------------------------------


def _asks(session: Session, speaker: Speaker, question: str) -> Iterator[Signal]:
    speaker.waits = True
    yield DoingChanged(**_named(session, speaker), doing=Doing.WAITING_FOR_HUMAN, note=question)


def _goes_on(session: Session, speaker: Speaker) -> Iterator[Signal]:
    """Something happens: whatever it waited for has come."""
    speaker.question = ""
    if speaker.waits:
        speaker.waits = False
        yield DoingChanged(**_named(session, speaker), doing=Doing.WORKING)


def _forget_calls(session: Session, speaker: Speaker) -> Iterator[Signal]:
    """Calls that were interrupted have no end of their own."""
    calls, speaker.calls = speaker.calls, {}
    for call_id, tool in calls.items():
        yield ToolFinished(**_named(session, speaker), call_id=call_id, tool=tool)


def _question_in(asked: object) -> str:
    """The question in the arguments of `AskUserQuestion`, or the beginning of a plan."""
    if not isinstance(asked, dict):
        return ""
    questions = asked.get("questions")
    if isinstance(questions, list) and questions and isinstance(questions[0], dict):
        return line(questions[0].get("question"))
    return line(asked.get("question") or asked.get("plan"))


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else max(0.0, milliseconds / 1000)


Handler = Callable[[Session, Speaker, HookEvent], Iterator[Signal]]
_HANDLERS: Final[Mapping[str, Handler]] = {
    "SessionStart": _session_start,
    "UserPromptSubmit": _prompt,
    "PreToolUse": _tool_started,
    "PostToolUse": _tool_finished,
    "PostToolUseFailure": _tool_failed,
    "PostToolBatch": _batch,
    "PermissionRequest": _permission,
    "Notification": _notified,
    "SubagentStart": _subagent_start,
    "SubagentStop": _subagent_stop,
    "PreCompact": _compacts,
    "PostCompact": _compacted,
    "Stop": _stop,
    "StopFailure": _stop_failure,
    "SessionEnd": _session_end,
}
