"""Whether a lock is stale. Pure: the same evidence gives the same verdict.

The law: a lock is released only if everybody who holds it is a worker, the engine has lost every worker that may hold it, none
of them holds the task's claim at the hub, and nothing was heard of them here or there for a lease. What we did not see
(a restart, blindness, a sleeping machine) counts for no worker.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from lifesigns.ports.issues import IssueEvent


class KeepReason(StrEnum):
    """Why a lock stays."""

    NOT_CLAIMED = "it is no lock: the label or the assignee is missing"
    BY_PERSON = "somebody who is no worker is assigned"
    ALIVE = "a worker that may hold it is alive"
    CLAIMED = "a worker holds its claim at the hub"
    BLIND = "the hub cannot see"
    BRAKED = "too many workers are unwell at once: a person decides"
    FRESH = "its lease is not over"


class WorkerSigns(Struct, frozen=True):
    """What the engine knows about one worker that may hold the lock."""

    agent_id: str
    heard_at: float | None
    """None: never."""
    alive: bool
    lease: float
    grace: float
    braked: bool = False


class LockSigns(Struct, frozen=True):
    """Everything that speaks for or against a lock."""

    claimed: bool
    """It has the label and an assignee."""
    persons: tuple[str, ...]
    """Assignees that are no workers."""
    workers: tuple[WorkerSigns, ...]
    claimed_by: str | None
    """The agent that holds its claim at the hub."""
    since: float
    """When the tracker says that it was claimed."""
    touched_at: float
    """When its assignee last did something to it there; never before `since`."""
    watched_from: float
    """Since when this hub could have heard the worker."""
    lease: float
    grace: float
    """For a worker that the engine does not know."""
    blind: bool = False


class Verdict(NamedTuple):
    """Stale, or why not; and when it will be if nothing more is heard."""

    keep_reason: KeepReason | None
    stale_at: float
    silent_since: float
    worker_id: str
    """The worker that was heard last."""

    @property
    def stale(self) -> bool:
        return self.keep_reason is None


def verdict(signs: LockSigns, now: float, due: Callable[[float, float], float] | None = None) -> Verdict:
    """Judge a lock. `due` says when a wait is over, for a hub that may have slept meanwhile."""
    due = due or _plain
    heard = [worker for worker in signs.workers if worker.heard_at is not None]
    if heard:
        stale_at, last = max((_lease_ends(signs, worker, due), worker.agent_id) for worker in heard)
        silent_since = max(signs.touched_at, *(worker.heard_at or 0.0 for worker in heard))
    else:
        last = signs.workers[0].agent_id if signs.workers else ""
        wait = max((one.lease + one.grace for one in signs.workers), default=signs.lease + signs.grace)
        stale_at = due(max(signs.touched_at, signs.since, signs.watched_from), wait)
        silent_since = max(signs.touched_at, signs.since)
    return Verdict(_keep_reason(signs, stale_at, now), stale_at, silent_since, last)


def _plain(start: float, wait: float) -> float:
    return start + wait


def _lease_ends(signs: LockSigns, worker: WorkerSigns, due: Callable[[float, float], float]) -> float:
    assert worker.heard_at is not None
    return due(max(worker.heard_at, signs.touched_at, signs.since), worker.lease)


def _keep_reason(signs: LockSigns, stale_at: float, now: float) -> KeepReason | None:
    if not signs.claimed:
        return KeepReason.NOT_CLAIMED
    if signs.persons:
        return KeepReason.BY_PERSON
    if signs.blind:
        return KeepReason.BLIND
    if any(worker.alive for worker in signs.workers):
        return KeepReason.ALIVE
    if signs.claimed_by is not None:
        return KeepReason.CLAIMED
    if any(worker.braked for worker in signs.workers):
        return KeepReason.BRAKED
    return KeepReason.FRESH if now < stale_at else None


# --- what the tracker says ----------------------------------------------------------------------------

ASSIGNED: Final = "assigned"
LABELED: Final = "labeled"


class LockHistory(NamedTuple):
    """The beginning of a lock, and its last trace, as ages in seconds; `id` names this lock and no later one."""

    id: int
    since: float
    touched: float


def history(events: Sequence[IssueEvent], assignees: Sequence[str], label: str) -> LockHistory | None:
    """What the events of an issue tell about its lock: it began when the last of its assignees and its label came. None if
    the tracker does not say when."""
    logins = {login.lower() for login in assignees}
    begins = [
        event
        for event in events
        if (event.kind == ASSIGNED and event.assignee.lower() in logins)
        or (event.kind == LABELED and event.label.lower() == label.lower())
    ]
    if not any(event.kind == ASSIGNED for event in begins):
        return None
    begin = max(begins, key=lambda event: event.id)
    traces = [event.age for event in events if event.actor.lower() in logins]
    return LockHistory(begin.id, begin.age, min([begin.age, *traces]))
