"""Which of several hubs takes a slot, and when it gives it to another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.hub import lease as leases
from lifesigns.hub import slot_lease
from lifesigns.hub.slot_lease import Moves, SlotLease
from lifesigns.hub.slots import ranked

NAMES = ranked(0, ("one", "two", "three"))
"""The first one is the one for slot 0."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, seconds in (
        (slot_lease, "RANK_WAIT", 0.2),
        (slot_lease, "JOIN_AFTER", 0.2),
        (slot_lease, "SEEN_WITHIN", 0.6),
        (leases, "GONE_AFTER", 0.8),
        (leases, "RENEW_EVERY", 0.02),
    ):
        monkeypatch.setattr(module, name, seconds)


class Members:
    """Hubs on one slot's store."""

    def __init__(self, place: str) -> None:
        self._place = place
        self.moves = Moves()

    def lease(self, name: str, **more: Any) -> tuple[MemoryStore, SlotLease]:
        store = MemoryStore(self._place)
        lease = SlotLease(store, name, f"http://{name}", "1.0", slot=0, moves=self.moves, **more)
        lease.copied = 0
        return store, lease


async def looks(*waiting: SlotLease, for_: float) -> list[list[bool]]:
    """Look again and again, all of them in turns; what each of them saw."""
    seen: list[list[bool]] = [[] for _ in waiting]
    ends_at = asyncio.get_running_loop().time() + for_
    while asyncio.get_running_loop().time() < ends_at:
        for n, lease in enumerate(waiting):
            seen[n].append(await lease.may_lead())
        await asyncio.sleep(0.02)
    return seen


async def test_a_hub_alone_takes_a_free_slot_at_once() -> None:
    _, lease = Members("alone").lease(NAMES[2])
    assert await lease.may_lead()


async def test_the_first_in_rank_goes_first_and_the_others_a_moment_later() -> None:
    """If the first does not take it."""
    members = Members("ranks")
    clock = asyncio.get_running_loop().time
    leases = [members.lease(name)[1] for name in NAMES]
    for lease in reversed(leases):  # All have seen each other; the last in rank first.
        await lease.may_lead()
    for rank, lease in enumerate(leases):
        lease._free_since = None
        looked_at = clock()
        while not await lease.may_lead():
            assert rank, "the first one waits for nobody"
            assert clock() < looked_at + 5
            for other in leases:  # They live, too.
                await other._renew()
            await asyncio.sleep(0.01)
        assert clock() - looked_at >= slot_lease.RANK_WAIT * rank


async def test_hubs_that_are_started_together_take_nothing_before_they_have_met() -> None:
    now = asyncio.get_running_loop().time
    _, lease = Members("settles").lease(NAMES[0], settled_at=now() + 0.2)
    began_at = now()
    while not await lease.may_lead():
        assert now() < began_at + 5
        await asyncio.sleep(0.01)
    assert now() >= began_at + 0.2


async def test_hubs_that_have_met_take_a_slot_in_the_order_of_their_ranks() -> None:
    """They have seen that it is free for as long as they live."""
    now = asyncio.get_running_loop().time
    members, settled_at = Members("met"), now() + 0.4
    (_, first), (_, second) = [members.lease(name, settled_at=settled_at) for name in NAMES[:2]]
    while now() < settled_at:
        assert not await second.may_lead() or now() >= settled_at + slot_lease.RANK_WAIT
        assert not await first.may_lead() or now() >= settled_at
        await asyncio.sleep(0.01)
    while not await second.may_lead():
        await first._renew()
        await asyncio.sleep(0.01)
    assert now() >= settled_at + slot_lease.RANK_WAIT
    assert await first.may_lead()


async def test_nobody_waits_for_a_hub_that_died() -> None:
    members = Members("dead")
    (_, first), (_, second) = map(members.lease, NAMES[:2])
    await first.may_lead()
    assert not await second.may_lead()
    await looks(second, for_=0.7)
    assert await second.may_lead()


async def test_a_hub_gives_the_slot_to_the_first_in_rank_once_that_has_been_there_for_a_while() -> None:
    members = Members("moves")
    store, owner = members.lease(NAMES[1])
    assert await owner.may_lead()
    await store.open()
    holding = asyncio.create_task(owner.hold())
    _, other = members.lease(NAMES[0])
    began_at = asyncio.get_running_loop().time()
    while not owner.wanted.is_set():
        await other.may_lead()
        await asyncio.sleep(0.02)
        assert asyncio.get_running_loop().time() < began_at + 5
    assert asyncio.get_running_loop().time() - began_at >= slot_lease.JOIN_AFTER
    assert owner.moves_on
    holding.cancel()


async def test_a_hub_keeps_the_slot_if_it_is_the_one_for_it_or_the_other_has_no_copy() -> None:
    members = Members("stays")
    store, owner = members.lease(NAMES[1])
    assert await owner.may_lead()
    await store.open()
    holding = asyncio.create_task(owner.hold())
    (_, below), (_, unready) = members.lease(NAMES[2]), members.lease(NAMES[0])
    unready.copied = -1
    await looks(below, unready, for_=0.5)
    assert not owner.wanted.is_set()
    holding.cancel()


async def test_a_drained_hub_lets_all_others_go_first_and_gives_its_slots_away() -> None:
    members = Members("drained")
    store, owner = members.lease(NAMES[0])
    assert await owner.may_lead()
    await store.open()
    _, other = members.lease(NAMES[2])
    await other.may_lead()
    holding = asyncio.create_task(owner.hold())
    await asyncio.sleep(0.1)
    assert not owner.wanted.is_set()
    await owner.drain(NAMES[0])
    await asyncio.sleep(0.1)
    assert owner.wanted.is_set()
    assert not owner.moves_on, "it is drained when it comes back"
    holding.cancel()


def test_one_slot_moves_at_a_time() -> None:
    moves = Moves()
    assert moves.may_begin(100.0)
    assert not moves.may_begin(100.0 + slot_lease.MOVE_EVERY - 0.01)
    assert moves.may_begin(100.0 + slot_lease.MOVE_EVERY)
