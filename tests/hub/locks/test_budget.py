"""The budget of writes: never more than it says in any minute or hour."""

from hypothesis import given
from hypothesis import strategies as st

from lifesigns.hub.locks.budget import WriteBudget


def test_so_many_in_a_minute_and_the_next_when_the_first_is_a_minute_old() -> None:
    budget = WriteBudget(3, 100)
    assert [budget.take(at) for at in (0.0, 10.0, 20.0, 30.0)] == [True, True, True, False]
    assert not budget.take(59.999)
    assert budget.take(60.0)
    assert not budget.take(60.0)


def test_so_many_in_an_hour() -> None:
    budget = WriteBudget(2, 3)
    assert [budget.take(at) for at in (0.0, 60.0, 120.0, 180.0, 3599.0)] == [True, True, True, False, False]
    assert budget.take(3600.0)


@given(st.lists(st.floats(0.0, 400.0), max_size=300), st.integers(1, 10), st.integers(1, 40))
def test_no_window_ever_holds_more(gaps: list[float], per_minute: int, per_hour: int) -> None:
    budget, now, taken = WriteBudget(per_minute, per_hour), 0.0, []
    for gap in gaps:
        now += gap / 20
        if budget.take(now):
            taken.append(now)
    for at in taken:
        assert sum(at <= one < at + 60.0 for one in taken) <= per_minute
        assert sum(at <= one < at + 3600.0 for one in taken) <= per_hour
