"""Pace: at most so many nudges, terminations and respawns a minute, and never for more than a share of the fleet.

For an agent all acts in its own source count, and one act of each other source, except for one source (`source_counts.py`):
the acts that one source needs delay no other.
"""

from __future__ import annotations

from dataclasses import dataclass

from lifesigns.core.agent import Agent
from lifesigns.core.effects import Rung
from lifesigns.core.policy import MINUTE, FleetPolicy


@dataclass(slots=True)
class Act:
    """An automatic act on an agent."""

    at: float
    rung: Rung
    agent_id: str
    source: str


class Pace:
    """The acts of the last minute, the oldest first."""

    def __init__(self, policy: FleetPolicy, acts: list[Act]) -> None:
        self._policy = policy
        self._acts = acts

    def acted(self, agent: Agent, rung: Rung, now: float) -> None:
        """Note an automatic act."""
        self._acts.append(Act(now, rung, agent.id, agent.source))

    def hold(self, agent: Agent, rung: Rung, own: int, sources: int, now: float) -> tuple[str, float] | None:
        """Why this agent has to wait and until when, or None. `own`: members of its source; `sources`: the other ones."""
        while self._acts and self._acts[0].at <= now - MINUTE:
            del self._acts[0]
        return self._limit(agent, rung, now) or self._share(agent, rung, own + max(0, sources - 1))

    def _limit(self, agent: Agent, rung: Rung, now: float) -> tuple[str, float] | None:
        caps = {
            Rung.NUDGE: self._policy.nudges_per_minute,
            Rung.TERMINATE: self._policy.terminations_per_minute,
            Rung.RESPAWN: self._policy.respawns_per_minute,
        }
        if rung not in caps:
            return None
        counted = _counted([act for act in self._acts if act.rung is rung], agent)
        if len(counted) >= caps[rung]:
            return f"{caps[rung]} a minute is the limit for {rung}", min(counted, default=now) + MINUTE
        return None

    def _share(self, agent: Agent, rung: Rung, members: int) -> tuple[str, float] | None:
        """Whether too large a part of the fleet was acted on within a minute. An agent that was just ended and is started
        again counts once: otherwise a fleet of one would wait a minute for its respawn, and no other agent would gain."""
        if rung is Rung.ESCALATE:
            return None
        last = {act.agent_id: act for act in self._acts if act.agent_id != agent.id}
        others = _counted(list(last.values()), agent)
        # An agent that was just ended is no member for a moment. That does not make the fleet smaller.
        share = max(1, int(self._policy.acted_share * max(members, len(others) + 1)))
        if len(others) >= share:
            agents = "1 agent" if share == 1 else f"{share} agents"
            return f"{agents} a minute is the limit for the fleet", min(others) + MINUTE
        return None


def _counted(acts: list[Act], agent: Agent) -> list[float]:
    """The times of the acts that count for this agent: in its own source all, in each other the last; and one of those
    is left out."""
    own = [act.at for act in acts if act.source == agent.source]
    others = {act.source: act.at for act in acts if act.source != agent.source}
    return own + sorted(others.values())[1:]
