"""Intervals: how often the engine wants a sender to beat, as long as it is unwell or calm.

Off unless the policy has `silence.tell_interval`. Told is only a sender that said it follows (`AgentRegistered`), and
nothing depends on whether it does: the policy's timeout stays what it is, a slower beat always fits into it, and from
the moment of telling the silence detector has the fixed rule alone until it has learned the rhythm that really comes
(`silence.relearn`). An order that is lost, late or ignored therefore convicts no agent, and suspects none earlier than
the policy says.
"""

from __future__ import annotations

from typing import Final

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.awareness import Awareness
from lifesigns.core.detectors import silence
from lifesigns.core.effects import SetInterval
from lifesigns.core.health import Health
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import SilencePolicy

ROOM: Final = 1.5
"""A slow rhythm stays this factor below the suspicion: one late beat of a calm agent must not raise one."""
UNWELL: Final = frozenset({Health.DEGRADED, Health.STUCK, Health.FAILING})


def wanted(agent: Agent, policy: SilencePolicy, *, calm: bool) -> float:
    """The interval that fits how this agent is."""
    if agent.health in UNWELL:
        return policy.interval * policy.unwell_factor
    if calm:
        return max(policy.interval, min(policy.interval * policy.calm_factor, policy.suspect_after / ROOM))
    return policy.interval


class Intervals:
    """Tells senders how often to beat."""

    def __init__(self, outbox: Outbox, awareness: Awareness) -> None:
        self._outbox = outbox
        self._awareness = awareness

    def due_at(self, agent: Agent, policy: SilencePolicy) -> float:
        """When a healthy agent has been calm for long enough."""
        if not _may_tell(agent, policy) or agent.health is not Health.HEALTHY:
            return NEVER
        if agent.told_interval == wanted(agent, policy, calm=True):
            return NEVER
        return self._awareness.due(agent.since, policy.calm_after)

    def review(self, agent: Agent, policy: SilencePolicy, now: float) -> None:
        """Tell the agent, if it should beat otherwise than it was told."""
        if not _may_tell(agent, policy) or not (agent.alive and agent.beats):
            return
        calm = agent.health is Health.HEALTHY and self._awareness.due(agent.since, policy.calm_after) <= now
        interval = wanted(agent, policy, calm=calm)
        if interval != (agent.told_interval or policy.interval):
            agent.told_interval = interval
            silence.relearn(agent)
            self._outbox.order(SetInterval, agent, now, interval=interval)


def _may_tell(agent: Agent, policy: SilencePolicy) -> bool:
    return policy.tell_interval and agent.told_interval is not None
