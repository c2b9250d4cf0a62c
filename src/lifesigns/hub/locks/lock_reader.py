"""LockReader: what the tracker says about a lock, read again only when the issue has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from lifesigns.core.engine import Engine
from lifesigns.hub.locks.holders import Holders
from lifesigns.hub.locks.rules import LockRules
from lifesigns.hub.locks.staleness import LockSigns, Verdict, history, verdict
from lifesigns.hub.locks.wording import claimed_by, is_monitors
from lifesigns.ports.issues import Issue, IssueRef, IssueTracker

SEEN_MAX: Final = 1000


class ReadLock(Struct, frozen=True):
    """A lock, on our clock."""

    issue: Issue
    lock_id: int
    since: float
    touched_at: float
    said: Mapping[str, str]
    """Assignees that called themselves workers, and which."""

    def judge(self, holders: Holders, engine: Engine, watched_from: float, now: float) -> Verdict:
        """Whether it is stale."""
        issue, awareness = self.issue, engine.beliefs.awareness
        signs = LockSigns(
            claimed=bool(issue.assignees),
            persons=holders.persons(issue, self.said),
            workers=holders.signs(holders.workers(issue, self.said), now),
            claimed_by=holders.claimed_by(issue.ref),
            since=self.since,
            touched_at=self.touched_at,
            watched_from=watched_from,
            lease=holders.usual.lease,
            grace=holders.usual.grace,
            blind=awareness.blind,
        )
        return verdict(signs, now, awareness.due)


class LockReader:
    """Reads events and comments of locks."""

    def __init__(self, tracker: IssueTracker, rules: LockRules) -> None:
        self._tracker = tracker
        self._rules = rules
        self._read: dict[IssueRef, ReadLock] = {}
        self._seen: dict[IssueRef, str] = {}

    def is_plainly_held(self, issue: Issue, holders: Holders, now: float) -> bool:
        """Whether there is nothing to read: everybody who may hold it is a living worker."""
        if holders.persons(issue, {}):
            return False
        signs = holders.signs(holders.workers(issue, {}), now)
        return bool(signs) and all(worker.alive for worker in signs)

    async def read(self, issue: Issue, clock: Callable[[], float]) -> ReadLock | None:
        """What events and comments say; None if they do not say when it was claimed."""
        known = self._read.get(issue.ref)
        if known is not None and known.issue == issue:
            return known
        events = await self._tracker.events(issue.ref)
        began = history(events, issue.assignees, self._rules.claimed)
        if began is None:
            return None
        comments = await self._tracker.comments(issue.ref, began.since + 1.0)
        logins = {login.lower() for login in issue.assignees}
        # A monitor may write under the account of its workers: its comments are no sign of theirs.
        theirs = [one.age for one in comments if one.author.lower() in logins and not is_monitors(one.body)]
        touched = min([began.touched, *theirs])
        now, said = clock(), dict(claimed_by(comments, issue.assignees))
        read = self._read[issue.ref] = ReadLock(issue, began.id, now - began.since, now - touched, said)
        return read

    def forget(self, ref: IssueRef) -> None:
        self._read.pop(ref, None)

    def keep_only(self, refs: set[IssueRef]) -> None:
        for ref in self._read.keys() - refs:
            del self._read[ref]

    def is_news(self, issue: Issue) -> bool:
        """Whether an issue changed since it was noted."""
        return self._seen.get(issue.ref) != issue.version

    def note(self, issue: Issue) -> None:
        self._seen[issue.ref] = issue.version
        if len(self._seen) > SEEN_MAX:
            del self._seen[next(iter(self._seen))]
