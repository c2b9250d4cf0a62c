"""While the store is away the hub says so, watches on, acts on nobody, and loses nothing."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import lifesigns
from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.core.health import Health
from lifesigns.core.signals import BeatReceived, NudgeRequested
from lifesigns.hub import http_receiver
from lifesigns.hub.feed import Listener
from lifesigns.hub.http_receiver import NotStored
from lifesigns.hub.service import Service
from lifesigns.ports import Event, Store
from tests.hub.faulty_store import FaultyStore
from tests.hub.store_faults import FAULTS, Fault
from tests.servers.postgres import PostgresServer
from tests.web.hub import RunningHub, running_hub

WAIT_MAX = 30.0
Broken = Callable[[PostgresServer], AbstractAsyncContextManager[Fault]]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(WAIT_MAX):
        while not condition():  # noqa: ASYNC110 -- what is waited for is not told by events
            await asyncio.sleep(0.005)


@dataclass
class Fleet:
    """Agents that beat on a clock which moves when it is told to, and everything that was told about them."""

    now: float = 1_700_000_000.0
    seq: int = 0
    told: list[Event] = field(default_factory=list)
    hub: RunningHub = field(init=False)
    ears: Listener = field(init=False)

    @property
    def service(self) -> Service:
        return self.hub.service

    @asynccontextmanager
    async def watched(self, store: Store) -> AsyncIterator[None]:
        async with running_hub(store, policy="swift", clock=lambda: self.now) as self.hub:
            self.ears = self.service.feed.listen()
            yield

    async def live(self, seconds: float, *alive: str, frozen: str = "") -> None:
        """Time passes; these beat, and the frozen one's loop does not answer."""
        for _ in range(round(seconds * 2)):
            self.now += 0.5
            self.seq += 1
            beats = [BeatReceived(name, self.seq, "one") for name in alive]
            if frozen:
                beats.append(BeatReceived(frozen, self.seq, "one", loop_lag_ms=20_000.0))
            assert self.service.hub.hear(beats)
            await asyncio.sleep(0)
            self.service.hub.run_due()
            await asyncio.sleep(0)
        self.service.housekeeping.every_second(self.now)

    async def listen(self) -> list[Event]:
        """What was told so far."""
        self.told += await self.ears.next(0)
        return self.told

    async def types(self) -> list[str]:
        return [event.type for event in await self.listen()]

    async def state(self, agent_id: str) -> str:
        answer = await self.hub.get(f"/api/v1/agents/{agent_id}")
        return str(answer.json()["state"])

    async def say(self, agent_id: str) -> int:
        words = [{"type": "checkpoint", "agent_id": agent_id, "checkpoint_id": "cp-1"}]
        answer = await self.hub.post("/api/v1/signals", words)
        if answer.status_code == 503:
            assert answer.headers["retry-after"] == "1"
        return answer.status_code

    def nudges(self) -> list[str]:
        """Ids of the nudges that wait for agents."""
        orders = self.service.http_receiver.orders_for([agent.id for agent in self.service.engine.agents()])
        every = [json.loads(bytes(raw)) for each in orders.values() for raw in each]
        return [order["order_id"] for order in every if order["type"] == "nudge"]


async def ready(hub: RunningHub) -> tuple[int, dict[str, Any]]:
    answer = await hub.get("/readyz")
    return answer.status_code, answer.json()


