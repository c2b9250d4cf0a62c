"""A truce is no news, a life from truce to truce is: over an engine that is called as a hub calls it, at times made up here."""

from __future__ import annotations

from lifesigns.core.engine import Engine
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.signals import BeatReceived
from lifesigns.hub.truce_watch import LONG, WINDOW, TruceWatch


class Days:
    """An engine and its watch, once a second."""

    def __init__(self, start: float = 1000.0) -> None:
        self.now = start
        self.engine = Engine(fleet=FleetPolicy(canary_every=0.0))
        self.watch = TruceWatch()
        self.engine.hear(BeatReceived("a", 1), self.now)
        self.told: list[float] = []
        """When it was a trouble."""

    def go_on(self, seconds: float, *, stands_still_every: float = 0.0, stands_for: float = 2.5) -> None:
        """Time passes; the hub beats on for the agent, and stands still for a moment now and then."""
        ends_at, stopped_at = self.now + seconds, self.now
        while self.now < ends_at:
            stopped = stands_still_every and self.now - stopped_at >= stands_still_every
            self.now += stands_for if stopped else 1.0
            stopped_at = self.now if stopped else stopped_at
            self.engine.advance(self.now)
            self.look()

    def look(self) -> str:
        why = self.watch.look(self.engine.beliefs.awareness, self.now)
        if why:
            self.told.append(self.now)
        return why


def test_one_long_sleep_is_no_news() -> None:
    days = Days()
    days.go_on(60)
    days.now += 8 * 3600
    days.engine.advance(days.now)
    assert days.engine.beliefs.awareness.truce_until > days.now
    days.go_on(600)
    assert not days.told


def test_a_hub_that_stands_still_every_few_seconds_is_told_and_is_over() -> None:
    """Each time is too short to be blind, and each makes a truce of five seconds."""
    days = Days()
    began_at = days.now
    days.go_on(600, stands_still_every=4.0)
    assert not days.engine.beliefs.awareness.blind
    assert LONG <= days.told[0] - began_at <= WINDOW
    assert days.told[-1] == days.now
    assert "convicted of silence" in days.look()
    stopped_at = days.now
    days.go_on(2 * WINDOW)
    assert days.told[-1] - stopped_at <= WINDOW
    assert not days.look()


def test_a_hub_that_stands_still_now_and_then_is_no_news() -> None:
    """A tenth of the time it doubts itself: that is what truces are for."""
    days = Days()
    days.go_on(1800, stands_still_every=60.0)
    assert not days.told


def fall_behind(days: Days, seconds: int) -> None:
    for _ in range(seconds):
        days.now += 1.0
        days.engine.fall_behind(days.now - 1.0, days.now)
        days.engine.advance(days.now)
        days.look()


def test_a_hub_that_is_behind_again_and_again_is_told() -> None:
    """Never for so long that it calls itself blind."""
    days = Days()
    for _ in range(30):
        fall_behind(days, 10)
        assert not days.engine.beliefs.awareness.blind
        days.engine.catch_up(days.now)
    assert days.told


def test_a_hub_that_is_blind_because_it_is_behind_says_that_and_nothing_else() -> None:
    days = Days()
    fall_behind(days, 600)
    assert days.engine.beliefs.awareness.blind
    assert not days.told


def test_it_keeps_no_more_than_its_window() -> None:
    days = Days()
    days.go_on(3600, stands_still_every=4.0)
    assert len(days.watch._truces) <= WINDOW + 1
