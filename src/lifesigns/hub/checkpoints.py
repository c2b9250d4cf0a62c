"""Checkpoints: stores their contents, and reads them back before a successor continues from one.

The engine knows which checkpoints a task has and how they follow each other: a digest that begins with `hub:sha256:`
says that the content is here. Such a checkpoint is valid if its content is readable and still has this digest. For
contents stored elsewhere the hub asks the executor `elsewhere`; without one it trusts the agent, and the handoff says
that the checkpoint was not read back.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import Final

from lifesigns.core.effects import Order, VerifyCheckpoint
from lifesigns.core.signals import CheckpointVerified, Signal
from lifesigns.errors import AdapterError, WireError
from lifesigns.ports import Contents, OrderExecutor
from lifesigns.ports.checkpoints import HERE

log: Final = logging.getLogger("lifesigns.executors")


class Checkpoints:
    """Stores contents, and is the executor that verifies checkpoints. Without `contents` it stores none."""

    def __init__(self, contents: Contents | None = None) -> None:
        self._contents = contents
        self.elsewhere: OrderExecutor | None = None
        """Verifies contents that were never here."""

    @property
    def stores_contents(self) -> bool:
        """Whether this hub stores contents."""
        return self._contents is not None

    async def store(self, task_id: str, content: bytes, digest: str = "") -> str:
        """Store it; returns its digest. Raises `WireError` if `digest` (SHA-256) does not match, `TooLarge`, or another
        `AdapterError`."""
        if self._contents is None:
            raise AdapterError("this hub keeps no contents of checkpoints", transient=False)
        expected = digest.removeprefix(HERE).removeprefix("sha256:").lower()
        if expected:
            actual = await asyncio.to_thread(lambda: hashlib.sha256(content).hexdigest())
            if actual != expected:
                raise WireError("digest", f"is {digest[:100]!r}, but the content has sha256:{actual}")
        return HERE + await self._contents.keep(task_id, content)

    async def read(self, task_id: str, digest: str) -> bytes | None:
        """The content with this digest; None if it is not here, or damaged."""
        if self._contents is None or not digest.startswith(HERE):
            return None
        expected = digest.removeprefix(HERE)
        if len(expected) != hashlib.sha256().digest_size * 2 or not set(expected) <= set("0123456789abcdef"):
            return None  # An agent sent this. It is no digest, and must not become the name of a file.
        content = await self._contents.read(task_id, expected)
        if content is None:
            return None
        actual = await asyncio.to_thread(lambda: hashlib.sha256(content).hexdigest())
        return content if actual == expected else None

    async def carry_out(self, order: Order) -> Signal | None:
        """Verify a checkpoint."""
        assert isinstance(order, VerifyCheckpoint)
        if order.digest.startswith(HERE):
            content = await self.read(order.task_id, order.digest)
            if content is None:
                log.error(
                    "checkpoint %s of %s is broken or gone: the one before it is looked at",
                    order.checkpoint_id,
                    order.task_id,
                    extra={"action": "checkpoint_broken"},
                )
            return _verified(order, valid=content is not None)
        if self.elsewhere is not None:
            try:
                return await self.elsewhere.carry_out(order)
            except AdapterError as error:
                if error.transient:
                    raise
                log.error(
                    "nobody can say whether checkpoint %s of %s is whole: %s",
                    order.checkpoint_id,
                    order.task_id,
                    error,
                    extra={"action": "checkpoint_unread"},
                )
        return _verified(order, valid=True, read_back=False)

    async def close(self) -> None:
        if self.elsewhere is not None:
            await self.elsewhere.close()


def _verified(order: VerifyCheckpoint, *, valid: bool, read_back: bool = True) -> CheckpointVerified:
    return CheckpointVerified(
        agent_id=order.agent_id,
        order_id=order.order_id,
        task_id=order.task_id,
        checkpoint_id=order.checkpoint_id,
        valid=valid,
        read_back=read_back,
    )
