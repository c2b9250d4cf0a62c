"""Recovery: how far the respawn of a task's agent has come."""

from __future__ import annotations

from msgspec import Struct

from lifesigns.core.agent import NEVER
from lifesigns.core.engine import Engine
from lifesigns.core.respawn import ON_ITS_WAY, Lineage, Phase
from lifesigns.views.moments import Moment, moment


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


def recovery_of(engine: Engine, task_id: str) -> RecoveryList:
    """All agents whose task this is, or was last."""
    lineages = (one for one in engine.beliefs.lineages.values() if one.task_id == task_id)
    return RecoveryList(task_id, tuple(map(recovery_view, lineages)))


def recovery_view(lineage: Lineage) -> RecoveryView:
    """How far the respawn of one agent has come."""
    begun = lineage.phase in (Phase.STARTING, Phase.PROBATION)
    due_at = NEVER if lineage.wait == NEVER else lineage.waited_from + lineage.wait
    return RecoveryView(
        agent_id=lineage.agent_id,
        phase=lineage.phase,
        on_its_way=lineage.phase in ON_ITS_WAY,
        needs_a_person=lineage.waits_for_a_person,
        attempt=lineage.attempts,
        failures=lineage.failures,
        reason=lineage.why,
        ended_incarnation=lineage.ended or None,
        new_incarnation=lineage.new_incarnation or None if begun else None,
        checkpoint_id=lineage.checkpoint_id if begun else None,
        read_back=lineage.read_back if begun and lineage.checkpoint_id else None,
        next_at=None if due_at == NEVER else moment(due_at),
    )
