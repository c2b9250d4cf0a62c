"""WorkerComments: one comment for each issue that says how its workers are, edited in place.

There is no queue: what is written is what is true when there is room for it, so the newest state wins, and a fleet that
is too large for the budget is only told later. The worker has nothing to do with it: the hub writes, from claims and beats.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import inf
from typing import Final

from lifesigns.core.agent import Agent
from lifesigns.hub.last_beats import ReceivedBeat
from lifesigns.hub.locks.budget import WriteBudget
from lifesigns.hub.locks.holders import Holders
from lifesigns.hub.locks.rules import LockRules
from lifesigns.hub.locks.wording import WorkerState, anonymous, find_workers_comment, workers_text
from lifesigns.hub.samples import tasks_of
from lifesigns.ports.issues import Issue, IssueRef, IssueTracker, TrackerError

RESERVED: Final = 4
"""Writes a minute that are left to releases: they matter more."""

log: Final = logging.getLogger("lifesigns.hub")


@dataclass(slots=True)
class _Written:
    """What an issue's comment says."""

    comment_id: int | None = None
    news: tuple[object, ...] = ()
    at: float = -inf


class WorkerComments:
    """Writes them."""

    def __init__(
        self,
        tracker: IssueTracker,
        rules: LockRules,
        budget: WriteBudget,
        last_beat: Callable[[str], ReceivedBeat | None],
    ) -> None:
        self._tracker = tracker
        self._rules = rules
        self._budget = budget
        self._last_beat = last_beat
        self._written: dict[IssueRef, _Written] = {}

    async def write(self, locks: Iterable[Issue], holders: Holders, clock: Callable[[], float]) -> None:
        """Write what is due, the longest unwritten first, as far as the budget goes."""
        states = {lock.ref: self._states(holders.at_work(lock)) for lock in locks}
        for ref in self._written.keys() - states.keys():
            del self._written[ref]  # It is no lock any more. Its comment stays as it is.
        due = [ref for ref, workers in states.items() if workers and self._is_due(ref, workers, clock())]
        for ref in sorted(due, key=lambda one: self._of(one).at):
            if self._budget.room(clock()) <= (RESERVED if self._rules.release else 0):
                return
            try:
                await self._write(ref, states[ref], clock())
            except TrackerError as error:
                if error.retry_after is not None or error.transient:
                    raise
                log.warning("%s has no comment: %s", ref, error, extra={"action": "lock_not_commented"})
                self._of(ref).at = clock()  # Not before its next turn: the others are to have theirs.

    def _of(self, ref: IssueRef) -> _Written:
        return self._written.get(ref) or _Written()

    def _is_due(self, ref: IssueRef, states: list[WorkerState], now: float) -> bool:
        written = self._of(ref)
        return (
            written.news != tuple(one.news for one in states) or now - written.at >= self._rules.comment_every
        )

    async def _write(self, ref: IssueRef, states: list[WorkerState], now: float) -> None:
        written = self._written.setdefault(ref, _Written())
        if written.comment_id is None:
            found = find_workers_comment(await self._tracker.comments(ref, inf))
            written.comment_id = None if found is None else found.id
        text = workers_text(states, now)
        if not self._budget.take(now):
            return
        if written.comment_id is None:
            written.comment_id = await self._create(ref, text)
        elif not await self._tracker.edit_comment(ref, written.comment_id, text):
            written.comment_id = None  # Somebody deleted it: a new one, when there is room again.
            return
        written.news, written.at = tuple(one.news for one in states), now

    async def _create(self, ref: IssueRef, text: str) -> int:
        """The id of the comment: of several monitors that write one at once the first one's."""
        mine = await self._tracker.comment(ref, text)
        first = find_workers_comment(await self._tracker.comments(ref, inf))
        if first is not None and first.id < mine.id:
            await self._tracker.delete_comment(ref, mine.id)
            return first.id
        return mine.id

    def _states(self, agents: Iterable[Agent]) -> list[WorkerState]:
        return [self._state(agent) for agent in agents if agent.beats]

    def _state(self, agent: Agent) -> WorkerState:
        received = self._last_beat(agent.id)
        beat = None if received is None else received.beat
        metrics = None if beat is None else beat.metrics
        return WorkerState(
            anonymous(agent.id) if self._rules.anonymous else agent.id,
            agent.health.value.lower(),
            agent.heard_at,
            agent.status or "",
            len(tasks_of(agent, beat)),
            agent.capacity,
            agent.cpu_percent,
            agent.memory_mb,
            None if metrics is None else metrics.uptime_s,
            None if metrics is None else metrics.tasks_completed,
        )
