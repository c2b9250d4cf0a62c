"""Tasks, claims and messages: what an agent owes to others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lifesigns.core import signals as s
from lifesigns.core.agent import Agent
from lifesigns.core.claims import Claim
from lifesigns.core.context import EngineContext
from lifesigns.core.effects import NeedsHuman
from lifesigns.core.handlers.work import WorkHandlers
from lifesigns.core.messages import PendingMessage
from lifesigns.core.quotas import Quota
from lifesigns.core.rebalancing import UNWELL
from lifesigns.core.tasks import DESCRIPTION_MAX, Task

CLAIMS_MAX: Final = 256
TASKS_MAX: Final = 100_000
MESSAGES_MAX: Final = 100_000


class ClaimAndMessageHandlers:
    """Handles tasks, claims and messages."""

    def __init__(self, context: EngineContext, work: WorkHandlers) -> None:
        self._context = context
        self._work = work

    @property
    def handlers(self) -> Mapping[type, Callable[[Agent, Any, float], None]]:
        return {
            s.TaskAssigned: self._task_assigned,
            s.TaskDone: self._task_done,
            s.TaskFailed: self._task_failed,
            s.TaskClaimed: self._task_claimed,
            s.TaskReleased: self._task_released,
            s.MessageSent: self._message_sent,
            s.MessageAcked: self._message_acked,
            s.MessageWithdrawn: self._message_withdrawn,
        }

    def _task_assigned(self, agent: Agent, signal: s.TaskAssigned, now: float) -> None:
        self._work.take_task(agent, signal.task_id, now)
        context, tasks = self._context, self._context.beliefs.tasks
        context.changes.tasks[signal.task_id] = None
        if (known := tasks.get(signal.task_id)) is not None:
            context.drop_task(known)
        if signal.expected_for is None:
            return
        source = signal.source or agent.source
        full = f"there are {TASKS_MAX} tasks already" if len(tasks) >= TASKS_MAX else None
        if full := full or context.quotas.refusal(Quota.TASKS, source):
            context.refuse_over_quota(Quota.TASKS, agent.id, source, full, now)
            return
        expected_at = now + max(0.0, signal.expected_for)
        order = context.beliefs.next_order()
        task = Task(
            *(signal.task_id, agent.id, expected_at, now, order),
            assigned_at=now,
            source=source,
            description=signal.description[:DESCRIPTION_MAX],
            percent=None if signal.percent is None else min(100.0, max(0.0, signal.percent)),
        )
        tasks[signal.task_id] = task
        context.quotas.take(Quota.TASKS, source)
        context.deadlines.arm(task, context.tasks.due_at(task, context.policy(agent).task))

    def _task_done(self, agent: Agent, signal: s.TaskDone, now: float) -> None:
        self._close_task(agent, signal.task_id, "its task is done", now)

    def _task_failed(self, agent: Agent, signal: s.TaskFailed, now: float) -> None:
        task = self._context.beliefs.tasks.get(signal.task_id)
        if task is not None and task.agent_id == agent.id:
            self._context.tasks.failed(task, signal.reason, now)
        text = f"{agent.id} cannot finish {signal.task_id}: {signal.reason or 'it gave no reason'}"
        self._context.outbox.fact(NeedsHuman(now, agent.id, "task_failed", text))
        self._close_task(agent, signal.task_id, "its task failed", now)

    def _close_task(self, agent: Agent, task_id: str, reason: str, now: float) -> None:
        context = self._context
        context.changes.tasks[task_id] = None
        context.rebalancing.closed(task_id)
        task = context.beliefs.tasks.get(task_id)
        if task is not None and task.agent_id == agent.id:
            context.drop_task(task)
        claim = context.beliefs.claims.get(task_id)
        if claim is not None and claim.agent_id == agent.id:
            context.drop_claim(claim)
            context.claims.ended(claim, now, reason)
        if agent.task_id == task_id:
            agent.task_id = None
            self._work.rest(agent, now)
            lineage = context.beliefs.lineages.get(agent.id)
            if lineage is not None:
                context.beliefs.forget_saver(lineage)
                context.respawns.new_task(lineage, None)

    def _task_claimed(self, agent: Agent, signal: s.TaskClaimed, now: float) -> None:
        context, claims = self._context, self._context.beliefs.claims
        claim = claims.get(signal.task_id)
        if claim is not None and (claim.agent_id != agent.id or claim.incarnation != agent.incarnation):
            context.claims.refused(claim, agent.id, now)
            return
        if claim is None:
            if len(agent.claims) >= CLAIMS_MAX:
                context.refuse(agent.id, f"more than {CLAIMS_MAX} claims", now)
                return
            if full := context.quotas.refusal(Quota.CLAIMS, agent.source):
                context.refuse_over_quota(Quota.CLAIMS, agent.id, agent.source, full, now)
                return
            context.beliefs.tokens += 1
            claim = Claim(
                signal.task_id,
                agent.id,
                agent.incarnation,
                context.beliefs.tokens,
                now,
                context.beliefs.next_order(),
                source=agent.source,
            )
            context.quotas.take(Quota.CLAIMS, agent.source)
            claims[signal.task_id] = claim
            context.changes.tasks[signal.task_id] = None
            agent.claims = (*agent.claims, signal.task_id)
            context.deadlines.arm(claim, context.claims.due_at(claim, agent, context.policy(agent).claim))
        context.claims.granted(claim, now)
        context.rebalancing.claimed(signal.task_id, agent, now)

    def _task_released(self, agent: Agent, signal: s.TaskReleased, now: float) -> None:
        claim = self._context.beliefs.claims.get(signal.task_id)
        if claim is None or claim.agent_id != agent.id or claim.token != signal.token:
            self._context.refuse(agent.id, f"does not hold {signal.task_id} with that token", now)
            return
        self._context.drop_claim(claim)
        self._context.claims.ended(claim, now, "given back")
        if agent.health in UNWELL:
            self._context.rebalancing.freed(
                claim, agent, f"given back by a worker that is {agent.health}", now
            )

    def _message_sent(self, agent: Agent, signal: s.MessageSent, now: float) -> None:
        context, messages = self._context, self._context.beliefs.messages
        policy = context.policy(agent).message
        self._work.acted(agent, now)
        if signal.message_id in messages:
            return
        if not self._has_room(agent, policy.open_max, now):
            return
        message = PendingMessage(
            signal.message_id,
            agent.id,
            signal.to,
            signal.priority,
            now,
            context.beliefs.next_order(),
            source=agent.source,
        )
        context.open_messages.add(message)
        context.quotas.take(Quota.MESSAGES, agent.source)
        context.changes.messages[message.id] = None
        agent.messages += 1
        context.deadlines.arm(message, context.messages.due_at(message, policy))

    def _has_room(self, agent: Agent, open_max: int, now: float) -> bool:
        """Whether this sender may wait for one more message: otherwise a message that we have finished with makes room."""
        context, quota = self._context, None
        if agent.messages >= open_max:
            full = f"more than {open_max} open messages"
        elif len(context.beliefs.messages) >= MESSAGES_MAX:
            full = f"there are {MESSAGES_MAX} open messages already"
        elif quota := context.quotas.refusal(Quota.MESSAGES, agent.source):
            full = quota
        else:
            return True
        if (done := context.open_messages.first_done(agent.id)) is not None:
            context.close_message(done)
            return True
        if quota:
            context.refuse_over_quota(Quota.MESSAGES, agent.id, agent.source, quota, now)
        else:
            context.refuse(agent.id, full, now)
        return False

    def _message_withdrawn(self, agent: Agent, signal: s.MessageWithdrawn, now: float) -> None:
        message = self._context.beliefs.messages.get(signal.message_id)
        if message is not None and message.sender == agent.id:
            self._context.close_message(message)
        elif message is not None:
            self._context.refuse(agent.id, "withdrew a message of somebody else", now)

    def _message_acked(self, agent: Agent, signal: s.MessageAcked, now: float) -> None:
        self._work.acted(agent, now)
        message = self._context.beliefs.messages.get(signal.message_id)
        if message is not None and message.to == agent.id:
            self._context.close_message(message)
        elif message is not None:
            self._context.refuse(agent.id, "acknowledged a message to somebody else", now)
