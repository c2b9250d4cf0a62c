"""Recoveries of the whole fleet: those under way or waiting for a person, the results of the others, and the success
rate.

A recovery succeeded when the new life beats, and failed when lifesigns gave it up. Those under way count for neither.
"""

from __future__ import annotations

from msgspec import Struct

from lifesigns.core.effects import Recovered
from lifesigns.views.moments import Moment
from lifesigns.views.recovery import RecoveryView


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
