"""Claude Code: its hooks as signals. Written against 2.1.325, and checked with the program itself by `make integrations`.

What its hooks do not tell: a denied call has no end of its own (only the batch it was in), `/compact` ends a subagent that
never began, and a model call in progress is silent. So a model call begins when the model is due to be called (a prompt, the
end of a batch), and ends with whatever it led to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from lifesigns.core.digests import digest
from lifesigns.core.signals import Signal, ToolFinished
from lifesigns.integrations.hooks import turns, waiting
from lifesigns.integrations.hooks.events import CALLS_MAX, HookEvent
from lifesigns.integrations.hooks.program import Program, claude_words
from lifesigns.integrations.hooks.sessions import Session, Speaker, begin_thought

EVENTS: Final = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
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
"""The hooks we ask for. Not `PostToolUse`: the batch has the results, and each hook costs the agent milliseconds."""

ASKING: Final = {"AskUserQuestion", "ExitPlanMode"}
"""Tools that are a question to the user."""
IDLE: Final = "idle_prompt"
"""The notification that nobody has typed for a minute. An interrupted run has no other end."""


def signals(session: Session, event: HookEvent) -> list[Signal]:
    """What this event says about the session's agents; the session is changed by it."""
    return turns.handled(_HANDLERS, session, event)


def _tool_started(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    yield from turns.tool_started(session, speaker, event)
    if event.tool_name in ASKING:
        yield from waiting.asks(
            session, speaker, waiting.question_in(event.tool_input) or f"{event.tool_name} asks"
        )


def _batch(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """All calls of a turn are over. Those that failed had an end of their own; the others succeeded, or were denied: that is no
    failure either."""
    yield from waiting.goes_on(session, speaker)
    for call in event.tool_calls[:CALLS_MAX]:
        tool = speaker.calls.pop(call.tool_use_id, None)
        if tool is not None:
            yield ToolFinished(
                **waiting.named(session, speaker),
                call_id=call.tool_use_id,
                tool=tool,
                args_digest=digest(call.tool_input, exact=True),
                result_digest=digest(call.tool_response),
            )
    yield from begin_thought(session, speaker)


def _notified(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    yield from waiting.notified(session, speaker, event)
    if event.notification_type == IDLE:
        yield from turns.rest(session, speaker)


def _stop_failure(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    yield from turns.forget_calls(session, speaker)
    yield from waiting.stop_failure(session, speaker, event)


_HANDLERS: Final[Mapping[str, turns.Handler]] = {
    "SessionStart": turns.session_start,
    "UserPromptSubmit": turns.prompt_and_thought,
    "PreToolUse": _tool_started,
    "PostToolUse": turns.tool_finished,
    "PostToolUseFailure": turns.tool_failed,
    "PostToolBatch": _batch,
    "PermissionRequest": waiting.asks_soon,
    "Notification": _notified,
    "SubagentStart": turns.subagent_start,
    "SubagentStop": turns.subagent_stop,
    "PreCompact": turns.compacts,
    "PostCompact": turns.compacted,
    "Stop": turns.stop,
    "StopFailure": _stop_failure,
    "SessionEnd": turns.session_end,
}

PROGRAM: Final = Program(
    name="claude-code",
    events=EVENTS,
    signals=signals,
    context=frozenset(
        {"UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Stop"}
    ),
    ends=frozenset({"UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolBatch"}),
    words=claude_words,
    transcripts=Path(".claude", "projects"),
)
