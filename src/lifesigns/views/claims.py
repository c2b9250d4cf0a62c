"""Recovered claims: tasks of lost workers that were released at the hub, and their locks in the issue tracker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from lifesigns.core.effects import ClaimChanged
from lifesigns.events import fact_of, types_of
from lifesigns.events.hub_facts import LockRecovered
from lifesigns.ports import Event
from lifesigns.views.moments import Moment, moment

TYPES: Final = (*types_of(LockRecovered), *types_of(ClaimChanged))


class RecoveredClaim(Struct, frozen=True):
    """One release."""

    event_id: int
    at: Moment
    lock: str
    """The issue, `org/repo#12`; empty if it was a claim at the hub alone."""
    task_id: str
    agent_id: str
    """The worker that was heard last of those that may have held it; empty if another monitor began the release."""
    assignees: tuple[str, ...]
    silent_for_s: float
    comment_url: str


class RecoveredClaims(Struct, frozen=True):
    """Releases, the newest first."""

    recovered: tuple[RecoveredClaim, ...]


def recovered_claims(events: Iterable[Event]) -> Iterator[RecoveredClaim]:
    """The releases among these events. What an agent gave back itself is none."""
    for event in events:
        fact = fact_of(event) if event.type in TYPES else None
        if isinstance(fact, LockRecovered):
            lock = fact.lock, fact.task_id, fact.agent_id, tuple(fact.assignees)
            yield RecoveredClaim(event.id, moment(fact.at), *lock, fact.silent_for_s, fact.comment_url)
        elif isinstance(fact, ClaimChanged) and fact.silent_for_s is not None:
            claim = "", fact.task_id, fact.agent_id, ()
            yield RecoveredClaim(event.id, moment(fact.at), *claim, fact.silent_for_s, "")
