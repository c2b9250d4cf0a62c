"""Forecast: where an agent is heading, from its own last half hour, while it is still well.

Three series, one point a window: its memory, the part of its calls that fail, the mean time between its beats. A
series is a trend if nearly all pairs of its points rise (Kendall's tau) and it does not level off: its later half
rises nearly as fast as the whole. Then the median slope of all pairs (Theil and Sen) says when it crosses the line at
which other detectors call the agent unwell; a forecast within the horizon is a notice. It names the moment and the
reason and changes nothing: a notice argues for `healthy`, and no agent is nudged, ended or respawned for it.

Followed are only agents that give reason for it (`Trend`), so that a calm fleet pays nothing: memory from a part of the
limit on, a failed call, beats that come later and later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

from msgspec import Struct

from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.policy import Policy
from lifesigns.core.words import duration

POINTS_MAX: Final = 12
POINTS_MIN: Final = 10
RISING_MIN: Final = 0.8
"""The part of all pairs that has to rise. Chance alone is as steady once in two hundred; these numbers and the next one
are what `tools/forecasts.py` measured best."""
LEVELS_OFF: Final = 0.9
"""A later half that rises by less than this part of the whole levels off: caches and pools fill up and stay full."""
GIVEN_BACK: Final = 0.8
"""A fall of the memory to less than this part is a collection, or the end of a task."""
INTERVALS_MIN: Final = 4.0
"""A window has at least so many beats of a slow sender."""
SLOW: Final = 1.1
"""Beats that come this many times as rarely as the policy expects are followed, if one is late by the agent's own rhythm."""
CALLS_MIN: Final = 100
"""Calls of one point: a rate over fewer varies more than a trend rises."""


@dataclass(slots=True)
class Trend:
    """What is remembered of an agent that is followed: the window that runs, and the points of those before."""

    ends_at: float
    since: float
    beats: int
    heard_at: float
    """Its beats when the window began, and the last of them."""
    calls: int = 0
    failures: int = 0
    counted_from: float = 0.0
    """Since when the calls are counted: a rate needs `CALLS_MIN` of them, in however many windows."""
    error_step: float = 0.0
    """How long the last point of `errors` took."""
    peak: float = 0.0
    """The most memory it had before it gave some back."""
    memory: tuple[float, ...] = ()
    errors: tuple[float, ...] = ()
    gaps: tuple[float, ...] = ()

    def next_window(self, now: float, beats: int, heard_at: float, length: float) -> None:
        """Begin the next window."""
        self.since, self.ends_at = now, now + length
        self.beats, self.heard_at = beats, heard_at


class Course(Struct, frozen=True):
    """A steady rise: from where to where, how steadily, and its slope for each window."""

    first: float
    last: float
    rising: int
    pairs: int
    slope: float


def window(policy: Policy) -> float:
    """How long a window of this policy's agents is."""
    return max(policy.forecast.window, INTERVALS_MIN * policy.silence.interval)


def begin(policy: Policy, beats: int, heard_at: float, now: float) -> Trend:
    """Follow an agent from now on."""
    return Trend(now + window(policy), now, beats, heard_at, counted_from=now)


def take(
    trend: Trend, memory_mb: float | None, beats: int, heard_at: float, policy: Policy, now: float
) -> None:
    """A window ends: take its points, and begin the next one. Points around a gap of ours are no series."""
    length = window(policy)
    if now - trend.since > 2 * length:
        trend.memory = trend.errors = trend.gaps = ()
    else:
        if memory_mb is not None:
            _take_memory(trend, memory_mb)
        if trend.calls >= CALLS_MIN:
            trend.errors = (*trend.errors, trend.failures / trend.calls)[-POINTS_MAX:]
            trend.error_step, trend.counted_from = now - trend.counted_from, now
            trend.calls = trend.failures = 0
        if beats > trend.beats:
            trend.gaps = (*trend.gaps, (heard_at - trend.heard_at) / (beats - trend.beats))[-POINTS_MAX:]
    trend.next_window(now, beats, heard_at, length)


