"""Overload: load worth a warning. It degrades an agent and never ends it by itself."""

from __future__ import annotations

from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.policy import OverloadPolicy
from lifesigns.core.signals import Gauges


def over(metrics: Gauges | None, policy: OverloadPolicy) -> bool:
    """Whether a beat shows more load than the policy allows."""
    if metrics is None:
        return False
    cpu, memory = metrics.cpu_percent, metrics.memory_mb
    return (cpu is not None and cpu >= policy.cpu_degraded) or (
        memory is not None and memory >= policy.memory_degraded_mb
    )


def examine(metrics: Gauges | None, policy: OverloadPolicy, now: float) -> Finding | None:
    """The finding in a beat's load; the caller counts such beats in a row."""
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
