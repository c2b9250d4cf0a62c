"""Somebody who ends agents, told over HTTP to end one: a pod, a machine, a process of somebody else's. 2xx: it is gone; 4xx: it
cannot be ended."""

from __future__ import annotations

from lifesigns.adapters.executors.webhook import Webhook, identity
from lifesigns.core.effects import Order, Terminate
from lifesigns.core.signals import Signal, TerminationDone


class TerminateWebhook:
    """Posts terminations to `webhook`. Answer when the agent is gone, not before: another life may follow at once."""

    def __init__(self, webhook: Webhook) -> None:
        self._webhook = webhook

    async def carry_out(self, order: Order) -> Signal | None:
        """Have it ended."""
        assert isinstance(order, Terminate)
        wanted = {
            **identity(order),
            "reason": order.reason,
            "by": order.by,
            "save_for_s": order.save_for,
            "on_silence": order.on_silence,
            "seq_seen": order.seq_seen,
        }
        await self._webhook.post(order, "terminate", wanted)
        return TerminationDone(
            agent_id=order.agent_id, incarnation=order.incarnation, order_id=order.order_id, forced=True
        )

    async def close(self) -> None:
        await self._webhook.close()
