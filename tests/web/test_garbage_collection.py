"""The collector of garbage does not look at the whole fleet again and again."""

import gc

import pytest

from lifesigns.web import garbage_collection


def test_what_outlives_a_long_collection_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with garbage_collection.survivors_frozen():
        at_first = gc.get_freeze_count()
        fleet = [[n] for n in range(10_000)]
        monkeypatch.setattr(garbage_collection, "LONG", 0.0)
        gc.collect()
        assert gc.get_freeze_count() >= at_first + len(fleet)
    assert gc.get_freeze_count() == 0


def test_a_short_collection_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "LONG", 3600.0)
    with garbage_collection.survivors_frozen():
        at_first = gc.get_freeze_count()
        fleet = [[n] for n in range(10_000)]
        gc.collect()
        assert gc.get_freeze_count() <= at_first
        assert fleet


def test_the_collector_looks_seldom_while_a_hub_serves_and_as_before_afterwards() -> None:
    before = gc.get_threshold()
    with garbage_collection.survivors_frozen():
        assert gc.get_threshold() == (garbage_collection.YOUNG_MAX, *before[1:])
    assert gc.get_threshold() == before
