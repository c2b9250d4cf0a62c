"""Qwen Code: its hooks as signals. Written against 0.24.4, and checked with the program itself by `make integrations`.

Its hooks are those of Claude Code, but: the model is called with a `UserPromptSubmit` without a prompt, so we need no batches;
nothing but a refused prompt ends a run; without a terminal no session says that it ends. Its transcript tells of tokens, and of a model that refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from lifesigns.core.signals import Signal
from lifesigns.integrations.hooks import turns, waiting
from lifesigns.integrations.hooks.events import HookEvent
from lifesigns.integrations.hooks.program import PRE_TOOL, Program, Verdict, claude_words
from lifesigns.integrations.hooks.sessions import Session, Speaker, begin_thought

EVENTS: Final = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
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

ASKING: Final = {"ask_user_question", "exit_plan_mode"}
"""Tools that are a question to the user."""
MODEL_CALL: Final = "PreModelRequest"


def signals(session: Session, event: HookEvent) -> list[Signal]:
    """What this event says about the session's agents; the session is changed by it."""
    event.tool_use_id = event.tool_call_id or event.tool_use_id
    return turns.handled(_HANDLERS, session, event)


def our_name(event: HookEvent) -> str:
    """A prompt that nobody has written is a model call."""
    if event.hook_event_name == "UserPromptSubmit" and event.prompt == "":
        return MODEL_CALL
    return event.hook_event_name


def _model_started(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    yield from waiting.goes_on(session, speaker)
    yield from turns.forget_calls(session, speaker)
    yield from begin_thought(session, speaker)


def _tool_started(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    yield from turns.tool_started(session, speaker, event)
    if event.tool_name in ASKING:
        question = waiting.question_in(event.tool_input) or f"{event.tool_name} asks"
        yield from waiting.asks(session, speaker, question)


def _stop_failure(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    yield from turns.forget_calls(session, speaker)
    yield from waiting.stop_failure(session, speaker, event)


def words(event: str, verdict: Verdict, text: str) -> dict[str, Any]:
    """An answer as Qwen understands it: a call is denied, and the model is not called again."""
    if verdict is Verdict.STOP:
        verdict = Verdict.DENY if event == PRE_TOOL else Verdict.GO_ON
    return claude_words(event, verdict, text)


_HANDLERS: Final[Mapping[str, turns.Handler]] = {
    "SessionStart": turns.session_start,
    "UserPromptSubmit": turns.prompt_and_thought,
    MODEL_CALL: _model_started,
    "PreToolUse": _tool_started,
    "PostToolUse": turns.tool_finished,
    "PostToolUseFailure": turns.tool_failed,
    "PermissionRequest": waiting.asks_soon,
    "Notification": waiting.notified,
    "SubagentStart": turns.subagent_start,
    "SubagentStop": turns.subagent_stop,
    "PreCompact": turns.compacts,
    "PostCompact": turns.compacted,
    "Stop": turns.stop,
    "StopFailure": _stop_failure,
    "SessionEnd": turns.session_end,
}

PROGRAM: Final = Program(
    name="qwen",
    events=EVENTS,
    signals=signals,
    context=frozenset({"UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop"}),
    ends=frozenset({"UserPromptSubmit", MODEL_CALL, PRE_TOOL}),
    words=words,
    our_name=our_name,
    helpers_speak=True,
    leaves_silently=True,
    transcripts=Path(".qwen", "projects"),
)
