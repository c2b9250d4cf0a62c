"""Tasks: a stalled task is not yet a failed agent.

A task is overdue when it takes a multiple of its expected time and the agent has reported nothing for as long as the
whole task should take: its agent shows as degraded, and that is all. A task is stalled when three things come
together: no progress for long, past its expected end, and no explanation of the delay. Then the engine asks the agent
and gives it time to answer. The task has failed only if there is neither an answer nor a beat, or if the agent says
so; if the agent still beats, its task is blocked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.awareness import Awareness
from lifesigns.core.effects import AskStatus, Finding, Kind, Severity, TaskVerdict
from lifesigns.core.health import Health, TaskStatus
from lifesigns.core.judgement import Judge
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import TaskPolicy
from lifesigns.core.words import duration

DESCRIPTION_MAX: Final = 1024
NOTE_MAX: Final = 256


@dataclass(slots=True)
class Task:
    """A task with an expected end."""

    id: str
    agent_id: str
    expected_at: float
    word_at: float
    """The last progress, or explanation of the delay."""
    order: int
    armed_at: float = NEVER
    asked_at: float | None = None
    assigned_at: float | None = None
    overdue: bool = False
    """It takes much longer than expected, without a report since."""
    judged_at: float | None = None
    """When we last found it blocked: we ask again after the same time as before the first question."""
    source: str = ""
    """Whose quota it is of."""
    description: str = ""
    progress_at: float | None = None
    """The last progress, apart from other words about it."""
    percent: float | None = None
    note: str = ""
    """What its agent said when it last came forward."""

    @property
    def status(self) -> TaskStatus:
        if self.asked_at is not None:
            return TaskStatus.STALLED
        if self.judged_at is not None:
            return TaskStatus.BLOCKED
        return TaskStatus.OVERDUE if self.overdue else TaskStatus.IN_PROGRESS


class Tasks:
    """Asks about stalled tasks and judges those without an answer."""

    def __init__(self, outbox: Outbox, awareness: Awareness, judge: Judge) -> None:
        self._outbox = outbox
        self._awareness = awareness
        self._judge = judge

    def due_at(self, task: Task, policy: TaskPolicy) -> float:
        """When the task is stalled, or its inquiry unanswered."""
        if task.asked_at is not None:
            return self._awareness.due(task.asked_at, policy.inquiry_wait)
        return min(self._stalled_at(task, policy), self._overdue_at(task, policy))

    def _stalled_at(self, task: Task, policy: TaskPolicy) -> float:
        start = task.word_at if task.judged_at is None else task.judged_at
        return self._awareness.due(start, max(policy.stalled_after, task.expected_at - start))

    def _overdue_at(self, task: Task, policy: TaskPolicy) -> float:
        if task.assigned_at is None or task.overdue or task.judged_at is not None:
            return NEVER
        expected_for = task.expected_at - task.assigned_at
        if expected_for <= 0.0:
            return NEVER
        too_long = self._awareness.due(task.assigned_at, policy.overdue_factor * expected_for)
        return max(too_long, self._awareness.due(task.word_at, expected_for))

    def progressed(self, task: Task, agent: Agent, now: float) -> None:
        """Progress, or the agent explained itself: the task is late, not stalled."""
        task.word_at, task.judged_at, task.overdue = now, None, False
        if task.asked_at is not None:
            task.asked_at = None
            self._verdict(task, "late", "the agent answered", now)
        self._judge.clear(agent, Kind.TASK_STALLED, now)

    def look(self, task: Task, agent: Agent, policy: TaskPolicy, at: float, now: float) -> bool:
        """A task fell due: ask (False), or judge what was not answered (True: the task is closed)."""
        if agent.task_id != task.id:
            self._verdict(task, "abandoned", f"the agent works on {agent.task_id or 'nothing'} now", at)
            self._judge.clear(agent, Kind.TASK_STALLED, at)
            return True
        if task.asked_at is None and self._stalled_at(task, policy) > now:
            task.overdue = True
            if agent.alive:
                self._judge.note(agent, self._finding(task, at, Severity.DEGRADED), at)
            return False
        if task.asked_at is None and agent.health is not Health.TERMINATED:
            self._ask(task, agent, policy, at, now)
            return False
        if agent.health in (Health.DISCONNECTED, Health.TERMINATED):
            self._verdict(task, "failed", "neither an answer nor beats", at)
            return True
        if agent.suspicion is not None:
            task.asked_at = now  # We are asking the agent whether it lives at all: that answer comes first.
            return False
        self._judge.note(agent, self._finding(task, at, Severity.STUCK), at)
        self._verdict(task, "blocked", "the agent beats but does not answer", at)
        task.asked_at, task.judged_at = None, now
        return False

    def failed(self, task: Task, reason: str, now: float) -> None:
        """The agent itself reports the failure."""
        self._verdict(task, "failed", reason or "the agent says so", now)

    def _ask(self, task: Task, agent: Agent, policy: TaskPolicy, at: float, now: float) -> None:
        task.asked_at = now
        if agent.finding(Kind.TASK_STALLED) is None:
            self._judge.note(agent, self._finding(task, at, Severity.DEGRADED), at)
        text = (
            f"Task {task.id} has had no progress for {duration(now - task.word_at)} and is past its "
            f"expected end. A status within {duration(policy.inquiry_wait)} helps."
        )
        answer_by = now + policy.inquiry_wait
        self._outbox.order(AskStatus, agent, now, task_id=task.id, text=text, answer_by=answer_by)

    def _finding(self, task: Task, at: float, severity: Severity) -> Finding:
        text = (
            f"Task {task.id} has had no progress for {duration(at - task.word_at)} and is "
            f"{duration(at - task.expected_at)} past its expected end, without a word about the delay."
        )
        return Finding(
            Kind.TASK_STALLED,
            task.word_at,
            severity,
            text,
            {"task_id": task.id, "late_s": round(at - task.expected_at, 1)},
        )

    def _verdict(self, task: Task, verdict: str, reason: str, at: float) -> None:
        self._outbox.fact(TaskVerdict(at, task.id, task.agent_id, verdict, reason))
