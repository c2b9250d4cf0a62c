"""Builds the views of messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from lifesigns.core.engine import Engine
from lifesigns.core.messages import PendingMessage
from lifesigns.core.signals import Priority
from lifesigns.views.messages import InboxMessage, MessageView
from lifesigns.views.moments import moment, moment_or_none


class StoredMessage(Protocol):
    """What the hub keeps of a message that came with its content."""

    id: str
    sender: str
    to: str
    subject: str
    priority: str
    content: Mapping[str, Any]
    sent_at: float
    delivered_at: float | None
    read_at: float | None
    acknowledged_at: float | None


def inbox_message(mail: StoredMessage) -> InboxMessage:
    """A message for its recipient."""
    return InboxMessage(
        mail.id,
        mail.sender,
        mail.to,
        Priority(mail.priority),
        mail.subject,
        dict(mail.content),
        moment(mail.sent_at),
        moment_or_none(mail.delivered_at),
        moment_or_none(mail.read_at),
        moment_or_none(mail.acknowledged_at),
    )


def message_view(engine: Engine, message: PendingMessage, mail: StoredMessage | None = None) -> MessageView:
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
        subject="" if mail is None else mail.subject,
        delivered_at=None if mail is None else moment_or_none(mail.delivered_at),
        read_at=None if mail is None else moment_or_none(mail.read_at),
    )
