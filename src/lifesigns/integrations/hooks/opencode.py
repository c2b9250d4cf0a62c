"""opencode: what our plugin for it says (`opencode.js`), as signals. Written against 1.18.33, and checked with the program itself
by `make integrations`.

The plugin runs inside of opencode, so nothing is started for an event, and it says what there is to say in the words of this
room: each model call with its tokens, exit codes, questions, and when the model is asked again later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lifesigns.core.signals import TOKENS_ONLY, ModelFinished, Signal
from lifesigns.integrations.hooks import turns, waiting
from lifesigns.integrations.hooks.events import HookEvent, line
from lifesigns.integrations.hooks.program import PRE_TOOL, Program, Verdict
from lifesigns.integrations.hooks.sessions import Session, Speaker, end_thought


def _model_finished(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """A step of the turn is over. If it called tools, the model had answered before them, and only the tokens are news."""
    used = event.token_usage
    tokens = (0, 0) if used is None else (max(0, used.input_tokens), max(0, used.output_tokens))
    yield from waiting.goes_on(session, speaker)
    if speaker.thinks:
        yield from end_thought(session, speaker, tokens=tokens)
    elif any(tokens):
        about = waiting.named(session, speaker)
        yield ModelFinished(**about, call_id=TOKENS_ONLY, tokens_in=tokens[0], tokens_out=tokens[1])


def _retries(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    return waiting.parked(session, speaker, line(event.message) or "the model refuses")


def _permission(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    return waiting.asks(session, speaker, line(event.message) or waiting.wish(event))


def _answered(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    return waiting.goes_on(session, speaker)


def _failed(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    yield from turns.forget_calls(session, speaker)
    yield from waiting.ended_by(session, speaker, line(event.error) or "failed")


def words(_: str, verdict: Verdict, text: str) -> dict[str, Any]:
    """An answer as our plugin understands it."""
    return {verdict.name.lower(): text}


_HANDLERS: Final[Mapping[str, turns.Handler]] = {
    "SessionStart": turns.session_start,
    "UserPromptSubmit": turns.prompt,
    "PreModelRequest": turns.model_started,
    "PostModelRequest": _model_finished,
    "ModelRetry": _retries,
    PRE_TOOL: turns.tool_started,
    "PostToolUse": turns.tool_finished,
    "PostToolUseFailure": turns.tool_failed,
    "PermissionRequest": _permission,
    "PermissionAnswered": _answered,
    "SubagentStart": turns.subagent_start,
    "SubagentStop": turns.subagent_stop,
    "PostCompact": turns.compacted,
    "Stop": turns.stop,
    "StopFailure": _failed,
    "SessionEnd": turns.session_end,
}

PROGRAM: Final = Program(
    name="opencode",
    events=tuple(_HANDLERS),
    handlers=_HANDLERS,
    context=frozenset({"PostToolUse", "PostToolUseFailure"}),
    ends=frozenset({PRE_TOOL, "PostToolUse"}),
    words=words,
)
