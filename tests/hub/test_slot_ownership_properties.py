"""The laws of slot ownership, with three hubs, a store that delays and loses answers, and faults nobody thought of."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lifesigns.hub import slot_ownership
from lifesigns.hub.slot_ownership import SLOTS, SlotOwnership, weight
from lifesigns.ports.slots import Plan, SlotHub, SlotRow

NAMES = ("a", "b", "c")
FAULTY_FOR = 60.0
QUIET_FOR = 150.0
"""Longer than a hub waits that has lost its slots twice, and all moves after that."""
STILL_FOR = 30.0
"""At the end nothing moves any more."""
LOOK_EVERY = 1.0
GIVEN_UP_AFTER = 2.0

T = TypeVar("T")

Fault = tuple[float, str, str, float]
"""When, what, to whom, and for how long."""


class World:
    """Hubs, one store, and time."""

    def __init__(
        self, seed: int, faults: list[Fault], hub: Callable[[str, int], SlotOwnership] = SlotOwnership
    ) -> None:
        self.hub = hub
        self.chance = random.Random(seed)
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()
        self.rows = {slot: SlotRow(slot) for slot in range(SLOTS)}
        self.hubs: dict[str, SlotHub] = {}
        self.epoch = 0
        self.moved_at: list[float] = []
        self.away_until = 0.0
        self.compares_beats = True
        self.nodes = {name: Node(self, name) for name in NAMES}
        for node in self.nodes.values():
            self.at(self.chance.uniform(0.0, 3.0), node.start)
        for at, what, name, lasts in faults:
            self.at(at, partial(self._strike, what, self.nodes[name], lasts))

    def at(self, moment: float, do: Callable[[], None]) -> None:
        heappush(self._due, (max(moment, self.now), next(self._number), do))

    def run(self, until: float) -> Iterator[None]:
        """Let time pass, with a stop after whatever happens."""
        while self._due and self._due[0][0] <= until:
            self.now, _, do = heappop(self._due)
            do()
            yield
        self.now = until

    def _strike(self, what: str, node: Node, lasts: float) -> None:
        match what:
            case "freeze":
                node.frozen_until = max(node.frozen_until, self.now + lasts)
            case "kill":
                node.life += 1
                self.at(self.now + lasts, node.start)
            case "cut":
                node.cut_until = self.now + lasts
            case "away":
                self.away_until = self.now + lasts
            case "drain":
                node.drained = True
                self.at(self.now + lasts, node.undrain)

    def owners(self, slot: int) -> list[str]:
        """Who judges a slot at this moment."""
        return [
            node.name
            for node in self.nodes.values()
            if node.life_started == node.life
            and self.now >= node.frozen_until
            and slot in node.ownership.held(node.clock())
        ]

    # --- the store ------------------------------------------------------------------------------------

    def renew(self, node: Node) -> tuple[list[SlotHub], list[SlotRow]]:
        beat = self.hubs[node.name].beat + 1 if node.name in self.hubs else 1
        self.hubs[node.name] = SlotHub(node.name, beat, 1, node.drained)
        return list(self.hubs.values()), list(self.rows.values())

    def change(self, node: Node, plan: Plan) -> dict[int, int]:
        """Claims and gifts, as far as the epochs, and the beats of the owners, are those that were seen."""
        self.epoch += 1
        claimed: dict[int, int] = {}
        wanted = {slot: (epoch, node.name) for slot, epoch in plan.claim.items()} | plan.give
        for slot, (epoch, owner) in wanted.items():
            was = self.rows[slot].owner
            if self.rows[slot].epoch != epoch:
                continue
            if was in self.hubs and self.hubs[was].beat != plan.beats[was] and self.compares_beats:
                continue
            if was not in ("", owner):
                self.moved_at.append(self.now)
            self.rows[slot] = replace(self.rows[slot], epoch=self.epoch, owner=owner)
            if slot in plan.claim:
                claimed[slot] = self.epoch
        return claimed


class Node:
    """A hub: looks once a second, and does what its ownership wants."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.life = 1
        self.life_started = 0
        self.frozen_until = self.cut_until = 0.0
        self.drained = False
        self.skew = world.chance.uniform(-1e6, 1e6)
        self.ownership = world.hub(name, 1)

    def clock(self) -> float:
        return self.world.now + self.skew

    def start(self) -> None:
        if self.life_started != self.life:
            self.life_started = self.life
            self.ownership = self.world.hub(self.name, 1)
            self._look()

    def undrain(self) -> None:
        self.drained = False

    def _look(self) -> None:
        began_at = self.clock()

        def seen(rows: tuple[list[SlotHub], list[SlotRow]]) -> None:
            hubs, slots = rows
            plan = self.ownership.look(hubs, slots, began_at, self.clock())
            if plan.claim or plan.give:
                self._call(lambda: self.world.change(self, plan), self._claimed)
            else:
                self._rest()

        self._call(lambda: self.world.renew(self), seen)

    def _claimed(self, epochs: dict[int, int]) -> None:
        self.ownership.claimed(epochs)
        self._rest()

    def _rest(self) -> None:
        self._later(LOOK_EVERY, self._look)

    def _call(self, ask: Callable[[], T], then: Callable[[T], None]) -> None:
        """Ask the store. The question or its answer may be lost, both may take long, and this hub may freeze meanwhile."""
        world = self.world
        faulty = world.now < FAULTY_FOR
        reached = world.now >= max(self.cut_until, world.away_until) and world.chance.random() > 0.02 * faulty
        answered = world.chance.random() > 0.02 * faulty
        there, back = (world.chance.choice((0.001, 0.01, 0.4)) for _ in range(2))

        def fail() -> None:
            self.ownership.store_failed()
            self._rest()

        def arrive() -> None:
            answer = ask()
            if answered:
                self._later(back, lambda: then(answer))

        if reached:
            world.at(world.now + there, arrive)
        if not reached or not answered:
            self._later(GIVEN_UP_AFTER, fail)

    def _later(self, wait: float, do: Callable[[], None]) -> None:
        """Do this after a while, and not while frozen, nor in another life."""
        life = self.life

        def when_thawed() -> None:
            if life != self.life:
                return
            if self.world.now < self.frozen_until:
                self.world.at(self.frozen_until, when_thawed)
            else:
                do()

        self.world.at(self.world.now + wait, when_thawed)


