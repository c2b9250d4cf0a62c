"""Merging samples: several samples of one agent as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

Numbers = tuple[Any, ...]
"""The values of a `Sample` after its agent and moment, in its order. Not the sample itself: with 100,000 agents the store
merges 1,700 a second, and making an object of each took most of the time."""

_T = TypeVar("_T")


def merge_samples(samples: Iterable[Numbers]) -> Numbers:
    """Merge samples that come in the order of time: beats are summed, `late_max` is the maximum, load, CPU and memory are
    the means of the known values, everything else is the last known one."""
    beats, late_max, load, cpu_percent, memory_mb, *last_known = zip(*samples, strict=True)
    return (
        *(sum(beats), max(late_max), _mean(load), _mean(cpu_percent), _mean(memory_mb)),
        *map(_last, last_known),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    # The sum of shares, not the share of the sum: the sum of very large numbers overflows.
    return sum(value / len(known) for value in known) if known else None


def _last(values: Sequence[_T | None]) -> _T | None:
    return next((value for value in reversed(values) if value is not None), None)
