"""The points of a forecast, its windows and its words: reckoned by hand."""

from dataclasses import replace
from typing import Any

import pytest

from lifesigns.core.detectors import forecast
from lifesigns.core.detectors.forecast import Trend
from lifesigns.core.effects import Kind, Severity
from lifesigns.core.policy import MINUTE, Policy

POLICY = Policy()
LINE = POLICY.overload.memory_degraded_mb
START = 1000.0
WINDOW = 2 * MINUTE


def begun(**known: Any) -> Trend:
    return replace(forecast.begin(POLICY, 7, START - 1.0, START), **known)


def test_a_trend_begins_with_a_window_that_is_empty() -> None:
    trend = begun()
    assert trend == Trend(START + WINDOW, START, 7, START - 1.0, counted_from=START)
    assert (trend.calls, trend.failures, trend.error_step, trend.peak) == (0, 0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("interval", "length"), [(5.0, 120.0), (30.0, 120.0), (31.0, 124.0), (300.0, 1200.0)]
)
def test_a_window_has_at_least_four_beats(interval: float, length: float) -> None:
    silence = {"interval": interval, "timeout": 10 * interval}
    assert forecast.window(POLICY.with_changes({"silence": silence})) == length


def test_a_window_that_ends_leaves_its_points_and_begins_the_next() -> None:
    trend = begun(calls=100, failures=7)
    forecast.take(trend, 1500.0, 31, START + 119.0, POLICY, START + WINDOW)
    assert (trend.memory, trend.errors, trend.gaps) == ((1500.0,), (0.07,), (5.0,))
    assert (trend.calls, trend.failures, trend.error_step, trend.counted_from) == (
        0,
        0,
        120.0,
        START + WINDOW,
    )
    assert (trend.since, trend.ends_at) == (START + WINDOW, START + 2 * WINDOW)
    assert (trend.beats, trend.heard_at) == (31, START + 119.0)


def test_a_window_without_beats_memory_or_enough_calls_leaves_no_point() -> None:
    trend = begun(calls=99, failures=9)
    forecast.take(trend, None, 7, START - 1.0, POLICY, START + WINDOW)
    assert (trend.memory, trend.errors, trend.gaps) == ((), (), ())
    assert (trend.calls, trend.failures, trend.counted_from) == (99, 9, START)


def test_of_each_series_the_last_twelve_points_are_kept() -> None:
    points = tuple(float(n) for n in range(1, 13))
    trend = begun(calls=100, failures=50, memory=points, errors=points, gaps=points)
    forecast.take(trend, 13.0, 8, START + 19.0, POLICY, START + WINDOW)
    assert trend.memory == (*points[1:], 13.0)
    assert trend.errors == (*points[1:], 0.5)
    assert trend.gaps == (*points[1:], 20.0)


@pytest.mark.parametrize(("after", "kept"), [(2 * WINDOW, True), (2 * WINDOW + 0.1, False)])
def test_points_around_a_gap_of_ours_are_dropped(after: float, kept: bool) -> None:
    trend = begun(memory=(1.0,), errors=(0.1,), gaps=(5.0,))
    forecast.take(trend, 2.0, 7, START, POLICY, START + after)
    assert trend.memory == ((1.0, 2.0) if kept else ())
    assert (trend.errors, trend.gaps) == (((0.1,), (5.0,)) if kept else ((), ()))
    assert trend.ends_at == START + after + WINDOW


@pytest.mark.parametrize(
    ("memory", "series", "peak"),
    [(1200.0, (1000.0, 1500.0, 1200.0), 0.0), (1199.9, (1199.9,), 1500.0), (900.0, (900.0,), 1500.0)],
)
def test_memory_that_was_given_back_ends_the_series(
    memory: float, series: tuple[float, ...], peak: float
) -> None:
    trend = begun(memory=(1000.0, 1500.0))
    forecast.take(trend, memory, 7, START, POLICY, START + WINDOW)
    assert (trend.memory, trend.peak) == (series, peak)


def test_the_highest_peak_is_remembered() -> None:
    trend = begun(memory=(1000.0, 1500.0), peak=2000.0)
    forecast.take(trend, 100.0, 7, START, POLICY, START + WINDOW)
    assert trend.peak == 2000.0


LEVEL = {"gaps": (5.0,) * 12}


