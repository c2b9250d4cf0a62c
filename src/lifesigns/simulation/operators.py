"""Operators: an orchestrator that answers some escalations, and a person who gets to the rest in time.

They find the truth as people do: by looking. They end no healthy agent.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.simulated_agent import SimulatedAgent

if TYPE_CHECKING:
    from lifesigns.simulation.world import World

ANSWERED: Final = 0.5
"""The share of escalations that the orchestrator answers by itself."""


class Operators:
    """Answers escalations and calls for a person."""

    def __init__(self, world: World, chance: Random) -> None:
        self._world = world
        self._chance = chance
        self._asked: dict[str, str] = {}
        """The last escalation about each agent."""
        self._known: set[str] = set()

    def decide(self, order: e.Escalate) -> None:
        """An escalation reached the orchestrator."""
        self._world.invariants.arrived(order)
        if order.order_id in self._known:
            return  # A hub that restarts asks again, with the same key.
        self._known.add(order.order_id)
        self._asked[order.agent_id] = order.order_id
        if self._world.config.answered and self._chance.random() < ANSWERED:
            wait = self._chance.uniform(1, 12) * MINUTE
            self._world.at(self._world.now + wait, self._decide, order.agent_id)

    def needed(self, fact: e.NeedsHuman) -> None:
        """A person was called."""
        if not self._world.config.answered:
            return
        wait = self._chance.uniform(5, 40) * MINUTE
        match fact.reason:
            case "undecided":
                self._world.at(self._world.now + wait, self._decide, fact.agent_id)
            case "mass brake":
                self._world.at(self._world.now + wait / 2, self._release, fact.agent_id)
            case "review" | "quarantined" | "stopped":
                self._world.at(self._world.now + wait, self._recover, fact.agent_id)
            case "cannot stop":
                self._world.at(self._world.now + wait, self._end_by_hand, fact.agent_id)
            case _:
                pass

    def _decide(self, agent_id: str) -> None:
        agent, order_id = self._world.agent(agent_id), self._asked.get(agent_id, "")
        if agent.well:
            decision = s.Decision.IGNORE
        elif agent.failure is None:  # It is only cut off: there is nothing to end.
            decision = s.Decision.MORE_TIME
        else:
            choices = (s.Decision.TERMINATE, s.Decision.HANDOFF, s.Decision.MORE_TIME)
            (decision,) = self._chance.choices(choices, (70, 10, 20))
        if decision is s.Decision.MORE_TIME:
            self._world.at(self._world.now + 60 * MINUTE, self._look_again, (agent_id, order_id))
        self._world.tell(
            s.EscalationDecided(agent_id=agent_id, order_id=order_id, decision=decision, by="orchestrator")
        )

    def _look_again(self, what: tuple[str, str]) -> None:
        agent_id, order_id = what
        if self._asked.get(agent_id) == order_id:
            self._decide(agent_id)

    def _release(self, group: str) -> None:
        self._world.invariants.released(group)
        self._world.tell(s.GroupReleased(group=group, by="operator"))

    def _recover(self, agent_id: str) -> None:
        agent = self._world.agent(agent_id)
        if not agent.running:
            agent.lose_task()  # It gets another one, with another budget.
            request = s.RecoveryRequested(agent_id=agent_id, by="operator", task_id="")
            self._world.tell(request)

    def _end_by_hand(self, agent_id: str) -> None:
        agent: SimulatedAgent = self._world.agent(agent_id)
        if agent.failure is not None:
            agent.failure.found_at = agent.failure.found_at or self._world.now
            agent.stop()
            agent.live(iter(()))
        self._world.tell(s.ClearRequested(agent_id=agent_id, by="operator"))
