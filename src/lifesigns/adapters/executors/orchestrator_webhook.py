"""Asks an orchestrator over HTTP: everything known about the agent, and the possible decisions.

It may decide in its answer, `{"decision": "more_time", "note": "..."}`, or later by calling `decision_url`. An answer
without a decision means that it still thinks about it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import asdict

from lifesigns.adapters.executors.webhook import Webhook, identity
from lifesigns.core.effects import Escalate, Order
from lifesigns.core.signals import Decision, EscalationDecided, Signal
from lifesigns.wire.codec import written

NOTE_MAX: Final = 2000

log: Final = logging.getLogger("lifesigns.executors")


class OrchestratorWebhook:
    """Asks `webhook` about escalated agents. `context` adds what the hub knows; `name` is the decider, unless the
    answer names another (`by`)."""

    def __init__(
        self,
        webhook: Webhook,
        context: Callable[[Escalate], Mapping[str, Any]],
        *,
        name: str = "orchestrator",
    ) -> None:
        self._webhook = webhook
        self._context = context
        self._name = name

    async def carry_out(self, order: Order) -> Signal | None:
        """Ask; the decision, if the answer has one."""
        assert isinstance(order, Escalate)
        question = {
            **identity(order),
            "reason": order.reason,
            "findings": [{**asdict(one), "since": written(one.since)} for one in order.findings],
            "options": list(Decision),
            "asked_at": written(order.at),
            "answer_by": written(order.answer_by),
            **self._context(order),
        }
        answer = await self._webhook.post(order, "escalation", question)
        decision = answer.get("decision") if isinstance(answer, dict) else None
        if decision is None:
            return None
        if decision not in list(Decision):
            log.warning(
                "the answer to escalation %s decides %r, which is none of %s",
                order.order_id,
                str(decision)[:100],
                ", ".join(Decision),
                extra={"action": "decision_unknown"},
            )
            return None
        return EscalationDecided(
            agent_id=order.agent_id,
            order_id=order.order_id,
            decision=Decision(decision),
            by=str(answer.get("by") or self._name)[:100],
            note=str(answer.get("note") or "")[:NOTE_MAX],
        )

    async def close(self) -> None:
        await self._webhook.close()
