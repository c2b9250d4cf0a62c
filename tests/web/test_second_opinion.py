"""Two hubs on one store: the one that judges asks the other, over HTTP, and hears its answer."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from lifesigns.adapters.bus.memory import MemoryBus
from lifesigns.adapters.hubs.http import HttpHubCaller
from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.config.values import Limits
from lifesigns.core.effects import AskSecondOpinion
from lifesigns.core.signals import Opinion, OpinionGiven, Signal
from lifesigns.hub import opinion_asker
from lifesigns.hub.hub_requests import SESSION, request_headers
from lifesigns.hub.lease import Lease
from lifesigns.hub.opinion_asker import PATH, OpinionAsker
from lifesigns.hub.principals import Role
from lifesigns.hub.service import Service
from lifesigns.hub.token_macs import HubMacs
from lifesigns.web.connections import Connections
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.server import listen, served
from lifesigns.web.standby import StandbySite

BEAT = b'{"agent_id": "a"}'


def order(agent_id: str = "a", within: float = 2.0, zones: tuple[str, ...] = ("west",)) -> AskSecondOpinion:
    return AskSecondOpinion(
        at=1.0,
        order_id=f"1-{agent_id}",
        epoch=1,
        agent_id=agent_id,
        incarnation=None,
        zones=zones,
        silent_for=11.0,
        answer_within=within,
    )


class Site:
    """A hub in zone west that stands by, and one in zone east that asks."""

    def __init__(self, service: Service, url: str, asker: OpinionAsker, agents: MemoryBus) -> None:
        self.service = service
        self.url = url
        self.asker = asker
        self.agents = agents
        self.heard: list[OpinionGiven] = []

    async def requests_are_over(self) -> None:
        async with asyncio.timeout(20):
            while self.asker._requests:  # noqa: ASYNC110 -- until all are answered or refused
                await asyncio.sleep(0.01)

    async def opinions(self, *orders: AskSecondOpinion) -> dict[str, Opinion]:
        for one in orders:
            self.asker.ask(one)
        async with asyncio.timeout(20):
            while len(self.heard) < len(orders):  # noqa: ASYNC110 -- until the asker has heard all
                await asyncio.sleep(0.01)
        return {given.agent_id: given.opinion for given in self.heard}


@asynccontextmanager
async def site(folder: Path, *, key: bytes | None = None, zone: str = "west") -> AsyncIterator[Site]:
    name = str(uuid.uuid4())
    address = f"memory://{uuid.uuid4()}"
    async with AsyncExitStack() as stack:
        listener = listen("127.0.0.1", 0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        store, other_store = MemoryStore(name), MemoryStore(name)
        service = Service(store, MemoryBus(address), state=folder)
        service.join(Lease(store, "west-1", url, "1.0", zone))
        await service.open_access()
        lease = Lease(other_store, "east-1", "http://east", "1.0", "east")
        await lease.may_lead()
        await other_store.open()
        assert service.lease is not None
        await service.lease.may_lead()
        await lease.may_lead()
        standing_by = asyncio.create_task(service.stand_by())
        stack.callback(standing_by.cancel)
        await stack.enter_async_context(
            served(StandbySite(service, HostPolicy(), Limits()), listener, Connections())
        )
        agents = MemoryBus(address)
        await agents.connect()

        def hear(signals: Sequence[Signal]) -> None:
            made.heard += [signal for signal in signals if isinstance(signal, OpinionGiven)]

        macs = service.access.tokens.hub_macs if key is None else HubMacs(key)
        assert macs is not None
        asker = OpinionAsker(lease, macs, HttpHubCaller(), hear)
        made = Site(service, url, asker, agents)
        async with asyncio.timeout(10):
            giver = service.opinion_giver
            while giver is not None and giver._canary is None:  # noqa: ASYNC110 -- until it is on the bus
                await asyncio.sleep(0.01)
        asker.meet()
        await made.requests_are_over()
        yield made
        await asker.close()
        await agents.close()
        standing_by.cancel()
        await asyncio.gather(standing_by, return_exceptions=True)
        await store.close()


async def test_the_other_zone_is_known_and_asked(tmp_path: Path) -> None:
    async with site(tmp_path) as made:
        assert made.asker._lease.other_zones() == {"west"}
        assert made.service.lease is not None
        assert made.service.lease.other_zones() == {"east"}
        assert await made.opinions(order(within=2.0)) == {"a": Opinion.NOT_HEARD}


async def test_what_the_other_hub_hears_comes_back(tmp_path: Path) -> None:
    async with site(tmp_path) as made:
        asking = asyncio.create_task(made.opinions(order("a"), order("b")))
        await asyncio.sleep(0.4)
        await made.agents.publish("heartbeat.a", BEAT)
        assert await asking == {"a": Opinion.HEARD, "b": Opinion.NOT_HEARD}
        assert made.asker.given == {Opinion.HEARD: 1, Opinion.NOT_HEARD: 1}


async def test_questions_of_one_moment_go_in_one_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And of more than fit into the requests allowed the zone cannot be asked."""
    monkeypatch.setattr(opinion_asker, "QUESTIONS_MAX", 2)
    monkeypatch.setattr(opinion_asker, "REQUESTS_MAX", 1)
    async with site(tmp_path) as made:
        said = await made.opinions(*(order(name, within=2.0) for name in "abcd"))
        assert sorted(said.values()) == [Opinion.CANNOT_BE_ASKED] * 2 + [Opinion.NOT_HEARD] * 2


