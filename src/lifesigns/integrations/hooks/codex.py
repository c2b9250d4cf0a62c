"""Codex: its hooks as signals. Written against 0.166.0, and checked with the program itself by `make integrations`.

It tells of each model call with its tokens, and of no failure: a command that fails ends as one that succeeds, with what it
printed. So a loop of failures is one of equal results, found a call later. Nothing a hook answers ends a run: a stop denies
every call, until the model gives up by itself. A denied call has no end; it is over when the model is called again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from lifesigns.core.health import Doing
from lifesigns.core.signals import DoingChanged, Signal
from lifesigns.integrations.hooks import turns
from lifesigns.integrations.hooks.events import HookEvent, line
from lifesigns.integrations.hooks.sessions import Session, Speaker, begin_thought, end_thought

EVENTS: Final = (
    "SessionStart",
    "UserPromptSubmit",
    "PreModelRequest",
    "PostModelRequest",
    "PreToolUse",
    "PostToolUse",
    "PermissionRequest",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "Stop",
    "Interrupt",
    "SessionEnd",
)
"""The hooks we ask for."""

_STATUS: Final = re.compile(r"\b(429|5[0-9][0-9])\b")


def signals(session: Session, event: HookEvent) -> list[Signal]:
    """What this event says about the session's agents; the session is changed by it."""
    return turns.handled(_HANDLERS, session, event)


def _model_started(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    yield from turns.goes_on(session, speaker)
    yield from turns.forget_calls(session, speaker)
    yield from begin_thought(session, speaker)


def _model_finished(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """One that failed has ended the turn, and no other hook says so."""
    if event.status == "completed":
        yield from end_thought(session, speaker, tokens=_tokens(event))
        return
    said = line(event.error) or "failed"
    status = _STATUS.search(said)
    yield from end_thought(session, speaker, ok=False, error_kind=status[1] if status else "model")
    if status:
        yield DoingChanged(**turns.named(session, speaker), doing=Doing.RATE_LIMITED, note=said)
    else:
        yield from turns.asks(session, speaker, f"the run ended with an error: {said}")


def _tokens(event: HookEvent) -> tuple[int, int]:
    """Without what came from the cache: that is the whole conversation again each time."""
    used = event.token_usage
    if used is None:
        return 0, 0
    return max(0, used.input_tokens - used.cached_input_tokens), max(0, used.output_tokens)


def _permission(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    return turns.asks(session, speaker, turns.wish(event))


_HANDLERS: Final[Mapping[str, turns.Handler]] = {
    "SessionStart": turns.session_start,
    "UserPromptSubmit": turns.prompt,
    "PreModelRequest": _model_started,
    "PostModelRequest": _model_finished,
    "PreToolUse": turns.tool_started,
    "PostToolUse": turns.tool_finished,
    "PermissionRequest": _permission,
    "SubagentStart": turns.subagent_start,
    "SubagentStop": turns.subagent_stop,
    "PreCompact": turns.compacts,
    "PostCompact": turns.compacted,
    "Stop": turns.stop,
    "Interrupt": turns.stop,
    "SessionEnd": turns.session_end,
}
