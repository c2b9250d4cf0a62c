"""One lazy heap for everything that falls due."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.agent import NEVER
from lifesigns.core.deadlines import Deadlines


@dataclass
class Item:
    order: int = 1
    armed_at: float = NEVER


def test_an_empty_heap_is_due_never() -> None:
    deadlines = Deadlines()
    assert deadlines.next_at == NEVER
    assert deadlines.pop(1e9) is None
    assert deadlines.peek(1e9) is None


def test_an_item_falls_due_on_its_moment_and_not_before() -> None:
    deadlines, item = Deadlines(), Item()
    deadlines.arm(item, 10.0)
    assert deadlines.pop(9.999) is None
    assert deadlines.pop(10.0) is item


def test_a_popped_item_is_disarmed() -> None:
    deadlines, item = Deadlines(), Item()
    deadlines.arm(item, 10.0)
    deadlines.pop(10.0)
    assert item.armed_at == NEVER
    assert deadlines.pop(1e9) is None


def test_arming_later_touches_nothing() -> None:
    """The lazy law: the earlier entry comes up, and then the item is asked again."""
    deadlines, item = Deadlines(), Item()
    deadlines.arm(item, 10.0)
    deadlines.arm(item, 20.0)
    assert item.armed_at == 10.0
    assert deadlines.pop(10.0) is item
    assert deadlines.pop(1e9) is None


def test_arming_earlier_makes_the_old_entry_stale() -> None:
    deadlines, item = Deadlines(), Item()
    deadlines.arm(item, 20.0)
    deadlines.arm(item, 10.0)
    assert deadlines.next_at == 10.0
    assert deadlines.pop(10.0) is item
    assert deadlines.pop(1e9) is None


def test_peeking_leaves_an_item_armed() -> None:
    deadlines, item = Deadlines(), Item()
    deadlines.arm(item, 10.0)
    assert deadlines.peek(9.999) is None
    assert deadlines.peek(10.0) is item
    assert deadlines.peek(10.0) is item


def test_peeking_passes_over_stale_entries() -> None:
    deadlines, moved, other = Deadlines(), Item(1), Item(2)
    deadlines.arm(moved, 10.0)
    deadlines.arm(other, 15.0)
    moved.armed_at = NEVER
    assert deadlines.peek(20.0) is other


def test_a_postponed_item_comes_up_at_its_new_moment_only() -> None:
    deadlines, item = Deadlines(), Item()
    deadlines.arm(item, 10.0)
    assert deadlines.peek(10.0) is item
    deadlines.postpone(item, 15.0)
    assert deadlines.pop(14.999) is None
    assert deadlines.pop(15.0) is item
    assert deadlines.pop(1e9) is None


def test_ties_are_broken_by_order_however_they_were_armed() -> None:
    deadlines = Deadlines()
    items = [Item(order) for order in (3, 1, 2)]
    for item in items:
        deadlines.arm(item, 10.0)
    assert [deadlines.pop(10.0) for _ in items] == [items[1], items[2], items[0]]


def test_arming_earlier_again_and_again_does_not_grow_the_heap() -> None:
    deadlines, item = Deadlines(), Item()
    for at in range(10_000, 0, -1):
        deadlines.arm(item, float(at))
    assert len(deadlines._heap) <= 400
    assert deadlines.pop(1.0) is item
    assert deadlines.pop(1e9) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 50)), max_size=300))
def test_every_item_comes_up_once_at_the_earliest_moment_it_was_armed_for(arms: list[tuple[int, int]]) -> None:
    """Compaction included: what is in the heap beside the valid entries changes nothing."""
    deadlines, items = Deadlines(), [Item(order) for order in range(6)]
    wanted: dict[int, float] = {}
    for which, at in arms:
        deadlines.arm(items[which], float(at))
        wanted[which] = min(wanted.get(which, NEVER), float(at))
    came = []
    for now in range(51):
        while (item := deadlines.pop(float(now))) is not None:
            came.append((float(now), item.order))
    assert came == sorted((at, which) for which, at in wanted.items())
