"""Several hubs divide the slots among themselves: step by step. `test_slot_ownership_properties.py` has the laws."""

from __future__ import annotations

from collections.abc import Iterable

from lifesigns.hub.slot_ownership import (
    GONE_AFTER,
    JOIN_AFTER,
    JOIN_AFTER_LOSSES,
    MOVES_AT_ONCE,
    RANK_WAIT,
    SLOTS,
    TRUST_FOR,
    SlotOwnership,
    slot_of,
    weight,
)
from lifesigns.ports.slots import Plan, SlotHub, SlotRow

ALL = range(SLOTS)


class Table:
    """The rows as one hub, `a`, sees them, once a second."""

    def __init__(self) -> None:
        self.now = 100.0
        self.beats: dict[str, int] = {"a": 1}
        self.living = {"a"}
        self.drained: set[str] = set()
        self.formats: dict[str, int] = {}
        self.slots = {slot: SlotRow(slot) for slot in ALL}
        self.ownership = SlotOwnership("a", knows_format=1)

    def add(self, name: str, slots: Iterable[int] = ()) -> None:
        self.beats[name] = 1
        self.living.add(name)
        self.own(name, slots)

    def own(self, name: str, slots: Iterable[int]) -> None:
        for slot in slots:
            self.slots[slot] = SlotRow(slot, self.slots[slot].epoch + 1, name)

    def look(self, seconds: float = 0.0) -> Plan:
        """Look now, or once a second for so long, doing what the hub wants; returns what it wanted last."""
        plan = Plan() if seconds else self._look()
        for _ in range(round(seconds)):
            self.now += 1.0
            for name in self.living:
                self.beats[name] += 1
            plan = self._look()
        return plan

    def _look(self) -> Plan:
        hubs = [
            SlotHub(name, beat, self.formats.get(name, 1), name in self.drained)
            for name, beat in self.beats.items()
        ]
        plan = self.ownership.look(hubs, self.slots.values(), self.now, self.now)
        self.own("a", plan.claim)
        self.ownership.claimed({slot: self.slots[slot].epoch for slot in plan.claim})
        for slot, (_, name) in plan.give.items():
            self.own(name, [slot])
        return plan

    def held(self) -> set[int]:
        return set(self.ownership.held(self.now))


def ranks_first(name: str, *others: str) -> set[int]:
    return {slot for slot in ALL if all(weight(name, slot) > weight(other, slot) for other in others)}


def test_a_hub_alone_owns_everything_at_once() -> None:
    table = Table()
    table.look()
    assert table.held() == set(ALL)


def test_a_hub_that_starts_beside_another_one_waits() -> None:
    """Also for slots that nobody owns: the others may be about to take them."""
    table = Table()
    table.add("b")
    table.look()
    assert not table.look(JOIN_AFTER - 1).claim
    assert set(table.look(1).claim) == ranks_first("a", "b")


def test_the_next_in_rank_takes_what_the_first_does_not() -> None:
    """The first one may see things differently, or fail: no slot stays without an owner."""
    table = Table()
    table.add("b")
    table.look()
    table.look(JOIN_AFTER + RANK_WAIT - 1)
    assert table.held() == ranks_first("a", "b")
    table.look(1)
    assert table.held() == set(ALL)


def test_the_slots_of_a_hub_that_stands_still_are_free_after_six_seconds() -> None:
    table = Table()
    table.add("b", ALL)
    table.look(JOIN_AFTER + 5)
    table.living.remove("b")
    assert not table.look(GONE_AFTER - 1).claim
    assert set(table.look(1).claim) == set(ALL)


def test_an_observer_that_was_frozen_has_not_looked() -> None:
    """Its clock went on, but it saw the same beat only twice: the other one may have renewed its row all the time."""
    table = Table()
    table.add("b", ALL)
    table.look(JOIN_AFTER + 5)
    table.now += 60.0
    assert not table.look().claim


def test_a_store_that_fails_shows_nothing_about_the_others() -> None:
    """They may have been unable to renew their rows: the wait begins anew."""
    table = Table()
    table.add("b", ALL)
    table.look(JOIN_AFTER + 5)
    table.living.remove("b")
    table.look(GONE_AFTER - 1)
    table.ownership.store_failed()
    assert not table.look(GONE_AFTER).claim
    assert table.look(1).claim


def test_trust_ends_sooner_than_another_hub_can_take_over() -> None:
    table = Table()
    table.look()
    table.now += TRUST_FOR - 0.001
    assert table.held() == set(ALL)
    table.now += 0.001
    assert table.held() == set()
    assert TRUST_FOR < GONE_AFTER


