"""When a hub that stands by may take over."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.errors import AdapterError
from lifesigns.hub import lease as leases
from lifesigns.hub.lease import DRAINED_AFTER, GONE_AFTER, LOOKS_MIN, LeaderWatch, Lease
from lifesigns.ports import HubRow


def rows(beat: int, *, leader: str = "other", leads: bool = True) -> list[HubRow]:
    return [HubRow("me", 7, "", "", leads=False), HubRow(leader, beat, "", "", leads=leads)]


def looks(watch: LeaderWatch, beats: list[int], every: float = 1.0, start: float = 0.0) -> list[bool]:
    """Look at these beats of the leader, one after the other."""
    return [watch.is_gone(rows(beat), start + n * every) for n, beat in enumerate(beats)]


def test_without_a_leader_a_hub_leads_at_once() -> None:
    watch = LeaderWatch("me")
    assert watch.is_gone([HubRow("me", 1, "", "", leads=False)], 0.0)
    assert watch.is_gone(rows(5, leads=False), 0.0)


def test_a_hub_that_was_restarted_goes_on_at_once() -> None:
    """The folder of its state is locked, so its last life has ended."""
    assert LeaderWatch("me").is_gone([HubRow("me", 9, "", "", leads=True)], 0.0)


def test_a_leader_whose_beat_rises_is_never_gone() -> None:
    assert not any(looks(LeaderWatch("me"), list(range(100))))


@pytest.mark.parametrize(("at", "gone"), [(GONE_AFTER - 0.01, False), (GONE_AFTER, True)])
def test_a_leader_is_gone_when_its_beat_stood_still_for_so_long(at: float, gone: bool) -> None:
    watch = LeaderWatch("me")
    assert not any(looks(watch, [5] * LOOKS_MIN))
    assert watch.is_gone(rows(5), at) is gone


def test_an_observer_that_was_frozen_itself_looks_again_first() -> None:
    """It saw one beat, slept for a minute, and sees the same: the leader may have been slow for a moment only."""
    watch = LeaderWatch("me")
    assert looks(watch, [5]) == [False]
    assert looks(watch, [5] * LOOKS_MIN, start=60.0) == [*[False] * (LOOKS_MIN - 1), True]


def test_rows_are_as_old_as_the_look_that_shows_them() -> None:
    """An observer that freezes in the middle of a look sees what was true before: the leader may have renewed its row since."""
    watch = LeaderWatch("me")
    looks(watch, [5] * LOOKS_MIN)
    assert not watch.is_gone(rows(5), 60.0, took=60.0 - GONE_AFTER + 0.01)
    assert watch.is_gone(rows(5), 60.0, took=60.0 - GONE_AFTER)


def test_after_an_outage_of_the_store_the_wait_begins_anew() -> None:
    """The leader could not renew its row either."""
    watch = LeaderWatch("me")
    looks(watch, [5] * 5)
    watch.start_anew()
    assert looks(watch, [5] * 6, start=100.0) == [False] * 6
    assert watch.is_gone(rows(5), 100.0 + GONE_AFTER)


def test_another_leader_is_watched_from_its_first_look() -> None:
    watch = LeaderWatch("me")
    looks(watch, [5] * 6)
    assert not watch.is_gone(rows(5, leader="third"), GONE_AFTER)


def drained(beat: int, *, leads: bool = True) -> list[HubRow]:
    return [HubRow("me", 7, "", "", leads=False, drained=True), HubRow("other", beat, "", "", leads=leads)]


@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize(("at", "gone"), [(DRAINED_AFTER - 0.01, False), (DRAINED_AFTER, True)])
def test_a_drained_hub_lets_all_others_go_first(at: float, gone: bool, leads: bool) -> None:
    """Whether the leader died or released its row; but a hub that was to rest is better than none."""
    watch = LeaderWatch("me")
    assert not any(watch.is_gone(drained(5, leads=leads), float(n)) for n in range(LOOKS_MIN))
    assert watch.is_gone(drained(5, leads=leads), at) is gone


async def a_lease(store: MemoryStore, name: str, *, drained: bool = False) -> Lease:
    lease = Lease(store, name, f"http://{name}", "1.0", drained=drained)
    await lease.may_lead()
    return lease


async def test_a_hub_that_is_started_anew_is_drained_no_more() -> None:
    """Unless its process goes on: it remembers."""
    store = MemoryStore("hubs")
    await a_lease(store, "me")
    await store.drain("me")
    assert not (await a_lease(store, "me")).drained
    assert (await a_lease(store, "me", drained=True)).drained


async def test_a_hub_that_freezes_while_it_looks_does_not_take_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "GONE_AFTER", 0.2)

    class Freezing(MemoryStore):
        freezes_for = 0.0

        async def renew(
            self, name: str, url: str, version: str, zone: str = "", copied: int = -1
        ) -> Sequence[HubRow]:
            seen = await super().renew(name, url, version, zone, copied)
            await asyncio.sleep(self.freezes_for)
            return seen

    leader, store = MemoryStore("freezing"), Freezing("freezing")
    await a_lease(leader, "leader")
    await leader.open()
    other = await a_lease(store, "other")
    for _ in range(LOOKS_MIN):
        assert not await other.may_lead()
    store.freezes_for = 0.3
    assert not await other.may_lead()
    store.freezes_for = 0.0
    assert await other.may_lead()


async def test_a_drained_leader_goes_only_when_another_can_take_over() -> None:
    store = MemoryStore("hubs")
    leader = await a_lease(store, "leader")
    await store.open()
    await store.drain("leader")
    holding = asyncio.create_task(leader.hold())
    await asyncio.sleep(0.05)
    assert not leader.wanted.is_set()
    holding.cancel()
    other = MemoryStore("hubs")
    await (await a_lease(other, "other")).may_lead()
    holding = asyncio.create_task(leader.hold())
    await asyncio.wait_for(leader.wanted.wait(), 5.0)
    holding.cancel()


async def test_a_leader_hands_over_when_one_that_stands_by_has_copied_everything(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leases, "FOLLOWED_WITHIN", 0.3)
    store = MemoryStore("hubs")
    leader, other = await a_lease(store, "leader"), await a_lease(MemoryStore("hubs"), "other")
    await store.open()
    other.copied = 4
    await other.may_lead()
    assert not await leader.hand_over(5), "it waits in vain for the fifth commit"
    other.copied = 5
    await other.may_lead()
    assert await leader.hand_over(5)


async def test_a_leader_that_cannot_renew_its_row_says_so_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody else may lead yet, and it does not know whether anybody reaches it. A single failure means nothing."""
    monkeypatch.setattr(leases, "RENEW_EVERY", 0.01)
    monkeypatch.setattr(leases, "TRUST_FOR", 0.1)
    store = MemoryStore("hubs")
    leader = await a_lease(store, "leader")
    await store.open()
    loop, doubted_at = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

    def doubt() -> None:
        if not doubted_at.done():
            doubted_at.set_result(loop.time())

    leader.unrenewed = doubt

    async def away(*_: object) -> list[HubRow]:
        raise AdapterError("it is away")

    began_at = loop.time()
    holding = asyncio.create_task(leader.hold())
    await asyncio.sleep(0.02)
    monkeypatch.setattr(store, "renew", away)
    assert await asyncio.wait_for(doubted_at, 5.0) - began_at >= 0.1
    holding.cancel()
