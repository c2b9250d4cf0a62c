"""GitHub Copilot CLI: its hooks as signals. Written against 1.0.102, and checked with the program itself by `make integrations`.

Asked for by the names of Claude Code, its hooks speak in those words. Its calls have no ids, a call that fails ends as one that succeeds:
what its shell printed tells the exit code. A call that is denied has no end. Nothing a hook answers ends a run: a stop denies
every call, until the model gives up by itself, and interrupts a run without a terminal. Its file of events tells of tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from lifesigns.core.signals import Signal
from lifesigns.integrations.hooks import turns, waiting
from lifesigns.integrations.hooks.events import HookEvent, line
from lifesigns.integrations.hooks.program import PRE_TOOL, Program, Verdict, claude_words
from lifesigns.integrations.hooks.sessions import Session, Speaker

_SHELL_END: Final = re.compile(r"<shellId: \S+ completed with exit code (\d+)>")


def _tool_finished(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    result = event.tool_result if isinstance(event.tool_result, dict) else {}
    text = str(result.get("text_result_for_llm") or "")
    shell = _SHELL_END.search(text)
    event.tool_response = _SHELL_END.sub("", text)
    if shell and shell[1] != "0":
        event.error = f"Exit code {shell[1]}\n{event.tool_response}"
    elif result.get("result_type") == "failure":
        event.error = event.tool_response or "failed"
    yield from turns.unnamed_tool_ended(session, speaker, event)


def _tool_failed(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    event.error = _message(event.error) or "failed"
    yield from turns.unnamed_tool_ended(session, speaker, event)


def _error(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """A model call failed, and is tried again. That it was the last time, nothing says but the end of the session."""
    if event.error_context == "model_call":
        yield from waiting.parked(session, speaker, line(_message(event.error)) or "the model refuses")


def _message(error: object) -> object:
    return error.get("message") if isinstance(error, dict) else error


def words(event: str, verdict: Verdict, text: str) -> dict[str, Any]:
    """An answer as Copilot understands it."""
    return {"additionalContext": text} if verdict is Verdict.CONTEXT else claude_words(event, verdict, text)


_HANDLERS: Final[Mapping[str, turns.Handler]] = {
    "SessionStart": turns.session_start,
    "UserPromptSubmit": turns.prompt_and_thought,
    "PreToolUse": turns.unnamed_tool_started,
    "PostToolUse": _tool_finished,
    "PostToolUseFailure": _tool_failed,
    "ErrorOccurred": _error,
    "Notification": waiting.notified,
    "PreCompact": turns.compacts,
    "Stop": turns.stop,
    "SessionEnd": turns.session_end,
}

PROGRAM: Final = Program(
    name="copilot",
    events=tuple(_HANDLERS),
    handlers=_HANDLERS,
    context=frozenset({"PostToolUse", "PostToolUseFailure", "Stop"}),
    ends=frozenset({PRE_TOOL}),
    words=words,
    can_be_stopped=False,
    alone=frozenset({"-p", "--prompt"}),
    denials_are_silent=True,
    transcripts=Path(".copilot", "session-state"),
    transcript="{}/events.jsonl",
)
