"""Waiting: for its user, or for a model that is busy. Whatever an agent waits for, it has come when something happens again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from lifesigns.core.health import Doing
from lifesigns.core.signals import ActivitySeen, DoingChanged, ErrorReported, Signal
from lifesigns.integrations.hooks.events import HookEvent, line
from lifesigns.integrations.hooks.sessions import Session, Speaker, end_thought

PARKED: Final = {"rate_limit": "ratelimit", "overloaded": "overloaded", "server_error": "server"}
"""Ends of a run that pass by themselves, and the kind of error they are."""
WAITS: Final = {"permission_prompt", "elicitation_dialog", "agent_needs_input", "ToolPermission"}
"""Notifications that the user is asked something."""
_STATUS: Final = re.compile(r"\b(429|5[0-9][0-9])\b")


def named(session: Session, speaker: Speaker) -> dict[str, Any]:
    """Whom a signal is about."""
    return {"agent_id": speaker.id, "incarnation": session.incarnation}


def asks(session: Session, speaker: Speaker, question: str) -> Iterator[Signal]:
    """Its user is asked something."""
    speaker.waits = True
    yield DoingChanged(**named(session, speaker), doing=Doing.WAITING_FOR_HUMAN, note=question)


def asks_soon(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """A request for permission. Without a terminal nobody is asked, and the call is denied at once: so this only notes the
    question. That it is put to somebody, a notification says."""
    speaker.question = wish(event)
    yield ActivitySeen(**named(session, speaker), kind="permission")


def notified(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """A notification that its user is asked something."""
    if event.notification_type in WAITS:
        message = line(event.message)
        question = f"{message} ({speaker.question})" if speaker.question else message
        yield from asks(session, speaker, question)


def goes_on(session: Session, speaker: Speaker) -> Iterator[Signal]:
    """Something happens: whatever it waited for has come."""
    speaker.question = ""
    if speaker.waits:
        speaker.waits = False
        yield DoingChanged(**named(session, speaker), doing=Doing.WORKING)


def parked(session: Session, speaker: Speaker, why: str) -> Iterator[Signal]:
    """The model has no time; the program asks it again by itself."""
    if not speaker.waits:
        speaker.waits = True
        yield DoingChanged(**named(session, speaker), doing=Doing.RATE_LIMITED, note=why)


def ended_by(session: Session, speaker: Speaker, error: str) -> Iterator[Signal]:
    """The model's side has ended the turn with this error. What has a status of "too much" passes; all else is for its user."""
    status = _STATUS.search(error)
    yield from end_thought(session, speaker, ok=False, error_kind=status[1] if status else "model")
    if status:
        yield DoingChanged(**named(session, speaker), doing=Doing.RATE_LIMITED, note=error)
    else:
        yield from asks(session, speaker, f"the run ended with an error: {error}")


def stop_failure(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """The same, of a program that says of which kind the error is."""
    kind, said = line(event.error) or "unknown", line(event.last_assistant_message)
    yield from end_thought(session, speaker, ok=False, error_kind=PARKED.get(kind, kind))
    if kind in PARKED:
        yield DoingChanged(**named(session, speaker), doing=Doing.RATE_LIMITED, note=said)
    else:
        yield ErrorReported(**named(session, speaker), message=f"{kind}: {said}")
        yield from asks(session, speaker, f"the run ended with {kind}: {said}")


def wish(event: HookEvent) -> str:
    """What is asked for in a request for permission: "may it use Bash: ls?"."""
    args = event.tool_input if isinstance(event.tool_input, dict) else {}
    what = next((args[key] for key in ("command", "file_path") if isinstance(args.get(key), str)), None)
    return f"may it use {event.tool_name}: {line(what)}?" if what else f"may it use {event.tool_name}?"


def question_in(asked: object) -> str:
    """The question in the arguments of a tool that asks the user, or the beginning of a plan."""
    if not isinstance(asked, dict):
        return ""
    questions = asked.get("questions")
    if isinstance(questions, list) and questions and isinstance(questions[0], dict):
        return line(questions[0].get("question"))
    return line(asked.get("question") or asked.get("plan"))
