"""Who shows wrong tokens too often is asked to wait, alone."""

import pytest

from lifesigns.hub.throttle import ADDRESSES_MAX, FAILURES_MAX, WINDOW_FOR, Throttle, network


def test_ten_failures_a_minute_are_borne_and_the_eleventh_waits() -> None:
    throttle = Throttle()
    answers = [throttle.failed("10.0.0.1", float(n)) for n in range(FAILURES_MAX + 1)]
    assert [answer.too_many for answer in answers] == [False] * FAILURES_MAX + [True]
    assert answers[-1].retry_after == WINDOW_FOR - FAILURES_MAX


def test_after_its_minute_it_begins_anew() -> None:
    throttle = Throttle()
    for _ in range(FAILURES_MAX * 3):
        throttle.failed("10.0.0.1", 0.0)
    assert throttle.failed("10.0.0.1", WINDOW_FOR - 0.001).too_many
    assert not throttle.failed("10.0.0.1", WINDOW_FOR).too_many


def test_one_address_does_not_count_for_another() -> None:
    throttle = Throttle()
    for _ in range(FAILURES_MAX * 3):
        throttle.failed("10.0.0.1", 0.0)
    assert not throttle.failed("10.0.0.2", 0.0).too_many


def test_it_is_worth_a_line_in_the_log_when_it_begins_and_when_it_is_throttled() -> None:
    throttle = Throttle()
    said = [n for n in range(1, 100) if throttle.failed("x", 0.0).worth_logging]
    assert said == [1, FAILURES_MAX + 1]


def test_its_memory_is_bounded() -> None:
    throttle = Throttle()
    for n in range(ADDRESSES_MAX + 100):
        throttle.failed(f"h{n}", 0.0)
    assert not throttle.failed("h100", 0.0).worth_logging, "the oldest that is kept"
    assert throttle.failed("h99", 0.0).worth_logging, "forgotten, so this is its first failure"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("10.0.0.1", "10.0.0.2", False),
        ("", "unix", False),
    ],
)
def test_ipv6_counts_by_its_network(one: str, other: str, same: bool) -> None:
    """Whoever has one address of a /64 has 2^64 of them."""
    assert (network(one) == network(other)) is same
