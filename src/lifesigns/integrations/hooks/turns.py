"""Turns: what the events that all programs share mean. A program's own file says which event is which."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Final

from lifesigns.core.digests import digest
from lifesigns.core.health import Doing
from lifesigns.core.signals import (
    ActivitySeen,
    AgentLeft,
    DoingChanged,
    Signal,
    ToolFinished,
    ToolStarted,
)
from lifesigns.integrations.hooks import waiting
from lifesigns.integrations.hooks.events import HookEvent, line
from lifesigns.integrations.hooks.sessions import Session, Speaker, begin_thought, end_thought
from lifesigns.integrations.hooks.waiting import goes_on, named

Handler = Callable[[Session, Speaker, HookEvent], Iterator[Signal]]


def session_start(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """A session begins, or is taken up again."""
    # After a compaction the same session "starts" again, in the middle of its work.
    if event.source != "compact":
        yield DoingChanged(**named(session, speaker), doing=Doing.IDLE)


def prompt(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    """Its user speaks; or, after a nudge at the end of a turn, the program by itself."""
    if not session.prolonging:
        session.prolonged = 0
    session.prolonging = False
    speaker.waits, speaker.question = False, ""
    yield ActivitySeen(**named(session, speaker), kind="message")
    yield DoingChanged(**named(session, speaker), doing=Doing.WORKING)


def prompt_and_thought(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """The same, of a program that does not tell of its model calls: one begins."""
    yield from prompt(session, speaker, event)
    yield from begin_thought(session, speaker)


def tool_started(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """A tool is called: the model has answered."""
    session.prolonging = False
    yield from end_thought(session, speaker)
    yield from goes_on(session, speaker)
    speaker.begin_call(event.tool_use_id, event.tool_name)
    yield ToolStarted(
        **named(session, speaker),
        call_id=event.tool_use_id,
        tool=event.tool_name,
        args_digest=digest(event.tool_input, exact=True),
    )


def tool_started_or_asks(asking: Set[str]) -> Handler:
    """The same, of a program in which these tools are a question to its user."""

    def handle(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
        yield from tool_started(session, speaker, event)
        if event.tool_name in asking:
            question = waiting.question_in(event.tool_input) or f"{event.tool_name} asks"
            yield from waiting.asks(session, speaker, question)

    return handle


def tool_finished(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """A call has ended."""
    speaker.calls.pop(event.tool_use_id, None)
    yield from goes_on(session, speaker)
    yield ToolFinished(
        **named(session, speaker),
        call_id=event.tool_use_id,
        tool=event.tool_name,
        args_digest=digest(event.tool_input, exact=True),
        result_digest=digest(event.tool_response),
        duration_s=seconds(event.duration_ms),
    )


def tool_failed(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """A call has ended in an error. One that its user interrupted has not failed."""
    speaker.calls.pop(event.tool_use_id, None)
    yield from goes_on(session, speaker)
    yield ToolFinished(
        **named(session, speaker),
        call_id=event.tool_use_id,
        tool=event.tool_name,
        args_digest=digest(event.tool_input, exact=True),
        result_digest="" if event.is_interrupt else digest(event.error),
        duration_s=seconds(event.duration_ms),
        ok=event.is_interrupt,
        error=None if event.is_interrupt else line(event.error) or "failed",
    )


def unnamed_tool_started(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """A tool is called, by a program that gives its calls no ids."""
    _give_id(speaker, event, begins=True)
    yield from tool_started(session, speaker, event)


def unnamed_tool_ended(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """Its end, in an error if the event has one. After the last one of a turn the model is asked, and nothing says so."""
    _give_id(speaker, event, begins=False)
    end = tool_finished if event.error is None else tool_failed
    yield from end(session, speaker, event)
    if not speaker.calls:
        yield from begin_thought(session, speaker)


def model_started(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    """The model is called, by a program that says so: its calls are over, and whatever it waited for has come."""
    yield from goes_on(session, speaker)
    yield from forget_calls(session, speaker)
    yield from begin_thought(session, speaker)


def subagent_start(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    """A subagent begins."""
    yield DoingChanged(**named(session, speaker), doing=Doing.WORKING)
    yield from begin_thought(session, speaker)


def subagent_stop(session: Session, _: Speaker, event: HookEvent) -> Iterator[Signal]:
    """A subagent has finished."""
    speaker = session.subagents.pop(event.agent_id or "", None)
    if speaker is not None:  # A compaction ends one that never began.
        yield from end_thought(session, speaker)
        yield AgentLeft(**named(session, speaker), reason="the subagent has finished")


def compacts(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    """The conversation is about to be summed up, by the model."""
    yield ActivitySeen(**named(session, speaker), kind="compaction")
    yield from begin_thought(session, speaker)


def compacted(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    """The conversation was summed up."""
    yield from end_thought(session, speaker)
    yield ActivitySeen(**named(session, speaker), kind="compaction")


def stop(session: Session, speaker: Speaker, _: HookEvent) -> Iterator[Signal]:
    """The turn has ended."""
    session.prolonging = False
    return rest(session, speaker)


def stop_failed(session: Session, speaker: Speaker, event: HookEvent) -> Iterator[Signal]:
    """The turn has ended in an error of the model's side."""
    yield from forget_calls(session, speaker)
    yield from waiting.stop_failure(session, speaker, event)


