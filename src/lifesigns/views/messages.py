"""Messages between agents that wait for their acknowledgement."""

from __future__ import annotations

from msgspec import Struct

from lifesigns.core.engine import Engine
from lifesigns.core.messages import PendingMessage
from lifesigns.core.signals import Priority
from lifesigns.views.moments import Moment, moment, moment_or_none


class MessageView(Struct, frozen=True):
    """A message that is not acknowledged yet."""

    message_id: str
    agent_id: str
    """The sender."""
    to: str
    priority: Priority
    sent_at: Moment
    reminded_at: Moment | None
    """When the recipient was reminded of it."""
    overdue_at: Moment | None
    """Since when it is overdue; None if it still has time."""
    due_at: Moment | None
    """When the hub acts if it stays unacknowledged; None if everything was done, or its sender is forgotten."""


class MessageList(Struct, frozen=True):
    """Messages, oldest first, page by page."""

    messages: tuple[MessageView, ...]
    cursor: str | None
    """Pass this for the next page."""


def message_view(engine: Engine, message: PendingMessage) -> MessageView:
    """A message now."""
    sender = engine.agent(message.sender)
    waited_from = message.sent_at if message.reminded_at is None else message.reminded_at
    wait = (
        None
        if sender is None or not message.watched
        else getattr(engine.policy_of(sender).message, message.priority)
    )
    return MessageView(
        message_id=message.id,
        agent_id=message.sender,
        to=message.to,
        priority=message.priority,
        sent_at=moment(message.sent_at),
        reminded_at=moment_or_none(message.reminded_at),
        overdue_at=moment_or_none(message.overdue_at),
        due_at=None if wait is None else moment_or_none(waited_from + wait),
    )
