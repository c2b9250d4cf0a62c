"""The hub counts itself: cheaply, and so that the counts can be trusted."""

from __future__ import annotations

import pytest

from lifesigns.core import effects as e
from lifesigns.core.health import Health
from lifesigns.hub.counters import LATE_UP_TO, Histogram, HubCounters


@pytest.mark.parametrize(
    ("value", "place"), [(0.0, 0), (1.0, 0), (1.001, 1), (5.0, 1), (5.001, 2), (-1.0, 0), (float("inf"), 2)]
)
def test_a_value_on_a_bound_is_below_it(value: float, place: int) -> None:
    spread = Histogram((1.0, 5.0))
    spread.add(value)
    assert spread.counts == [int(place == n) for n in range(3)]


def test_a_spread_knows_how_many_and_how_much() -> None:
    spread = Histogram(LATE_UP_TO)
    for value in (0.25, 0.5, 100.0):
        spread.add(value)
    assert (spread.count, spread.total) == (3, 100.75)


def test_a_look_is_late_by_what_it_was_late_except_for_the_first() -> None:
    """The first finds what fell due while there was no hub, or has no due time at all."""
    counters = HubCounters()
    counters.looked(float("-inf"), 1000.0, 1000.0, 0)
    assert (counters.look_late, counters.look_late_max) == (0.0, 0.0)
    counters.looked(1000.0, 1000.25, 1000.26, 0)
    counters.looked(1001.0, 1001.0, 1001.0, 0)
    assert (counters.looks, counters.look_late, counters.look_late_max) == (3, 0.0, 0.25)
    assert counters.looks_late.count == 3


def test_a_witness_is_told_of_every_look() -> None:
    told: list[tuple[float, float, float, int]] = []
    counters = HubCounters(witness=lambda *look: told.append(look))
    counters.looked(1.0, 2.0, 3.0, 4)
    assert told == [(1.0, 2.0, 3.0, 4)]


def test_facts_are_counted_by_what_they_say() -> None:
    counters = HubCounters()
    counters.count_fact(e.Flip(10.0, "a", Health.HEALTHY, Health.DISCONNECTED, "silent"), 10.5)
    counters.count_fact(e.Flip(11.0, "a", Health.DISCONNECTED, Health.HEALTHY, "back"), 11.0)
    counters.count_fact(e.Intervention(12.0, "b", "1-1", e.Rung.NUDGE, e.Stage.ORDERED, 1), 12.0)
    counters.count_fact(e.Refusal(13.0, "c", "why", 7), 13.0)
    assert counters.flips == {Health.DISCONNECTED: 1, Health.HEALTHY: 1}
    assert (counters.found, counters.found_late, counters.finds_late.total) == (1, 0.5, 0.5)
    assert counters.interventions == {(e.Rung.NUDGE, e.Stage.ORDERED): 1}
    assert counters.refused == 7
