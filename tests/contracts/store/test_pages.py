"""Pages: together or not at all, each once, in order, and only by the hub whose turn it is."""

import asyncio

import pytest

from lifesigns.errors import AdapterError, Bug
from lifesigns.ports import Commit
from tests.contracts.store.ground import Ground, all_ids, believed, event, fill, order, sample


async def test_a_new_store_is_empty(ground: Ground) -> None:
    store, found = await ground.opened()
    assert (found.epoch, found.commit, found.event, found.beliefs, found.orders) == (1, 0, 0, [], [])
    assert await store.events() == []
    assert await store.samples("coder-7", 0, 1e10) == []
    assert await store.tokens() == []


async def test_everything_on_a_page_is_found_by_the_next_hub(ground: Ground) -> None:
    store = await ground.store()
    page = Commit(
        1,
        beliefs=[believed("a", b"1"), believed("a", b"2", kind="task")],
        events=[event(1), event(2)],
        orders=[order("o-1")],
        samples=[sample("coder-7", 120.0)],
    )
    await store.commit(page)
    await store.close()
    again, found = await ground.opened()
    assert (found.epoch, found.commit, found.event) == (2, 1, 2)
    assert sorted(found.beliefs, key=lambda belief: belief.kind) == page.beliefs
    assert found.orders == page.orders
    assert await again.events() == page.events
    assert await again.samples("coder-7", 0, 1e10) == page.samples


async def test_an_empty_page_is_a_page(ground: Ground) -> None:
    store = await ground.store()
    await store.commit(Commit(1))
    _, found = await ground.opened()
    assert (found.commit, found.event) == (1, 0)


async def test_a_page_that_is_kept_already_is_skipped(ground: Ground) -> None:
    """A hub that does not know whether its page was kept writes it again."""
    store = await ground.store()
    page = Commit(1, beliefs=[believed("a", b"old")], events=[event(1)], orders=[order("o-1")])
    await store.commit(page)
    await store.commit(Commit(2, beliefs=[believed("a", b"new")], settled=["o-1"]))
    await store.commit(page)
    await store.commit(page)
    _, found = await ground.opened()
    assert [belief.value for belief in found.beliefs] == [b"new"]
    assert found.orders == []
    assert (found.commit, found.event) == (2, 1)


async def test_a_page_out_of_order_is_our_bug_and_leaves_nothing(ground: Ground) -> None:
    """Were page 3 kept before page 2, page 2 would be skipped for good."""
    store = await ground.store()
    await store.commit(Commit(1))
    with pytest.raises(Bug, match="commit 3 came where commit 2 belongs"):
        await store.commit(Commit(3, beliefs=[believed("a")], events=[event(1)]))
    await store.commit(Commit(2))
    _, found = await ground.opened()
    assert (found.commit, found.event, found.beliefs) == (2, 0, [])


@pytest.mark.parametrize("ids", [[2], [1, 3], [1, 1], [2, 1], [0]])
async def test_ids_of_events_have_no_gap(ground: Ground, ids: list[int]) -> None:
    store = await ground.store()
    with pytest.raises(Bug, match="event"):
        await fill(store, *(event(number) for number in ids))
    assert await store.events(after=-1) == []
    await fill(store, event(1))


async def test_a_page_before_the_store_is_opened_is_our_bug(ground: Ground) -> None:
    with pytest.raises(Bug, match="before it was opened"):
        await ground.make().commit(Commit(1))


async def test_who_is_taken_over_from_is_refused_for_good(ground: Ground) -> None:
    """Also for a page that would be skipped: it has to know that its time is over."""
    old = await ground.store()
    await old.commit(Commit(1, beliefs=[believed("a", b"old")]))
    new, found = await ground.opened()
    assert found.epoch == 2
    for number in (1, 2, 3):
        with pytest.raises(AdapterError, match="another hub") as refused:
            await old.commit(Commit(number, beliefs=[believed("a", b"too late")]))
        assert not refused.value.transient
    for futile in (old.ping(), old.forget(1e9, keep_for=1.0)):
        with pytest.raises(AdapterError, match="another hub") as refused:
            await futile
        assert not refused.value.transient
    await new.commit(Commit(2))
    _, found = await ground.opened()
    assert [belief.value for belief in found.beliefs] == [b"old"]


async def test_an_epoch_is_at_least_what_the_hub_asks_for_and_always_higher(ground: Ground) -> None:
    """An old copy of a store has forgotten the last epochs, and the agents have not."""
    store = ground.make()
    found = [(await store.open(epoch_min=least)).epoch for least in (0, 1_800_000_000, 1_700_000_000, 0)]
    assert found == [1, 1_800_000_000, 1_800_000_001, 1_800_000_002]
    await store.commit(Commit(1))


async def test_one_who_is_taken_over_from_may_take_over_again(ground: Ground) -> None:
    first = await ground.store()
    second = await ground.store()
    assert (await first.open()).epoch == 3
    await first.commit(Commit(1))
    with pytest.raises(AdapterError):
        await second.commit(Commit(2))


