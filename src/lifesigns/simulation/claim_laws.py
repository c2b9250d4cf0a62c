"""The laws of claims and of moving them, checked against the truth like those of `invariants.py`.

Who holds what is known here from the facts that were told, not from the engine's beliefs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from lifesigns.core import effects as e
from lifesigns.core.policy import MINUTE

if TYPE_CHECKING:
    from lifesigns.simulation.world import World

ASKED: Final = frozenset("degraded stuck failing".split())
"""Who may be asked for a task."""
OFFER_FOR: Final = MINUTE
"""How long a worker has to answer an offer."""
MOMENT: Final = 0.001


class Holder(NamedTuple):
    """Who holds a task, in which of its lives."""

    agent_id: str
    life: str | None
    token: int


class ClaimLaws:
    """Watches every claim and every move."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._holders: dict[str, Holder] = {}
        self._tokens: dict[str, int] = {}
        """Of each task the highest token that was given."""
        self._offered: dict[str, tuple[float, str]] = {}
        """The last offer of each task: when, and to whom."""
        self._moved_at: list[float] = []
        self._epoch = 0
        self.offers = self.questions = self.taken = 0

    def see(self, effects: Sequence[e.Effect]) -> None:
        for effect in effects:
            match effect:
                case e.ClaimChanged(stage=e.ClaimStage.GRANTED):
                    self._granted(effect)
                case e.ClaimChanged(stage=e.ClaimStage.RELEASED):
                    self._released(effect)
                case e.OfferTask():
                    self._offer(effect)
                case e.AskBack():
                    self._question(effect)
                case e.TaskMove(stage=e.MoveStage.TAKEN):
                    self.taken += 1
                case _:
                    pass

    # --- claims -------------------------------------------------------------------------------------

    def _granted(self, fact: e.ClaimChanged) -> None:
        task_id, agent = fact.task_id, self._world.agent(fact.agent_id)
        before = self._holders.get(task_id)
        again = before == (agent.id, agent.heard_life, fact.token)
        if before is not None and not again:
            self._violate("taken", f"{task_id} is given to {agent.id}, and {before.agent_id} holds it")
        if not again and fact.token <= self._tokens.get(task_id, 0):
            self._violate("taken", f"{task_id} is given to {agent.id} with the old token {fact.token}")
        self._holders[task_id] = Holder(agent.id, agent.heard_life, fact.token)
        self._tokens[task_id] = fact.token
        self._offered.pop(task_id, None)  # Should it be free again, that is another offer.
        if agent.claims is not None:
            agent.claims.granted(task_id, fact.token)

    def _released(self, fact: e.ClaimChanged) -> None:
        holder, agent = self._holders.pop(fact.task_id, None), self._world.agent(fact.agent_id)
        if holder is None or agent.claims is None:
            return
        over = not agent.running or agent.leaving or agent.incarnation != holder.life
        if over or fact.task_id in agent.claims.given_up:
            return
        unheard_for = self._world.now - self._world.bulk_beats.heard_at[agent.index]
        if unheard_for < agent.policy.claim.lease - MOMENT:
            text = f"{fact.task_id} is taken from {agent.id}, which was heard {unheard_for:.1f} s ago: {fact.reason}"
            self._violate("taken", text)

    # --- moves --------------------------------------------------------------------------------------

    def _offer(self, order: e.OfferTask) -> None:
        agent, now = self._world.agent(order.agent_id), self._world.monitor_now
        self._count(order)
        self.offers += 1
        if (holder := self._holders.get(order.task_id)) is not None:
            self._violate(
                "moves", f"{order.task_id} is offered to {agent.id}, and {holder.agent_id} holds it"
            )
        says_room = agent.claims is not None or agent.plain is not None
        if agent.id == order.giver or not says_room:
            self._violate("moves", f"{order.task_id} of {order.giver} is offered to {agent.id}")
        if (health := self._world.invariants.health_of(agent.id)) != "healthy":
            self._violate("moves", f"{order.task_id} is offered to {agent.id}, which is {health}")
        offered_at, to = self._offered.get(order.task_id, (-MINUTE, ""))
        if to != agent.id and now - offered_at < OFFER_FOR - MOMENT:
            self._violate("moves", f"{order.task_id} is offered to {agent.id}, and {to} has the offer")
        self._offered[order.task_id] = now, agent.id

    def _question(self, order: e.AskBack) -> None:
        agent, holder = self._world.agent(order.agent_id), self._holders.get(order.task_id)
        self._count(order)
        self.questions += 1
        if holder is None or holder.agent_id != agent.id or order.task_id == agent.task_id:
            self._violate("moves", f"{agent.id} is asked for {order.task_id}")
        if (health := self._world.invariants.health_of(agent.id)) not in ASKED:
            self._violate("moves", f"{agent.id} is asked for {order.task_id}, and is {health}")

    def _count(self, order: e.Order) -> None:
        """A hub that was restarted begins to count anew, and knows nothing of offers."""
        now, most = self._world.monitor_now, self._world.fleet.moves_per_minute
        if order.epoch != self._epoch:
            self._epoch = order.epoch
            self._moved_at.clear()
            self._offered.clear()
        self._moved_at = [at for at in self._moved_at if at > now - MINUTE + MOMENT]
        self._moved_at.append(now)
        if len(self._moved_at) > most:
            self._violate("moves", f"{len(self._moved_at)} moves in a minute, {most} are allowed")

    def _violate(self, law: str, text: str) -> None:
        self._world.invariants.violate(law, text)
