"""Releases one stale lock, exactly once, however many monitors look and wherever one of them stops.

A tracker has no transaction, so the recovery comment is the one: the server gives its ids in order, and of several monitors
that comment on the same lock the lowest id does the work, the others take theirs back.

    comment "is being released"   another one about this lock is older: delete ours, leave the rest to it
    look again                    the worker is back, or the lock is another one: delete ours, done
    unassign                      those whose lock is stale, and nobody else
    add the label of the queue
    remove the label of the lock  last: until then every monitor finds what one that died left behind
    look again                    claimed anew in between: the new lock gets its label back

Then the release is on record, and the comment is edited to say so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from lifesigns.hub.locks.rules import LockRules
from lifesigns.hub.locks.wording import Recovery, recoveries, released_text, releasing_text
from lifesigns.ports.issues import Issue, IssueComment, IssueRef, IssueTracker

TAKEN_OVER_AFTER: Final = 180.0
"""Seconds after its comment in which a monitor finishes a release. After that another one does."""


class StaleLock(Struct, frozen=True):
    """What is to be released."""

    ref: IssueRef
    lock_id: int
    age: float
    """Seconds since it was claimed."""
    assignees: tuple[str, ...]
    worker_id: str
    shown: str
    """The worker as comments name it."""
    silent_for: float


class Releaser:
    """Releases locks in one tracker, as the monitor `name`."""

    def __init__(self, tracker: IssueTracker, rules: LockRules, name: str) -> None:
        self._tracker = tracker
        self._rules = rules
        self._name = name

    async def claim_release(self, lock: StaleLock) -> IssueComment | None:
        """The comment about this release, if it is for us to do."""
        within = lock.age + TAKEN_OVER_AFTER
        known = recoveries(await self._tracker.comments(lock.ref, within), lock.lock_id)
        if known:
            return known[0].comment if self._is_ours(known[0]) else None
        text = releasing_text(lock.lock_id, self._name, lock.shown, lock.silent_for)
        mine = await self._tracker.comment(lock.ref, text)
        first = next(iter(recoveries(await self._tracker.comments(lock.ref, within), lock.lock_id)), None)
        if first is not None and first.comment.id < mine.id:
            await self._tracker.delete_comment(lock.ref, mine.id)
            return None
        return mine

    async def release(
        self, lock: StaleLock, comment: IssueComment, still_stale: Callable[[], Awaitable[bool]]
    ) -> bool:
        """Do it, if it is still to be done. What raises half-way is gone on with by `go_on`."""
        if not await still_stale():
            await self._tracker.delete_comment(lock.ref, comment.id)
            return False
        await self._tracker.unassign(lock.ref, lock.assignees)
        await self._back_to_queue(lock.ref)
        return True

    async def go_on(self, ref: IssueRef) -> bool:
        """Finish a release that was interrupted. False if there is nothing to finish: somebody has claimed it again."""
        issue = await self._tracker.issue(ref)
        if issue is None:
            return True
        if is_claimed(issue, self._rules):
            return False
        if has_label(issue, self._rules.claimed) or not has_label(issue, self._rules.queued):
            await self._back_to_queue(ref)
        return True

    async def say_released(self, lock: StaleLock, comment: IssueComment) -> None:
        """The comment says what was done."""
        text = released_text(lock.lock_id, self._name, lock.shown, lock.silent_for)
        await self._tracker.edit_comment(lock.ref, comment.id, text)

    async def _back_to_queue(self, ref: IssueRef) -> None:
        await self._tracker.add_label(ref, self._rules.queued)
        await self._tracker.remove_label(ref, self._rules.claimed)
        issue = await self._tracker.issue(ref)
        if issue is not None and issue.assignees and not is_claimed(issue, self._rules):
            await self._tracker.add_label(ref, self._rules.claimed)

    def _is_ours(self, known: Recovery) -> bool:
        """Ours from before, or its monitor has not finished it. A released one is over: what we read is old."""
        return not known.done and (known.by == self._name or known.comment.age >= TAKEN_OVER_AFTER)


def is_claimed(issue: Issue, rules: LockRules) -> bool:
    """Whether it is a lock: labelled, and assigned to somebody."""
    return has_label(issue, rules.claimed) and bool(issue.assignees)


def has_label(issue: Issue, label: str) -> bool:
    """Labels have no case at GitHub."""
    return label.lower() in {one.lower() for one in issue.labels}


def unfinished(comments: Sequence[IssueComment]) -> Recovery | None:
    """The newest release that a monitor began and has not finished."""
    found = [one for one in recoveries(comments) if not one.done]
    return found[-1] if found else None
