"""Slots: who is in which, and what the hub of one hears."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.signals import (
    BeatReceived,
    CanaryReturned,
    ErrorReported,
    MessageSent,
    TaskClaimed,
)
from lifesigns.hub.slots import SLOTS, own_signals, ranked, slot_of


def test_the_slot_of_an_agent_never_changes() -> None:
    """Stores are divided by it."""
    assert [slot_of(name) for name in ("a", "b", "coder-8", "ä", "\ud800")] == [3, 1, 2, 3, 0]


@given(st.text())
def test_every_agent_is_in_one_slot(agent_id: str) -> None:
    heard = [slot for slot in range(SLOTS) if own_signals([BeatReceived(agent_id=f"x{agent_id}")], slot)]
    assert heard == [slot_of(f"x{agent_id}")]


def test_agents_are_spread_evenly() -> None:
    sizes = Counter(slot_of(f"agent-{n}") for n in range(10_000))
    assert max(sizes.values()) < 1.1 * min(sizes.values())


def test_what_is_about_no_agent_is_heard_in_every_slot() -> None:
    assert all(own_signals([CanaryReturned(seq=1)], slot) for slot in range(SLOTS))


def test_what_concerns_two_agents_is_heard_nowhere() -> None:
    """Each of two slots could grant a claim on the same task."""
    slot = slot_of("a")
    heard = ErrorReported(agent_id="a", message="x")
    said = [TaskClaimed(agent_id="a", task_id="t"), MessageSent(agent_id="a", message_id="m", to="b"), heard]
    assert own_signals(said, slot) == [heard]


@given(st.sets(st.text(min_size=1), min_size=1, max_size=12))
def test_slots_are_shared_out_in_equal_parts(names: set[str]) -> None:
    sizes = Counter(dict.fromkeys(names, 0))
    sizes.update(ranked(slot, names)[0] for slot in range(SLOTS))
    assert max(sizes.values()) - min(sizes.values()) <= 1


@given(st.lists(st.text(min_size=1), min_size=1, max_size=6, unique=True), st.integers(0, SLOTS - 1))
def test_all_hubs_rank_all_hubs_alike(names: list[str], slot: int) -> None:
    """In whatever order they see each other."""
    assert ranked(slot, names) == ranked(slot, names[::-1])
    assert sorted(ranked(slot, names)) == sorted(names)
