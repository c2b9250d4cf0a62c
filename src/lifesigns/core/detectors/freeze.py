"""Freeze: beats arrive, so the process lives, but the loop or main thread behind them does not move.

The beat comes from a thread of its own and carries how long ago the loop last stamped its counter.
"""

from __future__ import annotations

from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.policy import FreezePolicy
from lifesigns.core.words import duration


def examine(loop_lag_ms: float, policy: FreezePolicy, now: float) -> Finding | None:
    """What the loop's lag says. A declared blocking call is the caller's reason not to ask."""
    lag = loop_lag_ms / 1000.0
    if lag < policy.after:
        return None
    return Finding(
        Kind.FREEZE,
        now - lag,
        Severity.DISCONNECTED,
        f"The process lives, but its loop has not moved for {duration(lag)}.",
        {"loop_lag_s": round(lag, 3)},
        conclusive=lag >= policy.conclusive_after,
    )
