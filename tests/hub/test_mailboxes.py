"""Orders wait for agents who come and fetch them, and stay until they are acknowledged."""

from __future__ import annotations

import asyncio

from lifesigns.core.effects import SendNudge, SendPing
from lifesigns.hub.mailboxes import PER_AGENT_MAX, PING_FOR, Mailboxes


def nudge(order_id: str, agent_id: str = "a") -> SendNudge:
    return SendNudge(100.0, order_id, 1, agent_id, None, 1, "hello")


def ping(order_id: str) -> SendPing:
    return SendPing(100.0, order_id, 1, "a", None, 1, "silence")


def test_fetching_is_not_taking() -> None:
    boxes = Mailboxes()
    boxes.put(nudge("1-1"))
    assert boxes.waiting_for("a", 100.0) == boxes.waiting_for("a", 100.0) == [nudge("1-1")]
    assert boxes.drop("a", "1-1")
    assert not boxes.drop("a", "1-1")
    assert boxes.waiting_for("a", 100.0) == []


def test_only_the_newest_ping_waits_and_not_for_long() -> None:
    boxes = Mailboxes()
    for order in (ping("1-1"), nudge("1-2"), ping("1-3")):
        boxes.put(order)
    assert [order.order_id for order in boxes.waiting_for("a", 100.0 + PING_FOR)] == ["1-2", "1-3"]
    assert [order.order_id for order in boxes.waiting_for("a", 100.1 + PING_FOR)] == ["1-2"]


def test_a_box_that_nobody_empties_keeps_the_newest() -> None:
    boxes = Mailboxes()
    for number in range(PER_AGENT_MAX + 5):
        boxes.put(nudge(f"1-{number}"))
    waiting = boxes.waiting_for("a", 100.0)
    assert (len(waiting), waiting[0].order_id) == (PER_AGENT_MAX, "1-5")


async def test_who_waits_is_woken_by_an_order_for_any_of_theirs_and_leaves_nothing_behind() -> None:
    boxes = Mailboxes()
    waiting = asyncio.create_task(boxes.wait(["a", "b"], 30))
    await asyncio.sleep(0)
    boxes.put(nudge("1-1", "b"))
    async with asyncio.timeout(5):
        await waiting
    await boxes.wait(["a"], 0.01)
    assert not boxes._waiting
