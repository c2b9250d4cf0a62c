"""The loop probe: one question at a time, and what the loop still owes is its lag."""

import asyncio
import threading
import time

import pytest

from lifesigns.agent.probe import LoopProbe


async def test_a_loop_that_turns_answers_soon() -> None:
    probe = LoopProbe(asyncio.get_running_loop())
    asked_at = time.monotonic()
    assert probe.ask(asked_at)
    await _turns()
    answered_at = probe.answered_at
    assert answered_at is not None
    assert probe.asked_at is None
    assert asked_at <= answered_at
    assert probe.lag(asked_at + 100) == answered_at - asked_at


async def test_a_blocked_loop_owes_its_answer_and_the_lag_grows() -> None:
    probe = LoopProbe(asyncio.get_running_loop())
    now = time.monotonic()
    probe.ask(now)
    # Nothing is awaited here: the loop is blocked as far as the probe can tell.
    assert probe.lag(now + 1.0) == pytest.approx(1.0)
    assert probe.lag(now + 7.5) == pytest.approx(7.5)


async def test_a_loop_is_asked_once_until_it_answers() -> None:
    """A frozen loop gathers no questions: they would all run when it thaws."""
    asked = 0
    loop = asyncio.get_running_loop()
    probe = LoopProbe(loop)
    real = loop.call_soon_threadsafe

    def count(*args: object, **options: object) -> object:
        nonlocal asked
        asked += 1
        return real(*args, **options)  # type: ignore[arg-type]

    loop.call_soon_threadsafe = count  # type: ignore[method-assign, assignment]
    now = time.monotonic()
    for tick in range(10):
        assert probe.ask(now + tick)
    assert asked == 1
    assert probe.lag(now + 9) == pytest.approx(9)


def test_a_loop_that_was_frozen_tells_how_late_it_answered() -> None:
    async def freeze() -> float:
        probe = LoopProbe(asyncio.get_running_loop())
        asker = threading.Thread(target=lambda: probe.ask(time.monotonic()))
        asker.start()
        asker.join()
        time.sleep(0.2)  # noqa: ASYNC251 -- the freeze itself
        await _turns()
        return probe.lag(time.monotonic())

    assert 0.2 <= asyncio.run(freeze()) < 5


def test_a_closed_loop_is_known_to_be_closed() -> None:
    loop = asyncio.new_event_loop()
    probe = LoopProbe(loop)
    loop.close()
    assert not probe.ask(1.0)
    assert probe.lag(9.0) == 0.0


async def test_a_loop_that_nobody_runs_is_not_frozen() -> None:
    other = asyncio.new_event_loop()
    probe = LoopProbe(other)
    assert probe.ask(1.0)
    assert probe.lag(100.0) == 0.0
    other.close()


async def test_time_in_which_the_asker_slept_is_forgiven() -> None:
    """When the whole process stood still, both look late; only one of them can be asked."""
    probe = LoopProbe(asyncio.get_running_loop())
    now = time.monotonic()
    probe.ask(now - 60)
    probe.forgive(now)
    assert probe.lag(now + 0.5) == pytest.approx(0.5)
    await _turns()
    assert probe.lag(now + 60) < 10
    probe.forgive(now)
    assert probe.lag(now) == 0.0


async def _turns() -> None:
    """The loop goes round often enough to have answered."""
    for _ in range(5):
        await asyncio.sleep(0)
