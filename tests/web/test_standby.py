"""What a hub answers while another one judges."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.hub import throttle
from lifesigns.hub.lease import Lease
from lifesigns.hub.principals import Role
from lifesigns.hub.service import Service
from lifesigns.web.connections import Connections
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.server import listen, served
from lifesigns.web.standby import StandbySite

HUBS = "/api/v1/hubs"


class Standby:
    """A hub that stands by, and the tokens that it knows."""

    def __init__(self, service: Service, url: str) -> None:
        self.service = service
        self._url = url

    async def token(self, role: Role, agents: str = "") -> str:
        made = await self.service.access.tokens.create(role=role, name="x", agents=agents, now=1.0)
        return made.token

    async def ask(self, path: str, token: str | None = None, method: str = "GET") -> httpx2.Response:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(base_url=self._url, headers=headers, trust_env=False) as client:
            return await client.request(method, path)


@asynccontextmanager
async def standing_by() -> AsyncIterator[Standby]:
    store = MemoryStore()
    service, lease = Service(store), Lease(store, "me", "http://me", "1.0")
    await store.renew("other", "http://other", "1.0")
    await lease.may_lead()
    service.join(lease)
    listener = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with served(StandbySite(service, HostPolicy()), listener, Connections()):
        yield Standby(service, url)
    await store.close()


@pytest.fixture
async def standby() -> AsyncIterator[Standby]:
    async with standing_by() as hub:
        yield hub


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR, Role.ADMIN])
async def test_it_lists_the_hubs_to_those_who_may_read(standby: Standby, role: Role) -> None:
    answer = await standby.ask(HUBS, await standby.token(role))
    assert answer.status_code == 200
    assert [one["name"] for one in answer.json()["hubs"]] == ["me", "other"]


async def test_to_others_it_says_only_that_it_stands_by(standby: Standby) -> None:
    """Not 401: the token may be new, and the client has to go on to the hub that knows it."""
    agent = await standby.token(Role.AGENT, "a")
    admin = await standby.token(Role.ADMIN)
    answers = [await standby.ask(HUBS, token) for token in (None, "nonsense", agent)]
    answers += [await standby.ask(HUBS, admin, "DELETE"), await standby.ask("/api/v1/agents", admin)]
    assert [answer.status_code for answer in answers] == [503] * 5
    assert all(answer.headers["retry-after"] == "1" for answer in answers)
    assert not any("other" in answer.text.replace("another", "") for answer in answers)


async def test_whoever_guesses_tokens_is_told_to_wait(
    standby: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttle, "FAILURES_MAX", 2)
    answers = [await standby.ask(HUBS, f"guess-{n}") for n in range(4)]
    assert [answer.status_code for answer in answers] == [503, 503, 429, 429]


async def test_it_lives_and_is_not_ready(standby: Standby) -> None:
    assert (await standby.ask("/healthz")).status_code == 200
    ready = await standby.ask("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (503, "standby")
    page = await standby.ask("/")
    assert (page.status_code, "stands by" in page.text) == (503, True)
