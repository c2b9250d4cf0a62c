"""Claude Code: its hooks as signals. Written against 2.1.325, and checked with the program itself by `make integrations`.

What its hooks do not tell: a denied call has no end of its own (only the batch it was in), `/compact` ends a subagent that
never began, and a model call in progress is silent. So a model call begins when the model is due to be called (a prompt, the
end of a batch), and ends with whatever it led to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from lifesigns.core.digests import digest
from lifesigns.core.health import Doing
from lifesigns.core.signals import ActivitySeen, DoingChanged, ErrorReported, Signal, ToolFinished
from lifesigns.integrations.hooks import turns
from lifesigns.integrations.hooks.events import CALLS_MAX, HookEvent, line
from lifesigns.integrations.hooks.sessions import Session, Speaker, begin_thought, end_thought

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
    return turns.handled(_HANDLERS, session, event)


def _prompt(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    yield from turns.prompt(session, speaker, event)
    yield from begin_thought(session, speaker)


def _tool_started(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    yield from turns.tool_started(session, speaker, event)
    if event.tool_name in ASKING:
        yield from turns.asks(session, speaker, _question_in(event.tool_input) or f"{event.tool_name} asks")


def _tool_failed(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """A call that its user interrupted has not failed."""
    speaker.calls.pop(event.tool_use_id, None)
    yield from turns.goes_on(session, speaker)
    yield ToolFinished(
        **turns.named(session, speaker),
        call_id=event.tool_use_id,
        tool=event.tool_name,
        args_digest=digest(event.tool_input, exact=True),
        result_digest="" if event.is_interrupt else digest(event.error),
        duration_s=turns.seconds(event.duration_ms),
        ok=event.is_interrupt,
        error=None if event.is_interrupt else line(event.error) or "failed",
    )


def _batch(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """All calls of a turn are over. Those without an end of their own were denied: that is an end, and no failure."""
    yield from turns.goes_on(session, speaker)
    for call in event.tool_calls[:CALLS_MAX]:
        tool = speaker.calls.pop(call.tool_use_id, None)
        if tool is not None:
            yield ToolFinished(
                **turns.named(session, speaker),
                call_id=call.tool_use_id,
                tool=tool,
                args_digest=digest(call.tool_input, exact=True),
                result_digest=digest(call.tool_response),
            )
    yield from begin_thought(session, speaker)


def _permission(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """Without a terminal nobody is asked, and the call is denied at once. So this only notes the question: that it is
    put to somebody, a notification says."""
    speaker.question = turns.wish(event)
    yield ActivitySeen(**turns.named(session, speaker), kind="permission")


def _notified(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    if event.notification_type in WAITS:
        message = line(event.message)
        question = f"{message} ({speaker.question})" if speaker.question else message
        yield from turns.asks(session, speaker, question)
    elif event.notification_type == IDLE:
        yield from turns.rest(session, speaker)


def _stop_failure(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """The run ended in an error of the model's side. A rate limit passes; anything else is for its user."""
    kind, said = line(event.error) or "unknown", line(event.last_assistant_message)
    yield from end_thought(session, speaker, ok=False, error_kind=PARKED.get(kind, kind))
    yield from turns.forget_calls(session, speaker)
    if kind in PARKED:
        yield DoingChanged(**turns.named(session, speaker), doing=Doing.RATE_LIMITED, note=said)
    else:
        yield ErrorReported(**turns.named(session, speaker), message=f"{kind}: {said}")
        yield from turns.asks(session, speaker, f"the run ended with {kind}: {said}")


def _question_in(asked: object) -> str:
    """The question in the arguments of `AskUserQuestion`, or the beginning of a plan."""
    if not isinstance(asked, dict):
        return ""
    questions = asked.get("questions")
    if isinstance(questions, list) and questions and isinstance(questions[0], dict):
        return line(questions[0].get("question"))
    return line(asked.get("question") or asked.get("plan"))


_HANDLERS: Final[Mapping[str, turns.Handler]] = {
    "SessionStart": turns.session_start,
    "UserPromptSubmit": _prompt,
    "PreToolUse": _tool_started,
    "PostToolUse": turns.tool_finished,
    "PostToolUseFailure": _tool_failed,
    "PostToolBatch": _batch,
    "PermissionRequest": _permission,
    "Notification": _notified,
    "SubagentStart": turns.subagent_start,
    "SubagentStop": turns.subagent_stop,
    "PreCompact": turns.compacts,
    "PostCompact": turns.compacted,
    "Stop": turns.stop,
    "StopFailure": _stop_failure,
    "SessionEnd": turns.session_end,
}
