"""Forecasts: said in time, with the moment and the reason; and never more than said."""

from random import Random

import pytest

from lifesigns.core.changed_keys import ChangedKeys
from lifesigns.core.detectors import forecast
from lifesigns.core.effects import Finding, FindingClosed, FindingOpened, Flip, Kind, Order, Severity
from lifesigns.core.engine import Engine
from lifesigns.core.health import Health
from lifesigns.core.policy import HOUR, MINUTE, FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import Metrics
from tests.core.harness import START, Watch


def leaking(watch: Watch, until: float, per_minute: float, base: float = 1200.0) -> None:
    while watch.now < until:
        memory = base + per_minute * (watch.now - START) / MINUTE
        watch.beat(at=watch.now + 5, metrics=Metrics(memory_mb=memory))


def notices(watch: Watch) -> list[Finding]:
    return [fact.finding for fact in watch.facts(FindingOpened) if fact.finding.kind is Kind.FORECAST]


def test_a_leak_is_foretold_and_nothing_is_done_about_it() -> None:
    """60 MB a minute from 1,200 on reach 4,096 after 48 minutes; that is 25 minutes away after 23."""
    watch = Watch()
    leaking(watch, START + 22 * MINUTE, 60.0)
    assert notices(watch) == []
    leaking(watch, START + 28 * MINUTE, 60.0)
    (found,) = notices(watch)
    assert found.severity is Severity.NOTICE
    assert not found.conclusive
    assert found.numbers["what"] == "memory"
    told_at = watch.facts(FindingOpened)[-1].at
    crosses_at = START + 48.27 * MINUTE
    assert abs(told_at + float(found.numbers["due_in_s"]) - crosses_at) < 2 * MINUTE
    assert watch.health() is Health.HEALTHY
    assert not any(isinstance(effect, Order) for effect in watch.effects)
    assert [flip.now for flip in watch.facts(Flip)] == [Health.HEALTHY]


def test_it_is_over_when_the_memory_is_given_back() -> None:
    watch = Watch()
    leaking(watch, START + 28 * MINUTE, 60.0)
    assert notices(watch)
    watch.live(watch.now + 6 * MINUTE, metrics=Metrics(memory_mb=1200.0))
    assert [fact.kind for fact in watch.facts(FindingClosed)] == [Kind.FORECAST]
    assert watch.agent().calm


def test_who_is_over_the_line_has_no_forecast() -> None:
    watch = Watch()
    leaking(watch, START + 60 * MINUTE, 60.0)
    assert {finding.kind for finding in watch.agent().findings} == {Kind.OVERLOAD}


@pytest.mark.parametrize("memory", [None, 500.0, 1023.0])
def test_a_calm_agent_is_not_followed(memory: float | None) -> None:
    watch = Watch()
    watch.live(START + 3600, metrics=Metrics(memory_mb=memory))
    assert watch.agent().trend is None


def test_it_can_be_switched_off_and_its_horizon_and_its_window_hold() -> None:
    for words, told in (
        ({"enabled": False}, False),
        ({"horizon": 60.0}, False),
        ({"memory_from": 0.9}, False),
        ({"window": 10 * MINUTE}, False),
        ({"horizon": 3600.0}, True),
    ):
        watch = Watch(Policy().with_changes({"forecast": words}))
        leaking(watch, START + 30 * MINUTE, 45.0)
        assert bool(notices(watch)) is told, words


def test_a_gap_of_ours_is_no_trend() -> None:
    """Points of before and after are not one series."""
    policy = Policy()
    trend = forecast.begin(policy, 1, START, START)
    for n in range(1, 12):
        forecast.take(trend, 1200.0 + 150 * n, n, START + 120 * n, policy, START + 120 * n)
    assert forecast.examine(trend, policy, 0.0) is not None
    forecast.take(trend, 3000.0, 50, START + 7200, policy, START + 7200)
    assert trend.memory == ()


@pytest.mark.parametrize(
    ("points", "is_trend"),
    [
        (range(9), False),
        (range(10), True),
        ([5.0] * 12, False),
        (range(12, 0, -1), False),
        ([0, 10, 18, 24, 28, 31, 33, 34, 34.5, 34.7, 34.8, 34.9], False),
        ([0, 1, 2, 9, 4, 5, 6, 7, 8, 9, 10, 11], True),
        ([0, 9, 0, 9, 0, 9, 0, 9, 0, 9, 0, 9], False),
        ([0, 2, 11, 20, 25, 30, 31, 33, 34, 43, 45, 50], True),
    ],
    ids=["too few", "enough", "flat", "falls", "levels off", "one wild point", "teeth", "later half"],
)
def test_what_is_a_trend(points: list[float], is_trend: bool) -> None:
    assert (forecast.course(list(points)) is not None) is is_trend


def rows_written(every: float, jitter: float, hours: float) -> int:
    """How often the belief about an agent that beats like this is stored anew, after it was met."""
    changes, chance, now = ChangedKeys(), Random(1), START
    watch = Watch(engine=Engine(PolicyBook(Policy()), FleetPolicy(canary_every=0), changes=changes))
    written = -1
    while now < START + hours * HOUR:
        watch.beat(at=now + every * chance.uniform(-jitter, jitter))
        written += len(changes.agents)
        changes.clear()
        now += every
    assert watch.health() is Health.HEALTHY
    return written


@pytest.mark.parametrize("jitter", [0.0, 0.05, 0.2])
def test_a_steady_rhythm_is_not_stored_again_and_again(jitter: float) -> None:
    """A beat that comes late now and then is no reason to look closer; beats that are slower than the policy's are
    followed until a series shows that they stay as they are."""
    assert rows_written(every=5.0, jitter=jitter, hours=2) == 0
    windows = rows_written(every=6.0, jitter=jitter, hours=1)
    assert windows <= forecast.POINTS_MAX + 2
    assert rows_written(every=6.0, jitter=jitter, hours=3) == windows


def test_a_rhythm_that_slows_down_after_it_was_steady_is_followed_again() -> None:
    watch = Watch()
    watch.live(START + HOUR, every=6.0)
    assert watch.agent().trend is None
    while watch.now < START + 2 * HOUR:
        watch.beat(at=watch.now + 6.0 + 0.09 * (watch.now - START - HOUR) / MINUTE)
    assert [found.numbers["what"] for found in notices(watch)] == ["lateness"]
    assert watch.health() is Health.HEALTHY
