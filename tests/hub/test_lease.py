"""When a hub that stands by may take over."""

from __future__ import annotations

import pytest

from lifesigns.hub.lease import GONE_AFTER, LOOKS_MIN, LeaderWatch
from lifesigns.ports import HubRow


def rows(beat: int, *, leader: str = "other", leads: bool = True) -> list[HubRow]:
    return [HubRow("me", 7, "", "", leads=False), HubRow(leader, beat, "", "", leads=leads)]


def looks(watch: LeaderWatch, beats: list[int], every: float = 1.0, start: float = 0.0) -> list[bool]:
    """Look at these beats of the leader, one after the other."""
    return [watch.is_gone(rows(beat), start + n * every) for n, beat in enumerate(beats)]


def test_without_a_leader_a_hub_leads_at_once() -> None:
    watch = LeaderWatch("me")
    assert watch.is_gone([HubRow("me", 1, "", "", leads=False)], 0.0)
    assert watch.is_gone(rows(5, leads=False), 0.0)


def test_a_hub_that_was_restarted_goes_on_at_once() -> None:
    """The folder of its state is locked, so its last life has ended."""
    assert LeaderWatch("me").is_gone([HubRow("me", 9, "", "", leads=True)], 0.0)


def test_a_leader_whose_beat_rises_is_never_gone() -> None:
    assert not any(looks(LeaderWatch("me"), list(range(100))))


@pytest.mark.parametrize(("at", "gone"), [(GONE_AFTER - 0.01, False), (GONE_AFTER, True)])
def test_a_leader_is_gone_when_its_beat_stood_still_for_so_long(at: float, gone: bool) -> None:
    watch = LeaderWatch("me")
    assert not any(looks(watch, [5] * LOOKS_MIN))
    assert watch.is_gone(rows(5), at) is gone


def test_an_observer_that_was_frozen_itself_looks_again_first() -> None:
    """It saw one beat, slept for a minute, and sees the same: the leader may have been slow for a moment only."""
    watch = LeaderWatch("me")
    assert looks(watch, [5]) == [False]
    assert looks(watch, [5] * LOOKS_MIN, start=60.0) == [*[False] * (LOOKS_MIN - 1), True]


def test_after_an_outage_of_the_store_the_wait_begins_anew() -> None:
    """The leader could not renew its row either."""
    watch = LeaderWatch("me")
    looks(watch, [5] * 5)
    watch.start_anew()
    assert looks(watch, [5] * 6, start=100.0) == [False] * 6
    assert watch.is_gone(rows(5), 100.0 + GONE_AFTER)


def test_another_leader_is_watched_from_its_first_look() -> None:
    watch = LeaderWatch("me")
    looks(watch, [5] * 6)
    assert not watch.is_gone(rows(5, leader="third"), GONE_AFTER)