def _take_memory(trend: Trend, memory_mb: float) -> None:
    """Memory that was given back ends a series: what it rises to again is no news up to where it was."""
    if trend.memory and memory_mb < GIVEN_BACK * trend.memory[-1]:
        trend.peak, trend.memory = max(trend.peak, *trend.memory), ()
    trend.memory = (*trend.memory, memory_mb)[-POINTS_MAX:]


def is_idle(trend: Trend, policy: Policy) -> bool:
    """Whether a full series gives no more reason to follow: it can begin anew."""
    return (
        len(trend.gaps) >= POINTS_MAX
        and not any(trend.errors)
        # A rhythm that is slow and steady gets no slower. If it does one day, a late beat says so.
        and max(trend.gaps) <= SLOW * max(policy.silence.interval, trend.gaps[0])
        and (not trend.memory or max(trend.memory) < memory_from(policy))
    )


def is_slow(interval: float, policy: Policy) -> bool:
    """Whether beats come so rarely that they are followed."""
    return policy.forecast.enabled and interval > SLOW * policy.silence.interval


def memory_from(policy: Policy) -> float:
    """From how much memory on an agent is followed, in MB."""
    if not policy.forecast.enabled:
        return policy.overload.memory_degraded_mb
    return policy.forecast.memory_from * policy.overload.memory_degraded_mb


def course(points: Sequence[float]) -> Course | None:
    """The trend in a series, if there is one."""
    if len(points) < POINTS_MIN:
        return None
    slopes = _slopes(points)
    rising = sum(slope > 0 for slope in slopes)
    if rising < RISING_MIN * len(slopes):
        return None
    slope, lately = _median(slopes), _median(_slopes(points[len(points) // 2 :]))
    if lately < LEVELS_OFF * slope:
        return None
    return Course(points[0], points[-1], rising, len(slopes), slope)


def examine(trend: Trend, policy: Policy, now: float) -> Finding | None:
    """The forecast that comes true first, if any does within the horizon."""
    length = window(policy)
    candidates = (
        (
            "memory",
            trend.memory,
            length,
            policy.overload.memory_degraded_mb,
            "its memory reaches",
            "{:.0f} MB",
        ),
        (
            *("errors", trend.errors, trend.error_step, policy.erring.rate_max),
            *("the part of its calls that fail reaches", "{:.0%}"),
        ),
        (
            *("lateness", trend.gaps, length, policy.silence.suspect_after),
            *("the time between its beats reaches", "{:.1f} s"),
        ),
    )
    found: Finding | None = None
    soonest = inf
    for name, points, step, limit, what, unit in candidates:
        rise = course(points)
        if rise is None or rise.last >= limit:
            continue  # Who is over the line is another detector's.
        if name == "memory" and rise.last <= trend.peak:
            continue
        due_in = (limit - rise.last) / rise.slope * step
        if due_in > min(policy.forecast.horizon, soonest):
            continue
        soonest = due_in
        lasted = duration((len(points) - 1) * step)
        text = (
            f"If it goes on like this, {what} {unit.format(limit)} in about {duration(due_in)}: it rose from "
            f"{unit.format(rise.first)} to {unit.format(rise.last)} in {lasted}, in {rise.rising} of "
            f"{rise.pairs} comparisons."
        )
        numbers: dict[str, float | str] = {
            "what": name,
            "due_in_s": round(due_in, 1),
            "limit": limit,
            "now": round(rise.last, 4),
            "per_hour": round(rise.slope * 3600 / step, 4),
        }
        found = Finding(Kind.FORECAST, now, Severity.NOTICE, text, numbers)
    return found


def _slopes(points: Sequence[float]) -> list[float]:
    """Of every pair of points, the earlier one first."""
    count = len(points)
    return [(points[j] - points[i]) / (j - i) for i in range(count) for j in range(i + 1, count)]


def _median(values: Sequence[float]) -> float:
    ranked, middle = sorted(values), len(values) // 2
    return ranked[middle] if len(values) % 2 else (ranked[middle - 1] + ranked[middle]) / 2
