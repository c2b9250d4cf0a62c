"""The messenger: a server through which agents exchange messages, and which knows their sessions. AI Maestro is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Protocol

from msgspec import Struct, field

from lifesigns.core.signals import Priority
from lifesigns.ports.not_taken import NotTaken


class MessengerError(NotTaken):
    """The messenger did not do what it was asked."""


class UnknownRecipient(MessengerError):
    """The messenger knows no agent of that name."""


class SessionState(StrEnum):
    """What the messenger says of an agent's session."""

    ONLINE = "online"
    OFFLINE = "offline"
    NOT_FOUND = "not_found"


class SessionActivity(Struct, frozen=True):
    """The last activity of a session."""

    active_at: str
    """As the messenger writes it: it is compared, and never read."""
    waiting: bool = False
    """It waits for a person."""
    waits_for: str = ""


class OutgoingMessage(Struct, frozen=True):
    """A message of ours."""

    to: str
    subject: str
    priority: Priority
    kind: str
    text: str
    context: Mapping[str, Any] = field(default_factory=dict)
    """Everything else that the recipient should know."""


class SentMessage(Struct, frozen=True):
    """What became of it."""

    id: str
    notified: bool
    """The recipient's session was told. Otherwise the message waits in its inbox."""


class IncomingMessage(Struct, frozen=True):
    """A message to us."""

    id: str
    sender: str
    kind: str = ""
    text: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)
    in_reply_to: str | None = None


class Messenger(Protocol):
    """Sends messages in our name, and reads ours. Raises `MessengerError`."""

    @property
    def name(self) -> str:
        """Our name there."""

    async def send(self, message: OutgoingMessage) -> SentMessage:
        """Send one. Raises `UnknownRecipient` if there is no such agent."""

    async def unread(self) -> Sequence[IncomingMessage]:
        """The messages to us that we have not marked as read, oldest first; not all, if there are many."""

    async def mark_read(self, message_id: str) -> None: ...

    async def is_read(self, recipient: str, message_id: str) -> bool:
        """Whether the recipient has read a message of ours."""

    async def session(self, name: str) -> SessionState: ...

    async def activity(self) -> Mapping[str, SessionActivity]:
        """The sessions it knows, by name."""

    async def close(self) -> None: ...
