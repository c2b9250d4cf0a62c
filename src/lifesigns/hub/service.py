"""Service: a hub with everything round it. Doors and screens talk to this.

    web ──► http_receiver ─┐                            ┌─► dispatcher ──► mailboxes, bus
    bus ──► bus_receiver ──┴─► Hub ──► committer, store ┴─► feed ──► listeners

What nobody waits for is done beside, by the housekeeping.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

import msgspec

from lifesigns import wire
from lifesigns.core.effects import Order, VerifyCheckpoint
from lifesigns.core.engine import Engine
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import CanaryReturned, Signal
from lifesigns.hub.access import Access
from lifesigns.hub.alerting.agent_lookup import EngineAgentLookup
from lifesigns.hub.alerting.notifier import Notifier
from lifesigns.hub.alerting.rules import Rules
from lifesigns.hub.audit.log import AuditLog
from lifesigns.hub.audit.seal_file import SealFile
from lifesigns.hub.bus_receiver import SOURCE, BusReceiver
from lifesigns.hub.checkpoints import Checkpoints
from lifesigns.hub.clock import Clock, steady_clock
from lifesigns.hub.dispatcher import Dispatcher, awaited
from lifesigns.hub.executors import Executors
from lifesigns.hub.feed import Feed
from lifesigns.hub.housekeeping import Housekeeping, Retention
from lifesigns.hub.http_receiver import HttpReceiver, Orders
from lifesigns.hub.hub import Hub
from lifesigns.hub.hub_troubles import CONNECTIONS, TOKENS, HubTroubles
from lifesigns.hub.last_beats import ReceivedBeat
from lifesigns.hub.mailboxes import Mailboxes
from lifesigns.hub.refused_tokens import RefusedTokens
from lifesigns.hub.tokens import digest_of, id_of, is_token
from lifesigns.ports import Bus, Channel, Contents, Event, Signer, Store


class Service:
    """A running hub. In the folder `state`, if there is one, it keeps the admin token."""

    def __init__(
        self,
        store: Store,
        bus: Bus | None = None,
        *,
        policies: PolicyBook | None = None,
        fleet: FleetPolicy | None = None,
        keeping: Retention | None = None,
        state: Path | None = None,
        signer: Signer | None = None,
        contents: Contents | None = None,
        rules: Rules | None = None,
        channels: Mapping[str, Channel] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.clock = steady_clock(clock)
        self.store = store
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
            canary_by="" if bus is None else SOURCE,
        )
        self.notifier = Notifier(
            rules or Rules({}),
            channels or {},
            EngineAgentLookup(lambda: self.engine.beliefs),
            store=store,
            clock=self.clock,
            wanted=lambda: self.hub.committer.wanted(),
            kept=lambda: self.hub.committer.kept(),
        )
        self.hub.withdrawn = lambda order_id: self.dispatcher.withdrawn(order_id, self.clock())
        self.hub.ponged = self.mailboxes.drop_pings
        self.hub.recall, self.hub.more = self.notifier.recall, self.notifier.changed
        self.executors = Executors(
            lambda: self.engine.beliefs,
            self.hub.hear,
            lambda order: awaited(order, self.engine.beliefs, self.clock()),
        )
        self.checkpoints = Checkpoints(contents)
        self.executors.assign(VerifyCheckpoint, self.checkpoints)
        self.dispatcher = Dispatcher(
            self.mailboxes, bus, lambda order_id: self.hub.committer.settle(order_id), self.executors
        )
        name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self.http_receiver = HttpReceiver(self.hub, self.clock, self.orders_for)
        self.door = None if bus is None else BusReceiver(bus, name, self.hub, self.clock, self.http_receiver)
        if self.door is not None:
            self.hub.gather.append(self.door.hand_over)
        self.troubles = HubTroubles(self.hub.announce, self._tell)
        self.housekeeping = Housekeeping(
            self.hub,
            self.door,
            self.dispatcher,
            self.feed,
            self.troubles,
            keeping or Retention(),
            self.clock,
            self.notifier.hear,
        )
        self._refused_tokens = RefusedTokens()
        self.housekeeping.watched[TOKENS] = self._why_refused
        self._tasks: list[asyncio.Task[None]] = []
        self._sends: set[asyncio.Task[None]] = set()
        self._observers: list[Callable[[Sequence[Event]], None]] = [self.notifier.hear]

    @property
    def engine(self) -> Engine:
        return self.hub.engine

    # --- beginning and end ----------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the store, go on where the last hub stopped, listen."""
        await self.hub.start()
        self.engine.clean_up_after(self.executors.cleans_up)
        self.feed.newest = max(self.feed.newest, self.hub.began_after)
        await self.access.load()
        if self._state is not None:
            await self.access.open_folder(self._state, self.clock())
        self.notifier.start()
        self._tasks = [
            asyncio.create_task(self.housekeeping.keep_on(), name="lifesigns housekeeping"),
            asyncio.create_task(self.housekeeping.forget_on(), name="lifesigns forgetting"),
            asyncio.create_task(self.access.tend_on(self.clock), name="lifesigns tokens"),
            asyncio.create_task(
                self.hub.audit.tend_on(self.hub.committer, self.clock, self.hub.announce),
                name="lifesigns audit",
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
        for task in (*self._tasks, *self._sends):
            task.cancel()
        await asyncio.gather(*self._tasks, *self._sends, return_exceptions=True)
        if self.door is not None:
            await self.door.close()
        await self.executors.close()
        await self.notifier.stop()
        await self.hub.stop()

    async def keep(self, reports: Sequence[Signal]) -> None:
        """Hear words and return when what they changed is kept. Raises `InboxFull` or `NotStored`."""
        await self.http_receiver.keep(reports)

    # --- orders ---------------------------------------------------------------------------------------

    def orders_for(self, agent_ids: Collection[str], exclude: Sequence[str] = ()) -> Orders:
        """What waits for these agents; but not what they have declined."""
        if not self.mailboxes:
            return {}
        now, found = self.clock(), {}
        for agent_id in agent_ids:
            if agent_id in self.mailboxes:
                # A mailbox may lag behind what was just heard: the beat that refutes an order is answered without it.
                orders = [
                    msgspec.Raw(wire.encode_order(one))
                    for one in self.mailboxes.waiting_for(agent_id, now)
                    if one.order_id not in exclude and awaited(one, self.engine.beliefs, now)
                ]
                if orders:
                    found[agent_id] = orders
        return found

    async def acknowledge(self, agent_id: str, order_id: str) -> bool:
        """The agent's side has this order: when this returns it is not given again, whatever happens to us. Whether there
        was one. Raises `NotStored`."""
        to_be_kept = order_id in self.dispatcher
        was_there = self.dispatcher.acknowledged(agent_id, order_id)
        if was_there and to_be_kept:
            await self.http_receiver.keep(())
        return was_there

    async def wait_for_orders(
        self, agent_ids: Sequence[str], wait_for: float, exclude: Sequence[str] = ()
    ) -> Orders:
        """As `orders_for`; if there are none, wait for one for a while."""
        orders = self.orders_for(agent_ids, exclude)
        if not orders and wait_for > 0:
            await self.mailboxes.wait(agent_ids, wait_for)
            orders = self.orders_for(agent_ids, exclude)
        return orders

    # --- what the hub calls ---------------------------------------------------------------------------

    def _carry_out(self, order: Order) -> None:
        now = self.clock()
        if awaited(order, self.engine.beliefs, now):
            self.dispatcher.carry_out(order, now)
        else:  # It was withdrawn before it was kept, or by a hub that did not live to keep that.
            self.hub.committer.settle(order.order_id)

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
        sending = asyncio.create_task(self.door.send_canary(seq))
        self._sends.add(sending)
        sending.add_done_callback(self._sends.discard)

    # --- troubles -------------------------------------------------------------------------------------

    def token_refused(self, bearer: bytes, names: Sequence[str]) -> None:
        """Somebody who says to be these agents showed a token that is not known, or no longer."""
        if is_token(bearer):
            self._refused_tokens.note(digest_of(bearer), id_of(bearer.decode()), names, self.clock())

    def watch_connections(self, why_full: Callable[[float], str]) -> None:
        """Ask this, once a second, why newcomers are turned away."""
        self.housekeeping.watched[CONNECTIONS] = why_full

    def _why_refused(self, now: float) -> str:
        return self._refused_tokens.why(len(self.engine.beliefs.agents), now)

    # --- how it is ------------------------------------------------------------------------------------

    @property
    def store_state(self) -> str:
        """`ok`, or what is wrong with the store."""
        return self.hub.committer.state

    @property
    def bus_state(self) -> str:
        """`ok`, `none`, or what is wrong with the bus."""
        return "none" if self.door is None else self.door.state

    def last_beat(self, agent_id: str) -> ReceivedBeat | None:
        """The last beat of an agent as it was received, and when."""
        return None if self.engine.agent(agent_id) is None else self.hub.last_beats.of(agent_id)
