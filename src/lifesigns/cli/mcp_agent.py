"""Tools for an agent: to say how it gets on, and to see how the hub sees it."""

from __future__ import annotations

import time
from typing import Any, Final, Literal

from lifesigns.cli.mcp_values import Health, HubMessage, ReportOutcome, health_of
from lifesigns.client import AsyncClient

READ: Final = ("nudge", "status_inquiry", "reminder")
"""Orders that are words. All others are for whoever runs the agent."""

MINUTES_MAX: Final = 24 * 60


class AgentTools:
    """Speaks for one agent."""

    def __init__(self, client: AsyncClient, agent_id: str) -> None:
        self._client = client
        self._agent_id = agent_id

    async def introduce(self) -> None:
        """An agent that is only known by this is not expected to beat: it speaks when its model calls a tool."""
        await self._client.signal("registered", self._agent_id, beats=False)

    async def report_progress(
        self, note: str, percent: float | None = None, task_id: str | None = None
    ) -> ReportOutcome:
        """Report that you came forward in your task: what is done, and how far you are (percent, 0 to 100)."""
        return await self._say("progress", note=note, percent=percent, task_id=task_id)

    async def report_blocker(self, question: str) -> ReportOutcome:
        """Report that you cannot go on without a human, and what you need to know. People are told at once. Call resume_work when
        you go on."""
        return await self._say("doing", doing="waiting_for_human", note=question)

    async def resume_work(self, note: str = "") -> ReportOutcome:
        """Report that you go on: a blocker or a wait is over."""
        return await self._say("doing", doing="working", note=note)

    async def save_checkpoint(
        self, checkpoint_id: str, task_id: str | None = None, parent_id: str | None = None
    ) -> ReportOutcome:
        """Report a checkpoint of your task, for instance the commit you just made, from which another life could go on."""
        return await self._say(
            "checkpoint", checkpoint_id=checkpoint_id, task_id=task_id, parent_id=parent_id
        )

    async def ask_for_time(self, minutes: float, why: str) -> ReportOutcome:
        """Say that you are busy with one long operation for so many minutes: you are left in peace until then, and expected back."""
        now, minutes = time.time(), min(max(minutes, 0.0), MINUTES_MAX)
        return await self._say("doing", doing="busy", until=now + 60 * minutes, timestamp=now, note=why)

    async def my_health(self) -> Health:
        """How the hub sees you, and why."""
        return health_of(await self._client.agent(self._agent_id))

    async def neighbour_health(self, agent_id: str) -> Health:
        """How another agent is, if your token is good for it too: an agent of your team, one you started."""
        return health_of(await self._client.agent(agent_id))

    async def read_messages(self) -> list[HubMessage]:
        """What the hub wants you to read: nudges, questions about your task, reminders of messages. Nudges count as read."""
        waiting = (await self._client.orders(self._agent_id)).orders
        messages = []
        for order in waiting:
            if order.get("type") not in READ:
                continue
            messages.append(HubMessage(order["order_id"], order["type"], _text(order)))
            if order["type"] == "nudge":
                await self._client.ack_order(self._agent_id, order["order_id"])
                await self._client.signal("nudge_seen", self._agent_id, nudge_id=order["order_id"])
        return messages

    async def answer_nudge(
        self, nudge_id: str, answer: Literal["progress", "need_time", "handoff", "blocked"], note: str = ""
    ) -> ReportOutcome:
        """Answer a nudge that you read: you make progress, need time, want to hand over, or are blocked."""
        return await self._say("nudge_answered", nudge_id=nudge_id, answer=answer, note=note)

    async def acknowledge_message(self, message_id: str) -> ReportOutcome:
        """Acknowledge a message that another agent sent to you."""
        await self._client.ack_message(message_id, self._agent_id)
        return ReportOutcome(True)

    async def _say(self, kind: str, **fields: Any) -> ReportOutcome:
        said = {name: value for name, value in fields.items() if value is not None}
        receipt = await self._client.signal(kind, self._agent_id, **said)
        if receipt.accepted:
            return ReportOutcome(True)
        return ReportOutcome(False, "; ".join(f"{bad.field} {bad.detail}" for bad in receipt.rejected))


def _text(order: Any) -> str:
    text = order.get("text", "")
    if order["type"] == "reminder":
        return f"The message {order['message_id']} of {order.get('sender') or 'another agent'} waits for you. {text}".strip()
    return str(text)
