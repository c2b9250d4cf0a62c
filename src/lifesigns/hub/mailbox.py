"""Mailbox: what messages say, and how far they came. Sent, delivered, read and acknowledged are four things.

Whether a message is overdue, and what is done then, the engine knows by its id (`core/messages.py`). Contents are only
kept here: in memory, a bounded number of bytes; when that is full, the token whose messages take most of it loses its oldest.
After a restart a message that waits for its acknowledgement is still listed, without its content.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

CONTENT_MAX: Final = 64 * 1024
BYTES_MAX: Final = 32 * 1024 * 1024
ENVELOPE: Final = 3 * 1024
"""Bytes that a message counts besides its content: there are some ten thousand at most."""


@dataclass(slots=True)
class Mail:
    """One message with its content."""

    id: str
    sender: str
    to: str
    subject: str
    priority: str
    content: Mapping[str, Any]
    in_reply_to: str | None
    sent_at: float
    size: int
    wants_ack: bool
    source: str = ""
    """The token that sent it; empty for the hub's own."""
    delivered_at: float | None = None
    """When its recipient was first given it in a list."""
    read_at: float | None = None
    """When its recipient fetched it, or said that it read it."""
    acknowledged_at: float | None = None

    def deliver(self, now: float) -> None:
        """Its recipient was given it."""
        self.delivered_at = self.delivered_at or now

    def read(self, now: float) -> None:
        """Its recipient opened it."""
        self.deliver(now)
        self.read_at = self.read_at or now

    def acknowledge(self, now: float) -> None:
        """Its recipient acknowledges it, and so has read it."""
        self.read(now)
        self.acknowledged_at = self.acknowledged_at or now

    @property
    def status(self) -> str:
        if self.acknowledged_at is not None:
            return "acknowledged"
        if self.read_at is not None:
            return "read"
        return "unread"


class Mailbox:
    """The messages whose contents are here."""

    def __init__(self) -> None:
        self._mails: dict[str, Mail] = {}
        self._bytes_of = Counter[str]()
        """By source."""

    def __len__(self) -> int:
        return len(self._mails)

    def put(self, mail: Mail) -> None:
        """Keep it. What others wrote is not pushed out by whoever writes most."""
        self._mails[mail.id] = mail
        self._bytes_of[mail.source] += mail.size + ENVELOPE
        while self._bytes_of.total() > BYTES_MAX:
            ((greediest, _),) = self._bytes_of.most_common(1)
            self.drop(next(one.id for one in self._mails.values() if one.source == greediest))

    def drop(self, message_id: str) -> None:
        """Keep it no longer."""
        if (dropped := self._mails.pop(message_id, None)) is not None:
            self._bytes_of[dropped.source] -= dropped.size + ENVELOPE
            if not self._bytes_of[dropped.source]:
                del self._bytes_of[dropped.source]

    def get(self, message_id: str) -> Mail | None:
        return self._mails.get(message_id)

    def to(self, agent_id: str) -> Iterator[Mail]:
        """Those to an agent, oldest first."""
        return (mail for mail in self._mails.values() if mail.to == agent_id)

    def sent_by(self, agent_id: str) -> Iterator[Mail]:
        """Those from an agent, oldest first."""
        return (mail for mail in self._mails.values() if mail.sender == agent_id)

    def pings_before(self, pong: Mail) -> list[Mail]:
        """The heartbeat requests that a response answers: that of its sequence, and those sent before it."""
        pings = [
            mail
            for mail in self.to(pong.sender)
            if mail.sender == pong.to and mail.wants_ack and mail.acknowledged_at is None
            if mail.content.get("type") == "heartbeat"
        ]
        sequence = pong.content.get("sequence")
        for number, ping in enumerate(pings):
            if sequence is not None and ping.content.get("sequence") == sequence:
                return pings[: number + 1]
        return pings if sequence is None else []
