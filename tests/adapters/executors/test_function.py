"""A Python function as a hand."""

from __future__ import annotations

import asyncio
import threading

import pytest

from lifesigns.adapters.executors.function import FunctionExecutor
from lifesigns.core.effects import Escalate, Respawn
from lifesigns.core.signals import Decision, EscalationDecided, NudgeDelivered, RespawnFailed, RespawnStarted
from lifesigns.errors import UsageError
from tests.adapters.executors.ground import escalate, nudge, respawn, until


async def test_a_coroutine_function_starts_agents_on_the_hubs_loop() -> None:
    started: list[str] = []

    async def start(order: Respawn) -> None:
        started.append(order.new_incarnation)

    assert isinstance(await FunctionExecutor(start).carry_out(respawn()), RespawnStarted)
    assert started == ["coder-7~1-4"]


async def test_a_plain_function_runs_in_a_thread() -> None:
    where: list[threading.Thread] = []
    outcome = await FunctionExecutor(lambda _: where.append(threading.current_thread())).carry_out(nudge())
    assert where != [threading.current_thread()]
    assert isinstance(outcome, NudgeDelivered)


async def test_what_it_returns_is_the_outcome() -> None:
    no = RespawnFailed(agent_id="coder-7", order_id="1-5", reason="no room")
    assert await FunctionExecutor(lambda _: no).carry_out(respawn()) is no
    decided = await FunctionExecutor(lambda _: Decision.MORE_TIME, name="eva").carry_out(escalate())
    assert decided == EscalationDecided(
        agent_id="coder-7", order_id="1-7", decision=Decision.MORE_TIME, by="eva"
    )
    assert await FunctionExecutor(lambda _: None).carry_out(escalate()) is None


async def test_a_decision_that_is_none_is_the_functions_fault() -> None:
    def decide(order: Escalate) -> str:
        return "explode"

    with pytest.raises(UsageError, match="'explode', but that needs to be one of"):
        await FunctionExecutor(decide).carry_out(escalate())


async def test_who_gives_up_waiting_and_asks_again_waits_for_the_same_call() -> None:
    """A slow function is not called a second time beside itself: it may be half way through starting somebody."""
    calls: list[Respawn] = []
    go_on = asyncio.Event()

    async def start(order: Respawn) -> None:
        calls.append(order)
        await go_on.wait()

    hand = FunctionExecutor(start)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await hand.carry_out(respawn())
    waiting = asyncio.create_task(hand.carry_out(respawn()))
    await until(lambda: calls)
    go_on.set()
    assert isinstance(await waiting, RespawnStarted)
    assert len(calls) == 1
    await hand.close()


async def test_closing_ends_calls_that_hang() -> None:
    async def start(order: Respawn) -> None:
        await asyncio.Event().wait()

    hand = FunctionExecutor(start)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await hand.carry_out(respawn())
    await hand.close()
