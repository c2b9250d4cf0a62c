"""What agents write to the hub, as signals. Pure.

A response to a heartbeat is a beat with its status. The answer to an inquiry shows that its agent lives, and is busy unless
it says otherwise. A message that answers nothing of ours is a sign of life, and a beat if it has a status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lifesigns.core.effects import AskStatus, Order, Remind, SendNudge, SendPing
from lifesigns.core.health import BUSY_WORD
from lifesigns.core.signals import (
    ActivitySeen,
    Answer,
    BeatReceived,
    MessageAcked,
    NudgeAnswered,
    PongReceived,
    ProgressMade,
    Signal,
    TaskFailed,
)
from lifesigns.ports.messenger import IncomingMessage

PONG: Final = "heartbeat-response"
HEALTHY: Final = "healthy"
GIVEN_UP: Final = frozenset({"failed", "cannot_continue"})
"""Statuses by which an agent says that it cannot go on with its task."""
STATUS_MAX: Final = 64
NOTE_MAX: Final = 1024


def signals_of(message: IncomingMessage, answered: Order | None, *, source: str) -> list[Signal]:
    """The signals of a message; `answered` is the order it replies to, None for a ping or nothing of ours."""
    match answered:
        case SendPing():
            return [_beat(message, source, BUSY_WORD)]
        case AskStatus():
            return _about_a_task(message, answered, source)
        case SendNudge():
            return [
                NudgeAnswered(
                    agent_id=message.sender,
                    nudge_id=answered.order_id,
                    answer=_answer(message.context),
                    note=message.text[:NOTE_MAX],
                    source=source,
                )
            ]
        case Remind():
            return [MessageAcked(agent_id=message.sender, message_id=answered.message_id, source=source)]
    if message.kind == PONG or _status(message.context):
        return [_beat(message, source, HEALTHY)]
    return [ActivitySeen(agent_id=message.sender, kind="message", source=source)]


def _beat(message: IncomingMessage, source: str, usual: str) -> BeatReceived:
    task = message.context.get("current_task")
    return BeatReceived(
        message.sender,
        status=_status(message.context) or usual,
        progress=str(task)[:NOTE_MAX] if task else None,
        source=source,
    )


def _about_a_task(message: IncomingMessage, asked: AskStatus, source: str) -> list[Signal]:
    status, note = _status(message.context) or BUSY_WORD, message.text[:NOTE_MAX]
    if status in GIVEN_UP:
        return [TaskFailed(agent_id=message.sender, task_id=asked.task_id, reason=note, source=source)]
    signals: list[Signal] = [
        PongReceived(agent_id=message.sender, status=status, task_id=asked.task_id, source=source)
    ]
    percent = message.context.get("progress_percentage")
    if isinstance(percent, int | float) and not isinstance(percent, bool):
        signals.append(
            ProgressMade(
                agent_id=message.sender,
                task_id=asked.task_id,
                percent=float(percent),
                note=note,
                source=source,
            )
        )
    return signals


def _status(context: Mapping[str, Any]) -> str:
    status = context.get("status")
    return status.strip().lower()[:STATUS_MAX] if isinstance(status, str) else ""


def _answer(context: Mapping[str, Any]) -> Answer:
    said = str(context.get("answer"))
    return Answer(said) if said in [*Answer] else Answer.NEED_TIME
