"""What is refused or fails waits in order; nothing is lost in silence."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lifesigns.agent.guard.guard import Breaker, guard
from lifesigns.agent.guard.saving import AsyncSaveQueue, SaveQueue
from lifesigns.errors import AdapterError, UsageError
from tests.agent.guard.world import Down

SOON = 0.005
LONG = 60.0


class Disk:
    """Keeps what is written, in order; fails while it is down; refuses what is not a string."""

    def __init__(self, down: bool = False) -> None:
        self.down = down
        self.kept: list[str] = []
        self.tried = 0

    def write(self, item: str) -> None:
        self.tried += 1
        if self.down:
            raise Down
        if not isinstance(item, str):
            raise TypeError(f"{item!r} is not a checkpoint")
        self.kept.append(item)

    async def awrite(self, item: str) -> None:
        await asyncio.sleep(0)
        self.write(item)


def quick_breaker(**changes: Any) -> Breaker:
    """Opens at the second failure, for a moment."""
    changes = {"failure_threshold": 2, "recovery_timeout": 0.02, "ignore": TypeError, **changes}
    return Breaker("checkpoint_write", registry=None, **changes)


def savers() -> int:
    return sum(thread.name == "lifesigns-save" for thread in threading.enumerate())


def wait_until_no_thread_is_left() -> None:
    deadline = time.monotonic() + 30
    while savers() and time.monotonic() < deadline:
        time.sleep(0.002)
    assert savers() == 0


def test_what_can_be_written_is_written_at_once_and_without_a_thread() -> None:
    disk = Disk()
    with SaveQueue(quick_breaker(), disk.write) as saves:
        assert saves.save("a").done()
        assert (disk.kept, saves.pending, savers()) == (["a"], 0, 0)


def test_what_fails_waits_and_is_written_in_order_when_the_disk_is_back() -> None:
    disk = Disk(down=True)
    with SaveQueue(quick_breaker(), disk.write, retry_every=SOON) as saves:
        futures = [saves.save(item) for item in "abcde"]
        assert saves.pending == 5
        assert not any(future.done() for future in futures)
        disk.down = False
        assert saves.flush(30)
        assert all(future.result(30) is None for future in futures)
    assert disk.kept == list("abcde")
    wait_until_no_thread_is_left()


def test_what_is_refused_is_not_tried_and_waits_too() -> None:
    disk = Disk()
    breaker = quick_breaker()
    breaker.force_open()
    with SaveQueue(breaker, disk.write, retry_every=SOON) as saves:
        future = saves.save("a")
        assert (disk.tried, saves.pending) == (0, 1)
        breaker.close()
        assert future.result(30) is None
    assert disk.kept == ["a"]


def test_a_disk_that_stays_down_is_spared_by_the_breaker() -> None:
    disk = Disk(down=True)
    breaker = quick_breaker(recovery_timeout=LONG)
    saves = SaveQueue(breaker, disk.write, retry_every=SOON)
    saves.save("a")
    assert not saves.flush(0.2)
    assert disk.tried == 2, "then it opened"
    assert saves.close() == ["a"]


def test_a_later_save_never_overtakes_a_slow_earlier_one() -> None:
    kept: list[str] = []
    inside, go_on = threading.Event(), threading.Event()

    def write(item: str) -> None:
        if item == "first":
            inside.set()
            assert go_on.wait(30)
        kept.append(item)

    with SaveQueue(quick_breaker(), write) as saves:
        thread = threading.Thread(target=saves.save, args=("first",))
        thread.start()
        assert inside.wait(30)
        second = saves.save("second")
        assert not second.done(), "and who saved it was not blocked"
        go_on.set()
        assert second.result(30) is None
        thread.join(30)
    assert kept == ["first", "second"]


def test_a_full_queue_tells_who_saves_and_keeps_the_rest() -> None:
    disk = Disk(down=True)
    with SaveQueue(quick_breaker(), disk.write, limit=2, retry_every=LONG) as saves:
        saves.save("a")
        saves.save("b")
        with pytest.raises(
            AdapterError, match="'checkpoint_write' is full, 2 items wait; the last error was Down"
        ) as full:
            saves.save("c")
        assert isinstance(full.value.__cause__, Down)
        disk.down = False
        assert saves.flush(30)
    assert disk.kept == ["a", "b"]


def test_what_is_wrong_with_an_item_is_told_to_who_saved_it_and_stops_nobody() -> None:
    disk = Disk()
    wrong: Any = 7
    with SaveQueue(quick_breaker(), disk.write, retry_every=SOON) as saves:
        with pytest.raises(TypeError, match="7 is not a checkpoint"):
            saves.save(wrong)
        disk.down = True
        first, second, third = saves.save("a"), saves.save(wrong), saves.save("b")
        disk.down = False
        assert isinstance(second.exception(30), TypeError)
        assert (first.result(30), third.result(30)) == (None, None)
    assert disk.kept == ["a", "b"]


def test_a_result_that_counts_as_a_failure_waits_like_one() -> None:
    answers = [500, 503, 200]

    def write(item: str) -> int:
        return answers.pop(0)

    breaker = quick_breaker(failure_if=lambda status: status >= 500)
    with SaveQueue(breaker, write, retry_every=SOON) as saves:
        assert saves.save("a").result(30) is None
    assert answers == []


def test_an_interrupted_write_interrupts_who_saves() -> None:
    def write(item: str) -> None:
        raise KeyboardInterrupt

    with SaveQueue(quick_breaker(), write) as saves:
        with pytest.raises(KeyboardInterrupt):
            saves.save("a")
        assert saves.pending == 0


def test_what_is_left_at_the_end_is_given_back_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    disk = Disk(down=True)
    saves = SaveQueue(quick_breaker(), disk.write, retry_every=LONG)
    futures = [saves.save(item) for item in "ab"]
    assert saves.close(timeout=0.01) == ["a", "b"]
    for future in futures:
        assert isinstance(future.exception(0), AdapterError)
    with pytest.raises(UsageError, match="closed"):
        saves.save("c")
    assert saves.close() == []
    wait_until_no_thread_is_left()
    with caplog.at_level(logging.ERROR), pytest.MonkeyPatch.context() as patch:
        patch.setattr("lifesigns.agent.guard.saving.EXIT_FOR", 0.01)
        with SaveQueue(quick_breaker(), disk.write, retry_every=LONG) as saves:
            saves.save("a")
    assert "1 items could not be saved under breaker 'checkpoint_write'" in caplog.text
    wait_until_no_thread_is_left()


def test_a_name_is_enough_and_settings_that_cannot_work_are_refused() -> None:
    saves = SaveQueue("tests.saving", Disk().write)
    assert saves.breaker is guard("tests.saving")
    with pytest.raises(UsageError, match="limit: 0"):
        SaveQueue("tests.saving", Disk().write, limit=0)
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(UsageError, match="retry_every"):
            SaveQueue("tests.saving", Disk().write, retry_every=wrong)
    with pytest.raises(UsageError, match="AsyncSaveQueue"):
        SaveQueue("tests.saving", Disk().awrite)


@settings(max_examples=25)
@given(st.lists(st.sampled_from(["save", "down", "up", "wrong", "flush"]), max_size=40))
def test_whatever_happens_order_is_kept_and_every_item_has_a_fate(story: list[str]) -> None:
    disk = Disk()
    fates: dict[str, Future[None]] = {}
    saves: SaveQueue[Any] = SaveQueue(
        quick_breaker(recovery_timeout=0.001), disk.write, limit=5, retry_every=0.001
    )
    for n, what in enumerate(story):
        if what in ("down", "up"):
            disk.down = what == "down"
        elif what == "flush":
            saves.flush(0 if disk.down else 30)
        else:
            with suppress(AdapterError, TypeError):
                fates[str(n)] = saves.save(str(n) if what == "save" else n)
    disk.down = False
    assert saves.flush(30)
    assert saves.close() == []
    written = [key for key, fate in fates.items() if fate.exception(0) is None]
    assert disk.kept == written


def test_eight_threads_save_and_nothing_is_lost_or_doubled() -> None:
    disk = Disk()
    saves = SaveQueue(quick_breaker(recovery_timeout=0.001), disk.write, limit=10_000, retry_every=0.001)

    def work(name: int) -> None:
        for n in range(100):
            disk.down = n % 7 == 0
            saves.save(f"{name}:{n:03}")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    disk.down = False
    assert saves.flush(30)
    assert saves.close() == []
    assert len(disk.kept) == 800
    for name in range(8):
        mine = [item for item in disk.kept if item.startswith(f"{name}:")]
        assert mine == sorted(mine)
    wait_until_no_thread_is_left()


# --- processes -----------------------------------------------------------------------------------------


def test_a_process_that_ends_writes_what_waits() -> None:
    code = """
