"""How often an agent beats: faster when somebody wonders, slower when it rests, always within its policy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.agent.sender.rhythm import FASTER_FOR, SLOWER_AFTER, BeatRhythm, next_on_grid, rhythm
from lifesigns.core.policy import Policy
from lifesigns.core.profiles import PROFILES
from lifesigns.errors import PolicyError, UsageError

SWARM = BeatRhythm(5.0, 11.0)


@pytest.mark.parametrize(
    ("stirred_for", "every"), [(None, 5.0), (0.0, 2.5), (FASTER_FOR - 0.1, 2.5), (FASTER_FOR, 5.0)]
)
def test_who_is_asked_about_beats_twice_as_fast_for_a_minute(stirred_for: float | None, every: float) -> None:
    assert SWARM.every(stirred_for=stirred_for, idle_for=None) == every


@pytest.mark.parametrize(
    ("idle_for", "every"), [(0.0, 5.0), (SLOWER_AFTER - 0.1, 5.0), (SLOWER_AFTER, 11.0 / 1.5)]
)
def test_who_idles_for_long_beats_slower(idle_for: float, every: float) -> None:
    assert SWARM.every(stirred_for=None, idle_for=idle_for) == every


def test_a_slow_rhythm_is_at_most_half_again_as_slow() -> None:
    assert BeatRhythm(5.0, 1000.0).every(stirred_for=None, idle_for=1e6) == 7.5


def test_a_question_wakes_who_idles() -> None:
    assert SWARM.every(stirred_for=1.0, idle_for=1e6) == 2.5


@given(
    st.floats(0.01, 1e4),
    st.floats(1.01, 10),
    st.one_of(st.none(), st.floats(0, 1e6)),
    st.one_of(st.none(), st.floats(0, 1e6)),
)
def test_no_rhythm_ever_comes_near_the_suspicion(
    interval: float, factor: float, stirred: float | None, idle: float | None
) -> None:
    """However slow, there is time for the beat to be late; and the promise is only ever stretched by half."""
    beats = BeatRhythm(interval, interval * factor)
    every = beats.every(stirred_for=stirred, idle_for=idle)
    assert interval / 2 <= every <= interval * 1.5
    assert every <= max(interval, beats.suspect_after / 1.5)


@given(st.floats(0, 1e7), st.floats(0.01, 1e4), st.floats(0, 1, exclude_max=True))
def test_the_next_beat_is_later_than_now_and_within_one_interval(
    after: float, every: float, phase: float
) -> None:
    at = next_on_grid(after, every, phase)
    assert after < at <= after + every * 1.001 + 1e-6


def test_the_grid_does_not_drift() -> None:
    """Beats that are made late do not make the next ones late."""
    at = next_on_grid(0.0, 0.1, 0.3)
    for number in range(1000):
        assert at == pytest.approx((number + 0.3) * 0.1)
        at = next_on_grid(at + 0.03, 0.1, 0.3)


# --- what is announced ---------------------------------------------------------------------------------------------


def test_who_asks_for_nothing_announces_nothing() -> None:
    assert rhythm(None, None) == (BeatRhythm(5.0, 11.0), None)


@pytest.mark.parametrize("name", sorted(set(PROFILES) - {"swarm"}))
def test_a_profile_is_announced_with_all_its_waits(name: str) -> None:
    beats, changes = rhythm(name, None)
    assert changes == PROFILES[name]
    assert beats.interval == Policy().with_changes(PROFILES[name]).silence.interval


@pytest.mark.parametrize("interval", [0.01, 0.5, 1.0, 5.0, 61.0, 600.0, 3600.0, 86400.0])
def test_any_interval_is_announced_with_waits_that_work(interval: float) -> None:
    """A hub that expects a beat every 5 s would doubt an agent that beats every hour."""
    beats, changes = rhythm(None, interval)
    assert changes is not None
    policy = Policy().with_changes(changes)
    assert beats.interval == interval
    assert policy.silence.suspect_after > 2 * interval
    assert policy.silence.timeout >= 3.0


def test_a_profile_with_another_interval_keeps_its_waits() -> None:
    beats, changes = rhythm("fleet", 60.0)
    assert changes is not None
    assert Policy().with_changes(changes).silence.timeout == 600.0
    assert beats.interval == 60.0


@pytest.mark.parametrize("interval", [0.0, -1.0, float("nan"), float("inf")])
def test_an_impossible_interval_is_refused(interval: float) -> None:
    with pytest.raises(UsageError, match="interval"):
        rhythm(None, interval)


def test_an_impossible_pair_is_refused_with_its_reason() -> None:
    with pytest.raises(PolicyError, match="timeout"):
        rhythm("swift", 10.0)


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(PolicyError, match="swarm"):
        rhythm("fast", None)


@pytest.mark.parametrize(
    ("told", "every"), [(2.5, 2.5), (7.0, 7.0), (60.0, 11.0 / 1.5), (0.0, 0.01), (5.0, 5.0), (None, 5.0)]
)
def test_the_hub_is_followed_within_what_was_promised(told: float | None, every: float) -> None:
    """However rarely a hub wants its beats: by the policy it announced, this agent would be lost."""
    assert SWARM.every(stirred_for=None, idle_for=None, told=told) == every


def test_who_is_asked_about_beats_fast_whatever_it_was_told() -> None:
    assert SWARM.every(stirred_for=1.0, idle_for=None, told=7.0) == 2.5
    assert SWARM.every(stirred_for=1.0, idle_for=None, told=1.0) == 1.0
