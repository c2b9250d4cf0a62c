"""The laws of `core/breaker.py`."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from itertools import pairwise
from math import inf, nan

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from lifesigns.core.breaker import LEGAL, TURNS_MAX, Breaker, Permit
from lifesigns.core.policy import BreakerPolicy
from lifesigns.core.signals import BreakerState
from lifesigns.errors import BreakerOpen, PolicyError

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
FORCED_OPEN, DISABLED = BreakerState.FORCED_OPEN, BreakerState.DISABLED
OBSERVING = BreakerState.OBSERVING


def breaker(**changes: float | None) -> Breaker:
    return Breaker("api", replace(BreakerPolicy(), **changes))


def fail(one: Breaker, now: float, times: int = 1, took: float = 0.0) -> None:
    for _ in range(times):
        one.failure(one.permit(now), now, took)


def succeed(one: Breaker, now: float, times: int = 1, took: float = 0.0) -> None:
    for _ in range(times):
        one.success(one.permit(now), now, took)


def opened(at: float = 0.0, **changes: float | None) -> Breaker:
    one = breaker(**changes)
    fail(one, at, one.policy.failure_threshold)
    assert one.state(at) is OPEN
    return one


def path(one: Breaker) -> list[tuple[float, BreakerState]]:
    return [(turn.at, turn.now) for turn in one.turns]


def ask(one: Breaker, now: float) -> tuple[Permit | None, float]:
    """A permit, or until when it is refused."""
    try:
        return one.permit(now), 0.0
    except BreakerOpen as refusal:
        return None, refusal.until


def refused_until(one: Breaker, now: float) -> float:
    with pytest.raises(BreakerOpen) as refusal:
        one.permit(now)
    assert refusal.value.name == "api"
    return refusal.value.until


# --- opening -----------------------------------------------------------------------------------------


def test_it_opens_with_the_third_failure_in_a_row() -> None:
    one = breaker()
    fail(one, 1.0, 2)
    assert one.state(1.0) is CLOSED
    fail(one, 2.0)
    assert one.state(2.0) is OPEN
    assert refused_until(one, 2.0) == 62.0
    assert [turn.reason for turn in one.turns] == ["3 failures in a row"]


def test_a_success_between_begins_the_row_anew() -> None:
    one = breaker()
    for now in range(100):
        fail(one, now, 2)
        succeed(one, now)
    assert one.state(100.0) is CLOSED


def test_the_failure_rate_counts_from_the_least_number_of_calls() -> None:
    one = breaker(failure_rate=0.5, failure_threshold=100)
    fail(one, 0.0, 5)
    succeed(one, 0.0, 4)
    assert one.state(0.0) is CLOSED, "9 calls say nothing"
    assert one.status(0.0).failure_rate is None
    succeed(one, 0.0)
    assert one.state(0.0) is OPEN
    assert one.turns[-1].reason == "5 of 10 calls failed"


def test_the_failure_rate_opens_at_its_value_and_not_below() -> None:
    one = breaker(failure_rate=0.5, failure_threshold=100, window_calls=10)
    succeed(one, 0.0, 6)
    fail(one, 0.0, 4)
    assert one.state(0.0) is CLOSED
    assert one.status(0.0).failure_rate == 0.4
    fail(one, 0.0)
    assert one.state(0.0) is OPEN, "the oldest success left the window"


def test_a_window_shorter_than_the_least_number_is_judged_when_full() -> None:
    one = breaker(failure_rate=1.0, failure_threshold=100, window_calls=4)
    fail(one, 0.0, 3)
    assert one.state(0.0) is CLOSED
    fail(one, 0.0)
    assert one.state(0.0) is OPEN


def test_a_time_window_forgets() -> None:
    one = breaker(failure_rate=0.5, failure_threshold=100, window_for=20.0)
    fail(one, 0.0, 9)
    fail(one, 20.0, 9)
    assert one.state(20.0) is CLOSED
    assert one.status(20.0).calls == 9
    fail(one, 39.9)
    assert one.state(39.9) is OPEN


def test_slow_calls_open_it_though_they_succeed() -> None:
    one = breaker(slow_rate=0.5, slow_call_after=2.0)
    succeed(one, 0.0, 5, took=1.999)
    succeed(one, 0.0, 4, took=2.0)
    assert one.state(0.0) is CLOSED
    succeed(one, 0.0, took=2.0)
    assert one.state(0.0) is OPEN
    assert one.turns[-1].reason == "5 of 10 calls were slow"


outcomes = st.lists(st.tuples(st.floats(0, 3), st.booleans(), st.booleans()), max_size=120)


@given(outcomes, st.sampled_from([None, 5.0, 30.0]), st.sampled_from([0.0, -1e6, 1.7e9]))
def test_the_windows_count_what_a_plain_list_counts(
    calls: list[tuple[float, bool, bool]], window_for: float | None, start: float
) -> None:
    """A time window may forget up to one bucket early, and never late."""
    one = breaker(
        failure_threshold=1000,
        failure_rate=1.0,
        min_calls=1000,
        window_calls=20,
        window_for=window_for,
    )
    one.observe_only(start)
    heard: list[float] = []
    lately: deque[tuple[bool, bool]] = deque(maxlen=20)
    now = start
    for passed, ok, slow in calls:
        now += passed
        heard.append(now)
        (one.success if ok else one.failure)(one.permit(now), now, 99.0 if slow else 0.0)
        lately.append((ok, slow))
        status = one.status(now)
        count = status.calls
        if one.trips:
            return  # it counts from zero again
        if window_for is None:
            assert count == len(lately)
            known = count == 20
            assert status.failure_rate == (sum(not ok for ok, _ in lately) / 20 if known else None)
            assert status.slow_rate == (sum(slow for _, slow in lately) / 20 if known else None)
        else:
            surely = sum(at > now - window_for * 0.95 + 1e-6 for at in heard)
            perhaps = sum(at > now - window_for - 1e-6 for at in heard)
            assert surely <= count <= perhaps


# --- half open ---------------------------------------------------------------------------------------


def test_it_half_opens_when_the_wait_is_over_and_not_before() -> None:
    one = opened(at=10.0)
    assert one.time_until_half_open(69.5) == 0.5
    assert refused_until(one, 69.999) == 70.0
    assert one.opens_until == 70.0
    assert one.permit(70.0).probe
    assert one.status(70.0).until is None
    assert one.time_until_half_open(70.0) is None


def test_a_change_carries_the_moment_it_fell_due() -> None:
    one = opened(at=10.0)
    assert one.state(5000.0) is HALF_OPEN
    assert path(one)[-1] == (70.0, HALF_OPEN)


@pytest.mark.parametrize("probes", [1, 3, 10])
def test_a_hundred_permits_at_once_grant_exactly_the_probes(probes: int) -> None:
    one = opened(half_open_requests=probes)
    answers = [ask(one, 60.0) for _ in range(100)]
    granted = [permit for permit, _ in answers if permit]
    assert len(set(granted)) == len(granted) == probes
    assert {until for _, until in answers} == {0.0, 120.0}, "when the oldest probe is lost"
    for n, permit in enumerate(granted, start=1):
        one.success(permit, 61.0)
        assert one.state(61.0) is (CLOSED if n == probes else HALF_OPEN)


def test_probes_that_succeeded_are_not_replaced_by_more() -> None:
    one = opened(half_open_requests=2)
    first = one.permit(60.0)
    one.success(first, 60.0)
    second = one.permit(60.0)
    refused_until(one, 60.0)
    one.success(second, 60.0)
    assert one.state(60.0) is CLOSED


def test_one_failed_probe_opens_it_again() -> None:
    one = opened(half_open_requests=3)
    probes = [one.permit(60.0) for _ in range(3)]
    one.success(probes[0], 61.0)
    one.failure(probes[1], 62.0)
    assert one.state(62.0) is OPEN
    one.success(probes[2], 63.0)
    assert refused_until(one, 63.0) == 122.0
    assert one.status(63.0).failures == 4


def test_slow_probes_do_not_close_it() -> None:
    one = opened(half_open_requests=2, slow_rate=0.6, slow_call_after=1.0)
    succeed(one, 60.0, 2, took=1.0)
    assert one.state(60.0) is OPEN
    succeed(one, 120.0)
    succeed(one, 120.0, took=1.0)
    assert one.state(120.0) is CLOSED


def test_a_cancelled_probe_gives_its_place_back() -> None:
    one = opened()
    for _ in range(10):
        one.release(one.permit(60.0), 60.0)
    assert one.state(60.0) is HALF_OPEN
    succeed(one, 60.0)
    assert one.state(60.0) is CLOSED


def test_a_cancelled_call_counts_for_nothing_when_closed() -> None:
    one = breaker()
    fail(one, 0.0, 2)
    one.ignore(one.permit(0.0), 0.0)
    assert one.status(0.0).failures == 2


def test_a_lost_probe_does_not_wedge_it() -> None:
    """trinity 921: dormant for 14.5 h over a healthy agent."""
    one = opened()
    lost = one.permit(60.0)
    assert refused_until(one, 119.999) == 120.0
    assert one.state(120.0) is OPEN
    assert one.turns[-1].reason == "a probe was lost"
    one.success(lost, 130.0)
    assert one.state(179.9) is OPEN, "it came too late"
    succeed(one, 180.0)
    assert path(one) == [
        (0.0, OPEN),
        (60.0, HALF_OPEN),
        (120.0, OPEN),
        (180.0, HALF_OPEN),
        (180.0, CLOSED),
    ]


def test_a_lost_probe_beside_one_that_succeeded_only_frees_its_place() -> None:
    one = opened(half_open_requests=2)
    one.permit(60.0)
    succeed(one, 61.0)
    refused_until(one, 119.9)
    succeed(one, 120.0)
    assert one.state(120.0) is CLOSED


def test_a_success_as_its_time_runs_out_is_too_late() -> None:
    for moment, expected in ((119.999, CLOSED), (120.0, OPEN)):
        one = opened()
        one.success(one.permit(60.0), moment)
        assert one.state(moment) is expected


def test_a_result_returned_twice_counts_once() -> None:
    one = opened(half_open_requests=2)
    probe = one.permit(60.0)
    one.success(probe, 60.0)
    one.success(probe, 60.0)
    one.failure(probe, 60.0)
    one.release(probe, 60.0)
    assert one.state(60.0) is HALF_OPEN


def test_results_from_before_a_turn_are_ignored() -> None:
    one = breaker()
    old = one.permit(0.0)
    fail(one, 0.0, 3)
    one.success(old, 1.0)
    one.failure(old, 1.0)
    assert one.state(1.0) is OPEN
    probe = one.permit(60.0)
    one.failure(old, 60.0)
    assert one.state(60.0) is HALF_OPEN
    one.success(probe, 60.0)
    for _ in range(10):
        one.failure(old, 61.0)
    assert one.state(61.0) is CLOSED
    assert one.status(61.0).failures == 0


def test_a_permit_of_another_breaker_changes_nothing() -> None:
    one, other = opened(), opened()
    probe = one.permit(60.0)
    other.permit(60.0)
    other.success(probe, 60.0)
    other.failure(Permit(2, probe=True), 60.0)
    assert other.state(60.0) is HALF_OPEN


# --- waiting longer ----------------------------------------------------------------------------------


def test_each_failed_probe_waits_longer_up_to_the_cap() -> None:
    one = opened(recovery_timeout=10.0, backoff_factor=3.0, recovery_timeout_max=100.0)
    waits, now = [], 0.0
    for _ in range(2000):  # far enough that 3 ** n would overflow
        until = one.opens_until
        assert until is not None
        waits.append(until - now)
        now = until
        fail(one, now)
    assert waits[:5] == [10.0, 30.0, 90.0, 100.0, 100.0]
    assert waits[-1] == 100.0


def test_closing_forgets_the_longer_wait() -> None:
    one = opened(recovery_timeout=10.0, backoff_factor=2.0)
    fail(one, 10.0)
    succeed(one, 30.0)
    fail(one, 31.0, 3)
    assert one.opens_until == 41.0


def test_the_cap_does_not_shorten_the_first_wait() -> None:
    assert opened(recovery_timeout=900.0, recovery_timeout_max=600.0).opens_until == 900.0


# --- by hand -----------------------------------------------------------------------------------------


def test_forced_open_refuses_until_told_otherwise() -> None:
    one = breaker()
    one.force_open(0.0)
    assert refused_until(one, 1e12) == inf
    assert one.state(1e12) is FORCED_OPEN
    one.close(1e12)
    succeed(one, 1e12)


def test_disabled_counts_nothing() -> None:
    for rate in (None, 0.5):
        one = breaker(failure_rate=rate)
        one.disable(0.0)
        fail(one, 0.0, 100, took=99.0)
        succeed(one, 0.0, 100)
        status = one.status(0.0)
        assert (status.state, status.failures, status.calls, status.trips) == (DISABLED, 0, 0, 0)


def test_observing_counts_but_never_refuses() -> None:
    one = breaker()
    one.observe_only(0.0)
    fail(one, 0.0, 7)
    status = one.status(0.0)
    assert (status.state, status.failures, status.trips) == (OBSERVING, 1, 2)


def test_opened_by_hand_it_recovers_by_itself() -> None:
    one = breaker()
    one.open(5.0)
    assert refused_until(one, 5.0) == 65.0
    one.open(20.0)
    assert refused_until(one, 79.0) == 80.0
    succeed(one, 80.0)
    assert one.state(80.0) is CLOSED


def test_close_keeps_the_longer_wait_and_reset_forgets_it() -> None:
    for act, until in ((Breaker.close, 220.0), (Breaker.reset, 160.0)):
        one = opened(backoff_factor=2.0)
        fail(one, 60.0)
        act(one, 100.0)
        assert one.state(100.0) is CLOSED
        fail(one, 100.0, 3)
        assert one.opens_until == until


def test_close_forgets_the_row_of_a_closed_breaker() -> None:
    one = breaker()
    fail(one, 0.0, 2)
    one.close(0.0)
    fail(one, 0.0, 2)
    assert one.state(0.0) is CLOSED
    assert not one.turns


def test_probes_of_before_do_not_count_after_a_hand_intervened() -> None:
    one = opened()
    probe = one.permit(60.0)
    one.open(61.0)
    one.success(probe, 62.0)
    assert one.state(62.0) is OPEN


HANDS: list[tuple[Callable[[Breaker, float], None], BreakerState]] = [
    (Breaker.open, OPEN),
    (Breaker.close, CLOSED),
    (Breaker.reset, CLOSED),
    (Breaker.force_open, FORCED_OPEN),
    (Breaker.disable, DISABLED),
    (Breaker.observe_only, OBSERVING),
]


@pytest.mark.parametrize(("act", "expected"), HANDS)
def test_by_hand_every_state_but_half_open_is_reached_from_everywhere(
    act: Callable[[Breaker, float], None], expected: BreakerState
) -> None:
    starts = [breaker(), opened(), opened(at=-60.0), *(breaker() for _ in HANDS)]
    for one, (before, _) in zip(starts[3:], HANDS, strict=True):
        before(one, 0.0)
    for one in starts:
        was = one.state(0.0)
        act(one, 0.0)
        assert one.state(0.0) is expected
        assert was is expected or expected in LEGAL[was]


def test_the_table_names_every_state_and_reaches_half_open_only_by_waiting() -> None:
    assert set(LEGAL) == set(BreakerState)
    assert [was for was, then in LEGAL.items() if HALF_OPEN in then] == [OPEN]
    assert not any(state in then for state, then in LEGAL.items())


# --- looking, limits, bad policies -------------------------------------------------------------------


def test_the_status_says_what_people_want_to_see() -> None:
    one = opened(failure_rate=0.9, min_calls=3)
    status = one.status(1.0)
    assert (status.name, status.state, status.failures) == ("api", OPEN, 3)
    assert (status.calls, status.failure_rate, status.slow_rate) == (3, 1.0, 0.0)
    assert (status.trips, status.until) == (1, 60.0)


def test_time_never_runs_backwards() -> None:
    one = opened(at=100.0)
    assert one.time_until_half_open(0.0) == 60.0
    assert one.state(160.0) is HALF_OPEN
    assert one.state(0.0) is HALF_OPEN
    one.permit(0.0)
    assert one.state(219.9) is HALF_OPEN
    assert one.state(220.0) is OPEN


def test_turns_nobody_fetches_are_bounded() -> None:
    one = breaker()
    for now in range(1000):
        one.open(now)
        one.close(now)
    assert len(one.turns) == TURNS_MAX


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("failure_threshold", 0),
        ("half_open_requests", 0),
        ("half_open_wait_max", 0.0),
        ("recovery_timeout", inf),
        ("recovery_timeout", nan),
        ("backoff_factor", 0.5),
        ("window_calls", 0),
        ("failure_rate", 0.0),
        ("slow_rate", 1.1),
    ],
)
def test_a_policy_under_which_the_laws_would_not_hold_is_refused(key: str, value: float) -> None:
    with pytest.raises(PolicyError, match=key):
        breaker(**{key: value})


# --- any life ----------------------------------------------------------------------------------------


class AnyLife(RuleBasedStateMachine):
    """Whatever happens to a breaker, its laws hold."""

    kind: type[Breaker] = Breaker

    @initialize(
        probes=st.integers(1, 3),
        threshold=st.integers(1, 3),
        rate=st.sampled_from([None, 0.5]),
        slow=st.sampled_from([None, 0.5]),
        window_for=st.sampled_from([None, 10.0]),
        factor=st.sampled_from([1.0, 2.0]),
    )
    def begin(
        self,
        probes: int,
        threshold: int,
        rate: float | None,
        slow: float | None,
        window_for: float | None,
        factor: float,
    ) -> None:
        self.policy = BreakerPolicy(
            failure_threshold=threshold,
            recovery_timeout=10.0,
            recovery_timeout_max=40.0,
            half_open_requests=probes,
            half_open_wait_max=15.0,
            failure_rate=rate,
            slow_rate=slow,
            slow_call_after=1.0,
            window_calls=6,
            window_for=window_for,
            min_calls=3,
            backoff_factor=factor,
        )
        self.one, self.seldom = (self.kind("api", self.policy) for _ in range(2))
        self.now = 0.0
        self.pairs: list[tuple[Permit, Permit]] = []
        self.out: dict[Permit, float] = {}

    def both(self, act: str, *args: object) -> None:
        for one in (self.one, self.seldom):
            getattr(one, act)(*args)

    @rule(seconds=st.sampled_from([0.0, 0.1, 5.0, 10.0, 15.0, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def call(self) -> None:
        before = self.one.state(self.now)
        permit, until = ask(self.one, self.now)
        same, same_until = ask(self.seldom, self.now)
        assert until == same_until
        if permit is None or same is None:
            assert before in (OPEN, HALF_OPEN, FORCED_OPEN)
            assert until > self.now, "a refusal names a time that is still to come"
            return
        assert permit.probe == (before is HALF_OPEN)
        self.pairs.append((permit, same))
        if permit.probe:
            self.out[permit] = self.now + self.policy.half_open_wait_max

    @rule(
        which=st.integers(0),
        act=st.sampled_from(["success", "failure", "release"]),
        took=st.sampled_from([0.0, 5.0]),
        again=st.booleans(),
    )
    def call_returns(self, which: int, act: str, took: float, again: bool) -> None:
        if not self.pairs:
            return
        pair = self.pairs[which % len(self.pairs)]
        if not again:
            self.pairs.remove(pair)
        self.out.pop(pair[0], None)
        for one, permit in zip((self.one, self.seldom), pair, strict=True):
            getattr(one, act)(permit, self.now, *([took] if act != "release" else []))

    @rule(act=st.sampled_from(["open", "close", "reset", "force_open", "disable", "observe_only"]))
    def a_hand_intervenes(self, act: str) -> None:
        self.both(act, self.now)

    @rule()
    def somebody_looks_at_one_of_them(self) -> None:
        self.one.status(self.now)
        self.one.time_until_half_open(self.now)

    @invariant()
    def never_more_probes_than_allowed(self) -> None:
        generation = self.one._generation
        current = [lost for p, lost in self.out.items() if p.generation == generation]
        assert sum(lost > self.now for lost in current) <= self.policy.half_open_requests

    @invariant()
    def closed_never_refuses(self) -> None:
        if self.one.state(self.now) in (CLOSED, DISABLED, OBSERVING):
            permit, _ = ask(self.one, self.now)
            assert permit is not None
            assert not permit.probe

    @invariant()
    def nothing_is_counted_below_zero(self) -> None:
        status = self.one.status(self.now)
        assert min(status.failures, status.calls, status.trips) >= 0
        assert 0 <= (status.failure_rate or 0) <= 1
        assert 0 <= (status.slow_rate or 0) <= 1

    @invariant()
    def every_turn_is_legal_and_in_order(self) -> None:
        turns = list(self.one.turns)
        assert all(turn.now in LEGAL[turn.was] for turn in turns)
        assert all(a.now is b.was and a.at <= b.at for a, b in pairwise(turns))

    def teardown(self) -> None:
        """At the end: looking changed nothing, and after enough time a call is let through."""
        if not hasattr(self, "one"):
            return
        assert self.one.status(self.now) == self.seldom.status(self.now)
        assert list(self.one.turns) == list(self.seldom.turns)
        if self.one.state(self.now) is not FORCED_OPEN:
            patience = self.policy.half_open_wait_max + self.policy.recovery_timeout_max
            permit, _ = ask(self.one, self.now + patience)
            assert permit is not None, "wedged"


TestAnyLife = AnyLife.TestCase
TestAnyLife.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)


class Greedy(Breaker):
    """Like the libraries of `choices.md`: everybody passes in half-open."""

    def permit(self, now: float) -> Permit:
        if self.state(now) is HALF_OPEN:
            probe = Permit(self._generation, probe=True)
            self._probes[probe] = now + self.policy.half_open_wait_max
            return probe
        return super().permit(now)


class Wedged(Breaker):
    """Probes are never lost."""

    def _grow_older(self, now: float) -> float:
        if self._state is HALF_OPEN:
            self._now = max(self._now, now)
            return self._now
        return super()._grow_older(now)


class Noticed(Breaker):
    """Changes carry the moment they were noticed."""

    def _turn(self, to: BreakerState, at: float, reason: str) -> None:
        super()._turn(to, self._now, reason)


class Timid(Breaker):
    """Refuses while closed, once it has failed."""

    def permit(self, now: float) -> Permit:
        if self._failures:
            raise BreakerOpen(self.name, now + 1, now)
        return super().permit(now)


@pytest.mark.parametrize("broken", [Greedy, Wedged, Noticed, Timid])
def test_the_laws_bite(broken: type[Breaker]) -> None:
    class BrokenLife(AnyLife):
        kind = broken

    quick = settings(
        max_examples=1000,
        stateful_step_count=60,  # What is broken shows sooner in a longer life.
        phases=[Phase.generate],
        report_multiple_bugs=False,
        database=None,
        derandomize=True,
        deadline=None,
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(BrokenLife, settings=quick)