def broken_laws(world: World) -> Iterator[str]:
    """Let the world run to its end, and say what is wrong in it."""
    watched, looked_at = range(0, SLOTS, 16), 0.0
    for _ in world.run(FAULTY_FOR + QUIET_FOR):
        if world.now - looked_at < 0.05:
            continue
        looked_at = world.now
        for slot in watched:
            if len(owners := world.owners(slot)) > 1:
                yield f"at {world.now:.3f} both {owners} trust themselves with slot {slot}"
                return
    before = len(world.moved_at)
    for _ in world.run(FAULTY_FOR + QUIET_FOR + STILL_FOR):
        pass
    if len(world.moved_at) > before:
        yield f"{len(world.moved_at) - before} slots move in a quiet world"
    for slot in range(SLOTS):
        best = max(NAMES, key=lambda name: weight(name, slot))
        if world.rows[slot].owner != best:
            yield f"slot {slot} is of {world.rows[slot].owner!r} in the end, not of {best}"
            return


faults = st.lists(
    st.tuples(
        st.floats(0.0, FAULTY_FOR),
        st.sampled_from(("freeze", "freeze", "kill", "cut", "away", "drain")),
        st.sampled_from(NAMES),
        st.floats(0.5, 20.0),
    ),
    max_size=8,
)


@given(st.integers(0, 2**32), faults)
@settings(max_examples=15, deadline=None)
def test_no_two_hubs_judge_the_same_agents_and_in_the_end_every_slot_has_its_owner(
    seed: int, faults: list[Fault]
) -> None:
    """Whatever is killed, frozen, cut off or drained: and when that is over, ownership is where it belongs, and rests."""
    assert list(broken_laws(World(seed, faults))) == []


def random_faults(seed: int) -> list[Fault]:
    chance = random.Random(seed)
    kinds = ("freeze", "kill", "cut", "away", "drain")
    return [
        (
            chance.uniform(0.0, FAULTY_FOR),
            chance.choice(kinds),
            chance.choice(NAMES),
            chance.uniform(0.5, chance.choice((5.0, 20.0))),
        )
        for _ in range(8)
    ]


class GivesWhatItHolds(SlotOwnership):
    """Judges on while it gives slots away."""

    def look(self, *args: Any) -> Plan:
        plan = super().look(*args)
        self.claimed(dict.fromkeys(plan.give, 0))
        return plan


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TRUST_FOR", 20.0),
        ("GONE_AFTER", 2.0),
        ("JOIN_AFTER", 10_000.0),
        ("weight", lambda name, slot: weight(f"{name} {random.random()}", slot)),
    ],
)
def test_broken_rules_are_noticed(monkeypatch: pytest.MonkeyPatch, name: str, value: object) -> None:
    monkeypatch.setattr(slot_ownership, name, value)
    assert any(list(broken_laws(World(seed, random_faults(seed)))) for seed in range(30))


def test_a_hub_that_judges_what_it_gives_away_is_noticed() -> None:
    assert any(list(broken_laws(World(seed, random_faults(seed), GivesWhatItHolds))) for seed in range(30))


def test_a_store_that_does_not_compare_the_beats_of_owners_is_noticed() -> None:
    """An owner that was gone may renew its row between the look of another hub and its claim."""
    freezes = [
        (10.0 + 10 * n, "freeze", NAMES[n % 3], random.Random(40 + n).uniform(6.0, 8.0)) for n in range(5)
    ]
    world = World(4, freezes)
    world.compares_beats = False
    assert list(broken_laws(world))
    assert not list(broken_laws(World(4, freezes)))
