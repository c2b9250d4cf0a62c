"""Ten thousand agents: only what is seen is drawn, scrolling is smooth, and a change is on the page within a second.

On a busy machine a measurement says as much about the neighbours as about us: the best of several has to reach the target.
`python -m benchmarks dashboard` measures the same on a calm one.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.browser import measure
from tests.browser.hub import Hub
from tests.browser.visit import Visit

TRIES = 12
ROWS_MAX = 150


@pytest.fixture(scope="module", autouse=True)
def crowd(hub: Hub) -> None:
    measure.furnish(hub.client, measure.MANY)


@pytest.fixture
def full(operator: Visit) -> Visit:
    """The first page with all of them."""
    expect(operator.page.get_by_text("10,000 agents", exact=True)).to_be_visible()
    return operator


def best_of(measured: Callable[[], float], target: float) -> float:
    """The smallest of some measurements; no more of them than needed."""
    best = float("inf")
    for _ in range(TRIES):
        best = min(best, measured())
        if best <= target:
            break
    return best


def test_the_first_paint_is_within_a_second(full: Visit) -> None:
    def painted() -> float:
        full.page.reload()
        return measure.first_paint_ms(full.page)

    assert best_of(painted, 1000) <= 1000


def test_only_what_is_seen_is_drawn_and_a_frame_costs_less_than_a_thirtieth_of_a_second(full: Visit) -> None:
    """Of the core's own time: then thirty frames a second are possible."""

    def cpu_ms() -> float:
        scrolled = measure.scroll(full.page)
        assert 0 < scrolled.rows < ROWS_MAX
        return scrolled.cpu_ms

    assert best_of(cpu_ms, 1000 / 30) <= 1000 / 30


def test_a_change_is_seen_within_a_second_of_the_hub_knowing_it(full: Visit, hub: Hub) -> None:
    numbers = iter(range(TRIES))
    assert best_of(lambda: measure.seen_after(full.page, hub.client, f"agent-{next(numbers):05}"), 1) <= 1
