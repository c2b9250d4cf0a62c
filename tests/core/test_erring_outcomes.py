"""The outcomes of calls as they are counted: reckoned by hand."""

import pytest

from lifesigns.core.agent import Outcomes
from lifesigns.core.detectors import erring
from lifesigns.core.policy import ErringPolicy
from lifesigns.core.signals import BreakerState

POLICY = ErringPolicy(rate_window=4)


def test_each_outcome_is_one_bit_and_the_oldest_go() -> None:
    outcomes = Outcomes()
    seen = []
    for failed in (True, False, True, True, True):
        if failed:
            erring.failed(outcomes, "no", None, POLICY, 1.0)
        else:
            erring.succeeded(outcomes, POLICY, 1.0)
        seen.append((outcomes.bits, outcomes.count))
    assert seen == [(0b1, 1), (0b10, 2), (0b101, 3), (0b1011, 4), (0b0111, 4)]


@pytest.mark.parametrize(
    ("states", "since"),
    [
        ((), None),
        ((BreakerState.CLOSED, BreakerState.CLOSED), None),
        ((BreakerState.CLOSED, BreakerState.OPEN), 5.0),
        ((BreakerState.HALF_OPEN,), 5.0),
    ],
)
def test_one_breaker_that_is_not_closed_is_enough(
    states: tuple[BreakerState, ...], since: float | None
) -> None:
    outcomes = Outcomes()
    erring.tripped(outcomes, states, 5.0)
    assert outcomes.tripped_at == since


def test_a_success_puts_off_a_tripped_breaker_and_trips_none() -> None:
    outcomes = Outcomes()
    erring.succeeded(outcomes, POLICY, 7.0)
    assert outcomes.tripped_at is None
    outcomes.tripped_at = 5.0
    erring.succeeded(outcomes, POLICY, 7.0)
    assert outcomes.tripped_at == 7.0


def test_a_breaker_that_stays_tripped_is_marked_as_a_wait() -> None:
    """The judgement takes it for one (`_is_wait`)."""
    found = erring.examine(Outcomes(tripped_at=0.0), POLICY, POLICY.breaker_for)
    assert found is not None
    assert found.numbers == {"consecutive": 0.0, "rate": 0.0, "tripped": 1.0}
