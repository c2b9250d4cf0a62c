"""Builds the view of a task's recovery."""

from __future__ import annotations

from lifesigns.core.agent import NEVER
from lifesigns.core.engine import Engine
from lifesigns.core.health import Phase
from lifesigns.core.respawn import ON_ITS_WAY, Lineage
from lifesigns.views.moments import moment
from lifesigns.views.recovery import RecoveryList, RecoveryView


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
