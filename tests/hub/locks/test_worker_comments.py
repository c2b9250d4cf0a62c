"""Comments about workers: one for each issue, edited in place, never more than the budget, and in nobody's way."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from tests.hub.locks.ground import REPO, LockGround
from tests.servers.github import Call, Fault

MARK = "lifesigns:workers"


def most_in(calls: list[Call], span: float) -> int:
    """The most of them within any such time."""
    return max((sum(one.at <= call.at < one.at + span for call in calls) for one in calls), default=0)


async def test_one_comment_is_written_and_then_edited_in_place() -> None:
    async with LockGround(comments=True) as ground:
        ground.github.claim(REPO, 1, "worker-1")
        ground.beating["worker-1"] = f"{REPO}#1"
        for _ in range(20):
            await ground.pass_time(60.0)
            await ground.look()
        (comment,) = ground.github.said(REPO, 1)
        assert "Worker: `worker-1`" in comment
        assert "✅ healthy" in comment
        assert "CPU: 45.2%" in comment
        written = ground.github.written()
        assert [call.method for call in written] == ["POST", "PATCH", "PATCH", "PATCH"], "every five minutes"


async def test_a_change_is_told_before_its_time() -> None:
    async with LockGround(comments=True, release=False) as ground:
        ground.github.claim(REPO, 1, "worker-1")
        ground.beating["worker-1"] = f"{REPO}#1"
        await ground.pass_time(60.0)
        await ground.look()
        del ground.beating["worker-1"]
        await ground.pass_time(660.0)
        await ground.look()
        (comment,) = ground.github.said(REPO, 1)
        assert "❌ disconnected" in comment


async def test_workers_of_one_issue_share_its_comment() -> None:
    async with LockGround(comments=True) as ground:
        ground.github.claim(REPO, 1, "acme-bot")
        ground.beating.update({"shared-1": f"{REPO}#1", "shared-2": "#1", "somebody-else": "#1"})
        await ground.pass_time(60.0)
        await ground.look()
        (comment,) = ground.github.said(REPO, 1)
        assert "`shared-1`" in comment
        assert "`shared-2`" in comment
        assert "somebody-else" not in comment, "it is no worker of this account"


async def test_a_new_hub_goes_on_with_the_same_comment() -> None:
    async with LockGround(comments=True) as ground:
        ground.github.claim(REPO, 1, "worker-1")
        ground.beating["worker-1"] = f"{REPO}#1"
        await ground.pass_time(60.0)
        await ground.look()
        await ground.look(await ground.another_watch("hub-2"))
        assert len(ground.github.said(REPO, 1, MARK)) == 1


async def test_two_hubs_that_write_it_at_once_leave_one() -> None:
    async with LockGround(comments=True) as ground:
        ground.github.claim(REPO, 1, "worker-1")
        ground.beating["worker-1"] = f"{REPO}#1"
        await ground.pass_time(60.0)
        other = await ground.another_watch("hub-2")
        await asyncio.gather(ground.look(), ground.look(other))
        assert len(ground.github.said(REPO, 1, MARK)) == 1


async def test_a_deleted_comment_is_written_anew() -> None:
    async with LockGround(comments=True) as ground:
        ground.github.claim(REPO, 1, "worker-1")
        ground.beating["worker-1"] = f"{REPO}#1"
        await ground.pass_time(60.0)
        await ground.look()
        ground.github.comments[REPO, 1].clear()
        await ground.pass_time(301.0)
        await ground.look()
        await ground.look()
        assert len(ground.github.said(REPO, 1, MARK)) == 1


async def test_an_answer_that_was_lost_makes_no_second_comment() -> None:
    async with LockGround(comments=True) as ground:
        ground.github.claim(REPO, 1, "worker-1")
        ground.beating["worker-1"] = f"{REPO}#1"
        await ground.pass_time(60.0)
        ground.github.fail("POST", "/comments$", Fault(after=True, hang_up=True))
        await ground.look()
        await ground.pass_time(60.0)
        await ground.look()
        assert not ground.github.faults
        assert len(ground.github.said(REPO, 1, MARK)) == 1


async def test_names_can_be_hidden() -> None:
    async with LockGround(comments=True, anonymous=True) as ground:
        ground.github.claim(REPO, 1, "worker-1")
        ground.beating["worker-1"] = f"{REPO}#1"
        await ground.pass_time(60.0)
        await ground.look()
        (comment,) = ground.github.said(REPO, 1)
        assert "worker-1`" not in comment


@pytest.mark.parametrize(("per_minute", "limit"), [(20, None), (60, 30)], ids=["our budget", "their limit"])
async def test_a_storm_of_two_hundred_workers_stays_within_the_limits(
    per_minute: int, limit: int | None
) -> None:
    """Not one comment over our own budget; and when GitHub allows less, it has to say so once and is left alone for as
    long as it asked. In the end every issue has its comment."""
    async with LockGround(
        comments=True, release=False, per_minute=per_minute, per_hour=500, workers={"bot-*": ("w-*",)}
    ) as ground:
        ground.github.per_minute = limit
        for number in range(1, 201):
            ground.github.claim(REPO, number, f"bot-{number}")
            ground.beating[f"w-{number}"] = f"{REPO}#{number}"
        limited: list[float] = []
        for _ in range(13):  # The last comment is written in the tenth minute.
            await ground.pass_time(60.0)
            before = ground.github.limited
            await ground.look()
            limited += [ground.now] * (ground.github.limited - before)
        written = ground.github.written()
        assert most_in(written, 60.0) <= min(per_minute, limit or per_minute)
        assert most_in(written, 3600.0) <= 500
        assert all(len(ground.github.said(REPO, number, MARK)) == 1 for number in range(1, 201))
        assert all(later - one >= 60.0 for one, later in pairwise(limited))
        assert bool(limited) == (limit is not None)


async def test_the_hourly_limit_is_waited_for() -> None:
    async with LockGround(comments=True) as ground:
        ground.github.claim(REPO, 1, "worker-1")
        ground.beating["worker-1"] = f"{REPO}#1"
        await ground.pass_time(60.0)
        ground.github.remaining, ground.github.reset_at = 1, ground.now + 1800.0
        await ground.look()
        asked = len(ground.github.calls)
        for _ in range(29):
            await ground.look()
            await ground.pass_time(60.0)
        assert len(ground.github.calls) == asked, "nothing is asked before it is reset"
        assert ground.github.limited == 0
        await ground.pass_time(120.0)
        await ground.look()
        assert len(ground.github.said(REPO, 1, MARK)) == 1
