"""Service: a hub with everything around it, as the web and the assembly use it.

    web ──► http_receiver ─┐                            ┌─► dispatcher ──► order ledger, executors, bus
    bus ──► bus_receiver ──┴─► Hub ──► committer, store ┴─► feed ──► listeners

Housekeeping does the periodic work.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from lifesigns.core.effects import VerifyCheckpoint
from lifesigns.core.engine import Engine
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook
from lifesigns.errors import AdapterError, Deposed
from lifesigns.events.hub_facts import HubPart
from lifesigns.hub.access import SYNC_EVERY, Access
from lifesigns.hub.ai_maestro.executor import MessengerExecutor
from lifesigns.hub.ai_maestro.outgoing import ORDERS as MESSAGE_ORDERS
from lifesigns.hub.ai_maestro.questions import Questions
from lifesigns.hub.ai_maestro.watch import MessengerRules, MessengerWatch
from lifesigns.hub.alerting.agent_lookup import EngineAgentLookup
from lifesigns.hub.alerting.notifier import Notifier
from lifesigns.hub.alerting.rules import Rules
from lifesigns.hub.audit.log import AuditLog
from lifesigns.hub.audit.seal_file import SealFile
from lifesigns.hub.audit.witnesses import Witnesses
from lifesigns.hub.belief_copy import BeliefCopy
from lifesigns.hub.bus_neighbours import SUBJECT, BusNeighbours, HubCard
from lifesigns.hub.bus_receiver import BusReceiver, Relays
from lifesigns.hub.checkpoints import Checkpoints
from lifesigns.hub.clock import Clock, steady_clock
from lifesigns.hub.dead_man_pings import DeadManPings
from lifesigns.hub.dispatcher import Dispatcher
from lifesigns.hub.early_beats import EarlyBeats
from lifesigns.hub.executors import Executors
from lifesigns.hub.feed import Feed
from lifesigns.hub.housekeeping import Housekeeping, Retention
from lifesigns.hub.http_receiver import HttpReceiver
from lifesigns.hub.hub import Hub
from lifesigns.hub.hub_troubles import HubTroubles
from lifesigns.hub.lease import RENEW_EVERY, Lease
from lifesigns.hub.locks.lock_watch import LockWatch
from lifesigns.hub.locks.rules import LockRules
from lifesigns.hub.mailbox import Mailbox
from lifesigns.hub.opinion_asker import OpinionAsker
from lifesigns.hub.opinion_giver import OpinionGiver
from lifesigns.hub.otlp_receiver import REORDER_FOR, OtlpReceiver
from lifesigns.hub.principals import Patterns
from lifesigns.hub.shares import PartShares, Shares
from lifesigns.hub.sign_in import SESSION_MAX_FOR
from lifesigns.hub.signatures import Signatures
from lifesigns.hub.token_watch import TokenWatch
from lifesigns.ports import (
    Bus,
    Channel,
    Contents,
    DeadManSwitch,
    HubCaller,
    IssueTracker,
    Messenger,
    Signer,
    Store,
    Witness,
)
from lifesigns.ports.signer import Verifies
from lifesigns.wire.otlp import Identities

FIND_FOR: Final = 15.0
"""How long a sender may need to find the hub that took over: it waits 5 s for the answer of one that is frozen, a second
between two tries, and may begin with the wrong one."""

STORED_WITHIN: Final = 15.0
"""How long a hub that stops waits until everything is stored, while it still answers. A store that is away must not
keep it."""

JUDGES_WITHIN: Final = 10.0
"""How late a deadline may be looked at before the hub counts as not judging. A busy hub is late by milliseconds."""


log: Final = logging.getLogger("lifesigns.hub")


class Service:
    """A running hub. With a folder `state` it stores the admin token there."""

    def __init__(
        self,
        store: Store,
        bus: Bus | None = None,
        *,
        relays: Relays = Relays.OPEN,
        verifies: Verifies | None = None,
        must_sign: Patterns | None = None,
        policies: PolicyBook | None = None,
        fleet: FleetPolicy | None = None,
        retention: Retention | None = None,
        state: Path | None = None,
        signer: Signer | None = None,
        witnesses: Sequence[Witness] = (),
        contents: Contents | None = None,
        rules: Rules | None = None,
        channels: Mapping[str, Channel] | None = None,
        session_for: float = SESSION_MAX_FOR,
        identities: Identities | None = None,
        reorder_for: float = REORDER_FOR,
        hub_caller: HubCaller | None = None,
        clock: Clock | None = None,
        slot: int | None = None,
        access: Access | None = None,
        shares: Shares | None = None,
    ) -> None:
        self.clock = steady_clock(clock)
        self.store = store
        self.feed = Feed()
        self.access = access or Access(store, session_for)
        self.shares_access = access is not None
        """Whoever gave it reads the tokens, for the hubs of all slots."""
        self._state = state
        self._name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._policies = policies or PolicyBook()
        self.witnesses = Witnesses(store, witnesses, self.clock)
        self.hub = Hub(
            store,
            policies=policies,
            fleet=fleet,
            clock=self.clock,
            audit=AuditLog(
                store,
                signer,
                None if state is None or signer is None else SealFile(state),
                self.witnesses,
            ),
            slot=slot,
            shares=None if shares is None else PartShares(shares),
        )
        self.notifier = Notifier(
            rules or Rules({}),
            channels or {},
            EngineAgentLookup(lambda: self.engine.beliefs),
            store=store,
            clock=self.clock,
            request_commit=self.hub.committer.request_commit,
            wait_until_stored=self.hub.committer.wait_until_stored,
            part="" if slot is None else f"slot {slot}",
        )
        self._make_dispatcher(bus, contents)
        self.feed.observe(self.notifier.hear)
        self.feed.observe(self.dispatcher.publish)
        self.signatures = Signatures(self.access, self.hub.counters.forged, verifies, must_sign)
        self._relays = relays
        self._make_receivers(bus, relays, identities, reorder_for)
        self._make_housekeeping(retention or Retention())
        self.locks: LockWatch | None = None
        self.dead_man_pings: DeadManPings | None = None
        self.messenger_watch: MessengerWatch | None = None
        self._neighbours: BusNeighbours | None = None
        self.lease: Lease | None = None
        """This hub among those on the store; None if it has the store for itself."""
        self.copy: BeliefCopy | None = None
        """The beliefs of the hub that judges, while this one stands by."""
        self._hub_caller = hub_caller
        self.opinion_giver: OpinionGiver | None = None
        """What this hub hears, for hubs in other zones; None if it has no zone."""
        self.opinion_asker: OpinionAsker | None = None
        """Asks hubs in other zones; None while this hub stands by."""
        self._holding: asyncio.Task[None] | None = None
        self.why_others_unwell: Callable[[], str] = lambda: ""
        """Of the hubs of other slots: which of them are missing; empty if none is."""
        self._handed_over = False
        """Another hub has a copy of everything."""
        self._tasks: list[asyncio.Task[None]] = []

    # --- its parts ------------------------------------------------------------------------------------

    def _make_dispatcher(self, bus: Bus | None, contents: Contents | None) -> None:
        self.executors = Executors(self.hub.ledger, self.hub.hear)
        self.mailbox = Mailbox()
        self.checkpoints = Checkpoints(contents)
        self.executors.assign(VerifyCheckpoint, self.checkpoints)
        self.dispatcher = Dispatcher(self.hub.ledger, self.executors, bus)

    def _make_receivers(
        self, bus: Bus | None, relays: Relays, identities: Identities | None, reorder_for: float
    ) -> None:
        hub, clock = self.hub, self.clock
        self.http_receiver = HttpReceiver(hub, clock, self.signatures)
        self.otlp_receiver = OtlpReceiver(hub, clock, self.http_receiver, identities, reorder_for)
        self.bus_receiver: BusReceiver | None = None
        self._early_beats: EarlyBeats | None = None
        if bus is not None:
            self.bus_receiver = BusReceiver(
                bus, self._name, hub, clock, self.http_receiver, self.signatures, relays
            )
            self._early_beats = EarlyBeats(self.bus_receiver)

    def _make_housekeeping(self, retention: Retention) -> None:
        self.troubles = HubTroubles(self.hub.announce, self.feed.publish)
        self.housekeeping = Housekeeping(
            self.hub,
            self.bus_receiver,
            self.dispatcher,
            self.feed,
            self.troubles,
            retention,
            self.clock,
            self.notifier.hear,
        )
        self.token_watch = TokenWatch(self.access, self.hub, self.clock)
        self.housekeeping.watched[HubPart.TOKENS] = self.token_watch.why_refused
        self.housekeeping.watched[HubPart.SPEAKERS] = self.hub.counters.forged.why
        if not self.hub.slot:  # What is of all slots is told once, by the hub of the first.
            self.housekeeping.watched[HubPart.TOKEN_ROWS] = self.access.tokens.why_forged
        self.housekeeping.watched[HubPart.WITNESSES] = self.witnesses.why_behind

    def _assign_messenger(self) -> None:
        """After the executors of the configuration: what a person assigned goes first."""
        if self.messenger_watch is not None:
            for kind in MESSAGE_ORDERS:
                self.executors.assign(kind, self._messenger_executor, reaches=self.messenger_watch.serves)

    @property
    def engine(self) -> Engine:
        return self.hub.engine

    @property
    def state_folder(self) -> Path | None:
        """Where the hub keeps its things, if it has such a place."""
        return self._state

    # --- what it does beside, from its start on -------------------------------------------------------

    def watch_locks(self, tracker: IssueTracker, rules: LockRules) -> None:
        """Keep the locks in this tracker true: release those of dead agents, tell people of stale ones."""
        self.locks = LockWatch(tracker, rules, self.hub, self._policies.default.claim, self._name)
        self.feed.observe(self.locks.hear)
        self.housekeeping.watched[HubPart.TRACKER] = self.locks.why_lost

    def ping_dead_man_switch(self, switch: DeadManSwitch, every: float = 60.0) -> None:
        """Tell a service elsewhere that this hub is well, which alerts people when it no longer hears that."""
        self.dead_man_pings = DeadManPings(switch, every, self.why_unwell, self.clock)
        self.housekeeping.watched[HubPart.DEAD_MAN_SWITCH] = self.dead_man_pings.why_failing

    def watch_messenger(self, messenger: Messenger, rules: MessengerRules) -> None:
        """Watch the agents of this messenger, and carry out orders to them by messages."""
        questions = Questions()
        self.messenger_watch = MessengerWatch(messenger, rules, self.hub, self._policies, questions)
        self._messenger_executor = MessengerExecutor(messenger, questions, rules.inquiry_wait, self.clock)
        self.housekeeping.watched[HubPart.MESSENGER] = self.messenger_watch.why_lost

    # --- beginning and end ----------------------------------------------------------------------------

    def join(self, lease: Lease) -> None:
        """Be one of several hubs on the store, and tell people when another one is lost."""
        self.lease, self.copy = lease, BeliefCopy(self.store)
        if not self.hub.slot:
            self.housekeeping.watched[HubPart.HUBS] = lease.why_lost
        if lease.zone:
            bus = None if self.bus_receiver is None else self.bus_receiver.bus
            self.opinion_giver = OpinionGiver(
                lease.zone, f"{self._name}-standby", bus, self.signatures, self._relays, self.clock
            )

    async def stand_by(self) -> None:
        """Follow the hub that judges; return when it is gone, and this one may `start`."""
        if self.lease is None or self.copy is None:
            return
        beside = [
            asyncio.create_task(self.copy.follow(), name="lifesigns copy"),
            asyncio.create_task(self._listen_early(self.lease), name="lifesigns early beats"),
        ]
        if self.opinion_giver is not None:
            beside.append(asyncio.create_task(self.opinion_giver.run(), name="lifesigns opinions"))
            beside.append(asyncio.create_task(self._keep_access(), name="lifesigns tokens"))
        try:
            await self.lease.stand_by(self.copy)
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            if self.opinion_giver is not None:
                await self.opinion_giver.close()

    async def _keep_access(self) -> None:
        """Know the tokens and keys while this hub stands by: it has to know who speaks."""
        while self.access.tokens.hub_macs is None:
            try:
                await self.open_access()
            except AdapterError:
                await asyncio.sleep(SYNC_EVERY)
        await self.access.run(self.clock)

    async def _listen_early(self, lease: Lease) -> None:
        """While the hub that judges hands over, listen to the bus already."""
        while self._early_beats is not None:
            await lease.handing_over.wait()
            try:
                await self._early_beats.listen()
            except AdapterError as error:
                log.debug("the bus is not reached yet: %s", error)
            await asyncio.sleep(RENEW_EVERY)
            if not lease.handing_over.is_set():
                await self._early_beats.end()

    async def until_replaced(self) -> None:
        """Return when another hub has taken over, or shall: this one is drained. Never if there can be none."""
        if self._holding is None or self.lease is None:
            await asyncio.Event().wait()
            return
        drained = asyncio.create_task(self.lease.wanted.wait())
        await asyncio.wait([self._holding, drained], return_when=asyncio.FIRST_COMPLETED)
        drained.cancel()

    async def hand_over(self) -> None:
        """Before `stop`, and while this hub still judges and answers: let a hub that stands by copy everything, so that it
        goes on at once. Without one, or if it takes too long, `stop` stores everything as for a hub alone."""
        lease = self.lease
        if lease is None or self._holding is None or self._holding.done() or not lease.successors():
            return
        try:
            async with asyncio.timeout(STORED_WITHIN):
                commit = await self.hub.store_all_agents()
            self._handed_over = await lease.hand_over(commit)
        except (AdapterError, TimeoutError) as error:
            log.warning(
                "the hubs that stand by are not waited for: %s", error, extra={"action": "no_handover"}
            )

    def introduce(self, card: HubCard) -> None:
        """Tell the other hubs on the bus of this one, and people of those that have another store. Before `start`."""
        if self.bus_receiver is not None:
            self._neighbours = BusNeighbours(self.bus_receiver.bus, card, self.clock)
            self.bus_receiver.also_hear(SUBJECT, self._neighbours.hear)
            self.housekeeping.watched[HubPart.NEIGHBOURS] = self._neighbours.why_shared

    async def open_access(self) -> None:
        """Read the tokens, and make sure that there is one for the administrator. Before the hub takes over, or stands
        by: a hub without the key of the tokens in this store must not depose one that has it."""
        if self.shares_access:
            return
        if self._state is None:
            await self.access.tokens.load()
        else:
            await self.access.open_folder(self._state, self.clock())

    async def start(self) -> None:
        """Open the store, continue where the last hub stopped, listen."""
        await self.open_access()
        self._ask_other_zones()
        try:
            await self.hub.start(
                self.dispatcher,
                self.feed,
                self.notifier,
                self.bus_receiver,
                copy=self.copy,
                opened=self._hold,
                opinions=self.opinion_asker,
            )
        except BaseException:
            if self._holding is not None:
                self._holding.cancel()
            raise
        if self.lease is not None:
            self.lease.renewed, self.lease.unrenewed = self._row_renewed, self._row_not_renewed
            self._row_renewed()
            now, self.copy = self.clock(), None
            self._wait_for_agents()
            if not self.hub.slot:
                self.troubles.note(HubPart.HUBS, self.lease.why_lost(now), now)
            if self._early_beats is not None:
                await self._early_beats.pass_on()
        self.engine.clean_up_after(self.executors.cleans_up)
        self._assign_messenger()
        self.feed.newest = max(self.feed.newest, self.hub.began_after)
        self.notifier.start()
        self.witnesses.start()
        self._begin("housekeeping", self.housekeeping.run())
        self._begin("forgetting", self.housekeeping.run_hourly())
        if not self.shares_access:
            self._begin("tokens", self.access.run(self.clock))
        self._begin("token watch", self.token_watch.run())
        self._begin("audit", self.hub.audit.run(self.hub.committer, self.clock, self.hub.announce))
        if self.dead_man_pings is not None:
            self._begin("dead-man pings", self.dead_man_pings.run())
        if self.locks is not None:
            self._begin("locks", self.locks.run())
        if self.messenger_watch is not None:
            self._begin("messenger", self.messenger_watch.run())
        if self._neighbours is not None:
            self._begin("neighbours", self._neighbours.run())
        if self.bus_receiver is not None:
            self._begin("bus", self.bus_receiver.open())
            self._begin("dispatcher", self.dispatcher.run())

    def _begin(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """Do this until the hub stops."""
        self._tasks.append(asyncio.create_task(work, name=f"lifesigns {name}"))

    async def take_over(self) -> bool:
        """`start`, after this hub stood by; whether it leads now. If not, it stands by again: another hub was quicker, or the
        store failed in this very moment."""
        try:
            await self.start()
        except Deposed:
            return False
        except AdapterError as error:
            if not error.transient:
                raise
            log.warning("not taken over, standing by again: %s", error, extra={"action": "not_taken_over"})
            return False
        return True

    def _ask_other_zones(self) -> None:
        macs = self.access.tokens.hub_macs
        if self.lease is not None and self.lease.zone and self._hub_caller is not None and macs is not None:
            self.opinion_asker = OpinionAsker(self.lease, macs, self._hub_caller, self.hub.hear)

    def _tell_zones(self) -> None:
        """The engine asks the zones that have a hub now."""
        if self.lease is not None and self.opinion_asker is not None:
            self.engine.has_zones(self.lease.other_zones())
            self.opinion_asker.meet()

    def _row_renewed(self) -> None:
        self.hub.may_be_replaced = False
        self._tell_zones()

    def _row_not_renewed(self) -> None:
        """Another hub may judge by now: agents are to look for it. And whatever cuts this one off from the store may cut
        agents off from it."""
        self.hub.may_be_replaced = True
        self._wait_for_agents()

    def _wait_for_agents(self) -> None:
        """Their silence means nothing yet: they look for this hub."""
        self.engine.convict_none_until(self.clock() + FIND_FOR)

    def end_listeners(self) -> None:
        """The hub is about to stop: answer all listeners and long polls now."""
        self.feed.end()
        self.hub.ledger.end()

    async def stop(self) -> None:
        """Take in what is here, store everything, close everything."""
        self.end_listeners()
        if self._holding is not None:
            self._tasks.append(self._holding)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self.opinion_asker is not None:
            await self.opinion_asker.close()
        if self._neighbours is not None:
            await self._neighbours.leave()
        if self.bus_receiver is not None:
            await self.bus_receiver.close()
        self.otlp_receiver.hear_all()
        if self.locks is not None:
            await self.locks.close()
        await self.executors.close()
        if self.messenger_watch is not None:
            await self.messenger_watch.close()
        await self.notifier.stop()
        await self.hub.stop(everything=not self._handed_over)
        await self.witnesses.stop()

    def _hold(self) -> None:
        """Renew the row of this hub from now on: with a large fleet it is not ready yet, and another one that stands by
        must not think that it is gone."""
        if self.lease is not None:
            self._holding = asyncio.create_task(self.lease.hold(), name="lifesigns lease")

    # --- troubles -------------------------------------------------------------------------------------

    def watch_connections(self, why_full: Callable[[float], str]) -> None:
        """Ask this, once a second, why new connections are refused."""
        self.housekeeping.watched[HubPart.CONNECTIONS] = why_full

    def watch_memory(self, why_lost: Callable[[float], str]) -> None:
        """Ask this, once a second, why nothing can be written to the MCP memory."""
        self.housekeeping.watched[HubPart.MEMORY] = why_lost

    # --- how it is ------------------------------------------------------------------------------------

    @property
    def store_state(self) -> str:
        """`ok`, or what is wrong with the store."""
        return self.hub.committer.state

    @property
    def bus_state(self) -> str:
        """`ok`, `none`, or what is wrong with the bus."""
        return "none" if self.bus_receiver is None else self.bus_receiver.state

    @property
    def dead_man_state(self) -> str:
        """`ok`, `none`, or why the dead-man's switch gets no ping."""
        return "none" if self.dead_man_pings is None else self.dead_man_pings.state

    def why_unwell(self) -> str:
        """Why this hub cannot watch as it should; empty if it can."""
        if self.store_state != "ok":
            return f"the store is away: {self.store_state}"
        if self.bus_state not in ("ok", "none"):
            return f"the bus is away: {self.bus_state}"
        if self.engine.beliefs.awareness.blind:
            return "the hub cannot see"
        late = self.clock() - self.engine.wake_at()
        return f"nobody was judged for {late:.0f} s" if late >= JUDGES_WITHIN else self.why_others_unwell()
