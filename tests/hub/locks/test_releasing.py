"""Stale locks are released: in time, once, and only theirs."""

from __future__ import annotations

import asyncio
import os
import random
from typing import Any

import pytest

from lifesigns.core.signals import PauseRequested
from lifesigns.errors import AdapterError
from tests.hub.locks.ground import REPO, LockGround
from tests.servers.github import Fault

LEASE = 600.0
RACES = int(os.environ.get("RACES", "30"))
"""`make soak` runs more."""
GRACE = 600.0
LOOK_EVERY = 60.0
IN_PROGRESS, QUEUED = "status:in-progress", "status:queued"
STALE = "Stale Lock Detected"


def is_free(ground: LockGround, number: int = 1) -> bool:
    github = ground.github
    return not github.assignees(REPO, number) and github.labels(REPO, number) == [QUEUED]


def is_held(ground: LockGround, login: str, number: int = 1) -> bool:
    github = ground.github
    return github.assignees(REPO, number) == [login] and IN_PROGRESS in github.labels(REPO, number)


async def worker_dies(ground: LockGround, login: str = "worker-1", agent: str = "worker-1") -> None:
    """It claims issue 1 and works for a while; then it is silent."""
    ground.github.claim(REPO, 1, login)
    ground.beating[agent] = f"{REPO}#1"
    await ground.pass_time(120.0)
    del ground.beating[agent]


async def test_a_stale_lock_is_released_within_one_look_and_not_before() -> None:
    async with LockGround() as ground:
        await worker_dies(ground)
        last_beat = ground.hub_ground.hub.engine.agent("worker-1")
        assert last_beat is not None
        while ground.now < last_beat.heard_at + LEASE - 1.0:
            await ground.pass_time(min(LOOK_EVERY, last_beat.heard_at + LEASE - 1.0 - ground.now))
            await ground.look()
            assert is_held(ground, "worker-1")
        await ground.pass_time(LOOK_EVERY)
        await ground.look()
        assert is_free(ground)
        (comment,) = ground.github.said(REPO, 1, STALE)
        assert "Worker `worker-1` last seen 11 min ago." in comment
        assert "✅ Task returned to queue" in comment
        (fact,) = await ground.recovered()
        assert (fact.agent_id, fact.lock, fact.assignees) == ("worker-1", f"{REPO}#1", ("worker-1",))
        assert LEASE <= fact.silent_for_s <= LEASE + LOOK_EVERY
        await ground.pass_time(300.0)
        await ground.look()
        assert len(await ground.recovered()) == 1


async def test_a_living_worker_keeps_its_lock() -> None:
    async with LockGround() as ground:
        ground.github.claim(REPO, 1, "worker-1")
        ground.beating["worker-1"] = None
        for _ in range(40):
            await ground.pass_time(60.0)
            await ground.look()
        assert is_held(ground, "worker-1")
        assert ground.github.said(REPO, 1) == []


@pytest.mark.parametrize("agent", ["alice", "worker-1"])
async def test_a_person_is_never_touched(agent: str) -> None:
    """Not even if an agent took her name, and died."""
    async with LockGround() as ground:
        ground.github.claim(REPO, 1, "alice")
        ground.beating[agent] = f"{REPO}#1"
        await ground.pass_time(120.0)
        del ground.beating[agent]
        for _ in range(60):
            await ground.pass_time(60.0)
            await ground.look()
        assert is_held(ground, "alice")
        assert ground.github.said(REPO, 1) == []
        assert {call.method for call in ground.github.calls} == {"GET"}


async def test_a_person_beside_a_dead_worker_keeps_the_issue() -> None:
    async with LockGround() as ground:
        await worker_dies(ground)
        ground.github.assign(REPO, 1, "alice")
        await ground.pass_time(3600.0)
        await ground.look()
        assert ground.github.assignees(REPO, 1) == ["worker-1", "alice"]
        assert ground.github.said(REPO, 1) == []


async def test_an_assignee_that_calls_itself_a_worker_is_one() -> None:
    async with LockGround() as ground:
        ground.github.claim(REPO, 1, "octo-7")
        ground.github.say(REPO, 1, "octo-7", "Mine. <!-- lifesigns:claim worker=w-7 -->")
        ground.beating["w-7"] = None
        await ground.pass_time(120.0)
        del ground.beating["w-7"]
        await ground.pass_time(LEASE)
        await ground.look()
        assert is_free(ground)
        assert [fact.agent_id for fact in await ground.recovered()] == ["w-7"]


