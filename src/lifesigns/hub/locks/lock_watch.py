"""LockWatch: looks at the locks in the issue tracker every minute, and when the engine has released a claim.

It runs beside the hub and decides nothing about agents: the engine says who is alive, `staleness.py` what follows for a lock.
While the tracker is away, or wants to be left alone for a while, locks stay as they are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from math import inf
from typing import Final

from lifesigns.core.effects import ClaimChanged, ClaimStage
from lifesigns.core.policy import ClaimPolicy
from lifesigns.errors import AdapterError
from lifesigns.events import fact_of, types_of
from lifesigns.events.hub_facts import LockRecovered
from lifesigns.hub.hub import Hub
from lifesigns.hub.locks.budget import WriteBudget
from lifesigns.hub.locks.holders import Holders, issue_of
from lifesigns.hub.locks.lock_reader import LockReader
from lifesigns.hub.locks.releasing import TAKEN_OVER_AFTER, Releaser, StaleLock, is_claimed, unfinished
from lifesigns.hub.locks.rules import LockRules
from lifesigns.hub.locks.staleness import KeepReason, Verdict
from lifesigns.hub.locks.wording import anonymous
from lifesigns.hub.locks.worker_comments import WorkerComments
from lifesigns.ports import Event
from lifesigns.ports.issues import Issue, IssueComment, IssueRef, IssueTracker, TrackerError

LOOK_GAP: Final = 5.0
"""Seconds between two looks, whatever the engine releases."""
LOST_AFTER: Final = 300.0
"""Since when the tracker cannot be asked before people are told."""
RECALLED_MAX: Final = 1000
"""Claims whose last holder is remembered, over a restart too."""
RELEASE_WRITES: Final = 2
"""Comments that a release writes."""

CLAIM_EVENTS: Final = types_of(ClaimChanged)
log: Final = logging.getLogger("lifesigns.hub")


class LockWatch:
    """Watches the locks of some repositories. `usual` is the claim policy of unknown workers, `name` signs comments."""

    def __init__(
        self, tracker: IssueTracker, rules: LockRules, hub: Hub, usual: ClaimPolicy, name: str
    ) -> None:
        self._tracker = tracker
        self._rules = rules
        self._hub = hub
        self._usual = usual
        self._budget = WriteBudget(rules.per_minute, rules.per_hour)
        self._comments = WorkerComments(tracker, rules, self._budget, hub.last_beat)
        self._releaser = Releaser(tracker, rules, name)
        self._reader = LockReader(tracker, rules)
        self._last_holders: dict[IssueRef, tuple[str, str]] = {}
        """Agent and task of the last claim on an issue."""
        self._begun: dict[IssueRef, tuple[StaleLock, IssueComment]] = {}
        """Releases that were interrupted."""
        self._unsaid: list[tuple[StaleLock, IssueComment]] = []
        """Released, and their comment does not say so yet."""
        self._gap = min(LOOK_GAP, rules.look_every)
        self._watched_from = inf
        self._next_at = inf
        self._news = asyncio.Event()
        self._failing_since: float | None = None
        self._why = ""

    # --- beside the hub -------------------------------------------------------------------------------

    def hear(self, events: Sequence[Event]) -> None:
        """What the hub tells: who claims issues, and whose claims are released."""
        for event in events:
            if event.type in CLAIM_EVENTS and isinstance(fact := fact_of(event), ClaimChanged):
                self._note(fact)

    async def run(self) -> None:
        """Look, for ever."""
        await self.begin()
        loop = asyncio.get_running_loop()
        while True:
            began_at = loop.time()
            wait = await self._look_once()
            spent = loop.time() - began_at
            await asyncio.sleep(self._gap)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, wait - spent - self._gap)):
                    await self._news.wait()
            self._news.clear()

    async def begin(self) -> None:
        """Remember who held which issue: a worker that died while no hub ran is still the one that held it."""
        self._watched_from = self._hub.clock()
        with suppress(AdapterError):
            events = await self._hub.store.events(types=CLAIM_EVENTS, newest_first=True, limit=RECALLED_MAX)
            self.hear(events[::-1])
        self._news.clear()

    def why_lost(self, now: float) -> str:
        """Why the tracker cannot be asked for so long; empty if it can."""
        lost = self._failing_since is not None and now - self._failing_since >= LOST_AFTER
        return self._why if lost else ""

    async def close(self) -> None:
        await self._tracker.close()

    # --- looking --------------------------------------------------------------------------------------

    async def _look_once(self) -> float:
        """Look, and return after how many seconds to look again."""
        try:
            await self.look()
        except AdapterError as error:
            self._failed(str(error))
            retry_after = error.retry_after if isinstance(error, TrackerError) else None
            return max(self._rules.look_every, retry_after or 0.0)
        except Exception:  # A bug of ours: no reason to leave all locks alone for ever.
            log.exception("the locks were not looked at", extra={"action": "locks_failed"})
            return self._rules.look_every
        self._failing_since = None
        return max(self._gap, min(self._rules.look_every, self._next_at - self._hub.clock()))

    async def look(self) -> None:
        """Look at every lock once: release what is stale, write what is due."""
        if not self._hub.is_storing:
            return  # One that was deposed leaves locks to its successor.
        self._next_at = inf
        await self._finish_begun()
        locks: list[Issue] = []
        for repo in self._rules.repos:
            for issue in await self._tracker.labelled(repo, self._rules.claimed):
                if is_claimed(issue, self._rules):
                    locks.append(issue)
                await self._look_at(issue)
        self._reader.keep_only({issue.ref for issue in locks})
        if self._rules.comments:
            await self._comments.write(locks, self._holders(), self._hub.clock)

    async def _look_at(self, issue: Issue) -> None:
        try:
            if not self._rules.release:
                return
            if not issue.assignees:
                await self._look_for_abandoned(issue)
                return
            await self._judge_and_release(issue)
        except TrackerError as error:
            if error.retry_after is not None or error.transient:
                raise  # It is about the tracker, not about this issue.
            log.warning("%s was not looked at: %s", issue.ref, error, extra={"action": "lock_failed"})

    async def _judge_and_release(self, issue: Issue) -> None:
        now, holders = self._hub.clock(), self._holders()
        if self._reader.is_plainly_held(issue, holders, now):
            await self._take_back(issue.ref)
            return
        judged = await self._judge(issue, now)
        if judged is None:
            return
        verdict, lock = judged
        if not verdict.stale:
            if verdict.keep_reason is KeepReason.FRESH:
                self._next_at = min(self._next_at, verdict.stale_at)
            await self._take_back(issue.ref)
        elif self._budget.room(now) >= RELEASE_WRITES:
            await self._release(lock)

    async def _judge(self, issue: Issue, now: float) -> tuple[Verdict, StaleLock] | None:
        read = await self._reader.read(issue, self._hub.clock)
        if read is None:
            return None  # The tracker does not say when it was claimed.
        holders, engine = self._holders(), self._hub.engine
        verdict = read.judge(holders, engine, self._watched_from, now)
        silent_for = max(0.0, now - verdict.silent_since)
        shown = anonymous(verdict.worker_id) if self._rules.anonymous else verdict.worker_id
        lock = StaleLock(
            issue.ref,
            read.lock_id,
            max(0.0, now - read.since),
            issue.assignees,
            verdict.worker_id,
            shown,
            silent_for,
        )
        return verdict, lock

    def _holders(self) -> Holders:
        last = {ref: agent_id for ref, (agent_id, _) in self._last_holders.items()}
        return Holders(self._hub.engine, self._rules, self._usual, last)

    # --- releasing ------------------------------------------------------------------------------------

    async def _release(self, lock: StaleLock) -> None:
        self._budget.take(self._hub.clock())
        comment = await self._releaser.claim_release(lock)
        if comment is None:
            return
        self._begun[lock.ref] = lock, comment
        released = await self._releaser.release(lock, comment, self._still_stale(lock))
        del self._begun[lock.ref]
        if released:
            await self._record(lock, comment)

    def _still_stale(self, lock: StaleLock) -> Callable[[], Awaitable[bool]]:
        async def look_again() -> bool:
            issue = await self._tracker.issue(lock.ref)
            if issue is None or issue.assignees != lock.assignees or not is_claimed(issue, self._rules):
                return False
            self._reader.forget(lock.ref)
            judged = await self._judge(issue, self._hub.clock())
            if judged is None or judged[1].lock_id != lock.lock_id or not self._hub.is_storing:
                return False
            # The last look is at the engine alone, and nothing is awaited after it but the release itself.
            return judged[0].stale

        return look_again

    async def _take_back(self, ref: IssueRef) -> None:
        """It is held after all: what we wrote about its release goes."""
        if ref in self._begun:
            _, comment = self._begun[ref]
            await self._tracker.delete_comment(ref, comment.id)
            del self._begun[ref]

    async def _finish_begun(self) -> None:
        while self._unsaid and self._budget.room(self._hub.clock()):
            lock, comment = self._unsaid[0]
            await self._say_released(lock, comment)
            del self._unsaid[0]
        for ref, (lock, comment) in list(self._begun.items()):
            if await self._releaser.go_on(ref):
                del self._begun[ref]
                await self._record(lock, comment)

    async def _look_for_abandoned(self, issue: Issue) -> None:
        """Labelled and assigned to nobody: perhaps a monitor stopped in the middle of a release."""
        if issue.ref in self._begun or not self._reader.is_news(issue):
            return
        found = unfinished(await self._tracker.comments(issue.ref, inf))
        if found is None:
            self._reader.note(issue)
            return
        if found.comment.age < TAKEN_OVER_AFTER or not await self._releaser.go_on(issue.ref):
            return
        agent_id, _ = self._last_holders.get(issue.ref, ("", ""))
        age = found.comment.age
        await self._record(
            StaleLock(issue.ref, found.lock_id, age, (), agent_id, agent_id, age), found.comment
        )

    async def _record(self, lock: StaleLock, comment: IssueComment) -> None:
        now = self._hub.clock()
        _, task_id = self._last_holders.get(lock.ref, ("", str(lock.ref)))
        self._hub.announce(
            LockRecovered(
                now,
                lock.worker_id,
                task_id,
                str(lock.ref),
                lock.assignees,
                round(lock.silent_for, 3),
                comment.url,
            )
        )
        log.warning(
            "the lock on %s was released: %s was silent for %.0f s",
            lock.ref,
            lock.worker_id,
            lock.silent_for,
            extra={"action": "lock_released"},
        )
        try:
            await self._say_released(lock, comment)
        except TrackerError:
            self._unsaid.append((lock, comment))
            raise

    async def _say_released(self, lock: StaleLock, comment: IssueComment) -> None:
        self._budget.take(self._hub.clock())
        await self._releaser.say_released(lock, comment)

    # --- parts ----------------------------------------------------------------------------------------

    def _note(self, fact: ClaimChanged) -> None:
        ref = issue_of(fact.task_id, self._rules.repos)
        if ref is None or fact.stage is ClaimStage.REFUSED:
            return
        self._last_holders.pop(ref, None)
        self._last_holders[ref] = fact.agent_id, fact.task_id
        if len(self._last_holders) > RECALLED_MAX:
            del self._last_holders[next(iter(self._last_holders))]
        if fact.stage is ClaimStage.RELEASED:
            self._news.set()

    def _failed(self, why: str) -> None:
        if self._failing_since is None:
            self._failing_since = self._hub.clock()
            log.warning("the issue tracker cannot be asked: %s", why, extra={"action": "tracker_failed"})
        self._why = why
