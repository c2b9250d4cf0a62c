"""A whole hub in this process, on a free port: real server, real sockets, real store."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.config.values import Limits
from lifesigns.core.policy import Policy
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.hub.principals import Role
from lifesigns.hub.service import Service
from lifesigns.ports import Bus, Event, Store
from lifesigns.web.app import Web
from lifesigns.web.connections import Connections
from lifesigns.web.server import listen, serving


@dataclass
class RunningHub:
    """A hub that serves, and somebody who asks it things."""

    service: Service
    web: Web
    url: str
    token: str
    """Of an admin."""
    http: httpx2.AsyncClient

    async def get(self, path: str, **query: Any) -> httpx2.Response:
        return await self.http.get(path, params=query)

    async def post(self, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        return await self.http.post(path, json=body, **more)

    async def keep(self, *events: Event) -> None:
        """As if these had happened, under their own numbers; the next one follows them."""
        hub = self.service.hub
        hub._event_id = max(hub._event_id, events[-1].id)
        hub.committer.add(list(events))
        await hub.committer.wait_until_stored()

    async def token_for(self, role: Role, agents: str = "") -> str:
        """A new token."""
        made = await self.service.access.tokens.create(
            role=role, name=f"a {role}", agents=agents, now=self.service.clock()
        )
        return made.token

    def client(self, token: str | None, headers: Mapping[str, str] | None = None) -> httpx2.AsyncClient:
        """Somebody else who asks."""
        own = {} if token is None else {"authorization": f"Bearer {token}"}
        return httpx2.AsyncClient(
            base_url=self.url, headers={**own, **(headers or {})}, trust_env=False, verify=False
        )


@asynccontextmanager
async def running_hub(
    store: Store | None = None,
    bus: Bus | None = None,
    policy: str | Policy = "balanced",
    port: int = 0,
    limits: Limits | None = None,
    connections: Connections | None = None,
    **more: Any,
) -> AsyncIterator[RunningHub]:
    """A hub with an admin's client. `more` goes to `Service`."""
    book = PolicyBook(policy if isinstance(policy, Policy) else profile(policy))
    service = Service(store or MemoryStore(), bus, policies=book, **more)
    await service.start()
    try:
        made = await service.access.tokens.create(role=Role.ADMIN, name="tests", now=service.clock())
        listener = listen("127.0.0.1", port)
        port = _port(listener)
        web = Web(service, limits=limits)
        async with serving(web, listener, connections=connections):
            url = f"http://127.0.0.1:{port}"
            headers = {"authorization": f"Bearer {made.token}"}
            async with httpx2.AsyncClient(
                base_url=url, headers=headers, trust_env=False, verify=False
            ) as http:
                yield RunningHub(service, web, url, made.token, http)
    finally:
        await service.stop()


def _port(listener: socket.socket) -> int:
    port: int = listener.getsockname()[1]
    return port
