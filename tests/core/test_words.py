"""Numbers as people say them."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.words import duration, sentence, times


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-3.0, "0.0 s"),
        (0.0, "0.0 s"),
        (4.2, "4.2 s"),
        (9.94, "9.9 s"),
        (9.99, "10 s"),
        (10.0, "10 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (60.0, "1 min"),
        (1920.0, "32 min"),
        (3569.0, "59 min"),
        (3599.0, "1 h"),
        (3600.0, "1 h"),
        (11_100.0, "3 h 5 min"),
        (86_340.0, "23 h 59 min"),
        (86_399.0, "1 d"),
        (86_400.0, "1 d"),
        (187_200.0, "2 d 4 h"),
        (172_800.0, "2 d"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.parametrize("seconds", [inf, -inf, nan])
def test_a_duration_without_an_end_has_words_too(seconds: float) -> None:
    """A bound comes from an agent; whatever it is, a sentence about it must not raise."""
    assert duration(seconds)


@given(st.floats(0, 1e9))
def test_no_unit_is_said_that_the_next_one_would_hold(seconds: float) -> None:
    """`60 s` is a minute, `60 min` an hour, `24 h` a day."""
    said = duration(seconds).split()
    amounts = dict(zip(said[1::2], map(float, said[::2]), strict=True))
    limits = {"s": 60, "min": 60, "h": 24}
    assert all(amount < limits.get(unit, float("inf")) for unit, amount in amounts.items())


@pytest.mark.parametrize(("count", "said"), [(0, "0 times"), (1, "once"), (2, "twice"), (3, "3 times")])
def test_how_often(count: int, said: str) -> None:
    assert times(count) == said


def test_a_text_of_others_becomes_one_sentence() -> None:
    """A nudge said: the last with: compiler says no Last tool call 0.0 s ago; an alert: ended with status 3.. Clear it."""
    assert sentence("compiler says no") == "compiler says no."
    for whole in ("The process ended with status 3.", "May I?", "Stop!", "and so on…"):
        assert sentence(whole) == whole
