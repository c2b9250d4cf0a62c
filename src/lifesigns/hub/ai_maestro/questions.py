"""Questions: what we wrote to agents and may still get an answer to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from lifesigns.core.effects import Order, SendNudge

OPEN_MAX: Final = 10_000
RECEIPTS_MAX: Final = 20
"""Nudges whose receipt is asked for in one look."""


@dataclass(slots=True)
class Question:
    """A message of ours to an agent; without an order it is a ping."""

    message_id: str
    agent_id: str
    order: Order | None
    seen: bool = False


class Questions:
    """The open ones; the oldest go when there are too many."""

    def __init__(self, open_max: int = OPEN_MAX) -> None:
        self._open: dict[str, Question] = {}
        self._open_max = open_max
        self._pings: dict[str, str] = {}
        """The last ping of each agent: the earlier ones are open no more."""
        self._announced_at: dict[str, float] = {}

    def sent(self, message_id: str, agent_id: str, order: Order | None, now: float) -> None:
        """A message was sent. One with an order was announced to the agent's session."""
        if order is None:
            self._open.pop(self._pings.get(agent_id, ""), None)
            self._pings[agent_id] = message_id
        else:
            self._announced_at[agent_id] = now
        self._open[message_id] = Question(message_id, agent_id, order)
        while len(self._open) > self._open_max:
            del self._open[next(iter(self._open))]

    def about(self, message_id: str | None) -> Question | None:
        """What a reply answers; None if it is nothing of ours."""
        return None if message_id is None else self._open.get(message_id)

    def answered(self, question: Question) -> None:
        self._open.pop(question.message_id, None)

    def announced_at(self, agent_id: str) -> float:
        """When a message of ours was last announced to its session."""
        return self._announced_at.get(agent_id, -inf)

    def unread_nudges(self) -> Sequence[Question]:
        """The newest nudges that were not read yet."""
        nudges = [one for one in self._open.values() if isinstance(one.order, SendNudge) and not one.seen]
        return nudges[-RECEIPTS_MAX:]
