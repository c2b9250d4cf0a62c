"""What happens when a deadline falls due: an agent's, a lineage's, a claim's, a message's, a task's.

While we are blind we judge nothing: we postpone every deadline until we have had time to see.
"""

from __future__ import annotations

from lifesigns.core.agent import Agent
from lifesigns.core.canary import Canary
from lifesigns.core.claims import Claim
from lifesigns.core.context import EngineContext
from lifesigns.core.deadlines import HasDeadline
from lifesigns.core.effects import Rung
from lifesigns.core.health import Phase
from lifesigns.core.messages import PendingMessage
from lifesigns.core.policy import HOUR
from lifesigns.core.profiles import FIRST
from lifesigns.core.rebalancing import Offer
from lifesigns.core.respawn import Lineage
from lifesigns.core.side_orders import SideOrder
from lifesigns.core.tasks import Task
from lifesigns.core.watching import ASLEEP, Watching


class DueRunner:
    """Handles each kind of item that has a deadline."""

    def __init__(self, context: EngineContext, watching: Watching) -> None:
        self._context = context
        self._watching = watching

    def fall_due(self, item: HasDeadline, at: float, now: float) -> None:
        """`item` fell due at `at`; orders leave at `now`."""
        self._note_change(item)
        if isinstance(item, Agent) and self._context.limits.judging:
            self._agent(item, at, now)
        elif isinstance(item, Agent):
            self._unjudged(item, now)
        elif isinstance(item, Canary):
            item.fall_due(now)
        elif (self._context.awareness.blind or self._context.awareness.lost_paths) and self._unseen(item):
            self._context.deadlines.arm(item, now + self._context.limits.canary_late_after)
        elif isinstance(item, Lineage):
            self._lineage(item, now)
        elif isinstance(item, Claim):
            self._claim(item, now)
        elif isinstance(item, PendingMessage):
            self._message(item, at, now)
        elif isinstance(item, Task):
            self._task(item, at, now)
        elif isinstance(item, SideOrder):
            self._side_order(item, at, now)
        elif isinstance(item, Offer):
            self._context.rebalancing.look(item, now)

    def _note_change(self, item: HasDeadline) -> None:
        changes = self._context.changes
        if isinstance(item, Agent):
            changes.agents[item.id] = None
        elif isinstance(item, Claim | Task):
            changes.tasks[item.task_id if isinstance(item, Claim) else item.id] = None
            changes.agents[item.agent_id] = None
        elif isinstance(item, PendingMessage):
            changes.messages[item.id] = None
        elif isinstance(item, Lineage | SideOrder):
            changes.agents[item.agent_id] = None

    def _unseen(self, item: HasDeadline) -> bool:
        """Whether we are blind to an agent this is about."""
        aware = self._context.awareness
        names = (
            (item.sender, item.to) if isinstance(item, PendingMessage) else (getattr(item, "agent_id", ""),)
        )
        agents = (self._context.beliefs.agents.get(name) for name in names)
        return any(aware.blind if agent is None else aware.blind_to(agent) for agent in agents)

    def _agent(self, agent: Agent, at: float, now: float) -> None:
        context, policy = self._context, self._context.policy(agent)
        lineage = context.beliefs.lineages.get(agent.id)
        if agent.past.poisoned:
            return
        if context.awareness.blind_to(agent):
            # Silence starts anew when we see again, so nothing can fall due before a whole silence has passed.
            agent.suspicion = None
            context.deadlines.arm(agent, now + policy.silence.suspect_after)
        elif self._watching.act_on_due(agent, policy, at, now):
            self._watching.arm(agent, at)
        elif lineage is not None and lineage.waits_for_a_person:
            context.deadlines.arm(agent, now + policy.silence.forget_after)
        else:
            self._forget(agent, now)

    def _unjudged(self, agent: Agent, now: float) -> None:
        """Without judgement: people's orders are carried out, and an agent is forgotten after a long silence."""
        context, policy = self._context, self._context.policy(agent)
        forget_at = max(agent.since, agent.heard_at) + policy.silence.forget_after
        if now >= forget_at:
            self._forget(agent, now)
            return
        if agent.case is not None and agent.case.by and context.ladder.due_at(agent) <= now:
            context.ladder.step(agent, policy.ladder, now)
        ordered = agent.case is not None and bool(agent.case.by)
        context.deadlines.arm(agent, min(forget_at, context.ladder.due_at(agent)) if ordered else forget_at)

    def _forget(self, agent: Agent, now: float) -> None:
        beliefs = self._context.beliefs
        for message in self._context.open_messages.of(agent.id):
            self._context.close_message(message)
        self._context.side_orders.drop(agent, now, "forgotten", Rung.BREAKER, Rung.CLEANUP)
        self._context.fleet.leave(agent, now, self._context.outbox)
        self._context.use_policy(agent, FIRST)
        del beliefs.agents[agent.id]
        if (lineage := beliefs.lineages.get(agent.id)) is not None:
            beliefs.forget_saver(lineage)
        for table in (beliefs.lineages, beliefs.own_policies, beliefs.breakers):
            table.pop(agent.id, None)

    def _lineage(self, lineage: Lineage, now: float) -> None:
        agent, respawns = self._context.beliefs.agents.get(lineage.agent_id), self._context.respawns
        if agent is None:
            self._context.beliefs.lineages.pop(lineage.agent_id, None)
            return
        due = respawns.due_at(lineage) <= now
        unasked = lineage.phase is Phase.WAITING and not lineage.requested
        if due and unasked and self._watching.may_be_well(agent, now):  # We heard from its host a moment ago.
            respawns.ask(lineage, f"{lineage.why} {ASLEEP}", now, doubted=True)
        elif due:
            respawns.step(lineage, agent, self._context.policy(agent).respawn, now)
        self._context.failures.review(agent, now)
        self._context.deadlines.arm(lineage, respawns.due_at(lineage))

    def _claim(self, claim: Claim, now: float) -> None:
        agent = self._context.beliefs.agents.get(claim.agent_id)
        if agent is None:
            self._context.drop_claim(claim)
            return
        policy = self._context.policy(agent).claim
        if self._context.claims.look(claim, agent, policy, now):
            self._context.drop_claim(claim)
            self._context.rebalancing.freed(claim, agent, "its worker is silent", now)
        else:
            self._context.deadlines.arm(claim, self._context.claims.due_at(claim, agent, policy))

    def _message(self, message: PendingMessage, at: float, now: float) -> None:
        agents, messages = self._context.beliefs.agents, self._context.messages
        sender = agents.get(message.sender)
        if sender is None:
            self._context.close_message(message)
            return
        policy = self._context.policy(sender).message
        if messages.due_at(message, policy) <= now and messages.overdue(
            message, sender, agents.get(message.to), at, now
        ):
            self._context.open_messages.done_with(message)
        self._context.deadlines.arm(message, messages.due_at(message, policy))

    def _task(self, task: Task, at: float, now: float) -> None:
        agent, tasks = self._context.beliefs.agents.get(task.agent_id), self._context.tasks
        if agent is None:
            self._context.drop_task(task)
            return
        if not self._context.limits.judging:
            self._context.deadlines.arm(task, now + HOUR)
            return
        policy = self._context.policy(agent).task
        if tasks.due_at(task, policy) <= now and tasks.look(task, agent, policy, at, now):
            self._context.drop_task(task)
        else:
            self._context.deadlines.arm(task, tasks.due_at(task, policy))
        self._watching.follow_up(agent, now)

    def _side_order(self, side_order: SideOrder, at: float, now: float) -> None:
        context = self._context
        if context.side_orders.due_at(side_order) > now:
            context.deadlines.arm(side_order, context.side_orders.due_at(side_order))
            return
        context.side_orders.overdue(side_order, at)
        lineage = context.beliefs.lineages.get(side_order.agent_id)
        if lineage is not None:
            context.respawns.cleaned_up(lineage, now)
            context.deadlines.arm(lineage, context.respawns.due_at(lineage))
