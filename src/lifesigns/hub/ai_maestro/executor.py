"""Carries out orders as messages. The flow chart of a silent agent ends here: its session is looked up, and if there is none
the agent is offline; if there is one, it gets a status inquiry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from lifesigns.core.effects import Order, SendNudge, SendPing
from lifesigns.core.signals import NudgeDelivered, NudgeFailed, ProcessExited, Signal
from lifesigns.hub.ai_maestro.outgoing import message_of
from lifesigns.hub.ai_maestro.questions import Questions
from lifesigns.ports.messenger import Messenger, SessionState, UnknownRecipient

LOOK_AGAIN_AFTER: Final = 2.0
"""A messenger that was just started may not have found its sessions yet: a session that is gone is gone twice."""

OFFLINE: Final = {
    SessionState.OFFLINE: "AI Maestro says that it is offline: its session is gone.",
    SessionState.NOT_FOUND: "AI Maestro says that it is offline: it knows no agent of that name.",
}


class MessengerExecutor:
    """Implements `lifesigns.ports.OrderExecutor` for orders that are messages."""

    def __init__(
        self, messenger: Messenger, questions: Questions, inquiry_wait: float, clock: Callable[[], float]
    ) -> None:
        self._messenger = messenger
        self._questions = questions
        self._inquiry_wait = inquiry_wait
        self._clock = clock

    async def carry_out(self, order: Order) -> Signal | None:
        if isinstance(order, SendPing):
            state = await self._session(order.agent_id)
            if state is not SessionState.ONLINE:
                return ProcessExited(agent_id=order.agent_id, detail=OFFLINE[state])
        try:
            sent = await self._messenger.send(message_of(order, self._inquiry_wait))
        except UnknownRecipient as error:
            return _failed(order, str(error))
        self._questions.sent(sent.id, order.agent_id, order, self._clock())
        if not isinstance(order, SendNudge):
            return None
        if not sent.notified:
            return _failed(order, "AI Maestro could not notify it: it is offline")
        return NudgeDelivered(agent_id=order.agent_id, order_id=order.order_id)

    async def close(self) -> None:
        """The watch closes the messenger."""

    async def _session(self, name: str) -> SessionState:
        state = await self._messenger.session(name)
        if state is not SessionState.ONLINE:
            await asyncio.sleep(LOOK_AGAIN_AFTER)
            state = await self._messenger.session(name)
        return state


def _failed(order: Order, reason: str) -> Signal | None:
    if isinstance(order, SendNudge):
        return NudgeFailed(agent_id=order.agent_id, order_id=order.order_id, reason=reason)
    return None
