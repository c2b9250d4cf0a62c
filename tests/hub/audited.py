"""A hub with an audit log, a log of many deeds, and the SQL to tamper with it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import asyncpg
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lifesigns.adapters.signing.ed25519 import Ed25519Signer
from lifesigns.adapters.store.postgres import PostgresStore
from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.audit.checkpoints import kept_checkpoints
from lifesigns.audit.stored import verify_store
from lifesigns.audit.verifying import AuditVerdict
from lifesigns.core.effects import Pause
from lifesigns.events.hub_facts import HubPart, HubTroubleOver
from lifesigns.hub.housekeeping import Retention
from lifesigns.hub.service import Service
from lifesigns.ports import Signer, Store

AUDITED = 40


def new_signer() -> Ed25519Signer:
    return Ed25519Signer(Ed25519PrivateKey.generate())


@dataclass
class Log:
    """A log in a database, its state folder, its key."""

    url: str
    state: Path
    signer: Signer

    def store(self) -> Store:
        return PostgresStore(self.url) if self.url.startswith("postgres") else SqliteStore(self.url)

    @contextlib.asynccontextmanager
    async def hub(self, **more: Any) -> AsyncIterator[Service]:
        """A hub goes on with it."""
        service = Service(self.store(), state=self.state, signer=self.signer, retention=Retention(), **more)
        await service.start()
        try:
            yield service
        finally:
            await service.stop()

    async def sql(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What somebody does who has the password of the database."""
        if not self.url.startswith("postgres"):
            with contextlib.closing(apsw.Connection(self.url)) as file:
                return list(file.execute(statement.replace("$", "?"), values))
        server = await asyncpg.connect(self.url, server_settings={"search_path": "lifesigns"})
        try:
            return [tuple(row) for row in await server.fetch(statement, *values)]
        finally:
            await server.close()

    async def sql_many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """The same with many rows, one after the other."""
        if not self.url.startswith("postgres"):
            with contextlib.closing(apsw.Connection(self.url)) as file:
                file.executemany(statement.replace("$", "?"), rows)
            return
        server = await asyncpg.connect(self.url, server_settings={"search_path": "lifesigns"})
        try:
            await server.executemany(statement, rows)
        finally:
            await server.close()

    async def verify(self, *files: Path, key: bytes | None = None, state: bool = True) -> AuditVerdict:
        store = self.store()
        try:
            checkpoints = kept_checkpoints(files, self.state if state else None)
            return await verify_store(store, [key or self.signer.public], checkpoints)
        finally:
            await store.close()


async def act(service: Service, *numbers: int, agent_id: str = "a") -> None:
    """Somebody does something, so often."""
    for number in numbers:
        service.hub.announce(Pause(service.clock(), agent_id, "ann (k1)", float(number)))
    await service.hub.committer.wait_until_stored()


async def written_log(url: str, state: Path, signer: Signer | None = None) -> Log:
    """Forty deeds in two lives of a hub, sealed after every ten."""
    log = Log(url, state, signer or new_signer())
    for life in range(2):
        async with log.hub() as service:
            await read(service)
            for ten in (0, 10):
                first = life * 20 + ten
                await act(service, *range(first, first + 10))
                service.hub.announce(HubTroubleOver(service.clock(), HubPart.BUS))  # not a deed
                await service.hub.audit.seal(service.hub.committer, service.clock())
    return log


async def read(service: Service) -> None:
    """Until the hub has read its log."""
    async with asyncio.timeout(10):
        while not (service.hub.audit.proves or service.hub.audit.trouble):  # noqa: ASYNC110 -- not told by events
            await asyncio.sleep(0.001)
