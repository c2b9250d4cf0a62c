"""Recovery: how far the respawn of a task's agent has come."""

from __future__ import annotations

from msgspec import Struct

from lifesigns.core.health import Phase
from lifesigns.views.moments import Moment


class RecoveryView(Struct, frozen=True):
    """The respawn of one agent."""

    agent_id: str
    phase: Phase
    on_its_way: bool
    needs_a_person: bool
    """It reached its limits, or failed again on probation: `recover` or `clear` it."""
    attempt: int
    """Respawns for this task so far."""
    failures: int
    reason: str
    """Why the last life ended, or why there are no more respawns."""
    ended_incarnation: str | None
    new_incarnation: str | None
    checkpoint_id: str | None
    """Where the new life continues from; None: at the task's start, or unknown yet."""
    read_back: bool | None
    """Whether that checkpoint's content was read and compared; None without one."""
    next_at: Moment | None
    """When the current phase ends at the latest."""


class RecoveryList(Struct, frozen=True):
    """The recoveries of a task's agents."""

    task_id: str
    recoveries: tuple[RecoveryView, ...]