@pytest.mark.parametrize("broken", FAULTS, ids=lambda fault: fault.__name__)
async def test_a_store_that_goes_away_and_comes_back_costs_nothing_but_time(
    broken: Broken, postgres_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lifesigns.hub")
    fleet = Fleet()
    async with broken(postgres_server) as fault:
        store = fault.make()
        async with fleet.watched(store):
            await fleet.live(5, "dies", "freezes", "lives")
            assert await fleet.say("lives") == 202
            assert await fleet.types() == ["HEALTH_STATE_CHANGED"] * 3
            assert (await ready(fleet.hub))[0] == 200

            await fault.lose()
            lost_at = fleet.now
            await fleet.live(1, "lives", "newcomer")
            await until(lambda: fleet.service.store_state != "ok")
            await _says_so(fleet, fault)
            await _watches_on(fleet)

            await fault.mend()
            await until(lambda: fleet.service.store_state == "ok")
            await until(fleet.nudges)
            await _caught_up(fleet, lost_at)
        actions = [getattr(record, "action", "") for record in caplog.records]
        assert actions.count("store_failed") == actions.count("store_back") == 1
        if not isinstance(store, SqliteStore) or fault.make() is not store:
            await _goes_on_from_there(fault.make())


async def _says_so(fleet: Fleet, fault: Fault) -> None:
    fleet.service.housekeeping.every_second(fleet.now)
    status, body = await ready(fleet.hub)
    assert (status, body["status"]) == (503, "unready")
    assert fault.says in body["store"]
    assert [trouble.part for trouble in fleet.service.troubles.now()] == ["STORE"]
    lost = (await fleet.listen())[-1]
    assert (lost.type, lost.id) == ("HUB_STORE_LOST", 0)
    assert fault.says in json.loads(lost.data)["reason"]


async def _watches_on(fleet: Fleet) -> None:
    """The dead are found and seen; the frozen one is not nudged, and nothing is told that is not kept."""
    await fleet.live(20, "lives", "newcomer", frozen="freezes")
    assert await fleet.state("dies") == "disconnected"
    assert await fleet.state("lives") == "healthy"
    assert (await fleet.state("freezes"), fleet.nudges()) == ("disconnected", [])
    assert (await fleet.types())[3:] == ["HUB_STORE_LOST"]
    assert await fleet.say("lives") == 503


async def _caught_up(fleet: Fleet, lost_at: float) -> None:
    mended_at = fleet.now
    await fleet.live(1, "lives", "newcomer", frozen="freezes")
    assert await fleet.say("lives") == 202
    kept = await fleet.service.store.events(limit=5000)
    assert [event.id for event in kept] == list(range(1, len(kept) + 1))
    assert [event for event in await fleet.listen() if event.id] == kept
    types = [event.type for event in kept]
    assert types.count("HUB_STORE_BACK") == 1
    assert types.count("NUDGE_SENT") == len(fleet.nudges()) == 1
    flips = [event for event in kept if event.type == "HEALTH_STATE_CHANGED" and event.agent_id == "dies"]
    assert lost_at < flips[1].at <= lost_at + 4 < mended_at - 10
    assert fleet.service.troubles.now() == []


async def _goes_on_from_there(store: Store) -> None:
    """The hub after this one knows what was judged during the outage."""
    after = Fleet(now=1_700_000_100.0)
    async with after.watched(store):
        found = {agent.id: agent.health for agent in after.service.engine.agents()}
        assert found["dies"] is Health.DISCONNECTED
        assert found["lives"] is found["newcomer"] is Health.HEALTHY
        assert len(after.nudges()) == 1


def damage(store: SqliteStore) -> None:
    """Every file of it."""
    for file in (store._reading, store._writing):
        file.close()
    for path in store.path.parent.glob("hub.db*"):
        path.write_bytes(b"garbage " * 4096)


async def test_a_damaged_database_is_said_for_good_and_nothing_is_ordered_any_more(tmp_path: Path) -> None:
    """It cannot get well by itself; what is seen is still shown."""
    fleet = Fleet()
    store = SqliteStore(tmp_path / "hub.db")
    async with fleet.watched(store):
        await fleet.live(5, "a", "b")
        await fleet.service.http_receiver.store_reports(
            [NudgeRequested(agent_id="a", by="me", message="hello")]
        )
        assert fleet.nudges()
        damage(store)
        await fleet.live(5, "a")
        await until(lambda: fleet.service.store_state != "ok")
        await fleet.live(1, "a")
        status, body = await ready(fleet.hub)
        assert (status, "damaged" in body["store"]) == (503, True)
        assert (await fleet.state("b"), fleet.nudges()) == ("disconnected", [])
        assert await fleet.say("a") == 503


async def test_while_nothing_is_kept_words_are_not_heard_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One error that is told forty times because nobody could keep it is no forty errors."""
    monkeypatch.setattr(http_receiver, "STORE_WAIT", 0.05)
    fleet, store = Fleet(), FaultyStore()
    word = {"type": "error", "agent_id": "a", "message": "no such file"}
    async with fleet.watched(store):
        await fleet.live(2, "a")
        store.hold()
        for _ in range(20):
            assert (await fleet.hub.post("/api/v1/signals", word)).status_code == 503
        store.fail()
        store.go_on()
        await until(lambda: fleet.service.hub.committer.trouble)
        for _ in range(20):
            assert (await fleet.hub.post("/api/v1/signals", word)).status_code == 503
        store.heal()
        await until(lambda: fleet.service.store_state == "ok")
        assert (await fleet.hub.post("/api/v1/signals", word)).status_code == 202
        assert await fleet.state("a") == "healthy"


async def test_a_sender_whose_words_are_not_kept_is_not_thought_silent() -> None:
    """Its words and beats go the same way: a store that stands still must not hold up the beats."""
    store = FaultyStore()
    async with (
        running_hub(store, policy="swift") as hub,
        lifesigns.Sender("a", hub=hub.url, token=hub.token, interval=1.0) as life,
    ):
        await until(lambda: store.pages)
        store.hold()
        for number in range(50):
            life.progress(f"{number}/50")
            await asyncio.sleep(0.1)
        agent = hub.service.engine.agent("a")
        assert agent is not None
        assert (agent.health, agent.past.disconnections, agent.suspicion) == (Health.HEALTHY, 0, None)
        store.go_on()
        await until(lambda: life.stats.connected and not life.stats.buffered)


async def test_who_asks_while_it_is_known_that_nothing_is_kept_is_answered_at_once() -> None:
    fleet, store = Fleet(), FaultyStore()
    async with fleet.watched(store):
        await fleet.live(1, "a")
        store.fail()
        await fleet.live(1, "b")
        await until(lambda: fleet.service.hub.committer.trouble)
        async with asyncio.timeout(http_receiver.STORE_WAIT / 2):
            with pytest.raises(NotStored):
                await fleet.service.http_receiver.store_reports([NudgeRequested(agent_id="a", by="me")])
        store.heal()
