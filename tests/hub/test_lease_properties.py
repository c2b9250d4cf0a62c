"""When a hub may take over, whatever it sees: the lease as a pure machine."""

from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.hub.lease import GONE_AFTER, LOOKS_MIN, LeaderWatch
from lifesigns.ports import HubRow

Look = tuple[float, str, int] | None
"""How long after the one before, who leads, and its beat; None: the store did not answer."""

LOOKS = st.lists(
    st.one_of(
        st.none(),
        st.tuples(st.floats(0.0, 4.0), st.sampled_from(("other", "third")), st.integers(0, 2)),
    ),
    max_size=40,
)


def verdicts(looks: list[Look], start: float = 0.0) -> list[bool]:
    """What the watch says after each look."""
    watch, now, said = LeaderWatch("me"), start, []
    for look in looks:
        if look is None:
            watch.start_anew()
            said.append(False)
            continue
        now += look[0]
        rows = [HubRow("me", 1, "", "", leads=False), HubRow(look[1], look[2], "", "", leads=True)]
        said.append(watch.is_gone(rows, now))
    return said


def longest_still(looks: list[Look]) -> tuple[float, int]:
    """For how long, and over how many looks, the last one has seen the same beat of the same leader."""
    at = [*accumulate(0.0 if look is None else look[0] for look in looks)]
    last, count = looks[-1], 0
    if last is None:
        return 0.0, 0
    while count < len(looks) and (look := looks[-1 - count]) is not None and look[1:] == last[1:]:
        count += 1
    return at[-1] - at[-count], count


@given(LOOKS)
def test_a_hub_takes_over_only_after_it_saw_the_same_beat_for_long_enough_and_often_enough(
    looks: list[Look],
) -> None:
    """And then it does."""
    for number, gone in enumerate(verdicts(looks), 1):
        still_for, times = longest_still(looks[:number])
        if abs(still_for - GONE_AFTER) > 1e-6:  # Sums of floats, in another order.
            assert gone == (still_for > GONE_AFTER and times > LOOKS_MIN)


@given(LOOKS, st.integers(-(10**6), 10**6))
def test_what_the_clock_of_the_observer_says_does_not_matter(looks: list[Look], start: int) -> None:
    """Only how long it has waited, by that clock."""
    exact = [None if look is None else (round(look[0] * 16) / 16, *look[1:]) for look in looks]
    assert verdicts(exact) == verdicts(exact, float(start))


@pytest.mark.parametrize("every", [0.5, 1.0, 2.0, GONE_AFTER - 0.01])
def test_a_leader_that_renews_its_row_often_enough_is_never_gone(every: float) -> None:
    """However often the observer looks."""
    watch = LeaderWatch("me")
    for number in range(400):
        now = number * 0.25
        rows = [HubRow("me", 1, "", "", leads=False), HubRow("other", int(now / every), "", "", leads=True)]
        assert not watch.is_gone(rows, now)
