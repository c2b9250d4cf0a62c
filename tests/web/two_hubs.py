"""Two hubs in this process, on one store: one judges, one stands by. Real servers, real sockets."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import httpx2

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.config.values import Limits
from lifesigns.hub.lease import Lease
from lifesigns.hub.principals import Role
from lifesigns.hub.service import Service
from lifesigns.web.app import Web
from lifesigns.web.connections import Connections
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.server import listen, served, serving
from lifesigns.web.standby import StandbySite


@dataclass
class OneHub:
    """A hub, and where it is."""

    service: Service
    lease: Lease
    url: str
    connections: Connections

    async def token(self, role: Role, agents: str = "") -> str:
        """A new token, made here."""
        access = self.service.access
        made = await access.tokens.create(role=role, name="x", agents=agents, now=self.service.clock())
        return made.token

    async def ask(
        self, path: str, token: str | None = None, method: str = "GET", **more: object
    ) -> httpx2.Response:
        own = {} if token is None else {"authorization": f"Bearer {token}"}
        headers = {**own, **more.pop("headers", {})}  # type: ignore[dict-item]
        async with httpx2.AsyncClient(
            base_url=self.url, headers=headers, trust_env=False, verify=False, timeout=30.0
        ) as client:
            return await client.request(method, path, **more)  # type: ignore[arg-type]


@dataclass
class TwoHubs:
    """The one that judges, and the one that stands by."""

    judge: OneHub
    standby: OneHub
    site: StandbySite
    web: Web


@asynccontextmanager
async def two_hubs(
    folder: Path,
    *,
    judge_at: str | None = None,
    policy: HostPolicy | None = None,
    connections: Connections | None = None,
    judge_tls: tuple[str, str] | None = None,
) -> AsyncIterator[TwoHubs]:
    """`judge_at` is what the row of the hub that judges says instead of its address; with `judge_tls` it speaks HTTPS."""
    kept = token_hex(8)
    store = MemoryStore(kept)
    listeners = [listen("127.0.0.1", 0) for _ in range(2)]
    urls = [f"http://127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]
    if judge_tls is not None:
        urls[0] = urls[0].replace("http:", "https:")
    folders = [folder / name for name in ("judge", "standby")]
    for one in folders:
        one.mkdir(mode=0o700)
    async with AsyncExitStack() as stack:
        judge = Service(store, state=folders[0])
        await store.renew("judge", judge_at or urls[0], "1.0")
        lease = Lease(store, "judge", judge_at or urls[0], "1.0")
        judge.join(lease)
        await judge.start()
        stack.push_async_callback(judge.stop)
        web = Web(judge)
        at = connections or Connections()
        await stack.enter_async_context(serving(web, listeners[0], tls=judge_tls, connections=at))
        shutil.copy(folders[0] / "tokens.key", folders[1])
        standby = Service(MemoryStore(kept), state=folders[1])
        other = Lease(standby.store, "standby", urls[1], "1.0")
        standby.join(other)
        await standby.open_access()
        await other.may_lead()
        site = StandbySite(standby, policy or HostPolicy(), Limits())
        near = Connections()
        await stack.enter_async_context(served(site, listeners[1], near))
        await stack.enter_async_context(site.following())
        yield TwoHubs(OneHub(judge, lease, urls[0], at), OneHub(standby, other, urls[1], near), site, web)
