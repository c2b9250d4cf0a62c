"""One lazy calendar for everything that falls due."""

from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lifesigns.core.agent import NEVER
from lifesigns.core.deadlines import PER_SECOND, Deadlines, HasDeadline


@dataclass
class Item:
    order: int = 1
    armed_at: float = NEVER


def as_armed(item: HasDeadline) -> float:
    """Nobody was refreshed: what comes up is due."""
    return -NEVER


def pop(deadlines: Deadlines, now: float) -> tuple[float, HasDeadline] | None:
    return deadlines.pop(now, as_armed)


def test_an_empty_calendar_is_due_never() -> None:
    deadlines = Deadlines()
    assert deadlines.next_at == NEVER
    assert pop(deadlines, 1e9) is None


@pytest.mark.parametrize("at", [0.0, 10.0, 10.01, 10.03125, 10.99])
def test_an_item_falls_due_on_its_moment_and_not_before(at: float) -> None:
    deadlines, item = Deadlines(), Item()
    deadlines.arm(item, at)
    assert pop(deadlines, at - 0.001) is None
    assert pop(deadlines, at) == (at, item)


def test_a_popped_item_is_disarmed() -> None:
    deadlines, item = Deadlines(), Item()
    deadlines.arm(item, 10.0)
    pop(deadlines, 10.0)
    assert item.armed_at == NEVER
    assert pop(deadlines, 1e9) is None


def test_arming_for_later_changes_nothing() -> None:
    """The lazy law: the earlier entry comes up, and then the item is asked again."""
    deadlines, item = Deadlines(), Item()
    deadlines.arm(item, 10.0)
    deadlines.arm(item, 20.0)
    assert item.armed_at == 10.0
    assert pop(deadlines, 10.0) == (10.0, item)
    assert pop(deadlines, 1e9) is None


@pytest.mark.parametrize("earlier", [19.99, 10.0])
def test_arming_for_earlier_makes_the_old_entry_stale(earlier: float) -> None:
    deadlines, item = Deadlines(), Item()
    deadlines.arm(item, 20.0)
    deadlines.arm(item, earlier)
    assert pop(deadlines, earlier) == (earlier, item)
    assert pop(deadlines, 1e9) is None


def test_nothing_is_ever_due_never() -> None:
    deadlines, item = Deadlines(), Item()
    deadlines.arm(item, NEVER)
    assert deadlines.next_at == NEVER
    assert pop(deadlines, 1e12) is None


@pytest.mark.parametrize("later", [10.01, 10.5, 15.0])
def test_a_refreshed_item_comes_up_at_its_new_moment_only(later: float) -> None:
    deadlines, item = Deadlines(), Item()
    deadlines.arm(item, 10.0)
    assert deadlines.pop(10.0, lambda _: later) is None
    assert deadlines.pop(later - 0.001, lambda _: later) is None
    assert deadlines.pop(later, lambda _: later) == (later, item)
    assert pop(deadlines, 1e9) is None


def test_an_item_refreshed_for_good_is_gone_until_armed_again() -> None:
    deadlines, item = Deadlines(), Item()
    deadlines.arm(item, 10.0)
    assert deadlines.pop(10.0, lambda _: NEVER) is None
    deadlines.arm(item, 30.0)
    assert pop(deadlines, 30.0) == (30.0, item)


def test_an_item_armed_for_the_past_comes_up_at_once() -> None:
    deadlines, other, item = Deadlines(), Item(1), Item(2)
    deadlines.arm(other, 50.0)
    assert pop(deadlines, 50.0) == (50.0, other)
    deadlines.arm(item, 20.0)
    assert deadlines.next_at == 20.0
    assert pop(deadlines, 50.0) == (20.0, item)


def test_ties_are_broken_by_order_however_they_were_armed() -> None:
    deadlines = Deadlines()
    items = [Item(order) for order in (3, 1, 2)]
    for item in items:
        deadlines.arm(item, 10.0)
    came = [pop(deadlines, 10.0) for _ in items]
    assert came == [(10.0, items[1]), (10.0, items[2]), (10.0, items[0])]


def test_it_asks_to_be_woken_never_too_late_and_a_bucket_too_early_at_most() -> None:
    deadlines, item = Deadlines(), Item()
    deadlines.arm(item, 10.04)
    assert 10.04 - 1 / PER_SECOND < deadlines.next_at <= 10.04
    assert pop(deadlines, deadlines.next_at) is None
    assert deadlines.next_at == 10.04


def test_arming_for_earlier_again_and_again_does_not_fill_the_memory() -> None:
    deadlines, item = Deadlines(), Item()
    for at in range(100_000, 0, -1):
        deadlines.arm(item, at / 10)
    assert sum(map(len, deadlines._buckets.values())) + len(deadlines._ready) <= 400
    assert pop(deadlines, 0.1) == (0.1, item)
    assert pop(deadlines, 1e9) is None


def test_arming_for_earlier_within_one_moment_does_not_fill_the_memory() -> None:
    """The same item a hundred thousand times in one bucket: no different from many buckets."""
    deadlines, item = Deadlines(), Item()
    for at in range(100_000, 0, -1):
        deadlines.arm(item, 10.0 + at / 1e7)
    assert sum(map(len, deadlines._buckets.values())) + len(deadlines._ready) <= 400


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 500)), max_size=300))
@example([(0, 3), (0, 2), (0, 1)])
def test_every_item_comes_up_once_at_the_earliest_moment_it_was_armed_for(
    arms: list[tuple[int, int]],
) -> None:
    """Compaction included: what else is still in the calendar changes nothing."""
    deadlines, items = Deadlines(), [Item(order) for order in range(6)]
    wanted: dict[int, float] = {}
    for which, at in arms:
        deadlines.arm(items[which], at / 40)
        wanted[which] = min(wanted.get(which, NEVER), at / 40)
    came = []
    while deadlines.next_at < NEVER:
        due = pop(deadlines, deadlines.next_at)
        if due is not None:
            came.append((due[0], due[1].order))
    assert came == sorted((at, which) for which, at in wanted.items())


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 200)), min_size=1, max_size=40),
    st.lists(st.integers(0, 400), min_size=4, max_size=4),
)
def test_looking_more_often_changes_nothing(arms: list[tuple[int, int]], refreshed: list[int]) -> None:
    """An item comes up at the later of what it was armed for and what it was refreshed to, however we look."""

    def due_times(looks: list[float]) -> list[tuple[float, int]]:
        deadlines, items = Deadlines(), [Item(order) for order in range(4)]
        for which, at in arms:
            deadlines.arm(items[which], at / 16)
        came = []
        for now in looks:
            while (due := deadlines.pop(now, lambda item: refreshed[item.order] / 16)) is not None:
                came.append((due[0], due[1].order))
        return came

    assert due_times([1e3]) == due_times([n / 7 for n in range(300)])
