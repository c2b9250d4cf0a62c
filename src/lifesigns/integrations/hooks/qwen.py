"""Qwen Code: its hooks as signals. Written against 0.24.4, and checked with the program itself by `make integrations`.

Its hooks are those of Claude Code, but: the model is called with a `UserPromptSubmit` without a prompt, so we need no batches;
nothing but a refused prompt ends a run; without a terminal no session says that it ends. Its transcript tells of tokens, and of a model that refuses.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from lifesigns.integrations.hooks import turns
from lifesigns.integrations.hooks.events import HookEvent
from lifesigns.integrations.hooks.program import PRE_TOOL, Program, Verdict, claude_words

ASKING: Final = {"ask_user_question", "exit_plan_mode"}
"""Tools that are a question to the user."""
MODEL_CALL: Final = "PreModelRequest"


def our_name(event: HookEvent) -> str:
    """A prompt that nobody has written is a model call. A call has the id by which the model knows it."""
    event.tool_use_id = event.tool_call_id or event.tool_use_id
    if event.hook_event_name == "UserPromptSubmit" and event.prompt == "":
        return MODEL_CALL
    return event.hook_event_name


def words(event: str, verdict: Verdict, text: str) -> dict[str, Any]:
    """An answer as Qwen understands it: a call is denied, and the model is not called again."""
    if verdict is Verdict.STOP:
        verdict = Verdict.DENY if event == PRE_TOOL else Verdict.GO_ON
    return claude_words(event, verdict, text)


PROGRAM: Final = Program(
    name="qwen",
    events=tuple(turns.HOOKS),
    handlers={
        **turns.HOOKS,
        MODEL_CALL: turns.model_started,
        PRE_TOOL: turns.tool_started_or_asks(ASKING),
    },
    context=frozenset({"UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "Stop"}),
    ends=frozenset({"UserPromptSubmit", MODEL_CALL, PRE_TOOL}),
    words=words,
    our_name=our_name,
    helpers_speak=True,
    leaves_silently=True,
    transcripts=Path(".qwen", "projects"),
)
