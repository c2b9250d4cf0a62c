"""The claims of a simulated worker: the jobs it takes from a queue beside its task, and what it does with those it is offered or asked
for.

There are workers only where tasks are moved (`fleet.moves_per_minute`). Each has its own chance: the lives of all agents stay
what they are without them.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.truth import Illness

if TYPE_CHECKING:
    from lifesigns.simulation.simulated_agent import SimulatedAgent

ROOM: Final = 4
"""Jobs that a worker can hold at once."""
TAKES: Final = 0.6
"""How often it takes another job, if it has room; else it finishes the oldest."""
GIVES_BACK: Final = 0.7
ACCEPTS: Final = 0.8
READS_NOTHING: Final = frozenset({Illness.FREEZE, Illness.HUNG_CALL})


class SimulatedClaims:
    """The jobs of one worker, as it knows them."""

    def __init__(self, agent: SimulatedAgent, chance: Random) -> None:
        self._agent = agent
        self._chance = chance
        self._taken = 0
        self.held: dict[str, int] = {}
        """Its jobs, with the tokens they were granted with."""
        self.given_up: set[str] = set()
        """Jobs that it finished or gave back."""
        agent.world.at(chance.uniform(1, 10) * MINUTE, self._turn)

    @property
    def room(self) -> int:
        return ROOM - len(self.held)

    def lose_all(self) -> None:
        """Its process has ended: the next one knows nothing of these jobs."""
        self.held.clear()

    def granted(self, task_id: str, token: int) -> None:
        """The answer to its claim. An agent that is cut off gets none, and the claim ends by its lease."""
        if self._agent.speaking and not self._agent.cuts:
            self.held[task_id] = token
            self._agent.beat.capacity_available = max(0, self.room)

    def think_over(self, order: e.OfferTask | e.AskBack) -> None:
        """It is offered a job, or asked to give one back."""
        if isinstance(order, e.AskBack):
            self._give_back(order)
        elif self._chance.random() < ACCEPTS:
            # It takes a while to decide, and somebody else may be quicker.
            self._agent.world.at(self._agent.now + self._chance.uniform(1, 20), self._accept, order)

    def _accept(self, order: e.OfferTask) -> None:
        if self._is_at_work and self.room > 0:
            self._claim(order.task_id)

    def _give_back(self, order: e.AskBack) -> None:
        agent = self._agent
        reads = agent.failure is None or agent.failure.illness not in READS_NOTHING
        if reads and order.task_id in self.held and self._chance.random() < GIVES_BACK:
            self._end(order.task_id)
            agent.say(
                s.TaskReleased(
                    agent_id=agent.id,
                    incarnation=agent.incarnation,
                    task_id=order.task_id,
                    token=order.token,
                )
            )

    def _turn(self, _: object) -> None:
        agent = self._agent
        agent.world.at(agent.now + self._chance.uniform(4, 10) * MINUTE, self._turn)
        if not self._is_at_work:
            return
        if self.room > 0 and self._chance.random() < TAKES:
            self._taken += 1
            self._claim(f"{agent.id}/job{self._taken}")
        elif self.held:
            done = next(iter(self.held))
            self._end(done)
            agent.say(s.TaskDone(agent_id=agent.id, incarnation=agent.incarnation, task_id=done))

    @property
    def _is_at_work(self) -> bool:
        agent = self._agent
        return agent.speaking and agent.plain is None and agent.failure is None

    def _claim(self, task_id: str) -> None:
        agent = self._agent
        self.given_up.discard(task_id)
        agent.say(s.TaskClaimed(agent_id=agent.id, incarnation=agent.incarnation, task_id=task_id))

    def _end(self, task_id: str) -> None:
        del self.held[task_id]
        self.given_up.add(task_id)
        self._agent.beat.capacity_available = self.room
