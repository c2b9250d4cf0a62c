"""Claude Agent SDK, watched.

    async for message in query(prompt="...", options=watch(ClaudeAgentOptions(), "coder-7")):
        ...

The SDK starts Claude Code and passes its hooks on: prompts, tools, subagents, and the end of a turn. A run is a turn: from a
prompt until Claude stops. Hooks do not tell when the model is asked; it is when nothing else goes on. Tokens are in the
transcript, which is read at the end of a turn.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from lifesigns.integrations.runs import AgentRun, Cost, Watch, attached, harmless

KNOWN: Final = "0.2.182"
EVENTS: Final = (
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "StopFailure",
)
TELLS: Final = {"UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"}
"""Events whose answer the model gets to read."""
LIMITS: Final = {"rate_limit": "429", "overloaded": "529", "server_error": "500"}
TRANSCRIPT_MAX: Final = 100_000_000


def watch(
    options: Any = None, agent_id: str | None = None, *, cost: Cost | None = None, **sender: Any
) -> Any:
    """These options, with hooks by which their sessions are watched, nudges reach Claude, and a stop ends the run."""
    told = ToldSessions(Watch("claude_agent_sdk", agent_id, cost=cost, **sender))
    return attached("claude-agent-sdk", KNOWN, lambda: _hooked(options, told), otherwise=lambda: options)


def _hooked(options: Any, told: ToldSessions) -> Any:
    sdk = import_module("claude_agent_sdk")
    options = sdk.ClaudeAgentOptions() if options is None else options
    hooks = {event: list(matchers) for event, matchers in (options.hooks or {}).items()}
    for event in EVENTS:
        hooks.setdefault(event, []).append(sdk.HookMatcher(hooks=[told.hook]))
    asks = options.can_use_tool
    return dataclasses.replace(options, hooks=hooks, can_use_tool=asks if asks is None else told.asking(asks))


class ToldSessions:
    """The hooks of Claude Code, as reports."""

    def __init__(self, watched: Watch) -> None:
        self._watched = watched
        self._last: str | None = None
        self._read: dict[str, set[str]] = {}
        """Messages of a session whose tokens are counted."""

    async def hook(self, data: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        """Called by the SDK for each event; its answer goes to Claude Code."""
        return self._heard(data) or {}

    def asking(self, can_use_tool: Any) -> Any:
        """The user's own function for permissions: while it decides, a human is asked."""

        async def asked(tool_name: str, args: Any, context: Any) -> Any:
            run = self._watched.find(self._last)
            if run is not None:
                run.asks(f"May it use {tool_name}?")
            try:
                return await can_use_tool(tool_name, args, context)
            finally:
                if run is not None:
                    run.is_answered()

        return asked

    @harmless
    def _heard(self, data: Mapping[str, Any]) -> dict[str, Any] | None:
        session, event = str(data["session_id"]), str(data["hook_event_name"])
        self._last = session
        run = self._watched.find(session)
        if run is None and event not in ("Stop", "StopFailure"):
            run = self._watched.begin(session)
        if run is None:
            return None
        self._report(run, event, data)
        if event in ("Stop", "StopFailure"):
            self._over(run, session, event, data)
            return None
        return _answer(run, event)

    def _report(self, run: AgentRun, event: str, data: Mapping[str, Any]) -> None:
        call = data.get("tool_use_id")
        match event:
            case "UserPromptSubmit":
                run.model_started(None)
            case "PreToolUse":
                run.model_finished(None)
                run.tool_started(call, str(data["tool_name"]), data.get("tool_input"))
            case "PostToolUse":
                run.tool_finished(call, data.get("tool_response"))
                run.model_started(None)
            case "PostToolUseFailure":
                run.tool_failed(call, str(data.get("error")))
                run.model_started(None)
            case "SubagentStart":
                run.hands_over(str(data.get("agent_type")))

    def _over(self, run: AgentRun, session: str, event: str, data: Mapping[str, Any]) -> None:
        if event == "Stop":
            run.model_finished(None, *self._tokens(session, data.get("transcript_path")))
        error = None
        if event == "StopFailure":
            kind = str(data.get("error"))
            run.model_failed(None, f"{LIMITS.get(kind, '')} {kind}")
            error = RuntimeError(kind)
        self._watched.end(session, error)

    def _tokens(self, session: str, path: Any) -> tuple[int, int]:
        """What this turn has used, from the transcript. A message is in several lines, each with its usage."""
        counted, used = self._read.setdefault(session, set()), dict[str, Any]()
        file = Path(str(path))
        if path is None or not file.is_file() or file.stat().st_size > TRANSCRIPT_MAX:
            return 0, 0
        for line in file.read_text(errors="replace").splitlines():
            if '"usage"' in line:
                message = json.loads(line).get("message") or {}
                usage = message.get("usage") or {}
                if (name := str(message.get("id"))) not in counted:
                    used[name] = usage
        counted.update(used)
        return (
            sum(
                int(one.get("input_tokens") or 0) + int(one.get("cache_creation_input_tokens") or 0)
                for one in used.values()
            ),
            sum(int(one.get("output_tokens") or 0) for one in used.values()),
        )


def _answer(run: AgentRun, event: str) -> dict[str, Any] | None:
    """What Claude Code is answered: a stop, a note for Claude, or nothing."""
    if run.is_stopping:
        why = str(run.stopped())
        answer: dict[str, Any] = {"continue_": False, "stopReason": why}
        if event == "PreToolUse":  # Otherwise the call that is pending would still be made.
            answer["hookSpecificOutput"] = {
                "hookEventName": event,
                "permissionDecision": "deny",
                "permissionDecisionReason": why,
            }
        return answer
    note = run.note() if event in TELLS else None
    if note is None:
        return None
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": note}}
