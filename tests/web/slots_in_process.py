"""Two hubs in this process that judge at once, each its own slots. Real servers, real sockets."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

import httpx2

from lifesigns.adapters.signing.ed25519 import verifies
from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.config.values import Limits
from lifesigns.hub.access import Access
from lifesigns.hub.clock import steady_clock
from lifesigns.hub.lease import Lease
from lifesigns.hub.principals import Role
from lifesigns.hub.service import Service
from lifesigns.hub.shares import Shares
from lifesigns.hub.slots import SLOTS
from lifesigns.web.app import Web
from lifesigns.web.connections import Connections
from lifesigns.web.fleet_site import FleetSite
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.server import listen, served
from lifesigns.web.standby import StandbySite
from tests.web.listening import until

HALF_EACH = (0, 0, 0, 0, 1, 1, 1, 1)
"""By slot: which of the two hubs judges it."""


@dataclass
class SlotsHub:
    """One process of them."""

    url: str
    site: FleetSite
    access: Access
    shares: Shares
    token: str = ""
    """Of an admin."""
    services: dict[int, Service] = field(default_factory=dict)
    """By slot: those that judge here."""
    stores: dict[int, str] = field(default_factory=dict)
    """By slot: the name of its store."""

    async def post(self, path: str, body: Any, token: str | None = None, **headers: str) -> httpx2.Response:
        how: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"json": body}
        return await self.ask("POST", path, token, headers, **how)

    async def get(self, path: str, token: str | None = None, **headers: str) -> httpx2.Response:
        return await self.ask("GET", path, token, headers)

    async def ask(
        self, method: str, path: str, token: str | None, headers: dict[str, str], **how: Any
    ) -> httpx2.Response:
        own = {name.replace("_", "-"): value for name, value in headers.items()}
        own.setdefault("authorization", f"Bearer {token or self.token}")
        async with httpx2.AsyncClient(base_url=self.url, trust_env=False, verify=False, timeout=30) as client:
            return await client.request(method, path, headers=own, **how)

    async def token_for(self, role: Role, agents: str = "") -> str:
        """A new token."""
        made = await self.access.tokens.create(role=role, name=f"a {role}", agents=agents, now=0.0)
        return made.token


@asynccontextmanager
async def hubs_in_slots(
    folder: Path, judges: Sequence[int] = HALF_EACH, limits: Limits | None = None
) -> AsyncIterator[list[SlotsHub]]:
    """They know each other, and who judges what."""
    kept, clock = token_hex(8), steady_clock(None)
    limits = limits or Limits()
    hubs: list[SlotsHub] = []
    async with AsyncExitStack() as stack:
        for n in range(2):
            state = folder / str(n)
            state.mkdir(mode=0o700)
            if hubs:
                shutil.copy(folder / "0" / "tokens.key", state)
            access = Access(MemoryStore(kept), limits.session_for)
            await access.open_folder(state, clock())
            listener = listen("127.0.0.1", 0)
            shares = Shares(clock, limits.busy_share_per_token)
            site = FleetSite(access, clock, HostPolicy(), limits, shares)
            await stack.enter_async_context(served(site, listener, Connections()))
            hubs.append(SlotsHub(f"http://127.0.0.1:{listener.getsockname()[1]}", site, access, shares))
        made = await hubs[0].access.tokens.create(role=Role.ADMIN, name="tests", now=clock())
        for hub in hubs:
            hub.token = made.token
            await hub.access.tokens.load()
        for slot in range(SLOTS):
            for n in sorted(range(2), key=lambda n: n != judges[slot]):  # Who judges is there first.
                await _add(stack, hubs[n], f"hub-{n}", f"{kept}-{slot}", slot, judges=n == judges[slot])
        for hub in hubs:
            standing_by = [site for site in hub.site.sites if isinstance(site, StandbySite)]
            await until(lambda sites=standing_by: not any(site.why_away for site in sites))
        yield hubs


async def _add(
    stack: AsyncExitStack, hub: SlotsHub, name: str, place: str, slot: int, *, judges: bool
) -> None:
    store = MemoryStore(place)
    service = Service(store, slot=slot, access=hub.access, shares=hub.shares, verifies=verifies)
    lease = Lease(store, name, hub.url, "1.0")
    service.join(lease)
    hub.stores[slot] = place
    if judges:
        await store.renew(name, hub.url, "1.0")
        await service.start()
        stack.push_async_callback(service.stop)
        hub.services[slot] = service
        hub.site.sites[slot] = Web(service)
        return
    await lease.may_lead()
    standby = StandbySite(service, HostPolicy(), Limits())
    hub.site.sites[slot] = standby
    await stack.enter_async_context(standby.following())
