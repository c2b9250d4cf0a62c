"""Freeze: beats arrive, so the process lives, but its loop or main thread stands still.

The beat comes from a thread of its own and carries how long ago the loop last stamped its counter; a sender that can
see where the loop stands reports it under `stack` in its metadata. That is evidence for people; no verdict depends on
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.policy import FreezePolicy
from lifesigns.core.words import duration

STACK: Final = "stack"
STACK_MAX: Final = 1024


def examine(
    loop_lag_ms: float, policy: FreezePolicy, now: float, said: Mapping[str, str] | None = None
) -> Finding | None:
    """The finding in the loop's lag. During a declared blocking call the caller does not ask. `said` is the beat's
    metadata."""
    lag = loop_lag_ms / 1000.0
    if lag < policy.after:
        return None
    numbers: dict[str, float | str] = {"loop_lag_s": round(lag, 3)}
    if said and said.get(STACK):
        numbers[STACK] = said[STACK][:STACK_MAX]
    return Finding(
        Kind.FREEZE,
        now - lag,
        Severity.DISCONNECTED,
        f"The process lives, but its loop has not moved for {duration(lag)}.",
        numbers,
        conclusive=lag >= policy.conclusive_after,
    )
