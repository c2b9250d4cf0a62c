"""The breaker of recovery attempts: a lineage, seen as a circuit breaker.

The limits of `respawn.py` are what a breaker is: failed attempts make it wait (open), one attempt at a time is on trial
(half-open), and after too many a person decides (forced open). This file says it in the words of a breaker, so that people see it
among the others, and reset it there.
"""

from __future__ import annotations

from typing import Final

from lifesigns.core.beliefs import ReportedBreaker
from lifesigns.core.health import Phase
from lifesigns.core.respawn import Lineage
from lifesigns.core.signals import BreakerState

NAME: Final = "recovery_attempt"

_STATES: Final = {
    Phase.IDLE: BreakerState.CLOSED,
    Phase.WAITING: BreakerState.OPEN,
    Phase.VERIFYING: BreakerState.HALF_OPEN,
    Phase.STARTING: BreakerState.HALF_OPEN,
    Phase.PROBATION: BreakerState.HALF_OPEN,
    Phase.REVIEW: BreakerState.FORCED_OPEN,
    Phase.QUARANTINED: BreakerState.FORCED_OPEN,
}


def seen_as_breaker(lineage: Lineage) -> ReportedBreaker | None:
    """The breaker of these recoveries; None if nothing has been tried since it was last reset."""
    if not lineage.attempts and not lineage.waits_for_a_person:
        return None
    state = _STATES[lineage.phase]
    if state is BreakerState.OPEN and lineage.attempts < 2:
        state = BreakerState.CLOSED  # Before the first attempt nothing has failed that it waits for.
    half_open_at = lineage.waited_from + lineage.wait if state is BreakerState.OPEN else None
    return ReportedBreaker(state, lineage.failures, half_open_at, lineage.waited_from)
