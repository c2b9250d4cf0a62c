"""Builds the list of recovered claims from events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from lifesigns.core.effects import ClaimChanged
from lifesigns.events import fact_of, types_of
from lifesigns.events.hub_facts import LockRecovered
from lifesigns.ports import Event
from lifesigns.views.claims import RecoveredClaim
from lifesigns.views.moments import moment

TYPES: Final = (*types_of(LockRecovered), *types_of(ClaimChanged))


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
