"""Builds the numbers behind a finding in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lifesigns.views.evidence import Measure

_NAMES: Final[Mapping[str, tuple[str, str]]] = {
    "silent_for": ("silent for", "s"),
    "interval": ("a beat is expected every", "s"),
    "missed": ("beats missed", ""),
    "pings": ("pings without an answer", ""),
    "grace": ("time to speak", "s"),
    "loop_lag_s": ("its loop has stood for", "s"),
    "for_s": ("for", "s"),
    "late_s": ("late by", "s"),
    "task_id": ("task", ""),
    "repeats": ("times", ""),
    "period": ("calls that repeat", ""),
    "window": ("of the last calls", ""),
    "tool": ("tool", ""),
    "talk": ("model calls in a row", ""),
    "consecutive": ("failed in a row", ""),
    "rate": ("of its calls failed", "share"),
    "world_run": ("failed in a row, not by its fault", ""),
    "calls": ("model calls in a row with a full window", ""),
    "tokens": ("tokens in its context window", ""),
    "baseline_per_min": ("tokens a minute before", ""),
    "drift": ("how far off (CUSUM)", ""),
    "used": ("used", ""),
    "cap": ("allowed", ""),
    "cpu_percent": ("CPU", "percent"),
    "memory_mb": ("memory", "MB"),
    "what": ("what rises", ""),
    "now": ("now", ""),
    "limit": ("its limit", ""),
    "due_in_s": ("reached in about", "s"),
    "per_hour": ("more an hour", ""),
    "exit": ("ended with", ""),
    "status": ("its own word", ""),
}
_ELSEWHERE: Final = frozenset({"stack", "people", "unhealthy", "unit", "waiting", "tripped"})
"""Flags, and values shown in another way."""


def evidence(numbers: Mapping[str, int | float | str]) -> tuple[Measure, ...]:
    """The measured values, in words. A number without words yet goes by its key."""
    own_unit = str(numbers.get("unit", ""))
    named = ((*_NAMES.get(key, (key.replace("_", " "), "")), key, numbers[key]) for key in numbers)
    return tuple(
        Measure(name, value, own_unit if key in ("used", "cap") else unit)
        for name, unit, key, value in named
        if key not in _ELSEWHERE
    )
