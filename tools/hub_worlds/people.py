"""People: they nudge agents, at any hub, and remember what a hub has taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from lifesigns.core import signals as s

if TYPE_CHECKING:
    from tools.hub_worlds.hub_process import HubProcess
    from tools.hub_worlds.world import World

NUDGE_EVERY: Final = 8.0
ANSWER_WITHIN: Final = 5.0


class People:
    """Somebody who nudges agents that have heard the last nudge: a nudge that was not heard is replaced by the next one."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._number = 0
        self.taken: dict[str, str] = {}
        """By the text of each nudge that a hub has taken: the agent."""
        self._asked: dict[str, str] = {}
        """By agent: the last nudge that somebody tried to give."""

    def begin(self) -> None:
        self._world.at(self._world.now + NUDGE_EVERY, self._nudge)

    def unheard(self, agent_id: str) -> set[str]:
        """The nudges a hub has taken for this agent that it has not heard."""
        agent = self._world.agents[agent_id]
        heard = {getattr(line.order, "text", "") for line in agent.ledger}
        return {text for text, name in self.taken.items() if name == agent_id and text not in heard}

    def _nudge(self, _: object) -> None:
        world = self._world
        if world.now > world.quiet_from:
            return
        world.at(world.now + world.chance.uniform(0.5, 1.5) * NUDGE_EVERY, self._nudge)
        names = [one.id for one in world.agents.values() if one.alive and not self.unheard(one.id)]
        if not names:
            return
        self._number += 1
        agent_id, text = world.chance.choice(names), f"nudge {self._number}"
        act = s.NudgeRequested(agent_id=agent_id, by="somebody", key=text, message=text)
        hub = world.chance.choice(world.hub_names)

        def done(result: object) -> None:
            if result is not None:
                self.taken[text] = agent_id

        async def ask(process: HubProcess) -> bool:
            if (
                process.service is not None
                and process.leads
                and process.service.engine.agent(agent_id) is None
            ):
                raise world.nobody_answers
            await process.act([act])
            return True

        world.request("people", hub, ask, ANSWER_WITHIN, done)
