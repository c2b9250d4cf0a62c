"""Duties: tasks, claims and messages, what an agent owes to others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lifesigns.core import signals as s
from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.claims import Hold
from lifesigns.core.desk import Desk
from lifesigns.core.effects import NeedsHuman
from lifesigns.core.hearing.lives import Lives
from lifesigns.core.hearing.work import WorkHearing
from lifesigns.core.messages import Letter
from lifesigns.core.tasks import Task

CLAIMS_MAX: Final = 256
TASKS_MAX: Final = 100_000
LETTERS_MAX: Final = 100_000


class DutyHearing:
    """Hears of tasks, claims and messages."""

    def __init__(self, desk: Desk, lives: Lives, work: WorkHearing) -> None:
        self._desk = desk
        self._lives = lives
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
        tasks = self._desk.beliefs.tasks
        if (known := tasks.pop(signal.task_id, None)) is not None:
            known.armed_at = NEVER
        if signal.expected_for is not None and len(tasks) < TASKS_MAX:
            expected_at = now + max(0.0, signal.expected_for)
            order = self._desk.beliefs.next_order()
            task = Task(signal.task_id, agent.id, expected_at, now, order, assigned_at=now)
            tasks[signal.task_id] = task
            self._desk.deadlines.arm(task, self._desk.tasks.due_at(task, self._desk.policy(agent).task))

    def _task_done(self, agent: Agent, signal: s.TaskDone, now: float) -> None:
        self._close_task(agent, signal.task_id, "its task is done", now)

    def _task_failed(self, agent: Agent, signal: s.TaskFailed, now: float) -> None:
        task = self._desk.beliefs.tasks.get(signal.task_id)
        if task is not None and task.agent_id == agent.id:
            self._desk.tasks.failed(task, signal.reason, now)
        text = f"{agent.id} cannot finish {signal.task_id}: {signal.reason or 'it gave no reason'}"
        self._desk.outbox.fact(NeedsHuman(now, agent.id, "task_failed", text))
        self._close_task(agent, signal.task_id, "its task failed", now)

    def _close_task(self, agent: Agent, task_id: str, reason: str, now: float) -> None:
        desk = self._desk
        task = desk.beliefs.tasks.get(task_id)
        if task is not None and task.agent_id == agent.id:
            task.armed_at = NEVER
            del desk.beliefs.tasks[task_id]
        hold = desk.beliefs.holds.get(task_id)
        if hold is not None and hold.agent_id == agent.id:
            self._lives.drop_hold(hold, agent)
            desk.claims.ended(hold, now, reason)
        if agent.task_id == task_id:
            agent.task_id = None
            self._work.rest(agent, now)
            lineage = desk.beliefs.lineages.get(agent.id)
            if lineage is not None:
                desk.respawns.new_task(lineage, None)

    def _task_claimed(self, agent: Agent, signal: s.TaskClaimed, now: float) -> None:
        desk, holds = self._desk, self._desk.beliefs.holds
        hold = holds.get(signal.task_id)
        if hold is not None and (hold.agent_id != agent.id or hold.incarnation != agent.incarnation):
            desk.claims.refused(hold, agent.id, now)
            return
        if hold is None:
            if len(agent.claims) >= CLAIMS_MAX:
                desk.refuse(agent.id, f"more than {CLAIMS_MAX} claims", now)
                return
            desk.beliefs.tokens += 1
            hold = Hold(
                signal.task_id,
                agent.id,
                agent.incarnation,
                desk.beliefs.tokens,
                now,
                desk.beliefs.next_order(),
            )
            holds[signal.task_id] = hold
            agent.claims = (*agent.claims, signal.task_id)
            desk.deadlines.arm(hold, desk.claims.due_at(hold, agent, desk.policy(agent).claim))
        desk.claims.granted(hold, now)

    def _task_released(self, agent: Agent, signal: s.TaskReleased, now: float) -> None:
        hold = self._desk.beliefs.holds.get(signal.task_id)
        if hold is None or hold.agent_id != agent.id or hold.token != signal.token:
            self._desk.refuse(agent.id, f"does not hold {signal.task_id} with that token", now)
            return
        self._lives.drop_hold(hold, agent)
        self._desk.claims.ended(hold, now, "given back")

    def _message_sent(self, agent: Agent, signal: s.MessageSent, now: float) -> None:
        desk, letters = self._desk, self._desk.beliefs.letters
        policy = desk.policy(agent).message
        self._work.acted(agent, now)
        if signal.message_id in letters:
            return
        full = agent.letters >= policy.open_max or len(letters) >= LETTERS_MAX
        if full and not self._make_room(agent):
            desk.refuse(agent.id, f"more than {policy.open_max} open messages", now)
            return
        letter = Letter(
            signal.message_id, agent.id, signal.to, signal.priority, now, desk.beliefs.next_order()
        )
        letters[letter.id] = letter
        agent.letters += 1
        desk.deadlines.arm(letter, desk.messages.due_at(letter, policy))

    def _make_room(self, agent: Agent) -> bool:
        """Forget the oldest message of this sender about which nothing more is done. False if there is none."""
        for letter in self._desk.beliefs.letters.values():
            if letter.sender == agent.id and not letter.watched:
                self._desk.close_letter(letter)
                return True
        return False

    def _message_withdrawn(self, agent: Agent, signal: s.MessageWithdrawn, now: float) -> None:
        letter = self._desk.beliefs.letters.get(signal.message_id)
        if letter is not None and letter.sender == agent.id:
            self._desk.close_letter(letter)
        elif letter is not None:
            self._desk.refuse(agent.id, "withdrew a message of somebody else", now)

    def _message_acked(self, agent: Agent, signal: s.MessageAcked, now: float) -> None:
        self._work.acted(agent, now)
        letter = self._desk.beliefs.letters.get(signal.message_id)
        if letter is not None and letter.to == agent.id:
            self._desk.close_letter(letter)
        elif letter is not None:
            self._desk.refuse(agent.id, "acknowledged a message to somebody else", now)
