"""Service: a hub with everything round it. Doors and screens talk to this.

    web ──► take_beats, take_words ─┐                        ┌─► dispatcher ──► mailboxes, bus
    bus ──► bus_door ───────────────┴─► Hub ──► pages, store ┴─► feed ──► listeners

Once a second it does what nobody waits for: samples, the journal, letting go of orders nobody waits for, telling people
that the store or the bus is away. Once an hour it forgets what is too old.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar, cast

import msgspec

from lifesigns import wire
from lifesigns.core.effects import Order, VerifyCheckpoint
from lifesigns.core.engine import Engine
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import CanaryReturned, Signal, Word
from lifesigns.errors import AdapterError
from lifesigns.hub.access import Access, Visitor
from lifesigns.hub.alerting.lookout import EngineLookout
from lifesigns.hub.alerting.rules import Rules
from lifesigns.hub.alerting.teller import Teller
from lifesigns.hub.audit.log import AuditLog
from lifesigns.hub.audit.seal_file import SealFile
from lifesigns.hub.bus_door import BusDoor
from lifesigns.hub.checkpoints import Checkpoints
from lifesigns.hub.clock import Clock, steady_clock
from lifesigns.hub.dispatcher import Dispatcher, awaited
from lifesigns.hub.feed import HEARTBEAT, Feed
from lifesigns.hub.hands import Hands
from lifesigns.hub.hub import Hub
from lifesigns.hub.last_beats import Received
from lifesigns.hub.mailboxes import Mailboxes
from lifesigns.hub.samples import Sampler
from lifesigns.ports import Bus, Channel, Contents, Event, Signer, Store

T = TypeVar("T", bound=Signal)

log: Final = logging.getLogger("lifesigns.hub")

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
SECOND: Final = 1.0
SWEEP_EVERY: Final = 10.0
KEEP_WAIT: Final = 1.5
"""How long a word may take to be kept before its sender is told to come again. Its beats wait behind it: at the swiftest
profile they are missed after 2.2 s, and a store that is away is nobody's silence."""


@dataclass(frozen=True, slots=True)
class Keeping:
    """How long things are remembered."""

    history_for: float = 30 * DAY
    audit_for: float = 365 * DAY
    raw_for: float = DAY


@dataclass(slots=True)
class Reception:
    """What became of the messages in one delivery, and what waits for their agents."""

    accepted: int
    rejected: list[wire.Rejected] = field(default_factory=list)
    orders: dict[str, list[msgspec.Raw]] = field(default_factory=dict)


TAKEN: Final = Reception(1)
"""Of nearly every single beat; the same one, and nobody changes it."""


@dataclass(slots=True)
class Trouble:
    """What the hub rests on and is away, since when."""

    what: str
    since: float | None = None
    why: str = ""


class Full(Exception):
    """There is no room in the inbox: come again in a second."""


class NotKept(Exception):
    """The store does not take it: come again in a second."""


