"""Recoveries of the whole fleet: which are on their way or wait for a person, what became of the others, how often it went well.

A recovery went well when the new life speaks, and badly when lifesigns gave it up. Those under way count for neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from lifesigns.core.effects import Recovered, Recovery
from lifesigns.core.engine import Engine
from lifesigns.core.respawn import Phase
from lifesigns.events import fact_of, types_of
from lifesigns.ports import Event
from lifesigns.views.moments import Moment, moment
from lifesigns.views.recovery import RecoveryView, recovery_view

TYPES: Final = types_of(Recovery)
"""The events that tell of recoveries."""


class ActiveRecovery(Struct, frozen=True):
    """A recovery that is not over: on its way, closely watched, or a person's matter."""

    task_id: str | None
    recovery: RecoveryView


class RecoveryStep(Struct, frozen=True):
    """A recovery came so far."""

    event_id: int
    at: Moment
    agent_id: str
    task_id: str | None
    stage: Recovered
    attempt: int
    checkpoint_id: str | None
    """Where the new life goes on from; None: at the task's start."""
    reason: str


class Recoveries(Struct, frozen=True):
    """How it goes with those who are started anew."""

    active: tuple[ActiveRecovery, ...]
    steps: tuple[RecoveryStep, ...]
    """What happened, the newest first."""
    completed: int
    failed: int
    success_rate: float | None
    """Of those that are decided; None if none is."""
    complete: bool
    """False if there was more than was read: the counts are of the newest ones."""


def active_recoveries(engine: Engine) -> Iterable[ActiveRecovery]:
    """Everybody whose respawn is not over."""
    for lineage in engine.beliefs.lineages.values():
        if lineage.phase is not Phase.IDLE:
            yield ActiveRecovery(lineage.task_id, recovery_view(lineage))


def recoveries_view(
    active: Iterable[ActiveRecovery], events: Sequence[Event], limit: int, *, complete: bool
) -> Recoveries:
    """All of it; events come the newest first."""
    told = [(event.id, fact) for event in events if isinstance(fact := fact_of(event), Recovery)]
    completed = sum(fact.stage is Recovered.COMPLETED for _, fact in told)
    failed = sum(fact.stage is Recovered.FAILED for _, fact in told)
    decided = completed + failed
    return Recoveries(
        tuple(active),
        tuple(_step(number, fact) for number, fact in told[:limit]),
        completed,
        failed,
        round(completed / decided, 4) if decided else None,
        complete,
    )


def _step(number: int, fact: Recovery) -> RecoveryStep:
    return RecoveryStep(
        number,
        moment(fact.at),
        fact.agent_id,
        fact.task_id,
        fact.stage,
        fact.attempt,
        fact.checkpoint_id,
        fact.reason,
    )
