"""Puts orders into the mailbox, for agents that read messages and fetch no orders: pings, nudges, inquiries, reminders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import uuid4

import msgspec

from lifesigns.core.effects import Order, SendPing
from lifesigns.core.engine import Engine
from lifesigns.core.signals import Signal
from lifesigns.hub.ai_maestro.outgoing import message_of
from lifesigns.hub.ai_maestro.questions import Questions
from lifesigns.hub.mailbox import Mail, Mailbox

NAME: Final = "lifesigns"
"""Who these messages are from."""


class MailboxExecutor:
    """Implements `lifesigns.ports.OrderExecutor` for orders that are messages. That a nudge was delivered, read or answered is
    known when its recipient comes for it."""

    def __init__(self, mailbox: Mailbox, engine: Callable[[], Engine], clock: Callable[[], float]) -> None:
        self._mailbox = mailbox
        self._engine = engine
        self._clock = clock
        self.questions = Questions()

    async def carry_out(self, order: Order) -> Signal | None:
        agent = self._engine().agent(order.agent_id)
        wait = 0.0 if agent is None else self._engine().policy_of(agent).silence.ping_wait
        message = message_of(order, wait)
        content = {
            "type": message.kind,
            "message": message.text,
            **message.context,
            "context": message.context,
        }
        if isinstance(order, SendPing):
            self._drop_pings(order.agent_id)
        mail = Mail(
            *(f"msg-{uuid4().hex}", NAME, order.agent_id, message.subject, str(message.priority), content),
            *(None, self._clock(), len(msgspec.json.encode(content))),
            wants_ack=False,
        )
        self._mailbox.put(mail)
        self.questions.sent(mail.id, order.agent_id, order, self._clock())
        return None

    async def close(self) -> None:
        """There is nothing to close."""

    def _drop_pings(self, agent_id: str) -> None:
        """Only the newest ping of an agent is worth reading."""
        for mail in [*self._mailbox.to(agent_id)]:
            question = self.questions.about(mail.id)
            if question is not None and isinstance(question.order, SendPing):
                self._mailbox.drop(mail.id)
                self.questions.answered(question)
