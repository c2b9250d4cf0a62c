"""Codex: its hooks as signals. Written against 0.166.0, and checked with the program itself by `make integrations`.

It tells of each model call with its tokens, and of no failure: a command that fails ends as one that succeeds, with what it
printed. So a loop of failures is one of equal results, found a call later. Nothing a hook answers ends a run: a stop denies
every call, until the model gives up by itself, and interrupts a run without a terminal. A denied call has no end; it is over when the
model is called again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from lifesigns.core.signals import Signal
from lifesigns.integrations.hooks import turns, waiting
from lifesigns.integrations.hooks.events import HookEvent, line
from lifesigns.integrations.hooks.program import PRE_TOOL, Program, claude_words
from lifesigns.integrations.hooks.sessions import Session, Speaker, end_thought


def _model_finished(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """One that failed has ended the turn, and no other hook says so."""
    if event.status == "completed":
        yield from end_thought(session, speaker, tokens=_tokens(event))
        return
    yield from waiting.ended_by(session, speaker, line(event.error) or "failed")


def _tokens(event: HookEvent) -> tuple[int, int]:
    """Without what came from the cache: that is the whole conversation again each time."""
    used = event.token_usage
    if used is None:
        return 0, 0
    return max(0, used.input_tokens - used.cached_input_tokens), max(0, used.output_tokens)


def _permission(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    return waiting.asks(session, speaker, waiting.wish(event))


_HANDLERS: Final[Mapping[str, turns.Handler]] = {
    "SessionStart": turns.session_start,
    "UserPromptSubmit": turns.prompt,
    "PreModelRequest": turns.model_started,
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

PROGRAM: Final = Program(
    name="codex",
    events=tuple(_HANDLERS),
    handlers=_HANDLERS,
    context=frozenset({"UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"}),
    ends=frozenset({PRE_TOOL}),
    words=claude_words,
    can_be_stopped=False,
    alone=frozenset({"exec", "e"}),
)
