"""Recoveries of the whole fleet: those under way or waiting for a person, the results of the others, and the success
rate.

A recovery succeeded when the new life beats, and failed when lifesigns gave it up. Those under way count for neither.
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
"""The events about recoveries."""


class ActiveRecovery(Struct, frozen=True):
    """An unfinished recovery: on its way, on probation, or waiting for a person."""

    task_id: str | None
    recovery: RecoveryView


class RecoveryStep(Struct, frozen=True):
    """A stage that a recovery reached."""

    event_id: int
    at: Moment
    agent_id: str
    task_id: str | None
    stage: Recovered
    attempt: int
    checkpoint_id: str | None
    """Where the new life continues from; None: at the task's start."""
    reason: str


class Recoveries(Struct, frozen=True):
    """The recoveries of the fleet."""

    active: tuple[ActiveRecovery, ...]
    steps: tuple[RecoveryStep, ...]
    """What happened, the newest first."""
    completed: int
    failed: int
    success_rate: float | None
    """Of the finished ones; None if there is none."""
    complete: bool
    """False if there was more than was read: the counts are of the newest ones."""


def active_recoveries(engine: Engine) -> Iterable[ActiveRecovery]:
    """All agents with an unfinished respawn."""
    for lineage in engine.beliefs.lineages.values():
        if lineage.phase is not Phase.IDLE:
            yield ActiveRecovery(lineage.task_id, recovery_view(lineage))


def recoveries_view(
    active: Iterable[ActiveRecovery], events: Sequence[Event], limit: int, *, complete: bool
) -> Recoveries:
    """All of it; events come the newest first."""
    recoveries = [(event.id, fact) for event in events if isinstance(fact := fact_of(event), Recovery)]
    completed = sum(fact.stage is Recovered.COMPLETED for _, fact in recoveries)
    failed = sum(fact.stage is Recovered.FAILED for _, fact in recoveries)
    decided = completed + failed
    return Recoveries(
        tuple(active),
        tuple(_step(number, fact) for number, fact in recoveries[:limit]),
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
