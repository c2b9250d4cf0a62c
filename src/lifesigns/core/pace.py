"""Pace: at most so many nudges, terminations and respawns a minute, and never for more than a share of the fleet.

For an agent all acts in its own source count, and one act of each other source, except for one source (`source_counts.py`):
the acts that one source needs delay no other.

Of several engines each has a part of the limits a minute, so that all together keep to them. But its part of the share of a small
fleet would be less than one act. So an act that could be too many, if the others act in the same moment, is wished first, and waits
until all others know: then of two that wish one goes first, by the names of their agents, and the other one counts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lifesigns.core.agent import Agent
from lifesigns.core.effects import Rung
from lifesigns.core.fleet_summary import KNOWN_FOR, Wish
from lifesigns.core.policy import MINUTE, FleetPolicy

WISHED_FOR: Final = 3 * KNOWN_FOR
"""How long an act is wished before it is done. What is heard of others is `KNOWN_FOR` old at most when it counts, and about two
seconds on its way before. If two act within that time of each other, each has wished for twice as long, so each knew of the other."""

FORGOTTEN_AFTER: Final = WISHED_FOR + KNOWN_FOR
"""A wish that is not renewed for so long has no reason any more: its agent is well, or held by something else."""


@dataclass(slots=True)
class OwnWish:
    """Since when an act is wished, and when that was said last."""

    wish: Wish
    since: float
    renewed_at: float


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
        self.elsewhere: Sequence[Act] = ()
        """Acts of other engines, which judge other parts of the fleet."""
        self.share = 1.0
        """The part of each limit that is this engine's own: two that act at once do not know of each other."""
        self.wishes_elsewhere: Sequence[Wish] = ()
        self._wishes: dict[str, OwnWish] = {}
        """By agent."""

    def wishes(self, now: float) -> list[Wish]:
        """The acts that wait until the other engines know of them."""
        return [own.wish for own in self._wishes.values() if now - own.renewed_at < FORGOTTEN_AFTER]

    def acted(self, agent: Agent, rung: Rung, now: float) -> None:
        """Note an automatic act."""
        self._acts.append(Act(now, rung, agent.id, agent.source))

    def hold(self, agent: Agent, rung: Rung, own: int, sources: int, now: float) -> tuple[str, float] | None:
        """Why this agent has to wait and until when, or None. `own`: members of its source; `sources`: the other ones."""
        while self._acts and self._acts[0].at <= now - MINUTE:
            del self._acts[0]
        return self._limit(agent, rung, now) or self._share(agent, rung, own + max(0, sources - 1), now)

    def _limit(self, agent: Agent, rung: Rung, now: float) -> tuple[str, float] | None:
        caps = {
            Rung.NUDGE: self._policy.nudges_per_minute,
            Rung.TERMINATE: self._policy.terminations_per_minute,
            Rung.RESPAWN: self._policy.respawns_per_minute,
        }
        if rung not in caps:
            return None
        counted = _counted([act for act in self._all(now) if act.rung is rung], agent)
        if len(counted) >= caps[rung]:
            return f"{caps[rung]} a minute is the limit for {rung}", min(counted, default=now) + MINUTE
        own = [act.at for act in self._acts if act.rung is rung] if self.share < 1.0 else ()
        if own and len(own) >= max(1, int(caps[rung] * self.share)):
            return f"this hub's part of {caps[rung]} a minute is used up", min(own) + MINUTE
        return None

    def _all(self, now: float) -> Sequence[Act]:
        """The acts of the last minute, here and elsewhere."""
        if not self.elsewhere:
            return self._acts
        return [*self._acts, *(act for act in self.elsewhere if act.at > now - MINUTE)]

    def _share(self, agent: Agent, rung: Rung, members: int, now: float) -> tuple[str, float] | None:
        """Whether too large a part of the fleet was acted on within a minute. An agent that was just ended and is started
        again counts once: otherwise a fleet of one would wait a minute for its respawn, and no other agent would gain."""
        if rung is Rung.ESCALATE:
            return None
        ends = self.share < 1.0 and rung in (Rung.TERMINATE, Rung.RESPAWN)
        acts = [*self._all(now), *self._wished_before(agent, now)] if ends else self._all(now)
        last = {act.agent_id: act for act in acts if act.agent_id != agent.id}
        others = _counted(list(last.values()), agent)
        # An agent that was just ended is no member for a moment. That does not make the fleet smaller.
        share = max(1, int(self._policy.acted_share * max(members, len(others) + 1)))
        if len(others) >= share:
            agents = "1 agent" if share == 1 else f"{share} agents"
            return f"{agents} a minute is the limit for the fleet", min(others) + MINUTE
        # Each other engine may end one agent and start one anew before it is heard of here.
        if ends and len(others) + 2 / self.share > share:
            return self._wish(agent, rung, now)
        return None

    def _wished_before(self, agent: Agent, now: float) -> list[Act]:
        """What other engines wish and have the precedence for, as if it were done."""
        return [
            Act(now, wish.rung, wish.agent_id, wish.source)
            for wish in self.wishes_elsewhere
            if wish.agent_id < agent.id
        ]

    def _wish(self, agent: Agent, rung: Rung, now: float) -> tuple[str, float] | None:
        """Why it waits and until when; None if it has waited."""
        for agent_id in [one for one, own in self._wishes.items() if now - own.renewed_at >= FORGOTTEN_AFTER]:
            del self._wishes[agent_id]
        own = self._wishes.get(agent.id)
        if own is None or own.wish.rung is not rung:
            own = self._wishes[agent.id] = OwnWish(Wish(rung, agent.id, agent.source), now, now)
        own.renewed_at = now
        if now < own.since + WISHED_FOR:
            return "all hubs that judge have to know of it first", own.since + WISHED_FOR
        del self._wishes[agent.id]
        return None


def _counted(acts: list[Act], agent: Agent) -> list[float]:
    """The times of the acts that count for this agent: in its own source all, in each other the last; and one of those
    is left out."""
    own = [act.at for act in acts if act.source == agent.source]
    others = {act.source: act.at for act in acts if act.source != agent.source}
    return own + sorted(others.values())[1:]
