"""Kept orders reach whom they are for, are said again while nothing comes back, and are let go when nobody waits."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

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
from lifesigns.hub.dispatcher import AGAIN_AFTER, UNANSWERED_FOR, Dispatcher
from lifesigns.hub.mailboxes import PING_FOR, STRANGER_FOR, Mailboxes
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
    case = Case(Rung.NUDGE, NOW, "stuck", waited_from=NOW, wait=600.0)
    case.nudge_ids, case.order_id = order_ids, order_ids[-1] if order_ids else ""
    agent = Agent("a", 1, since=NOW)
    agent.case = case
    return Beliefs(agents={"a": agent})


@dataclass
class Desk:
    """A dispatcher, and what became of its orders."""

    bus: MemoryBus | None = None
    boxes: Mailboxes = field(default_factory=Mailboxes)
    settled: list[str] = field(default_factory=list)
    said: list[tuple[str, dict[str, object]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.dispatcher = Dispatcher(self.boxes, self.bus, self.settled.append)

    def give(self, *orders: Order) -> None:
        for order in orders:
            self.dispatcher.carry_out(order, NOW)

    def waiting(self, now: float = NOW) -> list[str]:
        return [order.order_id for order in self.boxes.waiting_for("a", now)]

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
    speaking = asyncio.create_task(desk.dispatcher.speak())
    yield desk
    speaking.cancel()
    await asyncio.gather(speaking, return_exceptions=True)
    await bus.close()


def test_what_people_need_to_know_is_told_by_its_event_and_needs_nothing_more() -> None:
    desk = Desk()
    desk.give(ReleaseClaim(NOW, "1-3", 1, "a", "one", "t", 7, "released"))
    assert (desk.settled, desk.waiting()) == (["1-3"], [])


def test_an_escalation_waits_for_its_answer_but_in_nobodys_mailbox() -> None:
    desk = Desk()
    desk.give(Escalate(NOW, "1-4", 1, "a", "one", "stuck", (), None, NOW + 900))
    assert (desk.settled, desk.waiting()) == ([], [])
    assert "1-4" in desk.dispatcher


def test_an_order_that_was_acknowledged_is_not_given_again_also_not_after_a_restart() -> None:
    """So it is settled in the store, although its outcome is still to come."""
    for order in (nudge(), asked_about(), StopStranger(NOW, "1-5", 1, "a", "two", "replaced")):
        desk = Desk()
        desk.give(order)
        assert desk.dispatcher.acknowledged("a", order.order_id)
        assert (desk.settled, desk.waiting()) == ([order.order_id], [])
        assert not desk.dispatcher.acknowledged("a", order.order_id)
        desk.dispatcher.settled(order.order_id)
        assert desk.settled == [order.order_id]


def test_nobody_acknowledges_somebody_elses_order() -> None:
    desk = Desk()
    desk.give(nudge())
    assert not desk.dispatcher.acknowledged("b", "1-1")
    assert (desk.settled, desk.waiting()) == ([], ["1-1"])


def test_an_outcome_takes_the_order_out_of_the_mailbox() -> None:
    desk = Desk()
    desk.give(nudge())
    desk.dispatcher.settled("1-1")
    assert desk.waiting() == []
    assert "1-1" not in desk.dispatcher


def test_what_the_engine_no_longer_waits_for_is_let_go() -> None:
    desk = Desk()
    desk.give(nudge("1-1"), nudge("1-2"))
    desk.dispatcher.sweep(waiting_for("1-2"), NOW + 1)
    assert (desk.settled, desk.waiting()) == (["1-1"], ["1-2"])
    desk.dispatcher.sweep(Beliefs(), NOW + 2)
    assert (desk.settled, desk.waiting()) == (["1-1", "1-2"], [])


def test_what_is_over_is_let_go_before_the_next_sweep() -> None:
    """That is ten seconds away; an order that was replaced must not turn a breaker back until then."""
    desk = Desk()
    turns = [
        TurnBreaker(NOW, order_id, 1, "a", "one", "search", BreakerAct.RESET) for order_id in ("1-3", "1-4")
    ]
    desk.give(nudge("1-1"), *turns)
    errand = SideOrder("1-4", "a", Rung.BREAKER, 1, NOW, 600.0, "reset breaker 'search'")
    beliefs = waiting_for("1-1")
    beliefs.side_orders["a"] = {"1-4": errand}
    desk.dispatcher.let_go(beliefs, NOW + 1)
    assert (desk.settled, desk.waiting()) == (["1-3"], ["1-1", "1-4"])
    desk.dispatcher.let_go(Beliefs(), NOW + 2)
    assert desk.waiting() == []


def stop(order_id: str = "1-7") -> Terminate:
    return Terminate(NOW, order_id, 1, "a", "one", "silent", 30.0, (), 7, on_silence=True)


def test_an_order_that_is_withdrawn_is_gone_at_once_and_who_has_a_termination_is_told() -> None:
    desk = Desk()
    desk.give(nudge("1-1"), stop("1-7"))
    for order_id in ("1-1", "1-7", "1-7"):
        desk.dispatcher.withdrawn(order_id, NOW + 400)
    assert desk.settled == ["1-1", "1-7"]
    assert desk.waiting(NOW + 401) == ["1-7-withdrawn"]
    assert desk.waiting(NOW + 400 + STRANGER_FOR + 1) == []


async def test_an_order_that_was_withdrawn_while_the_bus_was_away_is_not_said_when_it_is_back() -> None:
    async with on_a_bus() as desk:
        desk.give(stop("1-7"), nudge("1-1"))
        desk.dispatcher.withdrawn("1-7", NOW)  # Nothing has been published yet: the bus had no turn.
        assert sorted(await desk.heard(2)) == ["1-1", "1-7-withdrawn"]


def test_a_question_ends_with_its_time_and_a_stranger_is_not_called_for_ever() -> None:
    desk = Desk()
    desk.give(asked_about(), StopStranger(NOW, "1-5", 1, "a", "two", "replaced"))
    desk.dispatcher.sweep(Beliefs(), NOW + 59.9)
    assert desk.settled == []
    desk.dispatcher.sweep(Beliefs(), NOW + 60)
    assert desk.settled == ["1-2"]
    desk.dispatcher.sweep(Beliefs(), NOW + UNANSWERED_FOR)
    assert desk.settled == ["1-2", "1-5"]


def test_a_ping_that_nobody_fetches_does_not_lie_there_for_ever() -> None:
    desk = Desk()
    desk.give(ping())
    desk.dispatcher.sweep(Beliefs(), NOW + PING_FOR + 1)
    assert not desk.boxes


def test_a_hub_that_was_replaced_gives_no_orders_any_more() -> None:
    desk = Desk()
    desk.give(nudge(), ping())
    desk.dispatcher.stand_down()
    desk.dispatcher.sweep(waiting_for("1-1"), NOW + AGAIN_AFTER)
    assert (desk.waiting(), desk.settled) == ([], [])


async def test_an_order_is_said_on_the_bus_and_again_while_nothing_comes_back() -> None:
    async with on_a_bus() as desk:
        desk.give(nudge())
        assert await desk.heard(1) == ["1-1"]
        desk.dispatcher.sweep(waiting_for("1-1"), NOW + AGAIN_AFTER - 0.1)
        desk.dispatcher.sweep(waiting_for("1-1"), NOW + AGAIN_AFTER)
        assert await desk.heard(2) == ["1-1", "1-1"]
        desk.dispatcher.sweep(waiting_for("1-1"), NOW + 2 * AGAIN_AFTER - 0.1)
        desk.dispatcher.settled("1-1")
        desk.dispatcher.sweep(waiting_for("1-1"), NOW + 3 * AGAIN_AFTER)
        desk.give(nudge("1-2"))
        assert await desk.heard(3) == ["1-1", "1-1", "1-2"]
        assert {subject for subject, _ in desk.said} == {"lifesigns.order.a"}


async def test_events_are_told_on_the_bus_by_their_type() -> None:
    async with on_a_bus() as desk:
        desk.dispatcher.tell([Event(7, NOW, "HUB_BLIND", "", b'{"reason": "late"}')])
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