import lifesigns.agent.guard.saving as saving
from lifesigns.agent.guard.guard import Breaker
tries = []
def write(item):
    tries.append(item)
    if len(tries) == 1: raise OSError("not yet")
    print("saved", item)
def never(item): raise OSError("never")
saving.EXIT_FOR = 0.5
good = saving.SaveQueue(Breaker("good"), write, retry_every=60); good.save("a")
bad = saving.SaveQueue(Breaker("bad"), never, retry_every=60); bad.save("b")
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "saved a\n")
    assert "1 items could not be saved under breaker 'bad'" in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_begins_empty_and_leaves_the_rest_to_its_parent() -> None:
    disk = Disk(down=True)
    saves = SaveQueue(quick_breaker(), disk.write, retry_every=LONG)
    saves.save("parent's")
    child = os.fork()
    if child == 0:
        try:
            disk.down = False
            fine = saves.pending == 0
            saves.breaker.reset()
            saves.save("child's")
            os._exit(0 if fine and disk.kept == ["child's"] else 3)
        finally:
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    disk.down = False
    assert saves.flush(30)
    assert disk.kept == ["parent's"]


# --- on an event loop ------------------------------------------------------------------------------------


async def test_on_a_loop_what_fails_waits_and_is_written_in_order() -> None:
    disk = Disk(down=True)
    async with AsyncSaveQueue(quick_breaker(), disk.awrite, retry_every=SOON) as saves:
        futures = [await saves.save(item) for item in "abcde"]
        assert saves.pending == 5
        disk.down = False
        assert await saves.flush(30)
        assert all(future.result() is None for future in futures)
        assert (await saves.save("f")).done()
        assert len(asyncio.all_tasks()) == 1, "while nothing waits there is no task"
    assert disk.kept == list("abcdef")