class Service:
    """A running hub. In the folder `state`, if there is one, it keeps the admin token."""

    def __init__(
        self,
        store: Store,
        bus: Bus | None = None,
        *,
        policies: PolicyBook | None = None,
        fleet: FleetPolicy | None = None,
        keeping: Keeping | None = None,
        state: Path | None = None,
        signer: Signer | None = None,
        contents: Contents | None = None,
        rules: Rules | None = None,
        channels: Mapping[str, Channel] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or steady_clock()
        self.store = store
        self.keeping = keeping or Keeping()
        self.feed = Feed()
        self.mailboxes = Mailboxes()
        self.access = Access(store)
        self._state = state
        self.hub = Hub(
            store,
            carry_out=self._carry_out,
            settled=self._settled,
            tell=self._tell,
            send_canary=self._send_canary,
            policies=policies,
            fleet=fleet,
            clock=self.clock,
            audit=AuditLog(store, signer, None if state is None or signer is None else SealFile(state)),
        )
        self.teller = Teller(
            rules or Rules({}),
            channels or {},
            EngineLookout(lambda: self.engine.beliefs),
            store=store,
            clock=self.clock,
            wanted=lambda: self.hub.pages.wanted(),
            kept=lambda: self.hub.pages.kept(),
        )
        self.hub.recall, self.hub.more = self.teller.recall, self.teller.changed
        self.hands = Hands(
            lambda: self.engine.beliefs,
            self.hub.hear,
            lambda order: awaited(order, self.engine.beliefs, self.clock()),
        )
        self.checkpoints = Checkpoints(contents)
        self.hands.assign(VerifyCheckpoint, self.checkpoints)
        self.dispatcher = Dispatcher(
            self.mailboxes, bus, lambda order_id: self.hub.pages.settle(order_id), self.hands
        )
        name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self.door = None if bus is None else BusDoor(bus, name, self.hub, self.clock)
        if self.door is not None:
            self.hub.gather.append(self.door.hand_over)
        self._sampler = Sampler()
        self._tasks: list[asyncio.Task[None]] = []
        self._errands: set[asyncio.Task[None]] = set()
        self._beats_told_at = 0.0
        self._observers: list[Callable[[Sequence[Event]], None]] = [self.teller.hear]
        self._swept_at = 0.0
        self._troubles = {"STORE": Trouble("STORE"), "BUS": Trouble("BUS")}

    @property
    def engine(self) -> Engine:
        return self.hub.engine

    # --- beginning and end ----------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the store, go on where the last hub stopped, listen."""
        await self.hub.start()
        self.engine.clean_up_after(self.hands.cleans_up)
        self.feed.newest = max(self.feed.newest, self.hub.began_after)
        await self.access.load()
        if self._state is not None:
            await self.access.open_folder(self._state, self.clock())
        self._beats_told_at = self._swept_at = self.clock()
        self.teller.start()
        self._tasks = [
            asyncio.create_task(self._keep_house(), name="lifesigns housekeeping"),
            asyncio.create_task(self._forget(), name="lifesigns forgetting"),
            asyncio.create_task(self.access.tend_on(self.clock), name="lifesigns tokens"),
            asyncio.create_task(
                self.hub.audit.tend_on(self.hub.pages, self.clock, self.hub.announce), name="lifesigns audit"
            ),
        ]
        if self.door is not None:
            self._tasks.append(asyncio.create_task(self.door.open(), name="lifesigns bus"))
            self._tasks.append(asyncio.create_task(self.dispatcher.speak(), name="lifesigns dispatcher"))

    def send_home(self) -> None:
        """The hub is about to stop: those who listen or wait for orders get their answer now."""
        self.feed.end()
        self.mailboxes.end()

    async def stop(self) -> None:
        """Hear what is here, keep everything, let go."""
        self.send_home()
        for task in (*self._tasks, *self._errands):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._errands, return_exceptions=True)
        if self.door is not None:
            await self.door.close()
        await self.hands.close()
        await self.teller.stop()
        await self.hub.stop()

    # --- doors ----------------------------------------------------------------------------------------

    def take_beats(self, raw: bytes, who: Visitor) -> Reception:
        """Beats in any form the contract knows. Raises `WireError` if nothing in it can be read, `Full` if there is no
        room."""
        now = self.clock()
        batch = wire.decode_beats(raw, who.token_id, now)
        own = self._own(batch, who)
        if not self.hub.hear_beats(own, raw, who.token_id, now):
            raise Full
        return self._reception(own, batch)

    def take_together(
        self, raws: Sequence[bytes], whos: Sequence[Visitor], at: float
    ) -> Sequence[Reception] | None:
        """Messages of one beat each that came in one round of the loop, and by whom. None, and none of them is heard, if
        they have to be taken one by one: they are kept together, so it is all or nothing."""
        together = wire.decode_together(raws, now=at)
        if together is None:
            return None
        for beat, who in zip(together.beats, whos, strict=True):
            if not who.may_speak_for(beat.agent_id):
                return None
            beat.source = who.token_id
        if not self.hub.hear_beats(together.beats, together.raw, "", at):
            return None
        if not self.mailboxes:
            return [TAKEN] * len(raws)
        return [Reception(1, orders=self.orders_for((beat.agent_id,))) for beat in together.beats]

    async def take_words(self, raw: bytes, who: Visitor) -> Reception:
        """As beats; but words are said once, so they are acknowledged only when what they changed is kept."""
        batch = wire.decode_signals(raw, now=self.clock(), source=who.token_id)
        own = self._own(batch, who)
        if any(isinstance(signal, Word) for signal in own):
            await self.keep(own)
        elif not self.hub.hear(own):
            raise Full
        return self._reception(own, batch)

    async def keep(self, words: Sequence[Signal]) -> None:
        """Hear words and return when what they changed is kept. Raises `Full` or `NotKept`.

        While it is known that nothing is kept, words are not heard either: they come again and again until they are
        kept, and an error or a call that is heard twenty times looks like twenty of them.
        """
        pages = self.hub.pages
        if pages.trouble is not None or pages.late_for > KEEP_WAIT:
            raise NotKept from pages.trouble
        try:
            async with asyncio.timeout(KEEP_WAIT):
                if not await self.hub.keep(words):
                    raise Full
        except (TimeoutError, AdapterError) as error:
            raise NotKept from error

    def _own(self, batch: wire.Batch[T], who: Visitor) -> list[T]:
        """Those messages its sender may say; the others are rejected."""
        if who.speaks_for_all:
            return batch.accepted
        bad = {rejected.index for rejected in batch.rejected}
        places = (n for n in range(len(batch.accepted) + len(bad)) if n not in bad)
        own: list[T] = []
        for index, signal in zip(places, batch.accepted, strict=True):
            agent_id = getattr(signal, "agent_id", "")
            if who.may_speak_for(agent_id):
                own.append(signal)
            else:
                batch.rejected.append(
                    wire.Rejected(index, "agent_id", f"is {agent_id!r}, for which {who.name!r} may not speak")
                )
        return own

    def _reception(self, own: Sequence[T], batch: wire.Batch[T]) -> Reception:
        self.hub.pulse.unreadable += len(batch.rejected)
        orders = (
            self.orders_for({getattr(signal, "agent_id", "") for signal in own}) if self.mailboxes else {}
        )
        return Reception(len(own), batch.rejected, orders)

    # --- orders ---------------------------------------------------------------------------------------

    def orders_for(self, agent_ids: Collection[str], but: Sequence[str] = ()) -> dict[str, list[msgspec.Raw]]:
        """What waits for these agents, as they read it; but not what they have declined."""
        now, found = self.clock(), {}
        for agent_id in agent_ids:
            if agent_id in self.mailboxes:
                waiting = self.mailboxes.waiting_for(agent_id, now)
                orders = [msgspec.Raw(wire.encode_order(one)) for one in waiting if one.order_id not in but]
                if orders:
                    found[agent_id] = orders
        return found

    async def acknowledge(self, agent_id: str, order_id: str) -> bool:
        """The agent's side has this order: when this returns it is not given again, whatever happens to us. Whether there
        was one. Raises `NotKept`."""
        to_be_kept = order_id in self.dispatcher
        was_there = self.dispatcher.acknowledged(agent_id, order_id)
        if was_there and to_be_kept:
            await self.keep(())
        return was_there

    async def wait_for_orders(
        self, agent_ids: Sequence[str], wait_for: float, but: Sequence[str] = ()
    ) -> dict[str, list[msgspec.Raw]]:
        """As `orders_for`; if there are none, wait for one for a while."""
        orders = self.orders_for(agent_ids, but)
        if not orders and wait_for > 0:
            await self.mailboxes.wait(agent_ids, wait_for)
            orders = self.orders_for(agent_ids, but)
        return orders

    # --- what the hub calls ---------------------------------------------------------------------------

    def _carry_out(self, order: Order) -> None:
        self.dispatcher.carry_out(order, self.clock())

    def _settled(self, order_id: str) -> None:
        self.dispatcher.settled(order_id)

    def observe(self, tell: Callable[[Sequence[Event]], None]) -> None:
        """Call this with all that is told from now on, as soon as it is kept."""
        self._observers.append(tell)

    def _tell(self, events: Sequence[Event]) -> None:
        for tell in self._observers:
            tell(events)
        self.feed.tell(events)
        self.dispatcher.tell(events)

    def _send_canary(self, seq: int) -> None:
        if self.door is None:
            # Without a bus it shows that the loop turns.
            asyncio.get_running_loop().call_soon(self.hub.hear, (CanaryReturned(seq=seq),))
            return
        errand = asyncio.create_task(self.door.send_canary(seq))
        self._errands.add(errand)
        errand.add_done_callback(self._errands.discard)

    # --- how it is ------------------------------------------------------------------------------------

    @property
    def store_state(self) -> str:
        """`ok`, or what is wrong with the store."""
        return self.hub.pages.state

    @property
    def bus_state(self) -> str:
        """`ok`, `none`, or what is wrong with the bus."""
        return "none" if self.door is None else self.door.state

    def troubles(self) -> list[Trouble]:
        """What is away right now."""
        return [trouble for trouble in self._troubles.values() if trouble.since is not None]

    def last_beat(self, agent_id: str) -> Received | None:
        """The last beat of an agent as it was received, and when."""
        return None if self.engine.agent(agent_id) is None else self.hub.last_beats.of(agent_id)

    # --- housekeeping ---------------------------------------------------------------------------------

    async def _keep_house(self) -> None:
        while True:
            await asyncio.sleep(SECOND)
            try:
                self.keep_house(self.clock())
            except Exception:  # a bug of ours, but no reason to let everything go to ruin
                log.exception("housekeeping failed", extra={"action": "housekeeping_failed"})

    def keep_house(self, now: float) -> None:
        """What is to be done once a second."""
        self._tell_beats(now)
        self._tell_trouble("STORE", "" if self.store_state == "ok" else self.store_state, now)
        self._tell_trouble("BUS", "" if self.bus_state in ("ok", "none") else self.bus_state, now)
        trouble = self.hub.pages.trouble
        if trouble is not None and not trouble.transient:
            self.dispatcher.stand_down()
        self.dispatcher.let_go(self.engine.beliefs, now)
        samples = self._sampler.take(self.engine.beliefs.agents, now)
        if samples:
            self.hub.pages.sample(samples)
        if now - self._swept_at >= SWEEP_EVERY:
            self._swept_at = now
            self.dispatcher.sweep(self.engine.beliefs, now)
            self.hub.sweep()
            self.hub.keep_journal()

    def _tell_beats(self, now: float) -> None:
        """`AGENT_HEARTBEAT` for those who listen for it: at most one a second of each agent."""
        since, self._beats_told_at = self._beats_told_at, now
        if not self.feed.beats_wanted:
            return
        lately = [agent.id for agent in self.engine.agents() if agent.heard_at > since]
        self.feed.tell(
            [
                Event(
                    0,
                    received.at,
                    HEARTBEAT,
                    agent_id,
                    wire.encode_beat(cast("wire.WireBeat", received.beat)),
                )
                for agent_id, received in self.hub.last_beats.of_all(lately)
                if received.at > since
            ]
        )

    def _tell_trouble(self, what: str, why: str, now: float) -> None:
        """The store or the bus is away, or back. While the store is away nothing can be kept: then it is told at once, and
        without a number."""
        trouble = self._troubles[what]
        if why and trouble.since is None:
            trouble.since, trouble.why = now, why
            if self._troubles["STORE"].since is None:
                self.hub.announce(f"HUB_{what}_LOST", {"reason": why})
            else:
                self._tell([Event(0, now, f"HUB_{what}_LOST", "", msgspec.json.encode({"reason": why}))])
        elif not why and trouble.since is not None:
            away_for = round(now - trouble.since, 3)
            self.hub.announce(f"HUB_{what}_BACK", {"reason": trouble.why, "away_for_s": away_for})
            trouble.since = None

    async def _forget(self) -> None:
        while True:
            await asyncio.sleep(HOUR)
            await self.forget(self.clock())

    async def forget(self, now: float) -> None:
        """What is to be done once an hour: drop from the store what is too old."""
        try:
            await self.store.forget(now, keep_for=self.keeping.history_for, raw_for=self.keeping.raw_for)
            await self.hub.audit.retire(now, self.keeping.audit_for, self.hub.pages, self.hub.announce)
        except AdapterError as error:
            log.warning("nothing was forgotten: %s", error, extra={"action": "forgetting_failed"})
