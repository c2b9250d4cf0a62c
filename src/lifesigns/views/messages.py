"""Messages between agents that wait for their acknowledgement."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from lifesigns.core.signals import Priority
from lifesigns.views.moments import Moment


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
    subject: str = ""
    delivered_at: Moment | None = None
    """When its recipient was first given it in its inbox; None if not, or if it came without a content."""
    read_at: Moment | None = None
    """When its recipient opened it."""


class InboxMessage(Struct, frozen=True):
    """A message as its recipient gets it."""

    message_id: str
    agent_id: str
    """The sender."""
    to: str
    priority: Priority
    subject: str
    content: dict[str, Any]
    sent_at: Moment
    delivered_at: Moment | None
    read_at: Moment | None
    acknowledged_at: Moment | None


class Inbox(Struct, frozen=True):
    """Messages to an agent, oldest first."""

    messages: tuple[InboxMessage, ...]


class MessageList(Struct, frozen=True):
    """Messages, oldest first, page by page."""

    messages: tuple[MessageView, ...]
    cursor: str | None
    """Pass this for the next page."""
