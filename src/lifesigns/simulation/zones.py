"""Zones: hubs elsewhere that are asked before a verdict, and the links between agents and hubs.

The monitor is in the first zone. Each other zone has a hub that stands by, which hears the agents that reach it. Links break:
from some agents to the monitor alone (a split: others still reach them, and would end them if they were told to), from the
agents of a zone to its hub, and from hub to hub. A hub can be frozen or dead, and its answer late.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.core.policy import HOUR, MINUTE

if TYPE_CHECKING:
    from lifesigns.simulation.simulated_agent import SimulatedAgent
    from lifesigns.simulation.world import World

LATE: Final = 0.05
"""The share of answers that come after the verdict, or never."""
DEAF: Final = 0.1
"""The share of questions that find the other hub without its bus. Of a split it always can tell, or cannot be asked: an agent
whose only witness is deaf is judged as without zones."""
SPLIT_FOR: Final = (MINUTE, HOUR)
AWAY_FOR: Final = (5 * MINUTE, HOUR)


class Zones:
    """The other zones of a world, and which links are broken."""

    def __init__(self, world: World, count: int, chance: Random) -> None:
        self._world = world
        self._chance = chance
        self.others = tuple(f"zone-{number}" for number in range(1, count))
        self._broken: dict[tuple[str, str], int] = {}
        """Links by their ends, and by how many faults each is broken: an agent or a hub, and a zone."""

    def heard_in(self, agent: SimulatedAgent, zone: str) -> bool:
        """Whether a hub there hears this agent."""
        cut_off = agent.cuts > agent.splits  # Its own link is broken, too.
        return agent.speaking and not cut_off and not self._broken.get((agent.id, zone))

    def ask(self, order: e.AskSecondOpinion) -> None:
        """The monitor asks a hub in each of these zones."""
        for zone in order.zones:
            wait = order.answer_within * self._chance.uniform(0.05, 0.9)
            if self._chance.random() < LATE:
                wait = order.answer_within * self._chance.uniform(1.0, 20.0)
            if self._broken.get(("hub", zone)):
                if self._chance.random() < 0.5:
                    self._give(order, zone, s.Opinion.CANNOT_BE_ASKED, wait)
            else:
                self._world.at(self._world.now + wait, self._answer, (order, zone))

    def _answer(self, what: tuple[e.AskSecondOpinion, str]) -> None:
        order, zone = what
        agent = self._world.agent(order.agent_id)
        if not agent.splits and self._chance.random() < DEAF:
            opinion = s.Opinion.CANNOT_TELL
        else:
            opinion = s.Opinion.HEARD if self.heard_in(agent, zone) else s.Opinion.NOT_HEARD
        self._give(order, zone, opinion, 0.0)

    def _give(self, order: e.AskSecondOpinion, zone: str, opinion: s.Opinion, after: float) -> None:
        given = s.OpinionGiven(agent_id=order.agent_id, zone=zone, opinion=opinion)
        self._world.tell(given, after)

    # --- faults -------------------------------------------------------------------------------------

    def split(self) -> None:
        """A few agents do not reach the monitor any more; a hub in another zone hears them, or cannot be asked."""
        if not self.others:
            return
        how_long = self._chance.uniform(*SPLIT_FOR)
        agents = self._chance.sample(self._world.agents, self._chance.choice((1, 1, 2)))
        for agent in agents:
            agent.split_off()
            self._world.at(self._world.now + how_long, lambda one: one.unite(), agent)
        witness = self._chance.choice(self.others)
        for zone in self.others:
            if zone != witness and self._chance.random() < 0.5:
                for agent in agents:
                    self._break((agent.id, zone), how_long)
        if self._chance.random() < 0.5:
            self._break(("hub", witness), how_long + 2 * MINUTE)

    def lose_hub(self) -> None:
        """The hub of a zone is frozen, dead, or cut off from the monitor."""
        if self.others:
            self._break(("hub", self._chance.choice(self.others)), self._chance.uniform(*AWAY_FOR))

    def _break(self, link: tuple[str, str], how_long: float) -> None:
        self._broken[link] = self._broken.get(link, 0) + 1
        self._world.at(self._world.now + how_long, self._mend, link)

    def _mend(self, link: tuple[str, str]) -> None:
        self._broken[link] -= 1
        if not self._broken[link]:
            del self._broken[link]
