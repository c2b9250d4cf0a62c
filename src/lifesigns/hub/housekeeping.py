"""Housekeeping: periodic work.

Every second: samples, orders that the engine no longer waits for, beats for listeners, whether store and bus work.
Every ten seconds: dropping the agents that the engine has forgotten, and the journal. Every hour: deleting what is too
old.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, cast

from msgspec import Struct
from msgspec.structs import replace

from lifesigns import wire
from lifesigns.errors import AdapterError
from lifesigns.events.catalogue import AGENT_HEARTBEAT, HEALTH_STATE_CHANGED
from lifesigns.events.hub_facts import HubPart
from lifesigns.hub.audit.retention import AuditRetention
from lifesigns.hub.bus_receiver import BusReceiver
from lifesigns.hub.clock import Clock
from lifesigns.hub.dispatcher import Dispatcher
from lifesigns.hub.feed import Feed
from lifesigns.hub.hub import Hub
from lifesigns.hub.hub_troubles import HubTroubles
from lifesigns.hub.samples import Sampler
from lifesigns.hub.truce_watch import TruceWatch
from lifesigns.ports import Event

log: Final = logging.getLogger("lifesigns.hub")

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
SECOND: Final = 1.0
SWEEP_EVERY: Final = 10.0


class Retention(Struct, frozen=True):
    """How long the store keeps things."""

    history_for: float = 30 * DAY
    audit_for: float = 365 * DAY
    raw_for: float = DAY


class Housekeeping:
    """The periodic work of a hub."""

    def __init__(
        self,
        hub: Hub,
        bus_receiver: BusReceiver | None,
        dispatcher: Dispatcher,
        feed: Feed,
        troubles: HubTroubles,
        retention: Retention,
        clock: Clock,
        alert: Callable[[Sequence[Event]], None],
    ) -> None:
        self._hub = hub
        self._bus_receiver = bus_receiver
        self._dispatcher = dispatcher
        self._feed = feed
        self._troubles = troubles
        self._retention = retention
        self._clock = clock
        self._alert = alert
        self._alerted = 0
        """The last event that people were alerted about while the store is away."""
        self._sampler = Sampler(hub.last_beats)
        self._audit_retention = AuditRetention(hub.audit, hub.store, hub.committer, hub.announce)
        self._truces = TruceWatch()
        self._beats_published_at = self._swept_at = clock()
        self.watched: dict[HubPart, Callable[[float], str]] = {}
        """Further parts, each with a function that says what is wrong with it; empty if it is fine."""

    async def run(self) -> None:
        """Run `every_second` each second, for ever."""
        while True:
            await asyncio.sleep(SECOND)
            try:
                self.every_second(self._clock())
            except Exception:  # a bug of ours must not stop all periodic work
                log.exception("housekeeping failed", extra={"action": "housekeeping_failed"})

    def every_second(self, now: float) -> None:
        """The work of each second."""
        hub, dispatcher, beliefs = self._hub, self._dispatcher, self._hub.engine.beliefs
        self._publish_beats(now)
        self._note_troubles(now)
        self._alert_unstored()
        dispatcher.withdraw_unawaited()
        samples = self._sampler.take(beliefs.agents, now)
        if samples:
            hub.committer.sample(samples)
        if now - self._swept_at >= SWEEP_EVERY:
            self._swept_at = now
            dispatcher.republish(now)
            hub.sweep()
            hub.store_journal()

    def _publish_beats(self, now: float) -> None:
        """Publish `AGENT_HEARTBEAT` to its listeners: at most one a second of each agent."""
        since, self._beats_published_at = self._beats_published_at, now
        if not self._feed.beats_wanted:
            return
        lately = [agent.id for agent in self._hub.engine.agents() if agent.heard_at > since]
        self._feed.publish_beats(
            [
                Event(
                    0,
                    received.at,
                    AGENT_HEARTBEAT,
                    agent_id,
                    wire.encode_beat(cast("wire.WireBeat", received.beat)),
                )
                for agent_id, received in self._hub.last_beats.of_all(lately)
                if received.at > since
            ]
        )

    def _note_troubles(self, now: float) -> None:
        committer, bus_receiver = self._hub.committer, self._bus_receiver
        self._troubles.note(HubPart.STORE, "" if committer.state == "ok" else committer.state, now)
        if bus_receiver is not None:
            self._troubles.note(HubPart.BUS, "" if bus_receiver.state == "ok" else bus_receiver.state, now)
        self._troubles.note(HubPart.ROWS, self._hub.unreadable, now)
        self._troubles.note(HubPart.TRUCE, self._truces.look(self._hub.engine.beliefs.awareness, now), now)
        for part, why in self.watched.items():
            self._troubles.note(part, why(now), now)
        if committer.closed:
            self._hub.ledger.stand_down()

    def _alert_unstored(self) -> None:
        """While the store is away, alert people of changes of health without an event number. When the store is back
        the same events come with their numbers, and open no second alert."""
        if not any(trouble.part is HubPart.STORE for trouble in self._troubles.now()):
            return
        news = [event for event in self._hub.committer.unstored if event.id > self._alerted]
        if news:
            self._alerted = news[-1].id
            self._alert([replace(event, id=0) for event in news if event.type == HEALTH_STATE_CHANGED])

    async def run_hourly(self) -> None:
        """Run `every_hour` each hour, for ever."""
        while True:
            await asyncio.sleep(HOUR)
            await self.every_hour(self._clock())

    async def every_hour(self, now: float) -> None:
        """The work of each hour: delete from the store what is too old."""
        hub, retention = self._hub, self._retention
        try:
            since = await self._audit_retention.forget_history(now, retention.history_for)
            await hub.store.forget(now, keep_for=now - since, raw_for=retention.raw_for)
            await self._audit_retention.retire(now, retention.audit_for)
        except AdapterError as error:
            log.warning("nothing was forgotten: %s", error, extra={"action": "forgetting_failed"})
