"""Every store, and a real server for the one that needs it. The tables are dropped before a test, not the server."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.adapters.store.postgres import PostgresStore, SlotStore
from lifesigns.adapters.store.sqlite import SqliteStore
from tests.contracts.store.ground import Ground
from tests.servers.postgres import PostgresServer


class LoneSlot(SlotStore):
    """The store of a slot, with a whole store for itself."""

    def __init__(self, url: str) -> None:
        super().__init__(PostgresStore(url), url, 3)

    async def _disconnect(self) -> None:
        await super()._disconnect()
        await self._whole.close()


async def wipe(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for (schema,) in await connection.fetch(
            "SELECT nspname FROM pg_namespace WHERE nspname ~ '^lifesigns'"
        ):
            await connection.execute(f"DROP SCHEMA {schema} CASCADE")
    finally:
        await connection.close()


@pytest.fixture
async def postgres_url(postgres_server: PostgresServer) -> str:
    """A database with nothing of ours in it."""
    await wipe(postgres_server.url)
    return postgres_server.url


@pytest.fixture(params=["memory", "sqlite", "postgres", "slot"])
async def ground(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Ground]:
    """Any store."""
    match request.param:
        case "memory":
            name = str(uuid.uuid4())
            ground = Ground(lambda place: MemoryStore(f"{name}-{place}"))
        case "sqlite":
            ground = Ground(lambda place: SqliteStore(tmp_path / f"{place}.db", busy_for=30.0))
        case kind:
            url = request.getfixturevalue("postgres_server").url
            await wipe(url)

            def make(_place: int) -> PostgresStore:
                return PostgresStore(url) if kind == "postgres" else LoneSlot(url)

            ground = Ground(make, lambda: wipe(url))
    yield ground
    await ground.close()
