"""Recovered claims: locks of lost workers that were released in the issue tracker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from lifesigns.events import fact_of, types_of
from lifesigns.events.hub_facts import LockRecovered
from lifesigns.ports import Event
from lifesigns.views.moments import Moment, moment

TYPES: Final = types_of(LockRecovered)


class RecoveredClaim(Struct, frozen=True):
    """One release."""

    event_id: int
    at: Moment
    lock: str
    """The issue: `org/repo#12`."""
    task_id: str
    agent_id: str
    """The worker that was heard last of those that may have held it; empty if another monitor began the release."""
    assignees: tuple[str, ...]
    silent_for_s: float
    comment_url: str


class RecoveredClaims(Struct, frozen=True):
    """Releases, the newest first."""

    recovered: tuple[RecoveredClaim, ...]


def recovered_claims(events: Iterable[Event]) -> RecoveredClaims:
    """What these events tell."""
    facts = ((event.id, fact_of(event)) for event in events)
    return RecoveredClaims(
        tuple(
            RecoveredClaim(
                number,
                moment(fact.at),
                fact.lock,
                fact.task_id,
                fact.agent_id,
                tuple(fact.assignees),
                fact.silent_for_s,
                fact.comment_url,
            )
            for number, fact in facts
            if isinstance(fact, LockRecovered)
        )
    )
