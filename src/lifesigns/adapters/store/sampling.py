"""Samples: minutes, made into hours after a day."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar

from lifesigns.adapters.store.values import countable

MINUTE: Final = 60
HOUR: Final = 3600
MINUTES_KEPT_FOR: Final = 24 * HOUR

_FAR: Final = 1e15
"""Seconds: no moment of ours is beyond it, and infinity has no number."""

Numbers = tuple[Any, ...]
"""The values of a sample after its agent and moment, in the order of `lifesigns.ports.Sample`. Not the sample itself:
with 100,000 agents we thin out 1,700 a second, and making an object of each took most of the time."""

_T = TypeVar("_T")


def numbers(since: float, until: float, every: int) -> tuple[int, int]:
    """The first and the last number of a minute or hour that begins at `since` or later, and before `until`."""
    first, end = (math.ceil(max(-_FAR, min(_FAR, moment)) / every) for moment in (since, until))
    return first, end - 1


def first_kept_hour(now: float) -> int:
    """The number of the hour from which on minutes stay minutes."""
    return int((now - MINUTES_KEPT_FOR) // HOUR)


def hour_of(samples: Iterable[Numbers]) -> Numbers:
    """One hour of one agent's samples, which come in the order of time: beats are summed, `late_max` is the maximum,
    load is the mean of the known values, totals are the last known ones. An existing hour, if a minute came very late,
    counts as one sample more."""
    beats, late_max, load, cpu_percent, memory_mb, tokens, cost_usd, errors = zip(*samples, strict=True)
    return (
        *(countable(sum(beats)), max(late_max), _mean(load), _mean(cpu_percent), _mean(memory_mb)),
        *(_last(tokens), _last(cost_usd), _last(errors)),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    # The sum of shares, not the share of the sum: the sum of very large numbers overflows.
    return sum(value / len(known) for value in known) if known else None


def _last(values: Sequence[_T | None]) -> _T | None:
    return next((value for value in reversed(values) if value is not None), None)
