"""Kept orders reach whom they are for, are said again while nothing comes back, and are let go when nobody waits."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest

from lifesigns.adapters.bus.memory import MemoryBus
from lifesigns.core.agent import Agent, Case
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.effects import (
    AskStatus,
    Escalate,
    Order,
    ReleaseClaim,
    Rung,
    SendNudge,
    SendPing,
    StopStranger,
    Terminate,
    TurnBreaker,
)
from lifesigns.core.side_orders import SideOrder
from lifesigns.core.signals import BreakerAct
from lifesigns.hub.dispatcher import REPUBLISH_AFTER, Dispatcher
from lifesigns.hub.executors import Executors
from lifesigns.hub.order_ledger import PING_FOR, UNANSWERED_FOR, OrderLedger
from lifesigns.ports import Event

NOW = 100.0


def nudge(order_id: str = "1-1") -> SendNudge:
    return SendNudge(NOW, order_id, 1, "a", "one", 1, "hello")


def ping(order_id: str = "1-9") -> SendPing:
    return SendPing(NOW, order_id, 1, "a", "one", 1, "silence")


def asked_about() -> AskStatus:
    return AskStatus(NOW, "1-2", 1, "a", "one", "t", "how is it?", answer_by=NOW + 60)


def waiting_for(*order_ids: str) -> Beliefs:
    """An engine that still waits for these nudges."""
    case = Case(Rung.NUDGE, "stuck", waited_from=NOW, wait=600.0)
    case.nudge_ids, case.order_id = order_ids, order_ids[-1] if order_ids else ""
    agent = Agent("a", 1, since=NOW)
    agent.case = case
    return Beliefs(agents={"a": agent})


@dataclass
class Desk:
    """A dispatcher, and what became of its orders."""

    bus: MemoryBus | None = None
    now: float = NOW
    settled: list[str] = field(default_factory=list)
    said: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = OrderLedger(self.settled.append, lambda: self.now)
        self.ledger.beliefs = waiting_for("1-1")
        executors = Executors(self.ledger, lambda _: True)
        self.dispatcher = Dispatcher(self.ledger, executors, self.bus)

    def give(self, *orders: Order) -> None:
        for order in orders:
            entry = self.ledger.open(order)
            assert entry is not None
            self.dispatcher.carry_out(entry)

    def let_go(self, beliefs: Beliefs, now: float) -> None:
        self.ledger.beliefs, self.now = beliefs, now
        self.dispatcher.withdraw_unawaited()

    def waiting(self) -> list[str]:
        return [order.order_id for orders in self.ledger.waiting_for(["a"]).values() for order in orders]

    async def heard(self, count: int) -> list[str]:
        """The ids of what was said on the bus so far, when there are so many."""
        async with asyncio.timeout(5):
            while len(self.said) < count:  # noqa: ASYNC110 -- what is waited for is not told by events
                await asyncio.sleep(0.001)
        return [str(message.get("order_id", message.get("id"))) for _, message in self.said]


@asynccontextmanager
async def on_a_bus() -> AsyncIterator[Desk]:
    bus = MemoryBus(f"memory://{uuid.uuid4()}")
    desk = Desk(bus)
    await bus.connect()
    for pattern in ("lifesigns.order.>", "lifesigns.event.>"):
        await bus.subscribe(
            pattern, lambda subject, payload: desk.said.append((subject, json.loads(payload)))
        )
    speaking = asyncio.create_task(desk.dispatcher.run())
    yield desk
    speaking.cancel()
    await asyncio.gather(speaking, return_exceptions=True)
    await bus.close()


async def test_a_message_that_no_bus_can_carry_does_not_silence_the_next() -> None:
    """Whatever is wrong with it: here its subject has a blank in it."""
    async with on_a_bus() as desk:
        desk.dispatcher.publish([Event(7, NOW, "A FLIP", "", b"{}")])
        desk.give(nudge("1-1"))
        assert await desk.heard(1) == ["1-1"]


async def test_a_bug_about_one_message_does_not_silence_the_next(caplog: pytest.LogCaptureFixture) -> None:
    async with on_a_bus() as desk:
        desk.dispatcher._enqueue("lifesigns.event.x", cast("bytes", None))
        desk.give(nudge("1-1"))
        assert await desk.heard(1) == ["1-1"]
        assert [record.__dict__["action"] for record in caplog.records] == ["publish_failed"]


def test_what_people_need_to_know_is_told_by_its_event_and_needs_nothing_more() -> None:
    desk = Desk()
    desk.give(ReleaseClaim(NOW, "1-3", 1, "a", "one", "t", 7, "released"))
    assert (desk.settled, list(desk.ledger)) == (["1-3"], [])


def test_an_escalation_waits_for_its_answer_but_nobody_fetches_it() -> None:
    desk = Desk()
    desk.give(Escalate(NOW, "1-1", 1, "a", "one", "stuck", (), None, NOW + 900))
    assert (desk.settled, desk.waiting()) == ([], [])
    assert [entry.stored for entry in desk.ledger] == [True]


def test_what_the_engine_no_longer_waits_for_is_let_go_also_where_it_does_not_say_so() -> None:
    """An order that was replaced must not turn a breaker back."""
    desk = Desk()
    turns = [
        TurnBreaker(NOW, order_id, 1, "a", "one", "search", BreakerAct.RESET) for order_id in ("1-3", "1-4")
    ]
    errands = {
        turn.order_id: SideOrder(turn.order_id, "a", Rung.BREAKER, 1, NOW, 600.0, "reset") for turn in turns
    }
    desk.ledger.beliefs.side_orders["a"] = dict(errands)
    desk.give(nudge("1-1"), *turns)
    beliefs = waiting_for("1-1")
    beliefs.side_orders["a"] = {"1-4": errands["1-4"]}
    assert desk.waiting() == ["1-1", "1-3", "1-4"]
    desk.let_go(beliefs, NOW + 1)
    assert (desk.settled, desk.waiting()) == (["1-3"], ["1-1", "1-4"])
    desk.let_go(Beliefs(), NOW + 2)
    assert (desk.settled, list(desk.ledger)) == (["1-3", "1-1", "1-4"], [])


def stop(order_id: str = "1-7") -> Terminate:
    return Terminate(NOW, order_id, 1, "a", "one", "silent", 30.0, (), 7, on_silence=True)


def test_an_order_that_is_withdrawn_is_gone_at_once_and_who_has_a_termination_is_told() -> None:
    desk = Desk()
    desk.give(nudge("1-1"))
    desk.dispatcher.withdraw("a", "1-1")
    desk.ledger.beliefs = waiting_for("1-7")
    desk.give(stop("1-7"))
    desk.now = NOW + 400
    for _ in range(2):
        desk.dispatcher.withdraw("a", "1-7")
    assert desk.settled == ["1-1", "1-7"]
    assert desk.waiting() == ["1-7-withdrawn"]
    desk.now = NOW + 400 + UNANSWERED_FOR
    assert desk.waiting() == []


async def test_an_order_that_was_withdrawn_while_the_bus_was_away_is_not_said_when_it_is_back() -> None:
    async with on_a_bus() as desk:
        desk.give(nudge("1-1"))
        desk.ledger.beliefs = waiting_for("1-7")
        desk.give(stop("1-7"))
        desk.dispatcher.withdraw("a", "1-7")  # Nothing has been published yet: the bus had no turn.
        assert sorted(await desk.heard(2)) == ["1-1", "1-7-withdrawn"]


def test_a_question_ends_with_its_time_and_a_stranger_is_not_called_for_ever() -> None:
    desk = Desk()
    desk.give(asked_about(), StopStranger(NOW, "1-5", 1, "a", "two", "replaced"))
    desk.let_go(Beliefs(), NOW + 59.9)
    assert desk.settled == []
    desk.let_go(Beliefs(), NOW + 60)
    assert desk.settled == ["1-2"]
    desk.let_go(Beliefs(), NOW + UNANSWERED_FOR)
    assert desk.settled == ["1-2", "1-5"]


def test_a_ping_that_nobody_fetches_does_not_lie_there_for_ever() -> None:
    desk = Desk()
    desk.give(ping())
    desk.let_go(Beliefs(), NOW + PING_FOR + 1)
    assert (list(desk.ledger), desk.settled) == ([], [])


async def test_a_hub_that_was_replaced_gives_no_orders_any_more() -> None:
    async with on_a_bus() as desk:
        desk.give(nudge(), ping())
        desk.ledger.stand_down()
        desk.dispatcher.republish(NOW + REPUBLISH_AFTER)
        assert (desk.waiting(), desk.settled) == ([], [])
        desk.dispatcher.publish([Event(7, NOW, "HUB_BLIND", "", b"{}")])
        assert await desk.heard(1) == ["7"]


async def test_an_order_is_said_on_the_bus_and_again_while_nothing_comes_back() -> None:
    async with on_a_bus() as desk:
        desk.give(nudge())
        assert await desk.heard(1) == ["1-1"]
        desk.dispatcher.republish(NOW + REPUBLISH_AFTER - 0.1)
        desk.dispatcher.republish(NOW + REPUBLISH_AFTER)
        assert await desk.heard(2) == ["1-1", "1-1"]
        desk.dispatcher.republish(NOW + 2 * REPUBLISH_AFTER - 0.1)
        desk.ledger.settle("a", "1-1")
        desk.dispatcher.republish(NOW + 3 * REPUBLISH_AFTER)
        desk.give(asked_about())
        assert await desk.heard(3) == ["1-1", "1-1", "1-2"]
        assert {subject for subject, _ in desk.said} == {"lifesigns.order.a"}


async def test_events_are_told_on_the_bus_by_their_type() -> None:
    async with on_a_bus() as desk:
        desk.dispatcher.publish([Event(7, NOW, "HUB_BLIND", "", b'{"reason": "late"}')])
        await desk.heard(1)
        subject, message = desk.said[0]
        assert (subject, message["id"], message["data"]) == (
            "lifesigns.event.HUB_BLIND",
            7,
            {"reason": "late"},
        )


async def test_a_bus_that_is_away_loses_what_is_said_and_nothing_else() -> None:
    async with on_a_bus() as desk:
        assert desk.bus is not None
        await desk.bus.close()
        desk.give(nudge())
        await asyncio.sleep(0)
        assert desk.waiting() == ["1-1"]
