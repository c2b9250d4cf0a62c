"""Somebody who starts agents, told over HTTP to start one anew. 2xx: it is started; 4xx: it cannot be."""

from __future__ import annotations

from collections.abc import Callable

from lifesigns.adapters.executors.webhook import Webhook, identity
from lifesigns.core.effects import Order, Respawn
from lifesigns.core.signals import RespawnStarted, Signal


class RespawnWebhook:
    """Posts respawns to `webhook`. `checkpoint_url` says where the content of a checkpoint is to be fetched, if it is here."""

    def __init__(self, webhook: Webhook, checkpoint_url: Callable[[Respawn], str | None]) -> None:
        self._webhook = webhook
        self._checkpoint_url = checkpoint_url

    async def carry_out(self, order: Order) -> Signal | None:
        """Have it started."""
        assert isinstance(order, Respawn)
        wanted = {
            **identity(order),
            "task_id": order.task_id,
            "checkpoint_id": order.checkpoint_id,
            "checkpoint_url": self._checkpoint_url(order),
            "new_incarnation": order.new_incarnation,
            "attempt": order.attempt,
            "handoff": order.handoff,
            "instead_of": order.instead_of,
        }
        await self._webhook.post(order, "respawn", wanted)
        return started(order)

    async def close(self) -> None:
        await self._webhook.close()


def started(order: Respawn) -> RespawnStarted:
    """The outcome of a respawn that began."""
    return RespawnStarted(
        agent_id=order.agent_id,
        order_id=order.order_id,
        task_id=order.task_id,
        new_incarnation=order.new_incarnation,
    )
