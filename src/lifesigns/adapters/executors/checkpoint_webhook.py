"""Asks a server that stores checkpoints elsewhere, over HTTP, whether one is whole: `{"valid": true}`, or false."""

from __future__ import annotations

from lifesigns.adapters.executors.webhook import Webhook, identity
from lifesigns.core.effects import Order, VerifyCheckpoint
from lifesigns.core.signals import CheckpointVerified, Signal
from lifesigns.errors import AdapterError


class CheckpointWebhook:
    """Asks `webhook` about checkpoints."""

    def __init__(self, webhook: Webhook) -> None:
        self._webhook = webhook

    async def carry_out(self, order: Order) -> Signal | None:
        """Have the checkpoint read back."""
        assert isinstance(order, VerifyCheckpoint)
        question = {
            **identity(order),
            "task_id": order.task_id,
            "checkpoint_id": order.checkpoint_id,
            "digest": order.digest,
        }
        answer = await self._webhook.post(order, "verify_checkpoint", question)
        valid = answer.get("valid") if isinstance(answer, dict) else None
        if not isinstance(valid, bool):
            raise AdapterError(
                'the answer says nothing about the checkpoint; it needs {"valid": true}', transient=False
            )
        return CheckpointVerified(
            agent_id=order.agent_id,
            order_id=order.order_id,
            task_id=order.task_id,
            checkpoint_id=order.checkpoint_id,
            valid=valid,
        )

    async def close(self) -> None:
        await self._webhook.close()
