"""The hub's benchmarks still run, in small; what they measure is held against its targets by `make bench`."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from benchmarks import against, hub, hub_fleet
from benchmarks.hub_fleet import Fleet


@pytest.fixture(autouse=True)
def every_core() -> Iterator[None]:
    """A benchmark keeps its process on one core; the tests after it may have all."""
    cores = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, cores)


@pytest.mark.parametrize("way", [hub.WAYS[0], hub.WAYS[4]], ids=lambda way: way.name)
def test_what_a_hub_takes_is_measured_beside_what_it_rests_on(way: hub.Way) -> None:
    tries = 0
    while not (took := hub.throughput(way, agents=200, turns=1, seconds=0.3)).shares:
        tries += (
            1  # A hub that was hardly let run is not seen at work by those who look every few milliseconds.
        )
        assert tries < 5, took
    assert took.hub.per_core_second > 500
    assert took.bare.per_core_second > 500
    # How large it is in so short a time is chance.
    assert took.ratio == took.hub.per_core_second / took.bare.per_core_second


def test_a_hub_of_another_tree_is_measured_beside_ours() -> None:
    found = against.difference(hub.WAYS[4], against.ROOT, turns=2, agents=200, seconds=0.3)
    assert 0 < found.now < 1000
    assert 0 < found.then < 1000
    assert len(found.ratios) == 2


def test_a_small_fleet_is_watched_and_its_dead_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_fleet, "INTERVAL", 0.5)
    monkeypatch.setattr(hub_fleet, "MEET_FOR", 0.3)
    swift = {"silence": {"interval": 0.5, "timeout": 1.5, "ping_wait": 0.2}}
    monkeypatch.setattr(hub_fleet, "EVERY_TEN_SECONDS", swift)
    tries = 0
    while len((found := hub_fleet.live(Fleet(agents=1000, seconds=4.0, deaths=10))).told_late) < 5:
        tries += 1  # A hub that was not let run for a second convicts nobody for five: then once more.
        assert tries < 5, found
    assert 0 < found.found_late <= 2.0
    assert hub_fleet.p99(found.told_late) < 2.0
    assert found.answers.agents_page
    assert found.answers.beat_visible
    assert found.rss_mb < 400
