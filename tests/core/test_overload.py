"""Load worth a word: it degrades, it never kills by itself."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.detectors import overload
from lifesigns.core.effects import FindingClosed, Kind, Order, Severity
from lifesigns.core.health import Health
from lifesigns.core.policy import OverloadPolicy
from lifesigns.core.signals import Metrics
from tests.core.harness import START, Watch


@pytest.mark.parametrize(
    ("cpu", "memory", "said"),
    [
        (None, None, None),
        (69.9, 4095.9, None),
        (70.0, None, "High load: CPU 70 %, memory 0 MB."),
        (None, 4096.0, "High load: CPU 0 %, memory 4096 MB."),
        (90.0, 100.0, "High load: CPU 90 %, memory 100 MB."),
        (90.1, 100.0, "Unhealthy load: CPU 90 %, memory 100 MB."),
        (10.0, 8192.0, "High load: CPU 10 %, memory 8192 MB."),
        (10.0, 8192.1, "Unhealthy load: CPU 10 %, memory 8192 MB."),
        (float("nan"), float("nan"), None),
    ],
)
def test_the_lines_of_the_policy(cpu: float | None, memory: float | None, said: str | None) -> None:
    finding = overload.examine(Metrics(cpu, memory), OverloadPolicy(), START)
    assert (finding.text if finding else None) == said


def test_a_beat_that_says_nothing_about_load_shows_none() -> None:
    assert not overload.over(None, OverloadPolicy())
    assert overload.examine(None, OverloadPolicy(), START) is None


@pytest.mark.parametrize(("cpu", "unhealthy"), [(90.0, 0.0), (90.1, 1.0)])
def test_the_finding_has_its_numbers(cpu: float, unhealthy: float) -> None:
    finding = overload.examine(Metrics(cpu, 100.0), OverloadPolicy(), START)
    assert finding is not None
    assert (finding.kind, finding.since) == (Kind.OVERLOAD, START)
    assert finding.numbers == {"cpu_percent": cpu, "memory_mb": 100.0, "unhealthy": unhealthy}


@given(st.floats(0, 1e9), st.floats(0, 1e9))
def test_load_degrades_at_most_and_is_never_conclusive(cpu: float, memory: float) -> None:
    finding = overload.examine(Metrics(cpu, memory), OverloadPolicy(), START)
    if finding is not None:
        assert finding.severity is Severity.DEGRADED
        assert not finding.conclusive


def test_one_busy_moment_is_no_state() -> None:
    watch = Watch()
    watch.beat()
    for n, cpu in enumerate([95.0, 95.0, 10.0, 95.0, 95.0, 10.0], start=1):
        watch.beat(at=START + 5 * n, metrics=Metrics(cpu_percent=cpu))
    assert watch.health() is Health.HEALTHY


def test_three_beats_in_a_row_are() -> None:
    watch = Watch()
    watch.beat()
    for n in range(1, 4):
        assert watch.health() is Health.HEALTHY
        watch.beat(at=START + 5 * n, metrics=Metrics(cpu_percent=95.0))
    assert watch.health() is Health.DEGRADED


def test_load_that_goes_on_has_one_beginning() -> None:
    watch = Watch()
    watch.beat()
    for n in range(1, 10):
        watch.beat(at=START + 5 * n, metrics=Metrics(cpu_percent=80.0 + n))
    finding = watch.agent().finding(Kind.OVERLOAD)
    assert finding is not None
    assert finding.since == START + 15
    assert finding.numbers["cpu_percent"] == 89.0


def test_less_load_is_well_again() -> None:
    watch = Watch()
    watch.beat()
    for n in range(1, 5):
        watch.beat(at=START + 5 * n, metrics=Metrics(memory_mb=9000.0))
    watch.beat(at=START + 25, metrics=Metrics(memory_mb=4000.0))
    assert watch.health() is Health.HEALTHY
    assert [fact.kind for fact in watch.facts(FindingClosed)] == [Kind.OVERLOAD]


def test_an_overloaded_agent_is_never_acted_on() -> None:
    watch = Watch()
    watch.beat()
    watch.live(START + 4 * 3600, metrics=Metrics(cpu_percent=100.0, memory_mb=1e6))
    assert watch.health() is Health.DEGRADED
    assert not watch.orders(Order)
