"""Builds the view of an agent's rhythm."""

from __future__ import annotations

from math import sqrt

from lifesigns.core.agent import Agent
from lifesigns.core.detectors import silence
from lifesigns.core.policy import SilencePolicy
from lifesigns.views.moments import moment
from lifesigns.views.rhythm import Rhythm


def rhythm_of(agent: Agent, policy: SilencePolicy, now: float) -> Rhythm:
    """The rhythm of an agent now."""
    heard = agent.beats > 0
    return Rhythm(
        agent_id=agent.id,
        at=moment(now),
        beats=agent.beats,
        lost=agent.lost,
        interval_s=round(silence.observed_interval(agent), 3),
        told_s=round(agent.told_interval, 3) if agent.told_interval else None,
        last_at=moment(agent.heard_at) if heard else None,
        expected_at=moment(silence.expected_at(agent)) if heard and agent.interval else None,
        spread_s=round(sqrt(silence.variance(agent)), 6) if heard else None,
        suspect_after_s=round(policy.suspect_after, 3),
        asked=0 if agent.suspicion is None else agent.suspicion.asked,
        phi=round(silence.phi(agent, now), 3) if agent.alive else 0.0,
        wanted_interval_s=policy.interval,
        missed_max=policy.missed_max,
    )
