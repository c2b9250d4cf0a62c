"""Every kind of alert once, from what goes wrong at a running hub to a webhook that is told, and told when it is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lifesigns.adapters.bus.memory import MemoryBus
from lifesigns.adapters.channels.webhook import WebhookChannel
from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import profile
from lifesigns.errors import AdapterError
from lifesigns.events.alert_kinds import KINDS
from lifesigns.events.hub_facts import HubPart, HubTroubleOver
from lifesigns.hub.alerting.rules import Rules
from lifesigns.hub.expiring_tokens import DAY
from lifesigns.ports import StoredToken
from tests.adapters.channels.peers import Peer, Reply
from tests.hub.alerting.test_notifier import AT_ONCE, FAST
from tests.hub.audited import Log, act, new_signer, read
from tests.hub.faulty_store import FaultyStore
from tests.web.hub import RunningHub, running_hub

POLICY = profile("balanced").with_changes(
    {"message": {"urgent": 0.2}, "respawn": {"per_task_max": 1, "backoff": [0.01], "jitter": 0.0}}
)
CANARIES = FleetPolicy(canary_every=0.2, canary_late_after=0.6)


class LooseBus(MemoryBus):
    """A bus whose cable can be pulled."""

    lost = False

    @property
    def connected(self) -> bool:
        return not self.lost

    async def publish(self, subject: str, payload: bytes) -> None:
        if self.lost:
            raise AdapterError("connection lost")
        await super().publish(subject, payload)


@dataclass
class House:
    """A hub, and what its webhook was told."""

    hub: RunningHub
    peer: Peer
    other: Peer
    store: FaultyStore
    bus: LooseBus

    async def say(self, kind: str, agent_id: str = "a", **more: Any) -> None:
        said = await self.hub.post("/api/v1/signals", {"type": kind, "agent_id": agent_id, **more})
        assert said.json()["rejected"] == []

    async def beat(self, agent_id: str = "a", **more: Any) -> None:
        assert (await self.hub.post("/api/v1/beats", {"agent_id": agent_id, **more})).status_code == 202

    async def told(self, kind: str, stage: str) -> dict[str, Any]:
        """The first notice of this kind and stage."""
        async with asyncio.timeout(30):
            while True:
                for request in self.peer.requests:
                    notice: dict[str, Any] = request.json
                    if (notice["kind"], notice["stage"]) == (kind, stage):
                        return notice
                await asyncio.sleep(0.01)


# --- what goes wrong, and how it ends -----------------------------------------------------------------


async def crashes(house: House) -> None:
    await house.beat(incarnation="i-1")
    await house.say("exited", status=1)


async def lives_again(house: House) -> None:
    await house.beat(incarnation="i-2")


async def waits(house: House) -> None:
    await house.say("doing", doing="waiting_for_human", note="may I?")


async def works(house: House) -> None:
    await house.say("doing", doing="working")


async def is_escalated(house: House) -> None:
    await house.beat()
    await house.hub.post("/api/v1/agents/a/escalate", {"reason": "it burns money"})


async def is_decided(house: House) -> None:
    (open_,) = (await house.hub.get("/api/v1/interventions", open=True)).json()["interventions"]
    await house.hub.post(f"/api/v1/escalations/{open_['id']}/decision", {"decision": "ignore"})


async def breaker_opens(house: House) -> None:
    await house.say("breaker", name="search", state="open")


async def breaker_closes(house: House) -> None:
    await house.say("breaker", name="search", state="closed")


async def cannot_be_respawned(house: House) -> None:
    await house.beat(incarnation="i-1", task_id="t")
    await house.say("exited", status=1)
    (order,) = (await house.hub.get("/api/v1/agents/a/orders", wait=20)).json()["orders"]
    await house.say("respawn_failed", order_id=order["order_id"], reason="no such image")


async def message_is_forgotten(house: House) -> None:
    await house.beat("b")
    await house.say("message_sent", message_id="m-1", to="b", priority="urgent")


async def cannot_be_judged(house: House) -> None:
    await house.beat()

    def raises(*_: object) -> None:
        raise KeyError("x")

    admission = house.hub.service.engine._admission
    address, admission.address = admission.address, raises  # type: ignore[method-assign, assignment]
    await house.say("progress", note="12/40")
    admission.address = address  # type: ignore[method-assign]


async def is_cleared(house: House) -> None:
    await house.hub.post("/api/v1/agents/a/clear")


async def host_falls(house: House) -> None:
    for n in range(4):
        await house.beat(f"a-{n}", host="ws-1")
        await house.say("error", f"a-{n}", message="disk full", recoverable=False)


async def is_released(house: House) -> None:
    for group in ("fleet", "host%20ws-1"):
        assert (await house.hub.post(f"/api/v1/groups/{group}/release")).status_code == 202


async def cable_is_pulled(house: House) -> None:
    await house.beat()
    house.bus.lost = True


async def cable_is_back(house: House) -> None:
    house.bus.lost = False


async def disk_is_full(house: House) -> None:
    house.store.fail("disk full")
    house.hub.service.hub.announce(
        HubTroubleOver(1.0, HubPart.BUS)
    )  # Something to be kept, so that it is noticed.


async def disk_has_room(house: House) -> None:
    house.store.heal()


async def other_channel_fails(house: House) -> None:
    house.other.replies.extend([Reply(503)] * 1000)
    await crashes(house)


async def other_channel_is_back(house: House) -> None:
    house.other.replies.clear()


async def token_is_revoked(house: House) -> None:
    for _ in range(2):
        house.hub.service.token_watch.note_refused(b"ls_00000000_" + b"0" * 64, ["coder"])


async def agent_gives_up(house: House) -> None:
    house.hub.service.token_watch._refused._all.clear()


async def crowd_comes(house: House) -> None:
    house.hub.service.watch_connections(lambda _: "8 connections are open")


async def crowd_leaves(house: House) -> None:
    house.hub.service.watch_connections(lambda _: "")


async def hub_stands_still_again_and_again(house: House) -> None:
    house.hub.service.engine.beliefs.awareness.truce_until = house.hub.service.clock() + 1000


async def hub_goes_on(house: House) -> None:
    house.hub.service.engine.beliefs.awareness.truce_until = 0.0


async def row_is_unreadable(house: House) -> None:
    house.hub.service.hub.unreadable = "agent coder"


async def somebody_forges(house: House) -> None:
    for _ in range(10):
        await house.bus.publish("heartbeat.evil", b'{"agent_id":"victim"}')


async def nobody_forges_any_more(house: House) -> None:
    house.hub.service.hub.counters.forged._last_at -= 1000


async def row_is_forged(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.TOKEN_ROWS] = lambda _: "1 row: mallory"


async def row_is_removed(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.TOKEN_ROWS] = lambda _: ""


async def token_expires(house: House) -> None:
    await house.hub.get("/healthz")  # By then the hub has looked at its own tokens for the first time.
    now = house.hub.service.clock()
    stored = StoredToken("abcd", b"", "agent", "n", "coder-*", now - 80 * DAY, now + DAY, now)
    house.hub.service.token_watch.expiring.look([stored], now)


async def token_is_rotated(house: House) -> None:
    house.hub.service.token_watch.expiring.look([], house.hub.service.clock())


async def witness_is_away(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.WITNESSES] = lambda _: "/mnt/other: no such file"


async def witness_is_back(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.WITNESSES] = lambda _: ""


async def tracker_is_away(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.TRACKER] = lambda _: "api.github.com answered 502"


async def tracker_is_back(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.TRACKER] = lambda _: ""


async def hub_is_gone(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.HUBS] = lambda _: "hub-2 at http://hub-2:8710 (for 31 s)"


async def hub_is_back(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.HUBS] = lambda _: ""


async def memory_is_away(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.MEMORY] = lambda _: "npx cannot be started"


async def memory_is_back(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.MEMORY] = lambda _: ""


async def messenger_is_away(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.MESSENGER] = lambda _: "AI Maestro does not answer"


async def messenger_is_back(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.MESSENGER] = lambda _: ""


async def switch_is_away(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.DEAD_MAN_SWITCH] = lambda _: "hc-ping.com answered 404"


async def switch_is_back(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.DEAD_MAN_SWITCH] = lambda _: ""


async def bus_is_shared(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.NEIGHBOURS] = lambda _: "hub-2 at http://hub-2:8710"


async def bus_is_unshared(house: House) -> None:
    house.hub.service.housekeeping.watched[HubPart.NEIGHBOURS] = lambda _: ""


Deed = Callable[[House], Awaitable[None]]

STORIES: dict[str, tuple[Deed, Deed | None]] = {
    "stuck_agent": (crashes, lives_again),
    "needs_human": (waits, works),
    "escalation": (is_escalated, is_decided),
    "circuit_breaker_open": (breaker_opens, breaker_closes),
    "recovery_failed": (cannot_be_respawned, lives_again),
    "message_overdue": (message_is_forgotten, None),
    "agent_poisoned": (cannot_be_judged, is_cleared),
    "group_braked": (host_falls, is_released),
    "hub_blind": (cable_is_pulled, cable_is_back),
    "hub_bus_lost": (cable_is_pulled, cable_is_back),
    "hub_store_lost": (disk_is_full, disk_has_room),
    "hub_tokens_refused": (token_is_revoked, agent_gives_up),
    "hub_connections_full": (crowd_comes, crowd_leaves),
    "hub_truce_long": (hub_stands_still_again_and_again, hub_goes_on),
    "hub_rows_unreadable": (row_is_unreadable, None),
    "hub_messages_forged": (somebody_forges, nobody_forges_any_more),
    "hub_tokens_forged": (row_is_forged, row_is_removed),
    "token_expiring": (token_expires, token_is_rotated),
    "hub_witness_lost": (witness_is_away, witness_is_back),
    "hub_tracker_lost": (tracker_is_away, tracker_is_back),
    "hub_lost": (hub_is_gone, hub_is_back),
    "hub_memory_lost": (memory_is_away, memory_is_back),
    "hub_messenger_lost": (messenger_is_away, messenger_is_back),
    "hub_dead_man_switch_lost": (switch_is_away, switch_is_back),
    "hub_bus_shared": (bus_is_shared, bus_is_unshared),
    "channel_down": (other_channel_fails, other_channel_is_back),
}


@pytest.mark.parametrize("kind", STORIES)
async def test_it_rings_and_it_is_over(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifesigns.hub.housekeeping.SECOND", 0.1)
    monkeypatch.setattr("lifesigns.hub.committer.RETRY_AFTER", (0.05,))
    monkeypatch.setattr("lifesigns.hub.alerting.notifier.STORE_FOR", 0.1)
    monkeypatch.setattr("lifesigns.hub.alerting.alerting.DOWN_AFTER", 0.1)
    monkeypatch.setattr("lifesigns.hub.alerting.alerting.CHECK_EVERY", 0.1)
    monkeypatch.setattr("lifesigns.hub.alerting.channel_queue.RETRY_AFTER", 0.1)
    monkeypatch.setattr("lifesigns.hub.alerting.channel_queue.RETRY_AFTER_MAX", 0.2)
    if kind == "hub_truce_long":
        for name, seconds in (("WINDOW", 1.0), ("LONG", 0.5), ("SHORT", 0.2)):
            monkeypatch.setattr(f"lifesigns.hub.truce_watch.{name}", seconds)
    goes_wrong, ends = STORIES[kind]
    async with house_for(kind) as house:
        await goes_wrong(house)
        opened = await house.told(kind, "opened")
        assert opened["severity"] == KINDS[kind].severity or kind == "message_overdue"
        assert opened["title"]
        if ends is not None:
            await ends(house)
            resolved = await house.told(kind, "resolved")
            assert resolved["key"] == opened["key"]


@asynccontextmanager
async def house_for(kind: str) -> AsyncIterator[House]:
    store, bus = FaultyStore(), LooseBus()
    rules = Rules({"ops": FAST, "other": FAST}, pacing=AT_ONCE)
    fleet = CANARIES if kind == "hub_blind" else FleetPolicy()
    async with Peer() as peer, Peer() as other:
        channels = {"ops": WebhookChannel(peer.url), "other": WebhookChannel(other.url)}
        async with running_hub(store, bus, POLICY, fleet=fleet, rules=rules, channels=channels) as hub:
            yield House(hub, peer, other, store, bus)


async def test_a_log_that_was_tampered_with_rings_at_once(tmp_path: Path) -> None:
    log = Log(str(tmp_path / "hub.db"), tmp_path, new_signer())
    async with log.hub() as service:
        await read(service)
        await act(service, *range(5))
    await log.sql("UPDATE deeds SET entry = $1 WHERE n = 2", b"{}")
    async with Peer() as peer:
        channels = {"ops": WebhookChannel(peer.url)}
        async with running_hub(
            SqliteStore(log.url),
            state=tmp_path,
            signer=log.signer,
            rules=Rules({"ops": FAST}, pacing=AT_ONCE),
            channels=channels,
        ) as hub:
            house = House(hub, peer, peer, FaultyStore(), LooseBus())
            opened = await house.told("audit_broken", "opened")
            assert opened["severity"] == "critical"
            assert "lifesigns audit verify" in opened["title"]
            (alert,) = [one for one in (await hub.get("/api/v1/alerts")).json()["alerts"] if one["standing"]]
            assert (alert["key"], alert["severity"]) == ("audit_broken", "critical")


def test_every_kind_of_alert_has_its_story_here() -> None:
    assert {*STORIES, "audit_broken"} == set(KINDS)
