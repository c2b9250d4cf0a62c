"""Judging slots: one process with a hub for each slot of agents, of which some judge and the others stand by.

Each hub is what `serve` runs for a whole fleet: with a store, a lease and an epoch of its own. They share what a process has
once: the port, the bus, the tokens. `serve` imports this only if it is configured (`hubs.judge: all`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from lifesigns import __version__
from lifesigns.assembly.executors import assign_executors
from lifesigns.assembly.hub import SlotParts, hub_of, whole_store_of
from lifesigns.assembly.links import bus_at
from lifesigns.cli.say import say
from lifesigns.cli.serve import first_of
from lifesigns.config.values import Config
from lifesigns.errors import AdapterError, UsageError
from lifesigns.events.hub_facts import HubPart
from lifesigns.hub.access import Access
from lifesigns.hub.bus_neighbours import BusNeighbours, HubCard
from lifesigns.hub.clock import steady_clock
from lifesigns.hub.fleet_exchange import FleetExchange
from lifesigns.hub.service import Service
from lifesigns.hub.shares import Shares
from lifesigns.hub.slot_bus import SharedBus
from lifesigns.hub.slot_lease import SETTLE_FOR, Moves, SlotLease
from lifesigns.hub.slots import SLOTS, divide
from lifesigns.hub.state_folder import announced, hub_name
from lifesigns.web.app import Web
from lifesigns.web.fleet_site import FleetSite
from lifesigns.web.forwarding import ReachedHubs
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.server import served, while_standing_by
from lifesigns.web.standby import StandbySite

AGAIN_AFTER: Final = 1.0
"""Seconds until the hub of a slot is tried again after its store failed it ..."""
MENDED_AFTER: Final = 30.0
"""... or is damaged, until somebody mends it. The other slots are judged meanwhile."""

log: Final = logging.getLogger("lifesigns.hub")


def check(config: Config, **given: object) -> None:
    """Raises `UsageError` for what needs one hub that judges all agents."""
    wanted = {
        "zone": config.zone,
        "github": config.github.repos,
        "ai_maestro": config.ai_maestro.url,
        "memory.file": config.memory.file,
        **given,
    }
    if refused := [name for name, value in wanted.items() if value]:
        raise UsageError(
            f"{' and '.join(refused)} cannot be used with hubs.judge: all; it needs one hub that judges all agents"
        )


class SlotsProcess:
    """The hubs of all slots in this process."""

    def __init__(
        self, config: Config, folder: Path, listener: socket.socket, url: str, stopping: asyncio.Event
    ) -> None:
        self._config, self._folder, self._listener, self._url = config, folder, listener, url
        self._stopping = stopping
        self._name = hub_name(folder)
        self._store = whole_store_of(config)
        self._clock = steady_clock(None)
        self._access = Access(self._store, config.limits.session_for)
        self._bus = None if config.bus.url is None else SharedBus(bus_at(config.bus.url))
        self._policy = HostPolicy.of(config.listen)
        self._shares = Shares(self._clock, config.limits.busy_share_per_token)
        self._site = FleetSite(self._access, self._clock, self._policy, config.limits, self._shares)
        self._moves = Moves()
        self._reached = ReachedHubs()
        self._settled_at = 0.0
        self._exchange = FleetExchange(self._store)
        self._card: HubCard | None = None

    async def run(self, beside: Callable[[Callable[[], str]], Coroutine[Any, Any, None]]) -> None:
        """Judge what falls to this hub, until the process is told to stop; then hand over. `beside` waits for the end, and
        is given what to say of this process meanwhile."""
        try:
            await divide(self._store, self._clock())
            await self._access.open_folder(self._folder, self._clock())
            await self._meet_neighbours()
            self._settled_at = asyncio.get_running_loop().time() + SETTLE_FOR
            async with self._answering(), asyncio.TaskGroup() as group:
                keeping = group.create_task(self._access.run(self._clock), name="lifesigns tokens")
                exchanging = group.create_task(self._exchange.run(), name="lifesigns exchange")
                slots = [
                    group.create_task(self._run_slot(slot), name=f"lifesigns slot {slot}")
                    for slot in range(SLOTS)
                ]
                say(f"lifesigns {__version__} judges slots on {self._url}", err=True)
                await beside(self._status)
                await asyncio.gather(*slots)
                keeping.cancel()
                exchanging.cancel()
        finally:
            if self._bus is not None:
                await self._bus.bus.close()
            await self._store.close()

    def _status(self) -> str:
        judged = ", ".join(str(slot) for slot, site in enumerate(self._site.sites) if isinstance(site, Web))
        return f"listens on {self._url}; judges slots {judged or 'none'} of {SLOTS}"

    async def _meet_neighbours(self) -> None:
        """A hub with another store on the same bus would judge the same agents."""
        bus = self._config.bus
        if bus.url is None or bus.other_hubs == "allowed":
            return
        store = str(self._config.effective.get("store"))
        self._card = HubCard(self._name, self._url, store, await self._store.identity())
        await BusNeighbours(bus_at(bus.url), self._card, self._clock).refuse_to_share()

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[None]:
        listen, limits = self._config.listen, self._config.limits
        with announced(self._folder, self._url), self._listener.dup() as listener:
            async with served(self._site, listener, while_standing_by(listen, limits), listen.tls):
                yield

    # --- one slot -------------------------------------------------------------------------------------

    async def _run_slot(self, slot: int) -> None:
        drained = False
        while not self._stopping.is_set():
            try:
                drained = await self._live_once(slot, drained=drained)
            except AdapterError as error:
                level = logging.WARNING if error.transient else logging.CRITICAL
                log.log(
                    level, "the hub of slot %d begins anew: %s", slot, error, extra={"action": "slot_anew"}
                )
                with suppress(TimeoutError):
                    wait_for = AGAIN_AFTER if error.transient else MENDED_AFTER
                    await asyncio.wait_for(self._stopping.wait(), wait_for)

    async def _live_once(self, slot: int, *, drained: bool) -> bool:
        """Stand by for the slot, then judge it; whether this hub is drained now."""
        bus = None if self._bus is None else self._bus.of_slot(slot)
        parts = SlotParts(slot, self._store.of_slot(slot), bus, self._access, self._shares)
        service = hub_of(self._config, self._folder, self._url, parts)
        lease = SlotLease(
            *(parts.store, self._name, self._url, __version__),
            slot=slot,
            moves=self._moves,
            drained=drained,
            settled_at=self._settled_at,
        )
        service.join(lease)
        if slot == 0:
            service.housekeeping.watched[HubPart.HUBS] = partial(self._why_lost, lease)
            service.why_others_unwell = self._exchange.why_unheard
        if slot == 0 and self._card is not None:
            service.introduce(self._card)
        assign_executors(service, self._config, os.environ, self._folder, self._url)
        web = Web(service, self._policy, self._config.limits, hooks=self._config.hooks)
        site = StandbySite(service, self._policy, self._config.limits, self._reached)
        try:
            self._site.sites[slot] = site
            async with site.following():
                await self._first_of(service.stand_by())
                if self._stopping.is_set() or not await service.take_over():
                    return lease.drained
            log.info("judges slot %d", slot, extra={"action": "slot_taken"})
            await self._judge(slot, service, web)
            return lease.drained and not lease.moves_on
        finally:
            self._site.sites[slot] = None
            if bus is not None:
                await bus.close()
            await parts.store.close()

    def _why_lost(self, lease: SlotLease, now: float) -> str:
        """Describe the hubs that are gone, and the slots that nobody judges; empty if all is well."""
        return " ".join(filter(None, (lease.why_lost(now), self._exchange.why_unheard())))

    async def _judge(self, slot: int, service: Service, web: Web) -> None:
        self._site.sites[slot] = web
        self._exchange.hubs[slot] = service.hub
        try:
            await self._first_of(service.until_replaced())
            await service.hand_over()
        finally:
            self._site.sites[slot] = None
            del self._exchange.hubs[slot]
            await service.stop()
            log.info("no longer judges slot %d", slot, extra={"action": "slot_given"})

    async def _first_of(self, work: Coroutine[Any, Any, object]) -> None:
        await first_of(work, self._stopping.wait())
