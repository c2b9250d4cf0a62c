"""Answers: what a hook is answered, so that orders reach a program that takes none.

A nudge is context for the model at the next boundary, an open breaker denies the call, a stop ends the run: by the answer, or
where no answer does, by an interrupt that the client sends to the program which has called it. Texts state
facts: what sounds like a command from outside, a model takes for an attack. Nothing here can prolong a run for ever: a nudge
at the end of a turn puts the end off at most `PROLONGED_MAX` times, until the user speaks again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from lifesigns.core.effects import AskStatus, Order, Remind, SendNudge, Terminate
from lifesigns.core.signals import NudgeDelivered, Signal, TerminationFailed
from lifesigns.integrations.hooks import processes
from lifesigns.integrations.hooks.events import HookEvent
from lifesigns.integrations.hooks.program import PRE_TOOL, Program, Verdict
from lifesigns.integrations.hooks.sessions import Session, Speaker, begin_thought

PROLONGED_MAX: Final = 2
TEXT_MAX: Final = 4000


@dataclass(slots=True)
class Reply:
    """The answer to one event, what it means for the orders in it, and those that are only to be acknowledged."""

    answer: dict[str, Any] = field(default_factory=dict)
    outcomes: list[Signal] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    prolongs: bool = False
    """The turn that was about to end goes on."""
    denies: bool = False
    """The call that was about to be made is not made."""
    interrupts: bool = False
    """The client is to interrupt the program."""


def reply_to(
    program: Program,
    session: Session,
    speaker: Speaker,
    event: HookEvent,
    orders: Iterable[Order],
    refusal: str,
    now: float,
) -> Reply:
    """The answer to this event of this agent, for which `orders` wait; `refusal` is why its tool may not be called, or empty."""
    reply, name = Reply(), event.hook_event_name
    nudges: list[SendNudge | AskStatus | Remind] = []
    for order in orders:
        if isinstance(order, Terminate):
            if _stopped(program, session, speaker, name, order, reply, now):
                return reply
        elif isinstance(order, SendNudge | AskStatus | Remind):
            nudges.append(order)
    if refusal and name == PRE_TOOL:
        reply.answer, reply.denies = program.words(name, Verdict.DENY, refusal), True
        return reply  # What the model is told with a denial is the denial; a nudge can wait.
    if nudges and name in program.context and _may_tell(session, event):
        _tell(program, session, speaker, event, nudges, reply)
    return reply


def _stopped(
    program: Program,
    session: Session,
    speaker: Speaker,
    name: str,
    order: Terminate,
    reply: Reply,
    now: float,
) -> bool:
    """Whether the answer ends the run. That it has ended is reported when it has."""
    if order.on_silence:
        reply.outcomes.append(
            TerminationFailed(
                agent_id=speaker.id,
                incarnation=session.incarnation,
                order_id=order.order_id,
                reason=f"it lives: its hook {name} came after the order",
            )
        )
        return False
    if name not in program.ends or speaker is not session.main:
        return False
    why = f"lifesigns stopped this run: {order.reason}"[:TEXT_MAX]
    verdict = Verdict.STOP if program.can_be_stopped else Verdict.DENY
    reply.answer, reply.denies = program.words(name, verdict, why), name == PRE_TOOL
    reply.interrupts = bool(program.alone) and processes.has_argument(session.pid, program.alone)
    session.stopping, session.stopping_at = order.order_id, now
    return True


def _may_tell(session: Session, event: HookEvent) -> bool:
    return event.hook_event_name != "Stop" or session.prolonged < PROLONGED_MAX


def _tell(
    program: Program,
    session: Session,
    speaker: Speaker,
    event: HookEvent,
    nudges: list[SendNudge | AskStatus | Remind],
    reply: Reply,
) -> None:
    text = "\n".join(f"Note from the monitor (lifesigns): {one.text}" for one in nudges)[:TEXT_MAX]
    name = event.hook_event_name
    if name == "Stop":
        session.prolonged += 1
        session.prolonging = True
        reply.answer = program.words(name, Verdict.GO_ON, text)
        reply.prolongs = True
        reply.outcomes.extend(begin_thought(session, speaker))
    else:
        reply.answer = program.words(name, Verdict.CONTEXT, text)
    for order in nudges:
        if isinstance(order, SendNudge):
            speaker.unseen.append(order.order_id)
            reply.outcomes.append(
                NudgeDelivered(agent_id=speaker.id, incarnation=session.incarnation, order_id=order.order_id)
            )
        else:
            reply.acknowledged.append(order.order_id)
