"""Messages: sent, delivered, read and acknowledged are different things, and only the last one counts here.

Each priority has its deadline and its answer: urgent escalates, high reminds and then escalates, normal reminds, low
is only written down. We look at the recipient's state first: we remind a recipient that is busy or waits for a human
before we escalate, and escalate at once if it is gone.

A message stays listed until it is acknowledged or withdrawn, even after we have done everything its priority asks
for.
"""

from __future__ import annotations

from dataclasses import dataclass

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.awareness import Awareness
from lifesigns.core.effects import EscalateMessage, MessageOverdue, Remind
from lifesigns.core.health import Doing, Health
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import MessagePolicy
from lifesigns.core.signals import Priority
from lifesigns.core.words import duration

PARKED = frozenset({Doing.WAITING_FOR_HUMAN, Doing.RATE_LIMITED})


@dataclass(slots=True)
class PendingMessage:
    """A message that waits for its acknowledgement."""

    id: str
    sender: str
    to: str
    priority: Priority
    sent_at: float
    order: int
    armed_at: float = NEVER
    reminded_at: float | None = None
    overdue_at: float | None = None
    watched: bool = True
    """Whether we still act on it. It stays listed in any case."""
    source: str = ""
    """Whose quota it is of."""


class OpenMessages:
    """Which messages each sender has, and which of them are done with: found without a look at those of others."""

    def __init__(self, messages: dict[str, PendingMessage]) -> None:
        self._messages = messages
        self._by_sender: dict[str, dict[str, None]] = {}
        self._done: dict[str, dict[str, None]] = {}
        for message in messages.values():
            self._note(message)

    def add(self, message: PendingMessage) -> None:
        self._messages[message.id] = message
        self._note(message)

    def remove(self, message: PendingMessage) -> None:
        del self._messages[message.id]
        for index in (self._by_sender, self._done):
            if (mine := index.get(message.sender)) is not None:
                mine.pop(message.id, None)
                if not mine:
                    del index[message.sender]

    def done_with(self, message: PendingMessage) -> None:
        """We act on it no more."""
        message.watched = False
        self._note(message)

    def of(self, sender: str) -> list[PendingMessage]:
        return [self._messages[one] for one in self._by_sender.get(sender, ())]

    def first_done(self, sender: str) -> PendingMessage | None:
        """The one that this sender could do without first."""
        done = next(iter(self._done.get(sender, ())), None)
        return None if done is None else self._messages[done]

    def _note(self, message: PendingMessage) -> None:
        self._by_sender.setdefault(message.sender, {})[message.id] = None
        if not message.watched:
            self._done.setdefault(message.sender, {})[message.id] = None


class Messages:
    """Watches the acknowledgements."""

    def __init__(self, outbox: Outbox, awareness: Awareness) -> None:
        self._outbox = outbox
        self._awareness = awareness

    def due_at(self, message: PendingMessage, policy: MessagePolicy) -> float:
        """When the acknowledgement, or the answer to our reminder, is overdue."""
        if not message.watched:
            return NEVER
        start = message.sent_at if message.reminded_at is None else message.reminded_at
        wait: float = getattr(policy, message.priority)
        return self._awareness.due(start, wait)

    def overdue(
        self, message: PendingMessage, sender: Agent, to: Agent | None, at: float, now: float
    ) -> bool:
        """A message fell due. True if we are done with it: we escalated it, or its priority asks for no more."""
        overdue_for = at - message.sent_at
        if message.overdue_at is None:
            message.overdue_at = at
        self._outbox.fact(
            MessageOverdue(at, message.id, message.sender, message.to, message.priority, overdue_for)
        )
        if message.priority is Priority.LOW:
            return True
        gone = _gone(to)
        if gone:
            return message.priority is Priority.NORMAL or self._escalate(message, sender, gone, now)
        first = message.reminded_at is None
        if message.priority is Priority.URGENT and not (first and _excused(to)):
            return self._escalate(message, sender, "it was not acknowledged", now)
        if first and to is not None:
            message.reminded_at = now
            self._remind(message, to, now)
            return False
        if message.priority is Priority.HIGH:
            return self._escalate(message, sender, "it was not acknowledged after a reminder", now)
        return True

    def _remind(self, message: PendingMessage, to: Agent, now: float) -> None:
        waited = duration(now - message.sent_at)
        self._outbox.order(
            Remind,
            to,
            now,
            message_id=message.id,
            sender=message.sender,
            priority=message.priority,
            text=f"Message {message.id} from {message.sender} ({message.priority}) waits for your acknowledgement since {waited}.",
        )

    def _escalate(self, message: PendingMessage, sender: Agent, reason: str, now: float) -> bool:
        self._outbox.order(
            EscalateMessage,
            sender,
            now,
            message_id=message.id,
            to=message.to,
            priority=message.priority,
            reason=reason,
        )
        return True


def _gone(to: Agent | None) -> str:
    if to is None:
        return "its recipient was never heard of"
    if to.health in (Health.DISCONNECTED, Health.TERMINATED):
        return f"its recipient is {to.health}"
    return ""


def _excused(to: Agent | None) -> bool:
    return to is not None and (to.busy or to.doing in PARKED)
