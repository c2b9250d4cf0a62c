from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.config import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 30),
        ("30s", 30),
        ("1.5 s", 1.5),
        ("250ms", 0.25),
        ("5 min", 300),
        ("5m", 300),
        ("2h", 7200),
        ("1d", 86400),
        ("1 week", 604800),
        ("1h 30m", 5400),
        ("1h30m", 5400),
        (" 2 Hours ", 7200),
        ("1e-3", 0.001),
    ],
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert durations.parse(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", " ", "s", "5 parsecs", "-5s", "5 5", "5s 5", "1:30", "inf", "nan", "5s!", "9" * 80]
)
def test_what_is_no_duration_is_told_what_would_be_right(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a duration; write seconds \(30\) or"):
        durations.parse(text)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.5, "0.5 s"),
        (90, "90 s"),
        (600, "10 min"),
        (5400, "90 min"),
        (7200, "2 h"),
        (86400, "1 d"),
    ],
)
def test_durations_are_shown_short(seconds: float, words: str) -> None:
    assert durations.in_words(seconds) == words


@given(st.floats(min_value=0, max_value=1e18, allow_nan=False))
def test_what_is_shown_can_be_read_back_exactly(seconds: float) -> None:
    assert durations.parse(durations.in_words(seconds)) == seconds


@given(st.text(max_size=80) | st.text("0123456789.eE+-smhdw ", min_size=1, max_size=8))
def test_no_text_does_worse_than_a_value_error(text: str) -> None:
    with suppress(ValueError):
        assert durations.parse(text) >= 0
