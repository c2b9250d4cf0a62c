"""Orders posted to a server, a row for each kind. 2xx: done; 4xx: cannot be done.

Answer a nudge when it is at the agent's side, a termination when the agent is gone, a clean-up when it is done (a
successor may follow at once), and a respawn when it has begun.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from lifesigns.adapters.executors.webhook import Webhook, identity
from lifesigns.core.effects import CleanUp, Order, Respawn, SendNudge, Terminate
from lifesigns.core.signals import CleanedUp, NudgeDelivered, RespawnStarted, Signal, TerminationDone

Facts = Mapping[str, object]


class OrderWebhook:
    """Posts orders to `webhook`. `more` adds what the hub knows beyond the order."""

    def __init__(self, webhook: Webhook, more: Callable[[Any], Facts] = lambda _: {}) -> None:
        self._webhook = webhook
        self._more = more

    async def carry_out(self, order: Order) -> Signal | None:
        """Post the order."""
        row = _ROWS[type(order)]
        facts = {**identity(order), **row.facts(order), **self._more(order)}
        await self._webhook.post(order, row.type, facts)
        return row.outcome(order)

    async def close(self) -> None:
        await self._webhook.close()


def started(order: Respawn) -> RespawnStarted:
    """The outcome of a respawn that began."""
    return RespawnStarted(agent_id=order.agent_id, order_id=order.order_id)


class _Row(NamedTuple):
    type: str
    facts: Callable[[Any], Facts]
    outcome: Callable[[Any], Signal]


def _nudge(order: SendNudge) -> Facts:
    return {"attempt": order.attempt, "text": order.text}


def _termination(order: Terminate) -> Facts:
    return {
        "reason": order.reason,
        "by": order.by,
        "save_for_s": order.save_for,
        "on_silence": order.on_silence,
        "seq_seen": order.seq_seen,
    }


def _clean_up(order: CleanUp) -> Facts:
    return {"task_id": order.task_id, "checkpoint_id": order.checkpoint_id, "reason": order.reason}


def _respawn(order: Respawn) -> Facts:
    return {
        "task_id": order.task_id,
        "checkpoint_id": order.checkpoint_id,
        "new_incarnation": order.new_incarnation,
        "attempt": order.attempt,
        "handoff": order.handoff,
        "instead_of": order.instead_of,
    }


def _ended(order: Terminate) -> TerminationDone:
    return TerminationDone(
        agent_id=order.agent_id, incarnation=order.incarnation, order_id=order.order_id, forced=True
    )


_ROWS: Final[Mapping[type[Order], _Row]] = {
    SendNudge: _Row("nudge", _nudge, lambda o: NudgeDelivered(agent_id=o.agent_id, order_id=o.order_id)),
    Terminate: _Row("terminate", _termination, _ended),
    CleanUp: _Row("cleanup", _clean_up, lambda o: CleanedUp(agent_id=o.agent_id, order_id=o.order_id)),
    Respawn: _Row("respawn", _respawn, started),
}
