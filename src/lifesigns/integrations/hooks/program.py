"""A program: what is different about each coding agent, so that the rest of this room need not ask which one it is.

All events are read by the names of Claude Code's hooks (`PreToolUse`, `Stop`, ...): a program with names of its own says which
is which. Where answers may be given, and what cannot be done, each program's own file says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from operator import attrgetter
from pathlib import Path
from typing import Any

from msgspec import Struct

from lifesigns.core.signals import Signal
from lifesigns.integrations.hooks.events import HookEvent
from lifesigns.integrations.hooks.sessions import Session, subagent
from lifesigns.integrations.hooks.turns import Handler

PRE_TOOL = "PreToolUse"


class Verdict(Enum):
    """What an answer does."""

    CONTEXT = auto()
    """Gives the model something to read."""
    DENY = auto()
    """The call that is about to be made is not made."""
    STOP = auto()
    """The run ends."""
    GO_ON = auto()
    """The turn that is about to end goes on."""


Words = Callable[[str, Verdict, str], dict[str, Any]]
"""An answer in a program's own words: the event it answers, what it does, and its text."""


class Program(Struct, frozen=True, kw_only=True):
    """One coding agent."""

    name: str
    events: tuple[str, ...]
    """The hooks we ask for, by its own names."""
    handlers: Mapping[str, Handler]
    """What its events mean, by our names."""
    context: frozenset[str]
    """Events whose answer the model gets to read."""
    ends: frozenset[str]
    """Events whose answer can end the run. Of a program that lets nobody end its run: `PreToolUse`, and every call is denied."""
    words: Words
    our_name: Callable[[HookEvent], str] = attrgetter("hook_event_name")
    """What we call an event of it."""
    can_be_stopped: bool = True
    """Whether an answer ends the run at once; otherwise every call is denied until the model gives up."""
    alone: frozenset[str] = frozenset()
    """Arguments of a run without a terminal, of a program that cannot be stopped by an answer: such a run is interrupted. At a
    terminal an interrupt would take the session away from the person who sits there."""
    denials_are_silent: bool = False
    """A call that was denied has no end of its own, and nothing else tells of it."""
    helpers_speak: bool = False
    """Some of its hooks are started by a process that is gone the next moment: not every pid is the program's."""
    leaves_silently: bool = False
    """Its end is not told: a process that ends while it has nothing to do has left."""
    transcripts: Path | None = None
    """Where it keeps its transcripts, below the home folder, if they tell what its hooks do not."""
    transcript: str = ""
    """Where a session's transcript is below that, if its events do not say; `{}` is the session."""

    def read(self, event: HookEvent) -> HookEvent:
        """The event by our name."""
        event.hook_event_name = self.our_name(event)
        return event

    def signals(self, session: Session, event: HookEvent) -> list[Signal]:
        """What this event says about the session's agents; the session is changed by it."""
        handle = self.handlers.get(event.hook_event_name)
        if handle is None:
            return []
        speaker = session.main
        if event.agent_id is not None and event.hook_event_name != "SubagentStop":
            speaker = subagent(session, event.agent_id, event.agent_type or "agent")
        return list(handle(session, speaker, event))


def claude_words(event: str, verdict: Verdict, text: str) -> dict[str, Any]:
    """The answers that Claude Code understands, and the programs that have taken over its hooks."""
    denial = {"hookEventName": event, "permissionDecision": "deny", "permissionDecisionReason": text}
    match verdict:
        case Verdict.CONTEXT:
            return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
        case Verdict.DENY:
            return {"hookSpecificOutput": denial}
        case Verdict.GO_ON:
            return {"decision": "block", "reason": text}
        case Verdict.STOP:
            # Without the denial the call that is pending would still be made.
            also = {"hookSpecificOutput": denial} if event == PRE_TOOL else {}
            return {"continue": False, "stopReason": text, **also}
