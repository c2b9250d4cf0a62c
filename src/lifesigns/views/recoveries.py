"""Recoveries of the whole fleet: which are on their way or wait for a person, what became of the others, how often it went well.

A recovery went well when the new life speaks, and badly when lifesigns gave it up. Those under way count for neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from lifesigns.core.effects import Recovered
from lifesigns.core.engine import Engine
from lifesigns.core.respawn import Phase
from lifesigns.ports import Event
from lifesigns.views.events import data_of
from lifesigns.views.moments import Moment, moment
from lifesigns.views.recovery import RecoveryView, recovery_view

TYPES = ("RECOVERY_INITIATED", "RECOVERY_COMPLETED", "RECOVERY_FAILED")
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
    completed = sum(event.type == "RECOVERY_COMPLETED" for event in events)
    failed = sum(event.type == "RECOVERY_FAILED" for event in events)
    decided = completed + failed
    return Recoveries(
        tuple(active),
        tuple(map(_step, events[:limit])),
        completed,
        failed,
        round(completed / decided, 4) if decided else None,
        complete,
    )


def _step(event: Event) -> RecoveryStep:
    """The same field has the name that others know it by: see `hub/telling.py`."""
    data = data_of(event)
    return RecoveryStep(
        event.id,
        moment(event.at),
        event.agent_id,
        data.get("task_id"),
        Recovered(data["stage"]),
        data.get("attempt", data.get("attempts", 0)),
        data.get("from_checkpoint", data.get("checkpoint_id")),
        data.get("reason", ""),
    )