async def test_a_lock_whose_worker_never_beat_has_a_grace() -> None:
    async with LockGround() as ground:
        ground.github.claim(REPO, 1, "worker-1")
        began = ground.now
        while ground.now < began + LEASE + GRACE - 2.0:
            await ground.pass_time(min(60.0, began + LEASE + GRACE - 2.0 - ground.now))
            await ground.look()
            assert is_held(ground, "worker-1")
        await ground.pass_time(60.0)
        await ground.look()
        assert is_free(ground)


async def test_of_workers_that_share_an_account_the_one_that_held_the_claim_counts() -> None:
    async with LockGround() as ground:
        ground.github.claim(REPO, 1, "acme-bot")
        ground.beating.update({"shared-1": None, "shared-2": None})
        await ground.pass_time(60.0)
        await ground.claims("shared-1", f"{REPO}#1")
        del ground.beating["shared-1"]
        await ground.pass_time(LEASE - 60.0)
        await ground.look()
        assert is_held(ground, "acme-bot")
        await ground.pass_time(60.0 + LOOK_EVERY + 30.0)  # The engine pings before it releases the claim.
        assert ground.hub_ground.told("CLAIM_RELEASED")
        await ground.look()
        assert is_free(ground)
        assert [fact.agent_id for fact in await ground.recovered()] == ["shared-1"]


async def test_if_nobody_knows_which_of_them_holds_it_every_living_one_does() -> None:
    async with LockGround() as ground:
        ground.github.claim(REPO, 1, "acme-bot")
        ground.beating.update({"shared-1": None, "shared-2": None})
        await ground.pass_time(60.0)
        del ground.beating["shared-1"]
        await ground.pass_time(3600.0)
        await ground.look()
        assert is_held(ground, "acme-bot")


async def test_a_paused_worker_keeps_its_lock() -> None:
    async with LockGround() as ground:
        await worker_dies(ground)
        ground.hear(PauseRequested(agent_id="worker-1", by="ann"))
        await ground.pass_time(3600.0)
        await ground.look()
        assert is_held(ground, "worker-1")


async def test_what_its_account_does_at_github_is_a_sign_of_life() -> None:
    async with LockGround() as ground:
        await worker_dies(ground)
        await ground.pass_time(LEASE - 60.0)
        ground.github.say(REPO, 1, "worker-1", "I build it again.")
        await ground.pass_time(120.0)
        await ground.look()
        assert is_held(ground, "worker-1")
        await ground.pass_time(LEASE)
        await ground.look()
        assert is_free(ground)


async def test_a_hub_that_was_deposed_leaves_locks_alone() -> None:
    async with LockGround() as ground:
        await worker_dies(ground)
        await ground.pass_time(LEASE + 60.0)
        ground.hub_ground.hub.committer.give_up(AdapterError("another hub has taken over", transient=False))
        asked = len(ground.github.calls)
        await ground.look()
        assert len(ground.github.calls) == asked


async def test_only_looking_changes_nothing() -> None:
    async with LockGround(release=False) as ground:
        await worker_dies(ground)
        await ground.pass_time(LEASE + 60.0)
        await ground.look()
        assert is_held(ground, "worker-1")


# --- several monitors, faults ---------------------------------------------------------------------------------


async def test_several_monitors_release_once_and_comment_once() -> None:
    async with LockGround() as ground:
        for number in range(1, 11):
            ground.github.claim(REPO, number, "worker-1")
        ground.beating["worker-1"] = None
        others = [await ground.another_watch(f"hub-{n}") for n in (2, 3, 4)]
        await ground.pass_time(120.0)
        del ground.beating["worker-1"]
        await ground.pass_time(LEASE)
        await asyncio.gather(*(ground.look(watch) for watch in (ground.watch, *others)))
        await ground.pass_time(LOOK_EVERY)
        await asyncio.gather(*(ground.look(watch) for watch in (ground.watch, *others)))
        assert all(is_free(ground, number) for number in range(1, 11))
        assert [len(ground.github.said(REPO, number, STALE)) for number in range(1, 11)] == [1] * 10
        assert sorted(fact.lock for fact in await ground.recovered()) == sorted(
            f"{REPO}#{n}" for n in range(1, 11)
        )


STEPS = [
    ("POST", "/comments$"),
    ("GET", "/comments$"),
    ("GET", "/events$"),
    ("DELETE", "/assignees$"),
    ("POST", "/labels$"),
    ("DELETE", "/labels/"),
    ("GET", "/issues/1$"),
    ("PATCH", "/comments/"),
]
FAULTS: list[dict[str, Any]] = [
    {"status": 500},
    {"status": 502, "after": True},
    {"hang_up": True},
    {"hang_up": True, "after": True},
    {"status": 403, "headers": {"Retry-After": "30"}, "body": {"message": "secondary rate limit"}},
]


