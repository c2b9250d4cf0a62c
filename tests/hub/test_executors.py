"""Orders are carried out by the hand that is theirs, once, for as long as somebody waits for them."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from lifesigns.cli.logs import set_up_logs
from lifesigns.core.agent import Agent
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.effects import Escalate, Order, Respawn, SendNudge, Terminate
from lifesigns.core.health import Health
from lifesigns.core.policy_bounds import OwnPolicy
from lifesigns.core.signals import (
    NudgeDelivered,
    NudgeFailed,
    RespawnFailed,
    RespawnStarted,
    Signal,
    TerminationDone,
    TerminationFailed,
)
from lifesigns.errors import AdapterError
from lifesigns.hub import executors as module
from lifesigns.hub.clock import Clock
from lifesigns.hub.executors import Executors, has_supervisor
from lifesigns.hub.order_ledger import OpenOrder, OrderLedger
from lifesigns.ports import NotExecuted
from tests.adapters.executors.ground import escalate, nudge, respawn, until

Does = Callable[[Order], Awaitable[Signal | None]]


@dataclass
class Doer:
    """A hand that does what the test wants, and tells what it was asked."""

    does: Does
    asked: list[Order] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    closed: bool = False

    async def carry_out(self, order: Order) -> Signal | None:
        self.asked.append(order)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self.does(order)
        finally:
            self.at_once -= 1

    async def close(self) -> None:
        self.closed = True


@dataclass
class Ground:
    """Hands, and what the engine believes and hears."""

    heard: list[Signal] = field(default_factory=list)
    room: bool = True

    def __post_init__(self) -> None:
        self.ledger = Ledger(lambda _: None, time.time)
        self.beliefs = self.ledger.beliefs
        self.executors = Executors(self.ledger, self._hear, try_for=0.2)

    def take(self, order: Order) -> bool:
        entry = self.ledger.open(order)
        assert entry is not None
        return self.executors.take(entry)

    @property
    def trying(self) -> list[OpenOrder]:
        return [entry for entry in self.ledger if entry.trying is not None]

    def _hear(self, signals: Sequence[Signal]) -> bool:
        if self.room:
            self.heard.extend(signals)
        return self.room


class Ledger(OrderLedger):
    """Waits for every order, but these."""

    def __init__(self, settle_stored: Callable[[str], None], clock: Clock) -> None:
        super().__init__(settle_stored, clock)
        self.not_awaited: set[str] = set()

    def awaits(self, order: Order) -> bool:
        return order.order_id not in self.not_awaited


@pytest.fixture
async def ground() -> AsyncIterator[Ground]:
    made = Ground()
    yield made
    await made.executors.close()


async def done(order: Order) -> Signal | None:
    if isinstance(order, Respawn):
        return RespawnStarted(agent_id=order.agent_id, order_id=order.order_id)
    return NudgeDelivered(agent_id=order.agent_id, order_id=order.order_id)


async def hang(order: Order) -> Signal | None:
    await asyncio.Event().wait()
    return None


def failing(*errors: Exception) -> Does:
    """Raises these, one after the other, then succeeds."""
    left = list(errors)

    async def does(order: Order) -> Signal | None:
        if left:
            raise left.pop(0)
        return await done(order)

    return does


def again() -> NotExecuted:
    return NotExecuted("not now", retry_after=0.001)


# --- which hand --------------------------------------------------------------------------------------------


async def test_an_order_that_is_nobodys_is_left_to_others(ground: Ground) -> None:
    ground.executors.assign(Respawn, Doer(done))
    assert not ground.take(nudge())


async def test_the_first_that_fits_decides_by_agent_and_role(ground: Ground) -> None:
    ground.beliefs.agents["tester-1"] = Agent("tester-1", 1, role="background")
    coders, background, everybody = Doer(done), Doer(done), Doer(done)
    ground.executors.assign(Respawn, coders, agents=["coder-*", "x"])
    ground.executors.assign(Respawn, background, roles=["background"])
    ground.executors.assign(Respawn, everybody)
    for number, agent_id in enumerate(("coder-7", "tester-1", "nobody-knows")):
        assert ground.take(respawn(agent_id, order_id=f"1-{number}"))
    await until(lambda: len(ground.heard) == 3)
    asked = [[order.agent_id for order in executor.asked] for executor in (coders, background, everybody)]
    assert asked == [["coder-7"], ["tester-1"], ["nobody-knows"]]


async def test_a_supervisor_that_can_respawn_its_agent_does_it(ground: Ground) -> None:
    """Two who start the same life would be two lives."""
    ground.executors.assign(Respawn, Doer(done))
    ground.beliefs.own_policies["coder-7"] = OwnPolicy({"respawn": {"enabled": True}}, {})
    assert not ground.take(respawn())
    ground.beliefs.own_policies["coder-7"] = OwnPolicy({"respawn": {"enabled": False}}, {})
    assert ground.take(respawn())


@pytest.mark.parametrize("said", [{}, {"respawn": None}, {"respawn": {"enabled": "yes"}}, {"respawn": []}])
def test_whatever_an_agent_announces_is_only_a_supervisor_if_it_says_so(said: dict[str, object]) -> None:
    assert not has_supervisor(Beliefs(own_policies={"a": OwnPolicy(said, {})}), "a")


# --- once --------------------------------------------------------------------------------------------------


async def test_an_order_that_is_given_twice_is_tried_by_one(ground: Ground) -> None:
    executor = Doer(hang)
    ground.executors.assign(Respawn, executor)
    for _ in range(3):
        assert ground.take(respawn())
    await until(lambda: executor.asked)
    await asyncio.sleep(0)
    assert executor.most_at_once == 1


async def test_a_transient_failure_is_tried_again_with_the_same_order(ground: Ground) -> None:
    executor = Doer(failing(again(), again()))
    ground.executors.assign(Respawn, executor)
    ground.take(respawn())
    await until(lambda: ground.heard)
    assert [order.order_id for order in executor.asked] == ["1-5"] * 3
    assert [type(signal) for signal in ground.heard] == [RespawnStarted]


async def test_nothing_is_tried_that_nobody_waits_for(ground: Ground) -> None:
    """The agent came back by itself: to respawn it now would make two of it."""

    async def does(order: Order) -> Signal | None:
        ground.ledger.not_awaited.add(order.order_id)
        raise again()

    executor = Doer(does)
    ground.executors.assign(Respawn, executor)
    ground.take(respawn())
    await until(lambda: not ground.trying)
    assert len(executor.asked) == 1
    assert not ground.heard


async def test_a_dropped_order_is_stopped_in_the_middle(ground: Ground) -> None:
    executor = Doer(hang)
    ground.executors.assign(Respawn, executor)
    ground.take(respawn())
    await until(lambda: executor.at_once)
    ground.ledger.settle("coder-7", "1-5")
    await until(lambda: not executor.at_once)
    assert not ground.heard


async def test_a_hub_that_was_replaced_does_nothing_more(ground: Ground) -> None:
    executor = Doer(hang)
    ground.executors.assign(Respawn, executor)
    for number in range(3):
        ground.take(respawn(order_id=f"1-{number}"))
    await until(lambda: executor.at_once == 3)
    ground.ledger.stand_down()
    await until(lambda: not executor.at_once)


async def test_closing_ends_what_runs_and_lets_go_of_every_hand() -> None:
    ground, executor = Ground(), Doer(hang)
    ground.executors.assign(Respawn, executor)
    ground.executors.assign(SendNudge, executor)
    ground.take(respawn())
    await until(lambda: executor.at_once)
    await ground.executors.close()
    assert executor.closed
    assert not executor.at_once


# --- what goes wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (AdapterError("it said no", transient=False), "it said no"),
        (ZeroDivisionError("a bug"), "ZeroDivisionError: a bug"),
    ],
)
async def test_what_can_never_be_done_has_failed(ground: Ground, error: Exception, reason: str) -> None:
    """A bug in somebody's hand is one order's trouble."""
    ground.executors.assign(Respawn, Doer(failing(error)))
    ground.executors.assign(SendNudge, Doer(failing(error)))
    ground.take(respawn())
    ground.take(nudge())
    await until(lambda: len(ground.heard) == 2)
    assert ground.heard == [
        RespawnFailed(agent_id="coder-7", order_id="1-5", reason=reason),
        NudgeFailed(agent_id="coder-7", order_id="1-6", reason=reason),
    ]


async def test_an_escalation_that_cannot_be_brought_is_left_to_its_time(ground: Ground) -> None:
    """People have been told; what happens without an answer the policy says."""
    ground.executors.assign(Escalate, Doer(failing(AdapterError("no", transient=False))))
    ground.take(escalate())
    await until(lambda: not ground.trying)
    assert not ground.heard


async def test_a_hand_that_hangs_is_asked_again_and_holds_up_nobody(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WAITS", (0.001,))
    tries: list[str] = []

    async def hangs_once(order: Order) -> Signal | None:
        tries.append(order.order_id)
        return await (hang(order) if len(tries) == 1 else done(order))

    other = Doer(done)
    ground.executors.assign(Respawn, Doer(hangs_once))
    ground.executors.assign(SendNudge, other)
    ground.take(respawn())
    await until(lambda: tries)
    ground.take(nudge())
    await until(lambda: other.asked)
    assert len(tries) == 1
    await until(lambda: len(ground.heard) == 2)
    assert tries == ["1-5", "1-5"]


async def test_a_hand_has_so_many_orders_at_once_and_those_that_wait_for_another_try_do_not_count(
    ground: Ground,
) -> None:
    """One server that is away must not make the others wait behind it."""
    open_: set[str] = {f"1-{n}" for n in range(module.AT_ONCE)}

    async def does(order: Order) -> Signal | None:
        await asyncio.sleep(0)
        if order.order_id in open_:
            raise NotExecuted("later", retry_after=60.0)
        return await done(order)

    executor = Doer(does)
    ground.executors.assign(Respawn, executor)
    for number in range(100):
        ground.take(respawn(f"a-{number}", order_id=f"1-{number}"))
    await until(lambda: len(ground.heard) == 100 - module.AT_ONCE)
    assert executor.most_at_once <= module.AT_ONCE


async def test_an_outcome_waits_for_room(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEAR_AGAIN_AFTER", 0.001)
    ground.room, executor = False, Doer(done)
    ground.executors.assign(Respawn, executor)
    ground.take(respawn())
    await until(lambda: executor.asked)
    ground.room = True
    await until(lambda: ground.heard)
    assert len(executor.asked) == 1


# --- ends --------------------------------------------------------------------------------------------------


def end(save_for: float) -> Terminate:
    return Terminate(0.0, "1-3", 1, "coder-7", "one", "stuck", save_for, (), 1)


async def ended(order: Order) -> Signal | None:
    return TerminationDone(agent_id=order.agent_id, order_id=order.order_id)


async def test_an_agent_that_lives_has_its_time_to_save_before_it_is_ended_by_others(ground: Ground) -> None:
    """And if it has ended by then, nobody ends anything."""
    executor = Doer(ended)
    ground.executors.assign(Terminate, executor)
    ground.beliefs.agents["coder-7"] = Agent("coder-7", 1, health=Health.STUCK)
    ground.take(end(save_for=60.0))
    await asyncio.sleep(0.01)
    ground.ledger.settle("coder-7", "1-3")
    assert not executor.asked
    ground.beliefs.agents["coder-7"].health = Health.DISCONNECTED
    ground.take(end(save_for=60.0))
    await until(lambda: ground.heard)
    assert len(executor.asked) == 1


async def test_who_cannot_be_ended_is_told_so(ground: Ground) -> None:
    ground.executors.assign(Terminate, Doer(failing(AdapterError("403", transient=False))))
    ground.take(end(save_for=0.0))
    await until(lambda: ground.heard)
    assert ground.heard == [TerminationFailed(agent_id="coder-7", order_id="1-3", reason="403")]


# --- nudges ------------------------------------------------------------------------------------------------


async def test_a_newer_nudge_takes_the_place_of_one_that_found_no_moment(ground: Ground) -> None:
    """Who was busy for half an hour is told once how things are, not three times how they were."""
    busy = True

    async def does(order: Order) -> Signal | None:
        if busy:
            raise again()
        return await done(order)

    executor = Doer(does)
    ground.executors.assign(SendNudge, executor)
    ground.take(nudge())
    await until(lambda: executor.asked)
    ground.take(replace(nudge(), order_id="1-9", attempt=2))
    busy = False
    await until(lambda: len(ground.heard) == 2)
    assert [type(signal) for signal in ground.heard] == [NudgeFailed, NudgeDelivered]
    assert [getattr(signal, "order_id", "") for signal in ground.heard] == ["1-6", "1-9"]


async def test_what_is_logged_on_the_way_carries_the_id_of_its_order(ground: Ground) -> None:
    """Two orders at once: each line has its own order's id, also one that a library logs; afterwards none has."""
    stream, root = io.StringIO(), logging.getLogger()
    before = root.level, root.handlers[:], logging.getLogger("lifesigns").level
    set_up_logs("json", "info", stream)
    try:

        async def does(order: Order) -> Signal | None:
            await asyncio.sleep(0)
            logging.getLogger("some.library").warning("on the way to %s", order.agent_id)
            return await done(order)

        ground.executors.assign(SendNudge, Doer(does))
        orders = [replace(nudge(), order_id=f"o-{n}", agent_id=f"agent-{n}") for n in range(2)]
        for order in orders:
            assert ground.take(order)
        await until(lambda: len(ground.heard) == 2)
        logging.getLogger("lifesigns.test").info("nothing to do with it")
    finally:
        root.setLevel(before[0])
        root.handlers[:] = before[1]
        logging.getLogger("lifesigns").setLevel(before[2])
    said = {
        line["event"]: line.get("correlation_id") for line in map(json.loads, stream.getvalue().splitlines())
    }
    assert said == {
        "on the way to agent-0": "o-0",
        "on the way to agent-1": "o-1",
        "nothing to do with it": None,
    }
