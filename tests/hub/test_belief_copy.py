"""A hub that stands by has a copy of the beliefs, and goes on from it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from lifesigns.core.signals import BeatReceived, CheckpointSaved, MessageSent, Priority, TaskClaimed
from lifesigns.errors import AdapterError
from lifesigns.hub import belief_copy, memory
from lifesigns.hub.belief_copy import BeliefCopy
from lifesigns.ports import Belief, Commit, StoredState
from lifesigns.ports.store import BeliefMark, TakeBeliefs
from tests.hub.faulty_store import FaultyStore
from tests.hub.ground import Ground


class FollowedStore(FaultyStore):
    """Tells what it was asked, and is away when it is told to."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(name)
        self.asked: list[BeliefMark | None] = []
        self.restarts = 0

    async def belief_mark(self) -> BeliefMark:
        if self.error is not None:
            raise self.error
        mark = await super().belief_mark()
        return BeliefMark(str(self.restarts), mark.commit, mark.position, mark.count)

    async def read_beliefs(self, since: BeliefMark | None, take: TakeBeliefs) -> None:
        self.asked.append(since)
        await super().read_beliefs(since, take)


async def filled(*rows: Belief) -> FollowedStore:
    store = FollowedStore()
    await store.open()
    await store.commit(Commit(1, rows))
    return store


async def test_the_second_time_it_asks_what_changed() -> None:
    store = await filled(Belief("x", "a", b"1"))
    copy = BeliefCopy(store)
    await copy.catch_up()
    await copy.catch_up()
    assert [since is None for since in store.asked] == [True, False]


async def test_after_an_outage_it_reads_everything_anew() -> None:
    store = await filled(Belief("x", "a", b"1"))
    copy = BeliefCopy(store)
    await copy.catch_up()
    store.fail()
    with pytest.raises(AdapterError):
        await copy.catch_up()
    store.heal()
    await copy.catch_up()
    assert [since is None for since in store.asked] == [True, True]


async def test_after_a_restart_of_the_server_nothing_old_is_kept() -> None:
    """The server may have an older state, in which some rows never were."""
    store = await filled(Belief("x", "a", b"1"))
    copy = BeliefCopy(store)
    await copy.catch_up()
    copy.recall.take([Belief("x", "a", b"of the future")])
    store.restarts += 1
    await copy.catch_up()
    assert [row.value for row in copy.recall.others] == [b"1"]
    assert store.asked == [None, None]


async def test_a_look_that_is_cut_off_is_made_up_for() -> None:
    """The hub takes over in the middle of it: what it had read is not read anew."""
    store = await filled(Belief("x", "a", b"1"))
    copy = BeliefCopy(store)
    await copy.catch_up()
    await store.commit(Commit(2, [Belief("x", "a", b"2")]))
    look = asyncio.create_task(copy.catch_up())
    while len(store.asked) < 2:  # noqa: ASYNC110 -- nothing tells
        await asyncio.sleep(0)
    look.cancel()
    await asyncio.gather(look, return_exceptions=True)
    await copy.catch_up()
    assert [row.value for row in copy.recall.others] == [b"2"]
    assert store.asked[2] == store.asked[1] is not None


async def test_it_follows_on_after_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(belief_copy, "FOLLOW_EVERY", 0.0)
    monkeypatch.setattr(belief_copy, "SHARE_MAX", 1.0)
    store = await filled(Belief("x", "a", b"1"))
    copy = BeliefCopy(store)
    following = asyncio.create_task(copy.follow())
    async with asyncio.timeout(10):
        while not len(copy.recall):  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0)
        store.fail()
        await asyncio.sleep(0.01)
        store.heal()
        await store.commit(Commit(2, [Belief("x", "b", b"2")]))
        while len(copy.recall) < 2:  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(0)
    following.cancel()


def test_an_unreadable_row_counts_until_it_is_read_or_gone() -> None:
    """Else the copy and the store would seem to differ, and all keys be read each time."""
    recall = memory.Recall()
    recall.take([Belief(memory.AGENT, "a", b"\xc1"), Belief(memory.TASK, "t", b"\xc1")])
    assert (len(recall), set(recall.unreadable)) == (2, {"agent a", "task t"})
    recall.keep_only({(memory.AGENT, "a")})
    assert (len(recall), set(recall.unreadable)) == (1, {"agent a"})


def rows(ground: Ground) -> Sequence[Belief]:
    return sorted(memory.everything(ground.hub.engine.snapshot()), key=lambda row: (row.kind, row.key))


async def test_a_hub_goes_on_from_a_copy_as_it_would_from_the_store() -> None:
    """Bit for bit: with what changed after the copy was made, and without what was deleted."""
    async with Ground() as ground:
        ground.hub.hear([BeatReceived(name, 1, "one", host="h") for name in "abc"])
        await ground.hub.store_reports(
            [
                TaskClaimed(agent_id="a", task_id="t"),
                CheckpointSaved(agent_id="b", checkpoint_id="cp", task_id="u", digest="d"),
                MessageSent(agent_id="a", message_id="m", to="b", priority=Priority.NORMAL),
            ]
        )
        copy = BeliefCopy(ground.another_store())
        await copy.catch_up()
        ground.hub.hear([BeatReceived("d", 1, "one")])
        await ground.hub.store_reports([TaskClaimed(agent_id="c", task_id="v")])
        ground.hub.abort()
        ground.hub = ground.another_hub()
        await ground.hub.start(ground, ground, copy=copy)
        from_copy = rows(ground)
        ground.hub.abort()
        ground.hub = ground.another_hub()
        await ground.start()
        assert [row.key for row in from_copy if row.kind == memory.AGENT] == ["a", "b", "c", "d"]
        assert from_copy == rows(ground)


async def test_the_row_of_a_hub_is_renewed_from_the_moment_it_took_over() -> None:
    """Before it has read a large fleet: another one that stands by would take over again."""
    told: list[str] = []

    class Told(FollowedStore):
        async def open(self, *, epoch_min: int = 0, beliefs: bool = True) -> StoredState:
            told.append("open")
            return await super().open(epoch_min=epoch_min, beliefs=beliefs)

        async def read_beliefs(self, since: BeliefMark | None, take: TakeBeliefs) -> None:
            told.append("read")
            await super().read_beliefs(since, take)

    ground = Ground(Told)
    copy = BeliefCopy(ground.hub.store)
    await ground.hub.start(ground, ground, copy=copy, opened=lambda: told.append("renew"))
    assert told == ["open", "renew", "read"]
    await ground.hub.stop()
