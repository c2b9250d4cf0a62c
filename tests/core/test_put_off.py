"""A source that was told to wait said something that was not heard: its silence is not its agents'. Nobody else's changes."""

from __future__ import annotations

from lifesigns.core.awareness import PUT_OFF_FOR, PUT_OFF_MAX, Awareness
from lifesigns.core.health import Health
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import profile
from tests.core.harness import START, Watch

FREE = FleetPolicy(canary_every=0, acted_share=1.0)


def silent_pair() -> Watch:
    """Two agents of two sources that say nothing any more, beside a third that does."""
    watch = Watch(profile("swift"), fleet=FREE)
    for _ in range(5):
        watch.beat("good", source="good")
        watch.beat("evil", source="evil")
        watch.beat("third", source="third")
        watch.run_until(watch.now + 1.0)
    return watch


def test_nobody_of_a_source_that_is_put_off_is_convicted_and_the_others_are() -> None:
    watch = silent_pair()
    for _ in range(20):
        watch.engine.put_off("evil", watch.now)
        watch.beat("third", source="third")
        watch.run_until(watch.now + 1.0)
    assert watch.health("good") is Health.DISCONNECTED
    assert watch.health("evil") is not Health.DISCONNECTED
    for _ in range(int(PUT_OFF_FOR) + 2):
        watch.beat("third", source="third")
        watch.run_until(watch.now + 1.0)
    assert watch.health("evil") is Health.DISCONNECTED


def test_sources_that_are_put_off_are_bounded_and_those_that_are_over_go_first() -> None:
    aware = Awareness()
    for n in range(PUT_OFF_MAX):
        aware.put_off(f"s{n}", START)
    aware.put_off("last", START + PUT_OFF_FOR + 1)
    assert list(aware.put_off_until) == [("last", "")]


def test_where_many_share_a_source_only_those_of_one_first_part_are_put_off() -> None:
    watch = Watch(profile("swift"), fleet=FREE)
    names = ("evil", "evil.1", "evilly", "good")
    for _ in range(5):
        for name in (*names, "third"):
            watch.beat(name, source="bus")
        watch.run_until(watch.now + 1.0)
    for _ in range(20):
        watch.engine.put_off("bus", watch.now, "evil")
        watch.beat("third", source="bus")
        watch.run_until(watch.now + 1.0)
    dead = {name for name in names if watch.health(name) is Health.DISCONNECTED}
    assert dead == {"evilly", "good"}


def test_when_too_many_are_put_off_at_once_everyone_is() -> None:
    watch = silent_pair()
    for _ in range(20):
        for n in range(PUT_OFF_MAX + 1):
            watch.engine.put_off(f"s{n}", watch.now)
        watch.beat("third", source="third")
        watch.run_until(watch.now + 1.0)
    assert watch.health("good") is not Health.DISCONNECTED


def test_who_was_told_to_wait_for_long_is_not_convicted_for_waiting() -> None:
    """A polite sender comes again when it was told to, and not before."""
    watch = silent_pair()
    watch.engine.put_off("evil", watch.now, wait_for=30.0)
    watch.engine.put_off("evil", watch.now)  # A second request was refused with a shorter wait.
    told_at = watch.now
    while watch.now < told_at + 30.0:
        watch.beat("third", source="third")
        watch.run_until(watch.now + 1.0)
    assert watch.health("evil") is not Health.DISCONNECTED
    while watch.now < told_at + 30.0 + PUT_OFF_FOR + 5.0:
        watch.beat("third", source="third")
        watch.run_until(watch.now + 1.0)
    assert watch.health("evil") is Health.DISCONNECTED
