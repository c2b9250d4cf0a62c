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

ASKING: Final = {"AskUserQuestion", "ExitPlanMode"}
"""Tools that are a question to the user."""
IDLE: Final = "idle_prompt"
"""The notification that nobody has typed for a minute. An interrupted run has no other end."""


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


_HANDLERS: Final[Mapping[str, turns.Handler]] = {
    **turns.HOOKS,
    "PreToolUse": turns.tool_started_or_asks(ASKING),
    "PostToolBatch": _batch,
    "Notification": _notified,
}

PROGRAM: Final = Program(
    name="claude-code",
    # Not `PostToolUse`: the batch has the results, and each hook costs the agent milliseconds.
    events=tuple(name for name in _HANDLERS if name != "PostToolUse"),
    handlers=_HANDLERS,
    context=frozenset(
        {"UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Stop"}
    ),
    ends=frozenset({"UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolBatch"}),
    words=claude_words,
    transcripts=Path(".claude", "projects"),
)
