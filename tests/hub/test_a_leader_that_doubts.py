"""A hub among several that cannot renew its row: another one may judge by now."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.errors import AdapterError
from lifesigns.hub import lease as leases
from lifesigns.hub import service as services
from lifesigns.hub.http_receiver import NotLeader
from lifesigns.hub.lease import Lease
from lifesigns.hub.principals import Principal, Role
from lifesigns.hub.service import Service
from lifesigns.ports import HubRow
from tests.hub.faulty_store import FaultyStore

SOMEBODY = Principal("t1", "somebody", Role.OPERATOR)
BEAT = b'{"agent_id": "a"}'


class CutOff(FaultyStore):
    """A store whose rows of hubs cannot be reached for a while."""

    cut = False

    async def renew(
        self, name: str, url: str, version: str, zone: str = "", copied: int = -1
    ) -> list[HubRow]:
        if self.cut:
            raise AdapterError("it is away")
        return [*await super().renew(name, url, version, zone, copied)]


@asynccontextmanager
async def leading(monkeypatch: pytest.MonkeyPatch, *, others: bool) -> AsyncIterator[tuple[Service, CutOff]]:
    monkeypatch.setattr(leases, "RENEW_EVERY", 0.01)
    monkeypatch.setattr(leases, "TRUST_FOR", 0.05)
    name = str(uuid.uuid4())
    store = CutOff(name)
    service = Service(store)
    lease = Lease(store, "me", "http://me", "1.0")
    service.join(lease)
    assert await lease.may_lead()
    if others:
        await MemoryStore(name).renew("other", "http://other", "1.0")
    await service.start()
    try:
        yield service, store
    finally:
        await service.stop()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10.0):
        while not condition():  # noqa: ASYNC110 -- what is waited for is not told by events
            await asyncio.sleep(0.005)


async def test_it_refuses_beats_so_that_agents_find_the_hub_that_judges(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That one does not hear those who speak here, and would take them for dead. Nor does this one convict anybody."""
    async with leading(monkeypatch, others=True) as (service, store):
        await service.http_receiver.take_beats(BEAT, SOMEBODY)
        service.engine.beliefs.awareness.truce_until = -1.0
        store.cut = True
        await until(lambda: service.hub.is_replaced)
        with pytest.raises(NotLeader):
            await service.http_receiver.take_beats(BEAT, SOMEBODY)
        assert service.http_receiver.take_together([BEAT], [SOMEBODY], service.clock()) is None
        assert service.engine.beliefs.awareness.truce_until > service.clock()
        store.cut = False
        await until(lambda: not service.hub.is_replaced)
        await service.http_receiver.take_beats(BEAT, SOMEBODY)


async def test_a_hub_alone_watches_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else judges, so its agents stay with it."""
    async with leading(monkeypatch, others=False) as (service, store):
        store.cut = True
        await asyncio.sleep(0.2)  # Many renewals fail meanwhile, and nothing tells that nothing changed.
        await service.http_receiver.take_beats(BEAT, SOMEBODY)
        assert not service.hub.is_replaced


async def test_it_hands_over_without_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stops a hub need not wait for its store."""
    monkeypatch.setattr(services, "STORED_WITHIN", 0.05)
    async with leading(monkeypatch, others=True) as (service, store):
        await service.http_receiver.take_beats(BEAT, SOMEBODY)
        assert service.lease is not None
        assert service.lease.successors()
        store.hold()
        try:
            async with asyncio.timeout(10.0):
                await service.hand_over()
        finally:
            store.go_on()
