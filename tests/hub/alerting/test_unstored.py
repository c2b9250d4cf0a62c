"""What is found while the store is away is told to people at once, and once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.core.signals import BeatReceived
from lifesigns.hub.alerting.rules import Rules
from lifesigns.hub.service import Service
from lifesigns.ports import Notice
from tests.hub.alerting.test_notifier import AT_ONCE, FAST, Ear
from tests.hub.faulty_store import FaultyStore

WITHIN = 20.0


async def until(service: Service, alive: str, condition: Callable[[], object]) -> None:
    """This agent beats until something holds."""
    ends_at, seq = time.monotonic() + WITHIN, int(time.monotonic() * 1000)
    while not condition():
        assert time.monotonic() < ends_at
        seq += 1
        service.hub.hear([BeatReceived(alive, seq, "one")])
        await asyncio.sleep(0.05)


def told_of(channel: Ear, agent_id: str) -> list[Notice]:
    return [notice for notice in channel.told if agent_id in notice.agents]


def stored(store: FaultyStore) -> list[str]:
    return [event.type for page in store.pages for event in page.events]


async def test_an_agent_that_dies_while_the_store_is_away_is_told_before_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lifesigns.hub.alerting.notifier.STORE_FOR", 0.05)
    store, ops = FaultyStore(), Ear()
    quick = profile("swift").with_changes({"silence": {"interval": 0.3, "timeout": 1.0, "ping_wait": 0.1}})
    service = Service(
        store,
        policies=PolicyBook(quick),
        rules=Rules({"ops": FAST}, pacing=AT_ONCE),
        channels={"ops": ops},
    )
    await service.start()
    try:
        service.hub.hear([BeatReceived("dies", 1, "one"), BeatReceived("lives", 1, "one")])
        await until(service, "lives", lambda: len(store.pages) > 0)
        store.fail("disk full")
        await until(service, "lives", lambda: "disk full" in [notice.text for notice in ops.told])
        await until(service, "lives", lambda: told_of(ops, "dies"))
        assert store.error is not None
        store.heal()
        await until(service, "lives", lambda: "HUB_STORE_BACK" in stored(store))
        assert [str(notice.stage) for notice in told_of(ops, "dies")] == ["opened"]
    finally:
        await service.stop()
