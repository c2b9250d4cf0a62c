"""Orders over HTTP: fetched, waited for, acknowledged; only by those they are for."""

import asyncio
import socket
import time
from urllib.parse import quote

import httpx2
import pytest

from lifesigns.adapters.link.http import HttpLink
from lifesigns.core.effects import AskStatus, Order, SendPing
from lifesigns.hub.principals import Role
from lifesigns.web.server import listen
from tests.web.hub import RunningHub, running_hub
from tests.web.listening import until


def give(hub: RunningHub, agent_id: str, n: int = 1) -> str:
    """An order for an agent that is waited for, as the dispatcher would put it."""
    now = hub.service.clock()
    order = AskStatus(now, f"n-{n}", 1, agent_id, None, "t", "How is it?", answer_by=now + 600)
    hub.service.hub.deliver(order)
    return order.order_id


async def poll(hub: RunningHub, agent_id: str, wait: float = 0) -> httpx2.Response:
    place = f"/api/v1/agents/{quote(agent_id, safe='')}/orders"
    return await hub.http.get(place, params={"wait": wait}, timeout=60)


async def test_an_order_waits_until_it_is_acknowledged(hub: RunningHub) -> None:
    assert (await poll(hub, "a/b")).json() == {"orders": []}
    order_id = give(hub, "a/b")
    for _ in range(2):
        (order,) = (await poll(hub, "a/b")).json()["orders"]
        assert (order["type"], order["order_id"], order["agent_id"]) == ("status_inquiry", order_id, "a/b")
    ack = await hub.post(f"/api/v1/agents/a%2Fb/orders/{order_id}/ack")
    assert (ack.status_code, ack.content) == (204, b"")
    assert "content-length" not in ack.headers
    assert (await poll(hub, "a/b")).json() == {"orders": []}
    assert (await hub.post(f"/api/v1/agents/a%2Fb/orders/{order_id}/ack")).status_code == 404


async def test_a_poll_is_answered_the_moment_there_is_an_order(hub: RunningHub) -> None:
    """Within 100 ms; the best of five, because others use this machine too."""
    took = []
    for n in range(5):
        polling = asyncio.create_task(poll(hub, "a", wait=30))
        await until(lambda: "a" in hub.service.hub.ledger.polls)
        began_at = time.monotonic()
        order_id = give(hub, "a", n)
        assert [order["order_id"] for order in (await polling).json()["orders"]] == [order_id]
        took.append(time.monotonic() - began_at)
        await hub.post(f"/api/v1/agents/a/orders/{order_id}/ack")
    assert min(took) < 0.1


def test_what_a_stream_says_is_not_held_back() -> None:
    """Otherwise an order comes 40 ms late: its first bytes wait until the reader has confirmed the head of the answer."""
    with listen("127.0.0.1", 0) as listener:
        listener.settimeout(10)
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_both_who_wait_for_an_agent_get_its_order(hub: RunningHub) -> None:
    """Fetching is not taking: the agent's side carries it out once, by its id."""
    polls = [asyncio.create_task(poll(hub, "a", wait=30)) for _ in range(2)]
    await until(lambda: len(hub.service.hub.ledger.polls.get("a", ())) == 2)
    order_id = give(hub, "a")
    for polling in polls:
        assert [order["order_id"] for order in (await polling).json()["orders"]] == [order_id]


async def test_one_poll_serves_many_agents(hub: RunningHub) -> None:
    polling = asyncio.create_task(
        hub.http.get("/api/v1/orders", params=[("agent", "a"), ("agent", "b"), ("wait", "30")], timeout=60)
    )
    await until(lambda: "b" in hub.service.hub.ledger.polls)
    order_id = give(hub, "b")
    orders = (await polling).json()["orders"]
    assert {agent: [order["order_id"] for order in of] for agent, of in orders.items()} == {"b": [order_id]}


async def test_who_hangs_up_is_not_waited_for(hub: RunningHub) -> None:
    async with hub.client(hub.token) as http:
        polling = asyncio.create_task(http.get("/api/v1/agents/a/orders?wait=60", timeout=60))
        await until(lambda: "a" in hub.service.hub.ledger.polls)
        polling.cancel()
        await asyncio.gather(polling, return_exceptions=True)
    await until(lambda: not hub.service.hub.ledger.polls)


