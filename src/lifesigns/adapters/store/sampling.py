"""Samples: minutes, made into hours after a day."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from lifesigns.adapters.store.values import countable
from lifesigns.ports.merging import Numbers, merge_samples

MINUTE: Final = 60
HOUR: Final = 3600
MINUTES_KEPT_FOR: Final = 24 * HOUR

_FAR: Final = 1e15
"""Seconds: no moment of ours is beyond it, and infinity has no number."""


def numbers(since: float, until: float, every: int) -> tuple[int, int]:
    """The first and the last number of a minute or hour that begins at `since` or later, and before `until`."""
    first, end = (math.ceil(max(-_FAR, min(_FAR, moment)) / every) for moment in (since, until))
    return first, end - 1


def first_kept_hour(now: float) -> int:
    """The number of the hour from which on minutes stay minutes."""
    return int((now - MINUTES_KEPT_FOR) // HOUR)


def hour_of(samples: Iterable[Numbers]) -> Numbers:
    """One hour of one agent's samples, which come in the order of time. An existing hour, if a minute came very late,
    counts as one sample more."""
    beats, *others = merge_samples(samples)
    return (countable(beats), *others)