def session_end(session: Session, _: Speaker, event: HookEvent) -> Iterator[Signal]:
    """The session ends, and so does everybody in it."""
    why = line(event.reason)
    said = "the session ended" if why in ("", "other") else f"the session ended: {why}"
    for one in session.speakers():
        yield AgentLeft(**named(session, one), reason=said)


HOOKS: Final[Mapping[str, Handler]] = {
    "SessionStart": session_start,
    "UserPromptSubmit": prompt_and_thought,
    "PreToolUse": tool_started,
    "PostToolUse": tool_finished,
    "PostToolUseFailure": tool_failed,
    "PermissionRequest": waiting.asks_soon,
    "Notification": waiting.notified,
    "SubagentStart": subagent_start,
    "SubagentStop": subagent_stop,
    "PreCompact": compacts,
    "PostCompact": compacted,
    "Stop": stop,
    "StopFailure": stop_failed,
    "SessionEnd": session_end,
}
"""The hooks of Claude Code that other programs have taken over; each has its own way with some of them."""


# --- parts --------------------------------------------------------------------------------------------


def rest(session: Session, speaker: Speaker) -> Iterator[Signal]:
    """The turn is over: the agent is idle until its user speaks."""
    yield from end_thought(session, speaker)
    yield from forget_calls(session, speaker)
    speaker.waits, speaker.question = False, ""
    yield DoingChanged(**named(session, speaker), doing=Doing.IDLE)


def _give_id(speaker: Speaker, event: HookEvent, *, begins: bool) -> None:
    """An id for a call of a program that gives it none: tool and arguments, and a number. Of equal calls the first ends first."""
    same = f"{event.tool_name}-{digest(event.tool_input, exact=True)}-"
    known = None if begins else next((call for call in speaker.calls if call.startswith(same)), None)
    if known is None:
        speaker.numbered += 1
    event.tool_use_id = known or f"{same}{speaker.numbered}"


def forget_call(session: Session, speaker: Speaker, call_id: str) -> Iterator[Signal]:
    """This call was denied, and has no end of its own. The model reads why."""
    tool = speaker.calls.pop(call_id, None)
    if tool is not None:
        yield ToolFinished(**named(session, speaker), call_id=call_id, tool=tool)
        if not speaker.calls:
            yield from begin_thought(session, speaker)


def forget_calls(session: Session, speaker: Speaker) -> Iterator[Signal]:
    """Calls that were denied or interrupted have no end of their own."""
    calls, speaker.calls = speaker.calls, {}
    for call_id, tool in calls.items():
        yield ToolFinished(**named(session, speaker), call_id=call_id, tool=tool)


def seconds(milliseconds: float | None) -> float | None:
    """Milliseconds as we count them."""
    return None if milliseconds is None else max(0.0, milliseconds / 1000)
