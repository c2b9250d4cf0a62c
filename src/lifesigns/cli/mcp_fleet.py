"""Tools for an operator's assistant: who needs help, why, and what to do about it."""

from __future__ import annotations

from typing import Final, Literal

from lifesigns.cli.mcp_values import Act, Evidence, Health, Need, act_of, health_of, line_of, need_of
from lifesigns.client import AsyncClient
from lifesigns.client.parameters import AgentFilterFields

LISTED_MAX: Final = 100
CALLS_MAX: Final = 15
DONE_MAX: Final = 10


class FleetTools:
    """Looks at everybody."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def who_needs_help(self) -> list[Need]:
        """What only a person can settle, the most urgent first."""
        return [need_of(alert) for alert in (await self._client.fleet()).needs]

    async def list_agents(self, state: str | None = None, search: str | None = None) -> list[Health]:
        """Agents, those who need somebody first; at most a hundred. state: healthy, degraded, stuck, failing, disconnected ..."""
        which = AgentFilterFields()
        if state:
            which["state"] = state
        if search:
            which["q"] = search
        found = await self._client.agent_list(sort="need", limit=LISTED_MAX, **which)
        return [health_of(agent) for agent in found.agents]

    async def evidence(self, agent_id: str) -> Evidence:
        """Everything the hub knows about why an agent is judged as it is."""
        health = health_of(await self._client.agent(agent_id))
        tape = await self._client.calls(agent_id)
        done = await self._client.interventions(agent=agent_id, limit=DONE_MAX)
        acts = [f"{one.ordered_at} {one.rung} ({one.stage}): {one.reason}" for one in done.interventions]
        return Evidence(health, [line_of(call) for call in tape.calls[-CALLS_MAX:]], acts)


class OperatorTools:
    """Acts on agents."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client

    async def nudge(self, agent_id: str, message: str = "") -> Act:
        """Tell an agent something at its next turn boundary; without a message, the facts about itself."""
        return act_of(await self._client.nudge(agent_id, message))

    async def decide(
        self,
        intervention_id: str,
        decision: Literal["more_time", "handoff", "terminate", "ignore"],
        note: str = "",
    ) -> Act:
        """Decide about an escalated agent. `terminate` ends it. The first decision counts."""
        return act_of(await self._client.decide(intervention_id, decision, note=note))
