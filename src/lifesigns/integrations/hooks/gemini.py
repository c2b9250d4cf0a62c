"""Gemini CLI: its hooks as signals. Written against 0.61.0, and checked with the program itself by `make integrations`.

Its calls have no ids, and one that fails ends as one that succeeds: what its shell printed tells the exit code. A call that is
denied has no end. A model call begins when the model is due to be called, and its tokens are in the transcript. Nothing tells of a
model that refuses, but the hook before a model call is called for each attempt: the second one says that the first had no answer.
Both hooks of a model call carry the whole conversation, which the client cuts off; the one after comes once per piece of the
answer, so we do not ask for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from lifesigns.core.signals import Signal
from lifesigns.integrations.hooks import turns, waiting
from lifesigns.integrations.hooks.events import HookEvent, line
from lifesigns.integrations.hooks.program import PRE_TOOL, Program, Verdict
from lifesigns.integrations.hooks.sessions import Session, Speaker, begin_thought

NAMES: Final = {
    "SessionStart": "SessionStart",
    "BeforeAgent": "UserPromptSubmit",
    "BeforeModel": "PreModelRequest",
    "BeforeTool": PRE_TOOL,
    "AfterTool": "PostToolUse",
    "Notification": "Notification",
    "AfterAgent": "Stop",
    "SessionEnd": "SessionEnd",
}
"""The hooks we ask for, and what we call them."""

_OWN_NAMES: Final = {ours: own for own, ours in NAMES.items()}
_PROCESS_GROUP: Final = re.compile(r"^Process Group PGID: .*\n?", re.MULTILINE)
"""Another number each time, in every result of the shell."""
_EXIT_CODE: Final = re.compile(r"^Exit Code: ([1-9][0-9]*)$", re.MULTILINE)
_SIGNAL: Final = re.compile(r"^Signal: ([0-9A-Z]+)$", re.MULTILINE)


def _tool_finished(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    response = event.tool_response if isinstance(event.tool_response, dict) else {}
    event.tool_response, event.error = result_of(response.get("llmContent"), response.get("error"))
    yield from turns.unnamed_tool_ended(session, speaker, event)


def _model_asked(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    """The model is asked. Asked again for the same answer, it has refused; while a call is open, a subagent asks."""
    if speaker.calls:
        return
    if speaker.thinks and speaker.asked_for == speaker.thoughts:
        yield from waiting.parked(session, speaker, "the model did not answer, and is asked again")
        return
    yield from begin_thought(session, speaker)
    speaker.asked_for = speaker.thoughts


def _notified(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    details = event.details if isinstance(event.details, dict) else {}
    speaker.question = line(details.get("command") or details.get("filePath") or details.get("toolName"))
    yield from waiting.notified(session, speaker, event)


def result_of(content: object, error: object) -> tuple[object, object]:
    """What a call resulted in, without what is different each time; and its error, if it failed."""
    if isinstance(content, str):
        content = _PROCESS_GROUP.sub("", content)
        failed = _EXIT_CODE.search(content) or _SIGNAL.search(content)
        if failed and error is None:
            error = f"Exit code {failed[1]}\n{content}"
    if isinstance(error, dict):
        error = error.get("message") or error
    return content, error


def words(event: str, verdict: Verdict, text: str) -> dict[str, Any]:
    """An answer as Gemini understands it."""
    match verdict:
        case Verdict.CONTEXT:
            return {"hookSpecificOutput": {"hookEventName": _OWN_NAMES[event], "additionalContext": text}}
        case Verdict.STOP:
            return {"continue": False, "stopReason": text}
        case Verdict.DENY | Verdict.GO_ON:
            return {"decision": "deny", "reason": text}


_HANDLERS: Final[Mapping[str, turns.Handler]] = {
    "SessionStart": turns.session_start,
    "UserPromptSubmit": turns.prompt_and_thought,
    "PreModelRequest": _model_asked,
    PRE_TOOL: turns.unnamed_tool_started,
    "PostToolUse": _tool_finished,
    "Notification": _notified,
    "Stop": turns.stop,
    "SessionEnd": turns.session_end,
}

PROGRAM: Final = Program(
    name="gemini",
    events=tuple(NAMES),
    handlers=_HANDLERS,
    context=frozenset({"UserPromptSubmit", "PostToolUse", "Stop"}),
    ends=frozenset({"UserPromptSubmit", PRE_TOOL, "PostToolUse"}),
    words=words,
    our_name=lambda event: NAMES.get(event.hook_event_name, event.hook_event_name),
    denials_are_silent=True,
    transcripts=Path(".gemini", "tmp"),
)