async def test_on_a_loop_many_at_once_keep_their_order() -> None:
    disk = Disk()
    async with AsyncSaveQueue(quick_breaker(), disk.awrite, retry_every=SOON) as saves:
        await asyncio.gather(*(saves.save(f"{n:02}") for n in range(50)))
        assert await saves.flush(30)
    assert disk.kept == [f"{n:02}" for n in range(50)]


async def test_on_a_loop_a_full_queue_and_a_wrong_item_are_told() -> None:
    disk = Disk(down=True)
    wrong: Any = 7
    async with AsyncSaveQueue(quick_breaker(), disk.awrite, limit=3, retry_every=SOON) as saves:
        first, second, third = [await saves.save(item) for item in ("a", wrong, "b")]
        with pytest.raises(AdapterError, match="is full"):
            await saves.save("c")
        disk.down = False
        with pytest.raises(TypeError):
            await second
        await first
        await third
        with pytest.raises(TypeError):
            await saves.save(wrong)
    assert disk.kept == ["a", "b"]


async def test_on_a_loop_who_is_cancelled_while_saving_takes_the_item_along() -> None:
    inside = asyncio.Event()
    kept: list[str] = []

    async def write(item: str) -> None:
        if item == "slow":
            inside.set()
            await asyncio.Event().wait()
        kept.append(item)

    async with AsyncSaveQueue(quick_breaker(), write) as saves:
        task = asyncio.create_task(saves.save("slow"))
        await inside.wait()
        second = await saves.save("second")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(second, 30)
    assert kept == ["second"]


async def test_on_a_loop_what_is_left_at_the_end_is_given_back_even_in_the_middle_of_a_write() -> None:
    calls = 0

    async def write(item: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise Down
        await asyncio.Event().wait()

    saves = AsyncSaveQueue(quick_breaker(), write, retry_every=SOON)
    futures = [await saves.save(item) for item in "ab"]
    assert await saves.close(timeout=0.1) == ["a", "b"]
    assert calls == 2
    for future in futures:
        assert isinstance(future.exception(), AdapterError)
    with pytest.raises(UsageError, match="closed"):
        await saves.save("c")
    assert len(asyncio.all_tasks()) == 1


async def test_on_a_loop_who_gives_up_waiting_does_not_undo_the_save() -> None:
    disk = Disk(down=True)
    async with AsyncSaveQueue(quick_breaker(), disk.awrite, retry_every=SOON) as saves:
        future = await saves.save("a")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(future, 0.01)
        disk.down = False
        assert await saves.flush(30)
    assert disk.kept == ["a"]


def test_what_is_being_tried_in_vain_while_the_queue_closes_is_returned_too() -> None:
    """Nothing is lost in silence: not even what was under way at that very moment."""
    trying, go_on = threading.Event(), threading.Event()
    tries: list[str] = []

    def write(item: str) -> None:
        tries.append(item)
        if len(tries) > 1:
            trying.set()
            go_on.wait(LONG)
        raise Down

    saves = SaveQueue(quick_breaker(failure_threshold=9), write, retry_every=SOON)
    saves.save("a")
    saves.save("b")
    assert trying.wait(LONG)
    threading.Timer(0.02, go_on.set).start()
    assert saves.close(LONG / 60) == ["a", "b"]
