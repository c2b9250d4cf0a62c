"""Nudges brought to agents by somebody else's server. 2xx: it is at the agent's side; 4xx: it cannot be brought there."""

from __future__ import annotations

from lifesigns.adapters.executors.webhook import Webhook, identity
from lifesigns.core.effects import Order, SendNudge
from lifesigns.core.signals import NudgeDelivered, Signal


class NudgeWebhook:
    """Posts nudges to `webhook`. What the agent answers, it says to the hub as every agent does (`nudge_answered`)."""

    def __init__(self, webhook: Webhook) -> None:
        self._webhook = webhook

    async def carry_out(self, order: Order) -> Signal | None:
        """Have it delivered."""
        assert isinstance(order, SendNudge)
        await self._webhook.post(
            order, "nudge", {**identity(order), "attempt": order.attempt, "text": order.text}
        )
        return NudgeDelivered(agent_id=order.agent_id, order_id=order.order_id)

    async def close(self) -> None:
        await self._webhook.close()