async def test_polls_end_at_once_when_the_hub_stops() -> None:
    async with running_hub() as hub, hub.client(hub.token) as http:
        polling = asyncio.create_task(http.get("/api/v1/agents/a/orders?wait=60", timeout=60))
        await until(lambda: "a" in hub.service.hub.ledger.polls)
        began_at = time.monotonic()
        hub.service.end_listeners()
        assert (await polling).json() == {"orders": []}
    assert time.monotonic() - began_at < 4


async def test_a_poll_that_waits_for_nothing_is_answered_empty(hub: RunningHub) -> None:
    assert (await poll(hub, "a", wait=0.05)).json() == {"orders": []}
    assert not hub.service.hub.ledger.polls


async def test_an_old_ping_is_not_offered_any_more(hub: RunningHub) -> None:
    """A ping is worth something only now."""
    now = hub.service.clock()
    hub.service.hub.deliver(SendPing(now - 3600, "p-1", 1, "a", None, seq=1, suspicion="silent"))
    assert (await poll(hub, "a")).json() == {"orders": []}


async def test_an_agent_fetches_its_own_orders_and_nobody_elses(hub: RunningHub) -> None:
    token = await hub.token_for(Role.AGENT, "coder-*")
    order_id = give(hub, "other")
    async with hub.client(token) as coder:
        assert (await coder.get("/api/v1/agents/coder-7/orders")).status_code == 200
        assert (await coder.get("/api/v1/agents/other/orders")).status_code == 403
        assert (await coder.post(f"/api/v1/agents/other/orders/{order_id}/ack")).status_code == 403
        assert (await coder.get("/api/v1/orders?agent=coder-7&agent=other")).status_code == 403
        assert (await coder.get("/api/v1/orders?agent=coder-7&agent=coder-8")).status_code == 200
    async with hub.client(await hub.token_for(Role.VIEWER)) as viewer:
        assert (await viewer.get("/api/v1/agents/other/orders")).status_code == 403


async def test_a_bad_question_names_its_field(hub: RunningHub) -> None:
    for place, field in (
        ("/api/v1/agents/a/orders?wait=61", "wait"),
        ("/api/v1/agents/a/orders?wait=nan", "wait"),
        ("/api/v1/agents/no%20spaces/orders", "agent_id"),
        ("/api/v1/orders", "agent"),
        ("/api/v1/orders?agent=no%20spaces", "agent[0]"),
    ):
        answer = await hub.http.get(place)
        assert (answer.status_code, answer.json()["field"]) == (400, field), place


@pytest.mark.parametrize("followed", [["a"], ["a", "b"]], ids=["one agent", "two agents"])
async def test_a_senders_link_fetches_and_acknowledges(
    hub: RunningHub, followed: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """The two sides of the wire as they are. It may be offered twice, until the acknowledgement is there; nobody minds."""
    taken: list[Order] = []
    link = HttpLink(hub.url, hub.token)
    await link.open(lambda order: not taken.append(order))  # type: ignore[func-returns-value]
    try:
        for agent_id in followed:
            await link.follow(agent_id)
        await until(lambda: "a" in hub.service.hub.ledger.polls)
        order_id = give(hub, "a")
        await until(lambda: not hub.service.hub.ledger.of("a"))
        assert {order.order_id for order in taken} == {order_id}
        assert caplog.records == []
    finally:
        await link.close()
    await until(lambda: not hub.service.hub.ledger.polls)


async def test_what_is_not_for_one_is_left_for_the_other_who_speaks_for_the_same_agent(
    hub: RunningHub,
) -> None:
    """A supervisor and the agent in it fetch from one mailbox: who declines an order does not take it from the other, and is
    not told of it again and again."""
    declined: list[Order] = []
    taken: list[Order] = []
    supervisor, agent = HttpLink(hub.url, hub.token), HttpLink(hub.url, hub.token)
    try:
        await supervisor.open(lambda order: bool(declined.append(order)))  # type: ignore[func-returns-value]
        await agent.open(lambda order: not taken.append(order))  # type: ignore[func-returns-value]
        await supervisor.follow("a")
        order_id = give(hub, "a")
        await until(lambda: declined)
        await until(lambda: "a" in hub.service.hub.ledger.polls)  # It polls again, and waits.
        await agent.follow("a")
        await until(lambda: taken)
        await until(lambda: not hub.service.hub.ledger.of("a"))
    finally:
        await supervisor.close()
        await agent.close()
    assert [order.order_id for order in declined] == [order_id]
    assert {order.order_id for order in taken} == {
        order_id
    }  # Perhaps twice: a poll may overtake the acknowledgement.