async def test_of_many_hubs_that_open_at_once_one_may_write(ground: Ground) -> None:
    """They also make and migrate everything at once."""
    stores = [ground.make() for _ in range(5)]
    found = await asyncio.gather(*(store.open() for store in stores))
    assert sorted(one.epoch for one in found) == [1, 2, 3, 4, 5]
    outcomes = await asyncio.gather(*(store.commit(Commit(1)) for store in stores), return_exceptions=True)
    assert [outcome is None for outcome in outcomes] == [one.epoch == 5 for one in found]


async def test_of_a_belief_told_twice_the_later_counts(ground: Ground) -> None:
    store = await ground.store()
    await store.commit(
        Commit(
            1,
            beliefs=[
                *(believed("a", b"1"), believed("a", b"2")),
                *(believed("b", b"1"), believed("b", None)),
                *(believed("c", None), believed("c", b"3")),
            ],
        )
    )
    _, found = await ground.opened()
    assert {belief.key: belief.value for belief in found.beliefs} == {"a": b"2", "c": b"3"}


async def test_a_belief_is_changed_dropped_and_told_anew(ground: Ground) -> None:
    store = await ground.store()
    for number, value in enumerate([b"1", b"2", None, None, b"3"], 1):
        await store.commit(Commit(number, beliefs=[believed("a", value), believed("b", value, kind="task")]))
    _, found = await ground.opened()
    assert {(belief.kind, belief.value) for belief in found.beliefs} == {("agent", b"3"), ("task", b"3")}


async def test_orders_that_are_not_settled_come_back_oldest_first(ground: Ground) -> None:
    """Of the same moment: in the order in which they were given."""
    store = await ground.store()
    first = [order("late", at=9.0), order("same-b", at=5.0), order("same-a", at=5.0), order("done", at=1.0)]
    await store.commit(Commit(1, orders=first))
    await store.commit(Commit(2, orders=[order("early", at=2.0)], settled=["done", "never given"]))
    await store.commit(Commit(3, orders=[order("over at once")], settled=["over at once"]))
    _, found = await ground.opened()
    assert [kept.order_id for kept in found.orders] == ["early", "same-b", "same-a", "late"]


async def test_an_order_given_twice_is_one_order(ground: Ground) -> None:
    store = await ground.store()
    await store.commit(Commit(1, orders=[order("o", at=1.0), order("o", at=2.0)]))
    await store.commit(Commit(2, orders=[order("p"), order("o", at=3.0)]))
    _, found = await ground.opened()
    assert [(kept.order_id, kept.at) for kept in found.orders] == [("p", 1.0), ("o", 3.0)]


async def test_a_very_large_page_is_kept_whole(ground: Ground) -> None:
    store = await ground.store()
    count = 50_000
    await store.commit(
        Commit(
            1,
            beliefs=[believed(f"agent-{n}", b"x" * 700) for n in range(count)],
            events=[event(n) for n in range(1, 2001)],
            samples=[sample(f"agent-{n}", 60.0) for n in range(2000)],
        )
    )
    _, found = await ground.opened()
    assert (len(found.beliefs), found.event) == (count, 2000)
    assert await all_ids(store) == list(range(1, 2001))


async def test_a_commit_that_is_cancelled_is_kept_whole_or_not_at_all(ground: Ground) -> None:
    """And the store goes on. The hub writes the page again, not knowing which of the two it was."""
    store = await ground.store()
    for number in range(1, 21):
        page = Commit(
            number, beliefs=[believed(f"{n}", b"%d" % number) for n in range(200)], events=[event(number)]
        )
        attempt = asyncio.create_task(store.commit(page))
        for _ in range(number):
            await asyncio.sleep(0)
        attempt.cancel()
        await asyncio.wait([attempt])
        await store.commit(page)
    _, found = await ground.opened()
    assert {belief.value for belief in found.beliefs} == {b"20"}
    assert await all_ids(store) == list(range(1, 21))


async def test_many_readers_do_not_disturb_the_writer(ground: Ground) -> None:
    """Whoever reads sees whole pages: their events come in fives."""
    store = await ground.store()
    written = asyncio.Event()

    async def write() -> None:
        for number in range(1, 41):
            ids = range(number * 5 - 4, number * 5 + 1)
            beliefs = [believed("page", b"%d" % number)]
            await store.commit(Commit(number, beliefs=beliefs, events=[event(n) for n in ids]))
            await asyncio.sleep(0)  # In memory nobody else would have a turn.
        written.set()

    async def read() -> int:
        looks = 0
        while not written.is_set():
            ids = await all_ids(store)
            assert ids == list(range(1, len(ids) + 1))
            assert len(ids) % 5 == 0
            looks += 1
            await asyncio.sleep(0)
        return looks

    _, *looks = await asyncio.gather(write(), *(read() for _ in range(5)))
    assert all(looks)
    assert len(await all_ids(store)) == 200
