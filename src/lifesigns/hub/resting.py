"""A store at rest: no hub uses it, and none begins to, for the time of a block."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Final

from lifesigns.errors import UsageError
from lifesigns.hub.lease import RENEW_EVERY, Lease
from lifesigns.hub.state_folder import LOCK, claimed, claimed_database, sqlite_path
from lifesigns.ports import HubRow, Store

NAME: Final = "lifesigns-store-move"
WATCH_FOR: Final = 3.5
"""Seconds in which a hub that lives renews its row at least once, even if one renewal takes two seconds."""


@asynccontextmanager
async def resting(store: Store, url: str, version: str) -> AsyncIterator[None]:
    """Raise `UsageError` if a hub uses this store. Hubs that start meanwhile stand by, or are refused."""
    with ExitStack() as held:
        if (path := sqlite_path(url)) is not None:
            if (path.parent / LOCK).exists():
                held.enter_context(claimed(path.parent))
            held.enter_context(claimed_database(path))
        if not store.shared:
            yield
            return
        lease = Lease(store, NAME, "", version)
        before = {row.name: row.beat for row in await _rows(lease)}
        await asyncio.sleep(WATCH_FOR)
        alive = [row for row in await _rows(lease) if row.name != NAME and before.get(row.name) != row.beat]
        if alive:
            raise UsageError(f"the hub {alive[0].name} at {alive[0].url} uses this store; stop it first")
        await store.open()
        holding = asyncio.create_task(_renew(lease))
        try:
            yield
        finally:
            holding.cancel()
            await asyncio.gather(holding, return_exceptions=True)


async def _rows(lease: Lease) -> list[HubRow]:
    await lease.may_lead()
    return [*lease.rows]


async def _renew(lease: Lease) -> None:
    while True:
        await asyncio.sleep(RENEW_EVERY)
        await lease.may_lead()
