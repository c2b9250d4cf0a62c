"""Many callers at once: exactly the probes pass, no lock is held across a call, counts add up, nothing wedges."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from itertools import pairwise
from typing import Any

import pytest

from lifesigns.agent.guard.guard import Breaker
from lifesigns.core.breaker import Turn
from lifesigns.errors import BreakerOpen
from tests.agent.guard.world import Clock, Down, Service, breaker, fail, half_open, opened, registry_with

CALLERS = 100


def in_threads(count: int, act: Callable[[], object]) -> list[object]:
    """Let this many threads do the same at the same moment; what each got, an exception included."""
    start = threading.Barrier(count)
    got: list[object] = []

    def one() -> None:
        start.wait(30)
        try:
            got.append(act())
        except Exception as error:  # noqa: BLE001 -- what came of it is what is asked
            got.append(error)

    threads = [threading.Thread(target=one) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(got) == count
    return got


@pytest.mark.parametrize("probes", [1, 3])
@pytest.mark.parametrize("form", ["decorator", "call", "block"])
def test_of_a_hundred_threads_exactly_the_probes_pass(probes: int, form: str) -> None:
    one, _ = half_open(half_open_requests=probes)
    refusals = iter(range(1, CALLERS))
    everybody_asked = threading.Event()

    def slow() -> str:
        assert everybody_asked.wait(30)
        return "passed"

    guarded = one(slow)

    def block() -> str:
        with one:
            return slow()

    ways: dict[str, Callable[[], str]] = {
        "decorator": guarded,
        "call": lambda: one.call(slow),
        "block": block,
    }

    def ask() -> str:
        try:
            return ways[form]()
        except BreakerOpen:
            if next(refusals) == CALLERS - probes:
                everybody_asked.set()
            return "refused"

    answers = in_threads(CALLERS, ask)
    assert answers.count("passed") == probes
    assert answers.count("refused") == CALLERS - probes
    assert one.state == "closed"


@pytest.mark.parametrize("probes", [1, 3])
@pytest.mark.parametrize("form", ["decorator", "call", "block"])
async def test_of_a_hundred_tasks_exactly_the_probes_pass(probes: int, form: str) -> None:
    one, _ = half_open(half_open_requests=probes)
    everybody_asked = asyncio.Event()
    passed, refused = 0, 0

    async def slow() -> None:
        nonlocal passed
        passed += 1
        await everybody_asked.wait()

    guarded = one(slow)

    async def ask() -> None:
        nonlocal refused
        try:
            if form == "decorator":
                await guarded()
            elif form == "call":
                await one.acall(slow)
            else:
                async with one:
                    await slow()
        except BreakerOpen:
            refused += 1
            if refused == CALLERS - probes:
                everybody_asked.set()

    async with asyncio.timeout(30):
        await asyncio.gather(*(ask() for _ in range(CALLERS)))
    assert (passed, refused) == (probes, CALLERS - probes)
    assert one.state == "closed"


async def test_a_cancelled_probe_makes_room_for_the_next() -> None:
    one, _ = half_open()
    forever = one(asyncio.Event().wait)
    for _ in range(5):
        task = asyncio.create_task(forever())
        await asyncio.sleep(0)
        with pytest.raises(BreakerOpen):
            await one.acall(Service().acall)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await one.acall(Service().acall, "well") == "well"
    assert one.state == "closed"


def test_a_probe_that_never_comes_back_does_not_wedge_it() -> None:
    one, clock = half_open()
    copy_context().run(one.step_in)
    with pytest.raises(BreakerOpen):
        one.call(Service())
    clock.now += 60.0
    assert one.state == "open", "it is lost"
    clock.now += 60.0
    assert one.call(Service(), "well") == "well"
    assert one.state == "closed"


@pytest.mark.parametrize("settings", [{}, {"failure_rate": 0.5}, {"half_open_requests": 2}], ids=str)
def test_a_call_that_blocks_does_not_block_the_others(settings: dict[str, Any]) -> None:
    """Unlike with a lock held during the call: two calls can wait for each other inside."""
    one, _ = half_open(**settings) if "half_open_requests" in settings else (breaker(**settings), None)
    meeting = threading.Barrier(2)
    results = in_threads(2, lambda: one.call(meeting.wait, 10))
    assert sorted(str(each) for each in results) == ["0", "1"]
    assert one.state == "closed"


# --- calls inside calls ------------------------------------------------------------------------------------


def test_a_guarded_call_inside_a_probe_of_the_same_breaker_is_a_part_of_it() -> None:
    """Otherwise it would refuse itself, and a breaker with one probe would never close."""
    one, _ = half_open()
    inner = one(Service())

    @one
    def outer() -> list[str]:
        with one:
            return [inner(x) for x in "abc"]

    assert outer() == ["a", "b", "c"]
    assert one.state == "closed"


async def test_tasks_started_inside_a_probe_are_a_part_of_it_as_long_as_it_runs() -> None:
    one, _ = half_open()
    inner = one(Service().acall)
    later = asyncio.Event()

    async def linger() -> Any:
        await later.wait()
        return await inner("late")

    @one
    async def outer(down: bool) -> asyncio.Task[Any]:
        task = asyncio.create_task(linger())
        assert await asyncio.gather(*(inner(x) for x in "ab")) == ["a", "b"]
        if down:
            later.set()
            assert await task == "late"
            raise Down
        return task

    with pytest.raises(Down):
        await outer(down=True)
    assert one.state == "open", "the outer call is the probe"
    later.clear()
    one.reset()
    fail(one)
    one.clock.now += 200.0  # type: ignore[attr-defined]
    task = await outer(down=False)
    fail(one)
    later.set()
    with pytest.raises(BreakerOpen):
        await task


def test_breakers_inside_each_other_count_for_themselves() -> None:
    clock = Clock()
    outer = Breaker("outer", clock=clock, registry=None)
    inner = Breaker("inner", clock=clock, registry=None, failure_threshold=2)
    service = Service(down=True)
    both = outer(inner(service))
    for error in (Down, Down, BreakerOpen):
        with pytest.raises(error):
            both()
    assert (outer.state, inner.state) == ("open", "open")
    assert service.calls == 2
    clock.now += 60.0
    service.down = False
    both()
    assert (outer.state, inner.state) == ("closed", "closed")


def test_its_own_refusal_is_no_failure() -> None:
    """A probe hands work to a thread, which is refused because it does not know that it belongs to the probe."""
    one, _ = half_open()
    with ThreadPoolExecutor(1) as pool, pytest.raises(BreakerOpen):
        one.call(lambda: pool.submit(one.call, Service()).result(30))
    assert one.state == "half_open"


def test_blocks_that_end_in_another_order_than_they_began_return_their_permits() -> None:
    one, _ = half_open(half_open_requests=2)

    def block() -> Iterator[None]:
        with one:
            yield

    first, second = block(), Breaker("other", registry=None)
    next(first)
    with second:
        next(first, None)
    one.call(Service())
    assert one.state == "closed"


# --- counts ------------------------------------------------------------------------------------------------


def test_eight_threads_lose_no_failure() -> None:
    one = breaker(failure_threshold=7)
    one.observe_only()

    def work() -> None:
        guarded = one(Service(down=True))
        for _ in range(700):
            with suppress(Down):
                guarded()

    in_threads(8, work)
    status = one.status()
    assert (status.trips, status.failures) == (800, 0)


def test_eight_threads_lose_no_call_of_the_window() -> None:
    one = breaker(failure_rate=1.0, window_calls=100_000, min_calls=100_000, failure_threshold=100_000)

    def work() -> None:
        well, ill = one(Service()), one(Service(down=True))
        for _ in range(500):
            well()
            with suppress(Down):
                ill()

    in_threads(8, work)
    assert one.status().calls == 8000


def test_under_any_load_it_keeps_its_laws() -> None:
    """Eight threads, a service that comes and goes, a clock that moves: at most the probes run in half-open, the
    turns told follow each other, and at the end it closes."""
    registry = registry_with()
    clock = Clock()
    one = Breaker("api", clock=clock, registry=registry, half_open_requests=2, recovery_timeout=1.0)
    told: list[Turn] = []
    registry.watch(lambda _, turn: told.append(turn))
    service = Service()

    def work() -> None:
        guarded = one(service)
        for n in range(1500):
            with suppress(Down, BreakerOpen):
                guarded()
            if n % 50 == 0:
                clock.now += 0.25
                service.down = n // 50 % 3 == 0

    in_threads(8, work)
    assert len(told) > 10
    assert all(before.now is after.was and before.at <= after.at for before, after in pairwise(told))
    service.down = False
    clock.now += 120.0
    for _ in range(2):
        one.call(service)
    assert one.state == "closed"


# --- forks and finalizers ------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_fork_while_another_thread_holds_the_locks_is_harmless() -> None:
    registry = registry_with("api")
    one = registry.get("api")
    assert one is not None
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with one._lock, registry.lock:
            held.set()
            release.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(30)
    child = os.fork()
    if child == 0:
        try:
            fail(one)
            os._exit(0 if one.state == "open" and len(registry.all()) == 1 else 3)
        finally:
            os._exit(4)
    release.set()
    thread.join(30)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert one.state == "closed"


def test_a_generator_that_is_forgotten_returns_its_permit() -> None:
    one, _ = half_open()

    @one
    def items() -> Iterator[int]:
        yield 1
        yield 2

    stream = items()
    next(stream)
    with pytest.raises(BreakerOpen):
        one.call(Service())
    with one._lock:  # the collector may come while this very thread holds the lock
        del stream
        gc.collect()
    one.call(Service())
    assert one.state == "closed"


def test_opened_and_never_asked_again_it_costs_nothing_and_still_knows_the_time() -> None:
    one, clock = opened()
    clock.now += 1e9
    assert one.state == "half_open"