@pytest.mark.parametrize("step", STEPS, ids=[f"{m} {p}" for m, p in STEPS])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: " ".join(map(str, one.values()))[:30])
async def test_whichever_step_fails_it_is_released_once(step: tuple[str, str], fault: dict[str, Any]) -> None:
    """Also if the request was carried out and only its answer was lost."""
    async with LockGround() as ground:
        await worker_dies(ground)
        await ground.pass_time(LEASE)
        ground.github.fail(*step, Fault(**fault))
        for _ in range(6):
            await ground.look()
            await ground.pass_time(LOOK_EVERY)
        assert not ground.github.faults, "the fault was met"
        assert is_free(ground)
        (comment,) = ground.github.said(REPO, 1, STALE)
        assert "released -->" in comment
        assert len(await ground.recovered()) == 1


async def test_what_a_monitor_that_died_left_behind_another_one_finishes() -> None:
    async with LockGround() as ground:
        await worker_dies(ground)
        await ground.pass_time(LEASE)
        ground.github.fail("POST", "/labels$", Fault())
        await ground.look()
        assert not ground.github.assignees(REPO, 1)
        assert ground.github.labels(REPO, 1) == [IN_PROGRESS]
        successor = await ground.another_watch("hub-2")
        await ground.look(successor)
        assert ground.github.labels(REPO, 1) == [IN_PROGRESS], "the other one may still be at it"
        await ground.pass_time(200.0)
        await ground.look(successor)
        assert is_free(ground)
        assert len(ground.github.said(REPO, 1, STALE)) == 1
        assert len(await ground.recovered()) == 1


async def test_who_claims_it_in_the_middle_of_the_release_has_a_whole_lock() -> None:
    async with LockGround() as ground:
        await worker_dies(ground)
        await ground.pass_time(LEASE)
        ground.beating["shared-1"] = None

        def claimed_at_once(method: str, path: str) -> None:
            if method == "DELETE" and "/labels/" in path:
                ground.github.claim(REPO, 1, "acme-bot")

        ground.github.before = claimed_at_once
        await ground.look()
        assert is_held(ground, "acme-bot")


# --- races with a worker that comes back ----------------------------------------------------------------------


async def test_in_many_races_with_a_worker_that_comes_back_it_is_released_once_or_not_at_all() -> None:
    """It beats again at a random request of the release, of two monitors at once. Either the lock is its own as before, without a
    word about it; or it was released, once, with one comment and one entry. Never half of each."""
    chance, released = random.Random(20261117), 0
    async with LockGround(per_minute=80, per_hour=500) as ground:
        other = await ground.another_watch("hub-2")
        loop = asyncio.get_running_loop()
        for race in range(1, RACES + 1):
            ground.github.claim(REPO, race, "worker-1")
            ground.beating["worker-1"] = f"{REPO}#{race}"
            await ground.pass_time(90.0)
            del ground.beating["worker-1"]
            await ground.pass_time(LEASE + 30.0)
            before, comes_back_at = len(await ground.recovered()), chance.randrange(30)
            asked = iter(range(1000))

            def come_back(_method: str, _path: str, at: int = comes_back_at, asked: Any = asked) -> None:
                if next(asked) == at:
                    loop.call_soon_threadsafe(ground.beat, "worker-1")

            ground.github.before = come_back
            await asyncio.gather(ground.look(), ground.look(other))
            ground.github.before = lambda _method, _path: None
            for _ in range(2):
                await ground.look()
                await ground.look(other)
            recovered = len(await ground.recovered()) - before
            said = ground.github.said(REPO, race, STALE)
            if recovered:
                assert (recovered, len(said), is_free(ground, race)) == (1, 1, True), race
                released += 1
            else:
                assert (said, is_held(ground, "worker-1", race)) == ([], True), race
                ground.github.unlabel(REPO, race, IN_PROGRESS)
    assert RACES / 10 < released < RACES * 0.9, "both ends are met"


async def test_a_worker_that_is_back_before_the_comment_is_written_keeps_its_lock() -> None:
    async with LockGround() as ground:
        await worker_dies(ground)
        await ground.pass_time(LEASE)
        loop = asyncio.get_running_loop()

        def come_back(method: str, path: str) -> None:
            if method == "POST" and path.endswith("/comments"):
                loop.call_soon_threadsafe(ground.beat, "worker-1")

        ground.github.before = come_back
        await ground.look()
        assert is_held(ground, "worker-1")
        assert ground.github.said(REPO, 1) == []
        assert await ground.recovered() == []
