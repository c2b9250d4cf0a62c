"""Agent lookup: what alerting reads in the engine's beliefs, because events do not say everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from lifesigns.core.beliefs import Beliefs
from lifesigns.core.health import Doing, Health
from lifesigns.hub.alerting.alerts import Alert, AlertSubject
from lifesigns.hub.alerting.reading import WAITING


class AgentLookup(Protocol):
    """Looks up what events do not say."""

    def who(self, agent_id: str) -> AlertSubject | None:
        """The attributes of an agent; None if it is unknown."""

    def over(self, alert: Alert) -> str:
        """Why an alert is over although no event says so; empty if it is not."""


class EngineAgentLookup:
    """Reads the engine's beliefs."""

    def __init__(self, beliefs: Callable[[], Beliefs]) -> None:
        self._beliefs = beliefs

    def who(self, agent_id: str) -> AlertSubject | None:
        agent = self._beliefs().agents.get(agent_id)
        return (
            None if agent is None else AlertSubject(agent.role or "", agent.host or "", agent.provider or "")
        )

    def over(self, alert: Alert) -> str:
        beliefs = self._beliefs()
        if alert.kind == "hub_blind":
            return "" if beliefs.awareness.blind else "the hub sees again"
        if not alert.agent_id or alert.kind == "message_overdue":
            return ""  # A message may be for an agent we never heard of.
        agent = beliefs.agents.get(alert.agent_id)
        if agent is None:
            return f"{alert.agent_id} is not known any more"
        waits = agent.doing is Doing.WAITING_FOR_HUMAN and agent.health is not Health.TERMINATED
        if alert.details.get("reason") == WAITING and not waits:
            return f"{alert.agent_id} does not wait any more"
        if alert.kind == "agent_poisoned" and not agent.past.poisoned:
            return f"{alert.agent_id} is judged again"
        return ""
