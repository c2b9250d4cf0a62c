"""Builds the list of recoveries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from lifesigns.core.effects import Recovered, Recovery
from lifesigns.core.engine import Engine
from lifesigns.core.health import Phase
from lifesigns.events import fact_of, types_of
from lifesigns.ports import Event
from lifesigns.views.builders.recovery import recovery_view
from lifesigns.views.moments import moment
from lifesigns.views.recoveries import ActiveRecovery, Recoveries, RecoveryStep

TYPES: Final = types_of(Recovery)
"""The events about recoveries."""


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