def test_trust_counts_from_the_beginning_of_the_renewal() -> None:
    """The store may have noted the beat at once, and its answer have taken long."""
    table = Table()
    table.look()
    hubs = [SlotHub("a", 2, 1)]
    table.ownership.look(hubs, table.slots.values(), table.now + 1.0, table.now + 3.0)
    assert table.ownership.trust_ends_at == table.now + 1.0 + TRUST_FOR


def test_a_hub_takes_the_slots_of_its_life_before_under_another_epoch() -> None:
    """A commit of that life may still be on its way."""
    table = Table()
    table.own("a", ALL)
    table.add("b")
    assert set(table.look().claim) == set(ALL)
    assert set(table.ownership.held(table.now).values()) == {2}


def test_a_joiner_gets_what_it_ranks_first_for_a_few_at_a_time() -> None:
    table = Table()
    table.look()
    table.add("b")
    assert not table.look(JOIN_AFTER).give
    give = table.look(1).give
    assert len(give) == MOVES_AT_ONCE
    assert {name for _, name in give.values()} == {"b"}
    table.look(SLOTS / MOVES_AT_ONCE)
    assert {slot for slot, row in table.slots.items() if row.owner == "b"} == ranks_first("b", "a")


def test_what_is_given_away_is_held_no_more() -> None:
    """Before the store knows of it: the other one may judge as soon as it does."""
    table = Table()
    table.look()
    table.add("b")
    give = table.look(JOIN_AFTER + 1).give
    assert give
    assert not table.held() & set(give)


def test_a_drained_hub_gives_everything_away() -> None:
    table = Table()
    table.look()
    table.add("b")
    table.look(JOIN_AFTER)
    table.drained.add("a")
    assert set(table.look(1).give) == set(ALL)


def test_a_drained_hub_that_is_the_last_one_keeps_its_slots() -> None:
    table = Table()
    table.drained.add("a")
    table.look(2)
    assert table.held() == set(ALL)


def test_a_drained_hub_takes_a_slot_that_nobody_else_takes() -> None:
    """A hub that was to rest is better than none."""
    table = Table()
    table.drained.add("a")
    table.add("b")
    table.look()
    table.look(JOIN_AFTER + 2 * RANK_WAIT - 1)
    assert not table.held()
    table.look(1)
    assert table.held() == set(ALL)


def test_nothing_is_given_to_a_hub_that_may_have_died() -> None:
    """Its beat has not changed for a while, though not for long enough to call it gone."""
    table = Table()
    table.look()
    table.add("b")
    table.look(JOIN_AFTER)
    table.living.remove("b")
    table.look(3)
    assert not table.look().give


def test_nothing_is_given_to_a_hub_that_was_not_seen_since_the_store_is_back() -> None:
    table = Table()
    table.look()
    table.add("b")
    table.living.remove("b")
    table.look(JOIN_AFTER + GONE_AFTER)
    table.ownership.store_failed()
    assert not table.look(1).give


def test_a_hub_that_was_gone_waits_like_a_new_one() -> None:
    table = Table()
    table.look()
    table.add("b")
    table.living.remove("b")
    table.look(JOIN_AFTER + GONE_AFTER)
    table.living.add("b")
    assert not table.look(JOIN_AFTER).give
    assert table.look(1).give


def test_a_hub_takes_only_a_format_that_it_knows() -> None:
    """During a rolling upgrade older hubs leave alone what newer ones have written."""
    table = Table()
    table.slots[7] = SlotRow(7, format=2)
    table.slots[8] = SlotRow(8, 1, "a", format=2)
    table.look()
    assert table.held() == set(ALL) - {7, 8}


def test_a_slot_is_not_given_to_a_hub_that_cannot_read_it() -> None:
    table = Table()
    table.look()
    table.add("b")
    table.formats["b"] = 0
    table.slots = {slot: SlotRow(slot, 1, "a", format=1) for slot in ALL}
    assert not table.look(JOIN_AFTER + 2).give


def test_a_hub_that_lost_its_slots_twice_waits_longer() -> None:
    """Something is wrong with it: agents would move back and forth."""
    table = Table()
    table.look()
    table.add("b")
    for _ in range(2):
        table.own("a", [0])
        table.look()
        table.own("b", ALL)
        table.look()
    table.living.remove("b")
    del table.beats["b"]
    table.add("c")
    assert not table.look(JOIN_AFTER_LOSSES - 1).claim
    assert table.look(1).claim


def test_slots_are_the_same_everywhere_and_for_ever() -> None:
    """Written down: another hash would send beats to hubs that do not own their agents."""
    assert [slot_of(name) for name in ("", "a", "worker-1", "ü", "\ud800")] == [0, 67, 160, 213, 40]
