"""The benchmark of nudges still runs, in small; what it measures is held against its target by `make bench`."""

from __future__ import annotations

import pytest

from benchmarks import nudges


@pytest.mark.parametrize("by_bus", [False, True], ids=["long poll", "bus"])
def test_every_nudge_arrives_and_it_is_known_how_soon(by_bus: bool) -> None:
    found = nudges.measure(agents=100, nudges=20, seconds=0.5, by_bus=by_bus)
    assert (len(found.by_people), len(found.by_engine)) == (10, 10)
    assert nudges.quantile(found.all, 0.5) < 5.0
