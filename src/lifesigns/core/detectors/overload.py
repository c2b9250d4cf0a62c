"""Overload: load worth a word. It degrades, it never kills by itself."""

from __future__ import annotations

from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.policy import OverloadPolicy
from lifesigns.core.signals import Gauges


def over(metrics: Gauges | None, policy: OverloadPolicy) -> bool:
    """Whether a beat shows more load than the policy likes."""
    if metrics is None:
        return False
    cpu, memory = metrics.cpu_percent, metrics.memory_mb
    return (cpu is not None and cpu >= policy.cpu_degraded) or (
        memory is not None and memory >= policy.memory_degraded_mb
    )


def examine(metrics: Gauges | None, policy: OverloadPolicy, now: float) -> Finding | None:
    """What the load of a beat says; the caller counts how many in a row."""
    if metrics is None or not over(metrics, policy):
        return None
    cpu, memory = metrics.cpu_percent or 0.0, metrics.memory_mb or 0.0
    unhealthy = cpu > policy.cpu_unhealthy or memory > policy.memory_unhealthy_mb
    return Finding(
        Kind.OVERLOAD,
        now,
        Severity.DEGRADED,
        f"{'Unhealthy load' if unhealthy else 'High load'}: CPU {cpu:.0f} %, memory {memory:.0f} MB.",
        {"cpu_percent": cpu, "memory_mb": memory, "unhealthy": float(unhealthy)},
    )
