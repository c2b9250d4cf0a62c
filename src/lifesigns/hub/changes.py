"""Changes: which agents changed since a moment, for clients that poll.

A beat changes `heard_at`, and shows there. Every other change comes with a report or an effect that names its agent;
the hub records the name here with the moment. A token stands for a moment of one hub process: the last one at which the
engine heard something. What has arrived and still waits for the engine is a change after that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from lifesigns.core.agent import Agent

GONE_MAX: Final = 10_000


class Changes:
    """The time of the last change of each agent."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._changed_at: dict[str, float] = {}
        self._gone: deque[tuple[float, str]] = deque(maxlen=GONE_MAX)

    def note(self, agent_id: str, now: float) -> None:
        """Record that a report or an effect named this agent."""
        self._changed_at[agent_id] = now

    def gone(self, agent_ids: Iterable[str], now: float) -> None:
        """Record that the engine forgot these agents."""
        for agent_id in agent_ids:
            self._changed_at.pop(agent_id, None)
            self._gone.append((now, agent_id))

    def keep_only(self, agents: Mapping[str, Agent]) -> None:
        """Drop names that no agent has (refused reports carry such) when there are too many."""
        if len(self._changed_at) > len(agents):
            self._changed_at = {
                agent_id: at for agent_id, at in self._changed_at.items() if agent_id in agents
            }

    def token(self, now: float) -> str:
        """A token for this moment."""
        return f"{self._epoch}.{int(now * 1000)}"

    def moment(self, token: str) -> float | None:
        """The moment a token stands for; None if it is older than our records, or another hub's."""
        epoch, _, milliseconds = token.partition(".")
        if epoch != str(self._epoch) or not milliseconds.isdecimal() or len(milliseconds) > 15:
            return None
        at = int(milliseconds) / 1000
        full = len(self._gone) == GONE_MAX
        return None if full and at < self._gone[0][0] else at

    def since(self, agent: Agent, at: float) -> bool:
        """Whether anything about this agent may have changed at that moment or later."""
        return agent.heard_at >= at or self._changed_at.get(agent.id, 0.0) >= at

    def gone_since(self, at: float) -> list[str]:
        return [agent_id for gone_at, agent_id in self._gone if gone_at >= at]
