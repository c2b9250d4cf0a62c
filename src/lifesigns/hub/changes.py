"""Changes: which agents changed since a moment, for clients that poll.

A beat changes `heard_at`, and shows there. Every other change comes with a report or an effect that names its agent; the
hub keeps those names here with the moment. A token stands for a moment in the life of one hub process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from lifesigns.core.agent import Agent

GONE_MAX: Final = 10_000


class Changes:
    """What changed when."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._touched: dict[str, float] = {}
        self._gone: deque[tuple[float, str]] = deque(maxlen=GONE_MAX)

    def touch(self, agent_id: str, now: float) -> None:
        """A word or an effect named this agent."""
        self._touched[agent_id] = now

    def gone(self, agent_ids: Iterable[str], now: float) -> None:
        """These were forgotten."""
        for agent_id in agent_ids:
            self._touched.pop(agent_id, None)
            self._gone.append((now, agent_id))

    def keep_only(self, agents: Mapping[str, Agent]) -> None:
        """Names nobody has, in words that were refused, are let go when there are too many of them."""
        if len(self._touched) > len(agents):
            self._touched = {agent_id: at for agent_id, at in self._touched.items() if agent_id in agents}

    def token(self, now: float) -> str:
        """This moment, to ask from later."""
        return f"{self._epoch}.{int(now * 1000)}"

    def moment(self, token: str) -> float | None:
        """The moment a token stands for; None if it is too old to know what happened since, or another hub's."""
        epoch, _, milliseconds = token.partition(".")
        if epoch != str(self._epoch) or not milliseconds.isdecimal() or len(milliseconds) > 15:
            return None
        at = int(milliseconds) / 1000
        full = len(self._gone) == GONE_MAX
        return None if full and at < self._gone[0][0] else at

    def since(self, agent: Agent, at: float) -> bool:
        """Whether anything about this agent may have changed at that moment or later."""
        return agent.heard_at >= at or self._touched.get(agent.id, 0.0) >= at

    def gone_since(self, at: float) -> list[str]:
        return [agent_id for gone_at, agent_id in self._gone if gone_at >= at]
