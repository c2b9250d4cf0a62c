"""Adoption: agents come from another engine, or go to one, with everything that belongs to them.

The law: an engine judges an adopted agent as the one before would have, and judges the others as if it had never had the ones
it let go. The time in which neither engine listened counts against no agent. Where the two engines could know different
things, the milder one counts: lapses and truces of the other engine hold here for all agents, and about an agent that was
lost under a brake a person decides.

A task, its claim and a checkpoint's lineage go with the agent that has them, a message with its sender.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.context import EngineContext
from lifesigns.core.deadlines import HasDeadline
from lifesigns.core.profiles import FIRST
from lifesigns.core.quotas import Quota
from lifesigns.core.watching import Watching
from lifesigns.errors import Bug


def timed(beliefs: Beliefs) -> list[HasDeadline]:
    """Everything that can fall due."""
    return [
        *beliefs.agents.values(),
        *beliefs.lineages.values(),
        *beliefs.claims.values(),
        *beliefs.messages.values(),
        *beliefs.tasks.values(),
        *beliefs.moves.offers.values(),
        *(side_order for mine in beliefs.side_orders.values() for side_order in mine.values()),
    ]


class Adoption:
    """Moves agents between the beliefs of this engine and those of another."""

    def __init__(self, context: EngineContext, watching: Watching) -> None:
        self._context = context
        self._watching = watching

    # --- coming -----------------------------------------------------------------------------------------

    def take_in(self, part: Beliefs, now: float, *, handed_over: bool) -> Sequence[HasDeadline]:
        """Believe what another engine believed; returns what of it has a deadline."""
        context = self._context
        context.awareness.take_in(part.awareness)
        if now > part.at:
            since = part.at if part.awareness.blind_since is None else part.awareness.blind_since
            context.awareness.take_over(since, now, context.limits, anew=not handed_over)
            self._watching.forget_questions(part.agents.values())
        things = sorted(timed(part), key=lambda item: item.order)
        for item in things:
            item.order = context.beliefs.next_order()  # Theirs have the same numbers as ours.
        context.beliefs.tokens = max(context.beliefs.tokens, part.tokens)
        self.recall(part)
        context.fleet.adopt(part.agents, part.fleet)
        return things

    def recall(self, part: Beliefs) -> None:
        """Believe more of what this engine believed before."""
        context, own = self._context, self._context.beliefs
        if twice := own.agents.keys() & part.agents.keys():
            raise Bug(f"{min(twice)} is adopted, and was here already")
        own.add(part)
        for claim in part.claims.values():
            context.quotas.take(Quota.CLAIMS, claim.source)
        for task in part.tasks.values():
            context.quotas.take(Quota.TASKS, task.source)
        for message in part.messages.values():
            context.open_messages.note(message)
            context.quotas.take(Quota.MESSAGES, message.source)
        for agent in part.agents.values():
            agent.messages = context.open_messages.count(agent.id)
        context.fleet.join_all(part.agents.values())

    # --- going ------------------------------------------------------------------------------------------

    def let_go(self, agent_ids: Collection[str]) -> None:
        """Forget these agents. Nothing is said about it, and nothing of them is to be stored: another engine has them."""
        context, own = self._context, self._context.beliefs
        leaving = [agent for agent_id in agent_ids if (agent := own.agents.get(agent_id)) is not None]
        ids = {agent.id for agent in leaving}
        context.fleet.let_go(leaving)
        for agent in leaving:
            self._drop_messages(agent)
            context.book.move(agent.policy_no, FIRST)
            agent.armed_at = NEVER
            if (lineage := own.lineages.pop(agent.id, None)) is not None:
                own.forget_saver(lineage)
                lineage.armed_at = NEVER
            for side_order in own.side_orders.pop(agent.id, {}).values():
                side_order.armed_at = NEVER
            for table in (own.agents, own.own_policies, own.breakers, own.duplicates, context.changes.agents):
                table.pop(agent.id, None)
        for task in [task for task in own.tasks.values() if task.agent_id in ids]:
            context.drop_task(task)
            context.changes.tasks.pop(task.id, None)
        for claim in [claim for claim in own.claims.values() if claim.agent_id in ids]:
            context.drop_claim(claim)
            context.changes.claims.pop(claim.task_id, None)
        context.rebalancing.let_go(ids)

    def _drop_messages(self, agent: Agent) -> None:
        for message in self._context.open_messages.of(agent.id):
            self._context.close_message(message)
            self._context.changes.messages.pop(message.id, None)
