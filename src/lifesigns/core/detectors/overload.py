"""Overload: load worth a word. It degrades, it never kills by itself."""

from __future__ import annotations

from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.policy import OverloadPolicy


def over(cpu_percent: float | None, memory_mb: float | None, policy: OverloadPolicy) -> bool:
    """Whether a beat shows more load than the policy likes."""
    return (cpu_percent is not None and cpu_percent >= policy.cpu_degraded) or (
        memory_mb is not None and memory_mb >= policy.memory_degraded_mb
    )


def examine(
    cpu_percent: float | None, memory_mb: float | None, policy: OverloadPolicy, now: float
) -> Finding | None:
    """What the load of a beat says; the caller counts how many in a row."""
    if not over(cpu_percent, memory_mb, policy):
        return None
    cpu, memory = cpu_percent or 0.0, memory_mb or 0.0
    unhealthy = cpu > policy.cpu_unhealthy or memory > policy.memory_unhealthy_mb
    return Finding(
        Kind.OVERLOAD,
        now,
        Severity.DEGRADED,
        f"{'Unhealthy load' if unhealthy else 'High load'}: CPU {cpu:.0f} %, memory {memory:.0f} MB.",
        {"cpu_percent": cpu, "memory_mb": memory, "unhealthy": float(unhealthy)},
    )
