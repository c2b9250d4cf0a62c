"""What the hub writes to agents: its pings and its orders, as messages. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from lifesigns.core.effects import AskStatus, Order, Remind, SendNudge, SendPing
from lifesigns.core.signals import Answer, Priority
from lifesigns.core.words import duration
from lifesigns.ports.messenger import OutgoingMessage

ORDERS: Final = (SendPing, SendNudge, AskStatus, Remind)
"""The orders that are messages."""

PING: Final = "heartbeat"
INQUIRY: Final = "status-inquiry"
HOW_TO_ANSWER: Final = "Reply to this message, with status healthy, busy or degraded in content.context."


def ping(to: str, sequence: int, now: float) -> OutgoingMessage:
    """A heartbeat request."""
    return OutgoingMessage(
        to,
        "[HEARTBEAT] Health check",
        Priority.LOW,
        PING,
        "ping",
        {"timestamp": stamp(now), "sequence": sequence},
    )


def message_of(order: Order, inquiry_wait: float) -> OutgoingMessage:
    """An order as a message to its agent."""
    match order:
        case SendPing():
            return OutgoingMessage(
                order.agent_id,
                "[STATUS CHECK] Are you there?",
                Priority.HIGH,
                INQUIRY,
                f"You have missed your heartbeats: {order.suspicion}. Please provide a status update within "
                f"{duration(inquiry_wait)}. {HOW_TO_ANSWER}",
                {"expected_response_by": stamp(order.at + inquiry_wait)},
            )
        case AskStatus():
            return OutgoingMessage(
                order.agent_id,
                "[STATUS CHECK] Task progress inquiry",
                Priority.HIGH,
                INQUIRY,
                f"{order.text} {HOW_TO_ANSWER} If you cannot continue, say status failed.",
                {"task_id": order.task_id, "expected_response_by": stamp(order.answer_by)},
            )
        case SendNudge():
            return OutgoingMessage(
                order.agent_id,
                "[NUDGE] Are you stuck?",
                Priority.HIGH,
                "nudge",
                order.text,
                {"nudge_id": order.order_id, "attempt": order.attempt, "answers": [*map(str, Answer)]},
            )
        case Remind():
            return OutgoingMessage(
                order.agent_id,
                "[REMINDER] Unacknowledged message",
                order.priority,
                "reminder",
                order.text,
                {"message_id": order.message_id, "from": order.sender},
            )
        case _:
            raise TypeError(f"{type(order).__name__} is no message")


def stamp(at: float) -> str:
    """A moment as these documents write it: whole seconds."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