@pytest.mark.parametrize(
    ("known", "idle"),
    [
        (LEVEL, True),
        ({"gaps": (5.0,) * 11}, False),
        ({"gaps": (5.0,) * 11 + (5.5,)}, True),
        ({"gaps": (5.0,) * 11 + (5.6,)}, False),
        ({"gaps": (9.0,) * 12}, True),
        ({"gaps": (9.0,) * 11 + (9.9,)}, True),
        ({"gaps": (9.0,) * 11 + (10.0,)}, False),
        ({"gaps": (9.0,) + (10.0,) * 11}, False),
        (LEVEL | {"errors": (0.0, 0.1)}, False),
        (LEVEL | {"errors": (0.0, 0.0)}, True),
        (LEVEL | {"memory": (1023.0, 10.0)}, True),
        (LEVEL | {"memory": (1024.0, 10.0)}, False),
    ],
)
def test_who_gives_no_more_reason_is_followed_no_longer(known: dict[str, Any], idle: bool) -> None:
    assert forecast.is_idle(begun(**known), POLICY) is idle


def test_who_is_followed() -> None:
    off = POLICY.with_changes({"forecast": {"enabled": False}})
    assert not forecast.is_slow(5.5, POLICY)
    assert forecast.is_slow(5.51, POLICY)
    assert not forecast.is_slow(50.0, off)
    assert (forecast.memory_from(POLICY), forecast.memory_from(off)) == (LINE / 4, LINE)


def test_a_forecast_in_words_and_numbers() -> None:
    """100 MB each two minutes; 596 MB are left."""
    memory = tuple(2600.0 + 100 * n for n in range(10))
    found = forecast.examine(begun(memory=memory), POLICY, START)
    assert found is not None
    assert (found.kind, found.since, found.severity) == (Kind.FORECAST, START, Severity.NOTICE)
    assert found.text == (
        "If it goes on like this, its memory reaches 4096 MB in about 12 min: it rose from 2600 MB to 3500 MB in 18 min, in 45 of 45 comparisons."
    )
    assert found.numbers == {
        "what": "memory",
        "due_in_s": 715.2,
        "limit": LINE,
        "now": 3500.0,
        "per_hour": 3000.0,
    }


def test_the_series_that_gets_there_first_is_told() -> None:
    memory = tuple(2600.0 + 100 * n for n in range(10))
    errors = tuple(POLICY.erring.rate_max * (0.5 + 0.05 * n) for n in range(10))
    gaps = tuple(POLICY.silence.suspect_after * (0.5 + 0.05 * n) for n in range(10))
    told = []
    for known in ({"memory": memory}, {"memory": memory, "errors": errors}, {"memory": memory, "gaps": gaps}):
        found = forecast.examine(begun(error_step=60.0, **known), POLICY, START)
        assert found is not None
        told.append((found.numbers["what"], found.numbers["due_in_s"]))
    assert told == [("memory", 715.2), ("errors", 60.0), ("lateness", 120.0)]
    everything = begun(error_step=60.0, memory=memory, errors=errors, gaps=gaps, peak=3000.0)
    found = forecast.examine(everything, POLICY, START)
    assert found is not None
    assert found.numbers["what"] == "errors"
    assert (
        "the part of its calls that fail reaches 25% in about 1 min: it rose from 12% to 24% in 9 min"
        in found.text
    )


@pytest.mark.parametrize(
    ("last", "more"),
    [(LINE, {}), (LINE + 1, {}), (3500.0, {"peak": 3500.0}), (2500.0, {})],
    ids=["on the line", "over it", "was there before", "too far away"],
)
def test_what_is_no_news_is_not_told(last: float, more: dict[str, Any]) -> None:
    memory = tuple(last - 100 * n for n in reversed(range(10)))
    assert forecast.examine(begun(memory=memory, **more), POLICY, START) is None


def test_just_within_the_horizon_and_just_below_a_peak() -> None:
    memory = tuple(LINE - 1250.0 - 100 * n for n in reversed(range(10)))
    found = forecast.examine(begun(memory=memory), POLICY, START)
    assert found is not None
    assert found.numbers["due_in_s"] == 1500.0
    higher = tuple(3500.1 - 100 * n for n in reversed(range(10)))
    assert forecast.examine(begun(memory=higher, peak=3500.0), POLICY, START) is not None


@pytest.mark.parametrize(
    ("points", "trend"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7, 9, 8], (0, 8, 44, 45, 1.0)),
        ([9, 0, 1, 2, 3, 4, 5, 6, 7, 8], (9, 8, 36, 45, 1.0)),
        ([0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20], (0, 20, 55, 55, 2.0)),
    ],
)
def test_a_course_reckoned_by_hand(points: list[float], trend: tuple[float, ...]) -> None:
    found = forecast.course(points)
    assert found is not None
    assert (found.first, found.last, found.rising, found.pairs, found.slope) == trend


@pytest.mark.parametrize(
    ("values", "median"),
    [([7.0], 7.0), ([1.0, 3.0], 2.0), ([3.0, 1.0, 2.0], 2.0), ([1.0, 2.0, 4.0, 10.0, 11.0, 12.0], 7.0)],
)
def test_a_median(values: list[float], median: float) -> None:
    assert forecast._median(values) == median