async def test_a_hub_with_another_key_cannot_be_asked(tmp_path: Path) -> None:
    async with site(tmp_path, key=b"x" * 32) as made:
        assert await made.opinions(order()) == {"a": Opinion.CANNOT_BE_ASKED}


async def test_hubs_meet_before_somebody_depends_on_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with site(tmp_path) as made:
        assert set(made.asker._sessions) == {"west-1"}
        made.asker.meet()
        assert not made.asker._requests, "once is enough"
    async with site(tmp_path, key=b"x" * 32) as made:
        assert "hubs on one store share tokens.key" in caplog.text
        made.asker.meet()
        assert not made.asker._requests, "not at every renewal"


async def test_a_hub_that_is_gone_cannot_be_asked(tmp_path: Path) -> None:
    async with site(tmp_path) as made:
        assert await made.opinions(order(zones=("north",))) == {"a": Opinion.CANNOT_BE_ASKED}


async def test_a_hub_that_does_not_answer_holds_nobody_up(tmp_path: Path) -> None:
    listener = listen("127.0.0.1", 0)  # Nobody accepts there.
    async with site(tmp_path) as made:
        lease = made.service.lease
        assert lease is not None
        lease._url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        await lease.may_lead()
        await made.asker._lease.may_lead()
        began = asyncio.get_running_loop().time()
        assert await made.opinions(order(within=0.6)) == {"a": Opinion.CANNOT_BE_ASKED}
        assert asyncio.get_running_loop().time() - began < 5
    listener.close()


async def test_a_hub_without_a_zone_answers_nobody_and_asks_nobody(tmp_path: Path) -> None:
    async with (
        site(tmp_path, zone="") as made,
        httpx2.AsyncClient(base_url=made.url, trust_env=False) as client,
    ):
        assert (await client.post(PATH, content=b"{}")).status_code == 404
        assert made.asker._lease.other_zones() == frozenset()
        assert made.service.lease is not None
        assert made.service.lease.other_zones() == frozenset()


async def test_who_is_no_hub_is_refused(tmp_path: Path) -> None:
    """An administrator's token is not enough, and neither is what a hub has said before."""
    async with site(tmp_path) as made, httpx2.AsyncClient(base_url=made.url, trust_env=False) as client:
        admin = (await made.service.access.tokens.create(role=Role.ADMIN, name="x", now=1.0)).token
        refused = await client.post(PATH, content=b"{}", headers={"authorization": f"Bearer {admin}"})
        assert refused.status_code == 401
        macs = made.service.access.tokens.hub_macs
        assert macs is not None
        body = b'{"questions": [], "listen_for": 0}'
        headers = request_headers(macs, refused.headers[SESSION], PATH, body)
        assert (await client.post(PATH, content=body, headers=headers)).status_code == 200
        assert (await client.post(PATH, content=body, headers=headers)).status_code == 401
        headers = request_headers(macs, refused.headers[SESSION], PATH, b"nonsense")
        assert (await client.post(PATH, content=b"nonsense", headers=headers)).status_code == 400
        assert (await client.get(PATH)).status_code == 405
        assert (await client.post(PATH, content=b"x" * 300_000)).status_code == 413


async def test_an_agent_that_posts_to_the_hub_that_stands_by_is_heard(tmp_path: Path) -> None:
    async with site(tmp_path) as made, httpx2.AsyncClient(base_url=made.url, trust_env=False) as client:
        token = (
            await made.service.access.tokens.create(role=Role.AGENT, name="x", agents="a", now=1.0)
        ).token
        for name in ("a", "b"):
            answer = await client.post(
                "/api/v1/beats",
                content=b'{"agent_id": "%s"}' % name.encode(),
                headers={"authorization": f"Bearer {token}"},
            )
            assert answer.status_code == 503
        said = await made.opinions(order("a", within=2.0), order("b", within=2.0))
        assert said == {"a": Opinion.HEARD, "b": Opinion.NOT_HEARD}
