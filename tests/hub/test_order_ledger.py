"""An order is in one place from its start to its end, and is over in one way."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from lifesigns.core import signals as s
from lifesigns.core.agent import Agent, Case
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.effects import AskStatus, Order, Rung, SendNudge, SendPing, StopStranger
from lifesigns.hub.order_ledger import PER_AGENT_MAX, PING_FOR, OpenOrder, OrderLedger

NOW = 100.0


def question(order_id: str, agent_id: str = "a") -> AskStatus:
    return AskStatus(NOW, order_id, 1, agent_id, None, "t", "How is it?", answer_by=NOW + 600)


def nudge(order_id: str) -> SendNudge:
    return SendNudge(NOW, order_id, 1, "a", "one", 1, "hello")


def ping(order_id: str) -> SendPing:
    return SendPing(NOW, order_id, 1, "a", None, 1, "silence")


@dataclass
class Ground:
    """A ledger, and what the store was told."""

    now: float = NOW
    settled: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ledger = OrderLedger(self.settled.append, lambda: self.now)

    def offer(self, *orders: Order) -> list[OpenOrder]:
        opened = []
        for order in orders:
            entry = self.ledger.open(order)
            assert entry is not None
            self.ledger.offer(entry)
            opened.append(entry)
        return opened

    def waiting(self) -> list[str]:
        return [order.order_id for order in self.ledger.waiting_for(["a"]).get("a", ())]


def test_fetching_is_not_taking() -> None:
    ground = Ground()
    ground.offer(question("1-1"))
    assert ground.waiting() == ground.waiting() == ["1-1"]
    assert ground.ledger.offered == 1
    assert ground.ledger.waiting_for(["a"], exclude=["1-1"]) == {}
    assert ground.ledger.waiting_for(["b"]) == {}


@pytest.mark.parametrize(
    "order", [question("1-1"), StopStranger(NOW, "1-1", 1, "a", "two", "replaced")], ids=["asked", "stranger"]
)
def test_an_order_that_was_acknowledged_is_not_given_again_also_not_after_a_restart(order: Order) -> None:
    """So it is settled in the store, although its outcome is still to come."""
    ground = Ground()
    ground.offer(order)
    assert ground.ledger.acknowledge("a", "1-1") is not None
    assert (ground.settled, ground.waiting()) == (["1-1"], [])
    assert ground.ledger.acknowledge("a", "1-1") is None
    assert ground.ledger.settle("a", "1-1") is None
    assert ground.settled == ["1-1"]
    assert not ground.ledger


async def test_what_an_executor_tries_stays_known_when_the_agents_side_has_it_and_ends_with_its_outcome() -> (
    None
):
    ground = Ground()
    (entry,) = ground.offer(question("1-1"))
    trying = entry.trying = asyncio.create_task(asyncio.sleep(60))
    ground.ledger.acknowledge("a", "1-1")
    assert (ground.settled, list(ground.ledger)) == (["1-1"], [entry])
    ground.ledger.note_report(s.NudgeDelivered(agent_id="a", order_id="1-1"))
    assert not ground.ledger
    await asyncio.gather(trying, return_exceptions=True)
    assert trying.cancelled()
    assert ground.settled == ["1-1"]


def test_nobody_acknowledges_or_settles_somebody_elses_order() -> None:
    ground = Ground()
    ground.offer(question("1-1"))
    assert ground.ledger.acknowledge("b", "1-1") is None
    ground.ledger.note_report(s.NudgeDelivered(agent_id="b", order_id="1-1"))
    assert (ground.settled, ground.waiting()) == ([], ["1-1"])


def test_an_outcome_ends_its_order() -> None:
    ground = Ground()
    ground.offer(question("1-1"), question("1-2"))
    ground.ledger.note_report(s.NudgeSeen(agent_id="a", nudge_id="1-1"))
    ground.ledger.note_report(s.NudgeFailed(agent_id="a", order_id="1-2", reason="busy"))
    assert (ground.settled, ground.waiting()) == (["1-2"], ["1-1"])


def test_what_nobody_waits_for_any_more_is_not_opened_and_not_given_again() -> None:
    ground = Ground()
    assert ground.ledger.open(nudge("1-1")) is None
    assert (ground.settled, list(ground.ledger)) == (["1-1"], [])


def test_the_beat_that_refutes_an_order_is_answered_without_it() -> None:
    ground = Ground()
    case = Case(Rung.NUDGE, "stuck", waited_from=NOW, wait=600.0)
    case.order_id = "1-1"
    agent = Agent("a", 1, since=NOW)
    agent.case = case
    ground.ledger.beliefs = Beliefs(agents={"a": agent})
    ground.offer(nudge("1-1"))
    assert ground.waiting() == ["1-1"]
    agent.case = None
    assert ground.waiting() == []


def test_only_the_newest_ping_waits_not_for_long_and_ends_with_a_pong() -> None:
    ground = Ground()
    ground.offer(ping("1-1"), question("1-2"), ping("1-3"))
    ground.now = NOW + PING_FOR
    assert ground.waiting() == ["1-2", "1-3"]
    ground.now = NOW + PING_FOR + 0.1
    assert ground.waiting() == ["1-2"]
    ground.now = NOW
    ground.ledger.note_report(s.PongReceived(agent_id="a", seq=1))
    assert ground.waiting() == ["1-2"]
    assert ground.settled == []


def test_of_more_than_anybody_fetches_the_newest_are_offered() -> None:
    ground = Ground()
    ground.offer(*(question(f"1-{number}") for number in range(PER_AGENT_MAX + 5)))
    assert (len(ground.waiting()), ground.waiting()[0]) == (PER_AGENT_MAX, "1-5")


async def test_who_waits_is_woken_by_an_order_for_any_of_theirs_and_leaves_nothing_behind() -> None:
    ground = Ground()
    waiting = asyncio.create_task(ground.ledger.wait(["a", "b"], 30))
    await asyncio.sleep(0)
    ground.offer(question("1-1", "b"))
    async with asyncio.timeout(5):
        await waiting
    await ground.ledger.wait(["a"], 0.01)
    assert not ground.ledger.polls
