"""What every link promises (`lifesigns.ports.Link`), over the memory bus, NATS, Valkey and HTTP."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass

import pytest

from lifesigns.assembly.links import link_to
from lifesigns.core import signals as s
from lifesigns.core.effects import Order, SendPing
from lifesigns.errors import AdapterError
from lifesigns.ports import Link
from tests.agent.sender.ear import Ear
from tests.agent.sender.http_hub import HttpHub
from tests.servers.nats import NatsServer
from tests.servers.process import free_port
from tests.servers.valkey import ValkeyServer


@dataclass
class Ground:
    """A hub, and links to it."""

    url: str
    side: Ear | HttpHub
    stack: AsyncExitStack

    async def link(self, obeyed: list[Order] | None = None) -> Link:
        link = link_to(self.url)
        await link.open(lambda order: obeyed is None or not obeyed.append(order))  # type: ignore[func-returns-value]
        self.stack.push_async_callback(link.close)
        return link

    async def order(self, order: Order) -> None:
        give = self.side.order if isinstance(self.side, Ear) else self.side.offer
        await asyncio.to_thread(give, order)

    async def until(self, holds: object) -> None:
        await asyncio.to_thread(self.side.until, holds)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    with NatsServer() as nats, ValkeyServer() as valkey:
        yield {"nats": nats.url, "redis": valkey.url}


@pytest.fixture(params=["memory", "nats", "redis", "http"])
async def ground(request: pytest.FixtureRequest) -> AsyncIterator[Ground]:
    with ExitStack() as sides:
        side: Ear | HttpHub
        match request.param:
            case "http":
                side = sides.enter_context(HttpHub())
            case "memory":
                side = sides.enter_context(Ear())
            case name:
                side = sides.enter_context(Ear(request.getfixturevalue("servers")[name]))
        async with AsyncExitStack() as stack:
            yield Ground(side.url, side, stack)


def beat(agent: str, seq: int = 1) -> s.BeatReceived:
    return s.BeatReceived(agent, seq=seq, sent_at=time.time())


def word(agent: str, note: str) -> s.Report:
    return s.ProgressMade(agent_id=agent, note=note)


def ping(agent: str, order_id: str) -> Order:
    return SendPing(time.time(), order_id, 1, agent, None, 1, "silence")


async def test_what_is_carried_arrives_in_order(ground: Ground) -> None:
    link = await ground.link()
    await link.carry_beats([beat("a"), beat("b")])
    await link.carry_reports(1, [word("a", str(n)) for n in range(100)])
    await link.carry_beats([beat("a", 2)])
    await link.carry_reports(2, [word("b", "last")])
    await ground.until(lambda: len(ground.side.beats) == 3 and len(ground.side.words) == 101)
    assert [(one.agent_id, one.seq) for one in ground.side.beats] == [("a", 1), ("b", 1), ("a", 2)]
    notes = [one.note for one in ground.side.words if isinstance(one, s.ProgressMade)]
    assert notes == [*map(str, range(100)), "last"]


async def test_nothing_is_carried_without_complaint(ground: Ground) -> None:
    link = await ground.link()
    await link.carry_beats([])
    await link.carry_reports(1, [])


async def test_more_than_one_message_holds_is_carried_in_several(ground: Ground) -> None:
    link = await ground.link()
    words = [word("a", f"{n} {'x' * 9000}") for n in range(300)]
    await link.carry_reports(1, words)
    await ground.until(lambda: len(ground.side.words) == 300)


async def test_orders_come_for_those_who_are_followed(ground: Ground) -> None:
    obeyed: list[Order] = []
    link = await ground.link(obeyed)
    await link.follow("a")
    await link.follow("org/b.1:c@d")
    await _polled(ground, {"a", "org/b.1:c@d"})
    await ground.order(ping("a", "1-1"))
    await ground.order(ping("org/b.1:c@d", "1-2"))
    await _until(lambda: {order.order_id for order in obeyed} >= {"1-1", "1-2"})
    assert {order.agent_id for order in obeyed} == {"a", "org/b.1:c@d"}


async def test_orders_for_others_do_not_come(ground: Ground) -> None:
    obeyed: list[Order] = []
    link = await ground.link(obeyed)
    for agent in ("a", "b", "c"):
        await link.follow(agent)
    await link.unfollow("b")
    await link.follow("a")  # twice is once
    await _polled(ground, {"a", "c"})
    for number, agent in enumerate(("b", "x", "a", "c")):
        await ground.order(ping(agent, f"1-{number}"))
    await _until(lambda: len(obeyed) >= 2)
    assert [order.agent_id for order in obeyed] == ["a", "c"]


async def test_two_links_do_not_know_each_other(ground: Ground) -> None:
    first: list[Order] = []
    second: list[Order] = []
    one, two = await ground.link(first), await ground.link(second)
    await one.follow("a")
    await _polled(ground, {"a"})
    await two.follow("b")
    await _polled(ground, {"b"})
    await one.close()
    await two.carry_beats([beat("b")])
    await ground.order(ping("b", "1-1"))
    await _until(lambda: second)
    assert not first


async def test_a_closed_link_carries_nothing_and_can_be_closed_again(ground: Ground) -> None:
    link = await ground.link()
    await link.follow("a")
    await link.close()
    with pytest.raises(AdapterError):
        await link.carry_beats([beat("a")])
    await link.close()


@pytest.mark.parametrize("scheme", ["nats", "redis", "http"])
async def test_nobody_there_is_told_soon_and_is_worth_another_try(scheme: str) -> None:
    link = link_to(f"{scheme}://127.0.0.1:{free_port()}")
    try:
        async with asyncio.timeout(8):
            with pytest.raises(AdapterError) as caught:
                await link.open(lambda _: True)
        assert caught.value.transient
    finally:
        await link.close()


async def _polled(ground: Ground, agents: set[str]) -> None:
    """Over HTTP an order is offered only once here: wait until the poll for these agents has begun."""
    side = ground.side
    if isinstance(side, HttpHub):
        await ground.until(lambda: any(set(polled) == agents for polled in side.polled))


async def _until(holds: object) -> None:
    async with asyncio.timeout(10):
        while not holds():  # type: ignore[operator]  # noqa: ASYNC110 -- a list that another callback fills
            await asyncio.sleep(0.01)
