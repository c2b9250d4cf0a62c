"""Somebody who cleans up after agents, told over HTTP that a life is over. 2xx: it is cleaned up; 4xx: it cannot be."""

from __future__ import annotations

from lifesigns.adapters.executors.webhook import Webhook, identity
from lifesigns.core.effects import CleanUp, Order
from lifesigns.core.signals import CleanedUp, Signal


class CleanupWebhook:
    """Posts clean-ups to `webhook`. Answer when it is done: a successor waits for that."""

    def __init__(self, webhook: Webhook) -> None:
        self._webhook = webhook

    async def carry_out(self, order: Order) -> Signal | None:
        """Have it cleaned up."""
        assert isinstance(order, CleanUp)
        life = {
            **identity(order),
            "task_id": order.task_id,
            "checkpoint_id": order.checkpoint_id,
            "reason": order.reason,
        }
        await self._webhook.post(order, "cleanup", life)
        return CleanedUp(agent_id=order.agent_id, order_id=order.order_id)

    async def close(self) -> None:
        await self._webhook.close()
