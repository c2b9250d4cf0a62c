"""The hub's loop: drain the inbox, let the engine judge, store the commit, carry out what was stored.

One event loop, one thread; the receivers run on the same loop and pass decoded signals to `hear`. Signals wait in a
bounded inbox; the hub takes them in turns short enough for all other tasks. The hub judges no agent while a signal
waits: it checks deadlines when the inbox is empty, so that a beat that has arrived counts.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from contextvars import Context
from time import thread_time
from typing import Final, cast

from msgspec.structs import replace

from lifesigns.core.agent import NEVER
from lifesigns.core.changed_keys import ChangedKeys
from lifesigns.core.effects import (
    AskSecondOpinion,
    Effect,
    Fact,
    Intervention,
    Order,
    Poisoned,
    SendCanary,
    SendPing,
    SetInterval,
    Stage,
)
from lifesigns.core.fleet_summary import FleetSummary
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import Beat, CanaryReturned, Report, Signal
from lifesigns.errors import AdapterError
from lifesigns.events import event_of
from lifesigns.hub import memory
from lifesigns.hub.audit.log import AuditLog
from lifesigns.hub.belief_copy import BeliefCopy
from lifesigns.hub.busyness import BUSY_SHARE, Busyness
from lifesigns.hub.changes import Changes
from lifesigns.hub.clock import Clock, steady_clock
from lifesigns.hub.committer import Committer
from lifesigns.hub.counters import HubCounters
from lifesigns.hub.inbox import PIECE, TURN_MAX, Delivery, Inbox
from lifesigns.hub.journal import Journal
from lifesigns.hub.last_beats import BATCH_MAX, EncodedBatch, LastBeats, ReceivedBeat, SingleBeat
from lifesigns.hub.order_ledger import OrderLedger, open_order
from lifesigns.hub.outlets import AlertRows, CanarySender, EventOutlet, OpinionOutlet, OrderOutlet
from lifesigns.hub.ownership import BUS, Refusal, refusal
from lifesigns.hub.restoring import collector_paused, restore_engine
from lifesigns.hub.shares import Shares
from lifesigns.hub.slots import SLOTS, next_epoch, own_signals
from lifesigns.ports import Belief, Commit, Event, Store
from lifesigns.ports.correlation import correlation_id

STOP_FOR: Final = 10.0
"""How long a commit may take when the hub stops."""

AWAY_FOR: Final = 2.0
"""How long the hub then waits for a store that is away: one more try."""

STORED_AT_ONCE: Final = 1000
"""Agents in one commit while everything is stored beside the usual work: some milliseconds of the loop."""

STRAYS_MAX: Final = 10_000
"""Last beats of agents that the engine did not take in, held until the next sweep."""

log = logging.getLogger("lifesigns.hub")


class Hub:
    """Runs the engine. Stored orders and events go to the outlets it is started with."""

    def __init__(
        self,
        store: Store,
        *,
        policies: PolicyBook | None = None,
        fleet: FleetPolicy | None = None,
        clock: Clock | None = None,
        inbox_max: int = 200_000,
        audit: AuditLog | None = None,
        busyness: Callable[[float], Busyness] = Busyness,
        slot: int | None = None,
        shares: Shares | None = None,
    ) -> None:
        self.store = store
        self.slot = slot
        """The slot of agents that it judges; None: all agents."""
        self.audit = audit or AuditLog(store)
        self.clock = steady_clock(clock)
        self.counters = HubCounters()
        self.shares = shares or Shares(self.clock)
        self.committer = Committer(store, self.audit)
        self.ledger = OrderLedger(self.committer.settle, self.clock)
        self._policies = policies or PolicyBook()
        self._fleet = fleet or FleetPolicy()
        self._make_busyness = busyness
        self.inbox = Inbox(self.shares, inbox_max)
        self._gathering = 0
        """Receivers that hold signals not yet in the inbox."""
        self.unreadable = ""
        """The rows of the store that were unreadable at the start; empty if none."""
        self.last_beats = LastBeats()
        self._unstored = ChangedKeys()
        """The beliefs of the engine that go into the next commit."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = NEVER
        self._turn: asyncio.Handle | None = None
        self._apart = Context()
        """Of turns and timers: they are for all, and have nothing of the request in which one of them is set."""
        self._writer: asyncio.Task[None] | None = None
        self.may_be_replaced = False
        """This hub cannot renew its row: another one may have taken over, and nobody has told it."""

    # --- beginning and end ----------------------------------------------------------------------------

    async def start(
        self,
        orders: OrderOutlet,
        events: EventOutlet,
        alerting: AlertRows | None = None,
        canaries: CanarySender | None = None,
        *,
        copy: BeliefCopy | None = None,
        opened: Callable[[], None] | None = None,
        opinions: OpinionOutlet | None = None,
    ) -> None:
        """Continue where the last hub stopped: its downtime counts against no agent, its open orders are delivered
        again. Without a receiver for canaries they go through the loop alone. With a `copy` of the beliefs it reads only
        what changed since; it calls `opened` when it has taken over, and has all this still to do."""
        self._loop = asyncio.get_running_loop()
        self.shares.begin()
        self._orders, self._events, self._alerting, self._canaries = orders, events, alerting, canaries
        self._opinions = opinions
        epoch_min = next_epoch(self.clock(), self.slot)
        remembered = await self.store.open(epoch_min=epoch_min, beliefs=copy is None)
        if opened is not None:
            opened()
        self.epoch = remembered.epoch
        self._event_id = self.began_after = remembered.event
        opened_at = self._loop.time()
        if copy is not None:
            await copy.catch_up()
        recall = memory.Recall() if copy is None else copy.recall
        # Beside the loop: with a large fleet this takes a second, and the loop has to renew the row of this hub.
        with nullcontext() if copy is None else collector_paused():
            self.engine, self.unreadable = await asyncio.to_thread(
                restore_engine, recall, remembered, self.clock, self._policies, self._fleet, self._unstored
            )
        if copy is not None:
            log.info(
                "took over with %d agents: %.3f s to read what changed and to restore them",
                len(self.engine.beliefs.agents),
                self._loop.time() - opened_at,
                extra={"action": "took_over"},
            )
        self.engine.canary_comes_by("" if canaries is None else canaries.source)
        self.engine.lives_on(socket.gethostname())
        if self.slot is not None:
            self.engine.judges_a_part(1 / SLOTS)
        self._busyness, self._turned_away = self._make_busyness(self.clock()), 0
        await self.audit.recall(recall.others)
        if alerting is not None:
            alerting.recall(recall.others)
        self.committer.continue_from(remembered.commit, remembered.event)
        self.ledger.beliefs = self.engine.beliefs
        self.changes = Changes(remembered.epoch)
        self.journal = Journal(remembered.epoch, self.clock())
        self._lapses = self.engine.beliefs.awareness.lapses
        self._lapse = self._lapses[-1] if self._lapses else None
        for stored in remembered.orders:
            order = open_order(stored)
            if order is not None:
                # An agent that has heard this hub would refuse the epoch of the hub before.
                self.deliver(replace(order, epoch=remembered.epoch))
        self._writer = asyncio.create_task(self._write(), name="lifesigns commits")
        self.run_due()

    async def store_all_agents(self) -> int:
        """Store every agent as it is now, with what beats changed, in turns and beside the usual work; returns the number of
        the last commit."""
        ids = list(self.engine.beliefs.agents)
        for first in range(0, len(ids), STORED_AT_ONCE):
            self._unstored.agents.update(dict.fromkeys(ids[first : first + STORED_AT_ONCE]))
            await self.committer.wait_until_stored()
        return self.committer.number

    async def stop(self, *, everything: bool = True) -> None:
        """Take in what is here, store it and everything else, unless another hub has that already, and close the store."""
        if self._gathering:
            await asyncio.sleep(0)  # The receivers pass it on now.
        while self.inbox.deliveries:
            self._drain()
        self.store_journal()
        self.committer.finish()
        if self._writer is not None:
            away = self.committer.trouble is not None
            await asyncio.wait([self._writer], timeout=AWAY_FOR if away else STOP_FOR)
        self.abort()
        if self.committer.trouble is None:
            await self._store_last(everything=everything)
        else:
            log.error(
                "the last commit was not stored: %s",
                self.committer.trouble,
                extra={"action": "last_page_lost"},
            )
        await self.store.close()

    def abort(self) -> None:
        """Stop as a crash would: hear, store and carry out nothing more."""
        for handle in (self._timer, self._turn, self._writer):
            if handle is not None:
                handle.cancel()

    @property
    def is_storing(self) -> bool:
        """Whether the store takes commits. If not, another hub may have taken over: this one may judge, and leaves the world
        as it is."""
        return self.committer.state == "ok"

    @property
    def is_replaced(self) -> bool:
        """Whether another hub judges now, or may: an agent that seems to be heard here would not look for that one, which
        would take it for dead."""
        return self.may_be_replaced or self.committer.deposed

    # --- hearing --------------------------------------------------------------------------------------

    def hear(
        self,
        signals: Sequence[Signal],
        at: float | None = None,
        source: str = "",
        led_to: list[Effect] | None = None,
    ) -> bool:
        """Signals arrived now, or at that moment. False if there is no room: none of them is taken."""
        return self._enqueue(
            Delivery(
                self.clock() if at is None else at,
                signals,
                led_to=led_to,
                source=source,
                correlation_id=correlation_id.get(),
            )
        )

    def hear_beats(self, beats: Sequence[Beat], raw: bytes, source: str, at: float) -> bool:
        """Beats arrived in this message. As `hear`; but if the inbox is empty the engine takes them at once, while the
        decoded beats are still in the cache."""
        if self.slot is not None and not (beats := own_signals(beats, self.slot)):
            return True
        encoded = EncodedBatch(raw, source, at) if len(raw) <= BATCH_MAX else None
        inbox = self.inbox
        if inbox.deliveries or encoded is None or len(beats) > min(TURN_MAX, inbox.signals_max):
            return self._enqueue(
                Delivery(at, beats, encoded, source=source, correlation_id=correlation_id.get())
            )
        self.journal.note(at, beats)
        if len(beats) <= PIECE:
            self._hear_beats(beats, at, encoded)
        else:
            inbox.put(Delivery(at, beats, encoded, source=source, correlation_id=correlation_id.get()))
            self._drain()
        if self._timer is None or self.engine.wake_at() < self._timer_at:
            self.ask_turn()
        return True

    def _enqueue(self, delivery: Delivery) -> bool:
        if self.slot is not None:
            delivery = delivery._replace(signals=own_signals(delivery.signals, self.slot))
        if not self.inbox.put(delivery):
            self.counters.turned_away += len(delivery.signals)
            return False
        self.journal.note(delivery.at, delivery.signals)
        self.ask_turn()
        if self.inbox.waiting >= TURN_MAX:
            # Many receivers bring more in one round of the loop than a turn takes: then they help to drain.
            self._drain()
        return True

    async def store_reports(self, reports: Sequence[Signal]) -> Sequence[Effect] | None:
        """Take in reports, and return their effects once these are stored: only then the hub acknowledges the reports.
        None if there is no room for them."""
        heard: asyncio.Future[None] = self._loop.create_future()
        led_to: list[Effect] = []
        if not self._enqueue(
            Delivery(self.clock(), reports, None, heard, led_to, correlation_id=correlation_id.get())
        ):
            return None
        await heard
        await self.committer.wait_until_stored()
        return led_to

    def last_beat(self, agent_id: str) -> ReceivedBeat | None:
        """The last beat of an agent as it was received, and when."""
        return None if self.engine.agent(agent_id) is None else self.last_beats.of(agent_id)

    def refusal(self, signal: Signal) -> Refusal | None:
        """Why an agent on the bus may not send this; None if it may."""
        return refusal(self.engine.beliefs, BUS, signal)

    def put_off(self, source: str, first_part: str = "", wait_for: float = 0.0) -> None:
        """What this source said was not taken, or waits for long; as `Engine.put_off`."""
        self.engine.put_off(source, self.clock(), first_part, wait_for)

    def begin_gathering(self) -> None:
        """A receiver holds signals that it will pass on in the next round of the loop: until then the hub judges no
        agent."""
        self._gathering += 1

    def end_gathering(self) -> None:
        self._gathering -= 1

    def ask_turn(self) -> None:
        """Schedule a turn."""
        if self._turn is None:
            self._turn = self._loop.call_soon(self._take_turn, context=self._apart)

    def _take_turn(self) -> None:
        self._turn = None
        if self._gathering:
            self.ask_turn()
            return
        self._drain()
        if len(self.last_beats) > len(self.engine.beliefs.agents) + STRAYS_MAX:
            self.last_beats.keep_only(self.engine.beliefs.agents)
        if self.inbox.deliveries:
            self.ask_turn()
        else:
            self.run_due()
        if self._lapses and self._lapses[-1] is not self._lapse:
            self._lapse = self._lapses[-1]
            self.journal.lapsed(self._lapse.began_at, self._lapse.ended_at)

    def store_journal(self) -> None:
        """Store the journal, for `lifesigns replay`."""
        self.committer.journal(self.journal.take(self.clock()))

    def _drain(self) -> None:
        """Hear what waits, at the moment it came; not for longer than a turn."""
        own = correlation_id.get()
        try:
            self.inbox.drain(self._hear)
        finally:
            correlation_id.set(own)

    def _hear(self, delivery: Delivery) -> None:
        correlation_id.set(delivery.correlation_id)
        if delivery.encoded is not None:
            self._hear_beats(cast("Sequence[Beat]", delivery.signals), delivery.at, delivery.encoded)
        else:
            self._hear_each(delivery)

    def _hear_beats(self, beats: Sequence[Beat], at: float, encoded: EncodedBatch) -> None:
        engine, last_beats = self.engine, self.last_beats
        if at >= engine.wake_at():
            self._run_due_before(at)
        effects = engine.hear(beats[0], at) if len(beats) == 1 else engine.hear_beats(beats, at)
        for beat in beats:
            last_beats[beat.agent_id] = encoded
        self.counters.beats += len(beats)
        if effects:
            self._queue_effects(effects)

    def _hear_each(self, delivery: Delivery) -> None:
        at, reports, noted = delivery.at, 0, ""
        if at >= self.engine.wake_at():
            self._run_due_before(at)
        for signal in delivery.signals:
            effects = self.engine.hear(signal, at)
            if isinstance(signal, Report):
                reports += 1
                agent_id = getattr(signal, "agent_id", "")
                if agent_id and agent_id is not noted:  # What comes together is mostly of one agent.
                    noted = agent_id
                    self.changes.note(agent_id, self.engine.now)
                if self.ledger.has_any_of(agent_id):
                    self.ledger.note_report(signal)
            else:
                self.last_beats[signal.agent_id] = SingleBeat(signal, at)
            if effects:
                self._queue_effects(effects)
                if delivery.led_to is not None:
                    delivery.led_to.extend(effects)
        self.counters.reports += reports
        self.counters.beats += len(delivery.signals) - reports
        if delivery.heard is not None and not delivery.heard.done():
            delivery.heard.set_result(None)

    def hear_of_others(self, others: FleetSummary, age: float) -> None:
        """What the hubs of the other slots say of theirs, the oldest of it this old."""
        if effects := self.engine.hear_of_others(others, age, self.clock()):
            self._queue_effects(effects)

    # --- looking --------------------------------------------------------------------------------------

    def run_due(self) -> None:
        """Run what is due, and set the timer for the next deadline."""
        now = self.clock()
        due_at = self.engine.wake_at()
        if due_at <= now:
            self._check_own_load()
            effects = self.engine.advance(now)
            self.counters.looked(due_at, now, self.clock(), len(effects))
            if effects:
                self._queue_effects(effects)
            due_at = self.engine.wake_at()
        if self._timer is not None:
            if due_at == self._timer_at:
                return  # The usual case: a beat moves no deadline forward.
            self._timer.cancel()
            self._timer = None
        if due_at != NEVER:
            self._timer, self._timer_at = (
                self._loop.call_later(max(0.0, due_at - now), self._run_due_soon, context=self._apart),
                due_at,
            )

    def _run_due_before(self, at: float) -> None:
        """What falls due before a signal that came then is heard. Its sender does not pay for that: the deadlines are of all agents."""
        began = thread_time()
        self._check_own_load()
        if effects := self.engine.advance(at):
            self._queue_effects(effects)
        self.shares.charge_nobody(thread_time() - began)

    def _check_own_load(self) -> None:
        """Before judging: did the hub keep up with all that was sent since the last check?"""
        now = self.clock()
        if (looked := self._busyness.look(now)) is None:
            return
        since, share = looked
        refused, self._turned_away = self.counters.turned_away > self._turned_away, self.counters.turned_away
        self.counters.busy = min(1.0, share)
        effects = (
            self.engine.fall_behind(since, now)
            if share >= BUSY_SHARE or refused
            else self.engine.catch_up(now)
        )
        if effects:
            self._queue_effects(effects)

    def _run_due_soon(self) -> None:
        """A deadline; signals that have arrived go first."""
        self._timer = None
        self.ask_turn()

    # --- effects --------------------------------------------------------------------------------------

    def _queue_effects(self, effects: Sequence[Effect]) -> None:
        """Facts and orders go into the next commit. Pings, canaries and questions go out at once: they lose their worth."""
        events: list[Event] = []
        orders: list[Order] = []
        now = self.clock()
        for effect in effects:
            if isinstance(effect, SendCanary):
                self._send_canary(effect.seq)
            elif isinstance(effect, SendPing | SetInterval):
                self.deliver(effect)
            elif isinstance(effect, AskSecondOpinion):
                if self._opinions is not None:
                    self._opinions.ask(effect)
            else:
                self._note_change(effect, now)
                if isinstance(effect, Fact):
                    self._event_id += 1
                    events.append(event_of(self._event_id, effect))
                    self.counters.count_fact(effect, now)
                    if isinstance(effect, Intervention) and effect.stage is Stage.DROPPED:
                        self._orders.withdraw(effect.agent_id, effect.id)
                    if isinstance(effect, Poisoned):
                        log.error("%s: %s", effect.agent_id, effect.error, extra={"action": "agent_poisoned"})
                else:
                    orders.append(effect)
        if events or orders:
            self.committer.add(events, orders)

    def _send_canary(self, seq: int) -> None:
        if self._canaries is None:
            self._loop.call_soon(self.hear, (CanaryReturned(seq=seq),))
        else:
            self._canaries.send_canary(seq)

    def deliver(self, order: Order) -> None:
        """Deliver an order, unless the engine no longer waits for it."""
        entry = self.ledger.open(order)
        if entry is not None:
            self._orders.carry_out(entry)

    def _note_change(self, item: Report | Effect, now: float) -> None:
        if (agent_id := getattr(item, "agent_id", None)) is not None:
            self.changes.note(agent_id, now)

    def announce(self, fact: Fact) -> None:
        """Store and publish a fact about the hub itself, or about what a person did."""
        self._event_id += 1
        self.committer.add([event_of(self._event_id, fact)])

    def _changed_rows(self) -> Sequence[Belief]:
        beliefs = self.engine.snapshot()
        gone = [agent_id for agent_id in self._unstored.agents if agent_id not in beliefs.agents]
        for agent_id in gone:
            self.last_beats.pop(agent_id, None)
        self.changes.gone(gone, self.clock())
        rows = memory.changed(self._unstored, beliefs)
        self._unstored.clear()
        return [*rows, *self._alert_rows()]

    def _alert_rows(self) -> Sequence[Belief]:
        return () if self._alerting is None else self._alerting.changed()

    def sweep(self) -> None:
        """Drop what the engine has forgotten, and store what changed without an event."""
        agents = self.engine.beliefs.agents
        if len(self.last_beats) > len(agents):
            self.last_beats.keep_only(agents)
        self.changes.keep_only(agents)
        if self._unstored:
            self.committer.request_commit()

    async def _write(self) -> None:
        """Write one commit after the other; carry out orders and publish events once they are stored."""
        try:
            while await self.committer.wait_until_due():
                events, orders = await self.committer.write(self._changed_rows())
                for order in orders:
                    self.deliver(order)
                if events:
                    self._events.publish(events)
        except AdapterError as error:
            # Another hub has taken over, or the store is beyond repair: we watch on, and act no more.
            log.critical(
                "nothing is stored any more: %s",
                error,
                exc_info=error.__cause__,
                extra={"action": "store_lost"},
            )
            self.committer.give_up(error)
        except Exception as error:
            log.exception("nothing is stored any more", extra={"action": "store_lost"})
            self.committer.give_up(AdapterError(f"a bug of lifesigns: {error}", transient=False))

    async def _store_last(self, *, everything: bool) -> None:
        """Seal the audit log, and store what changed; or every belief as it is now, with what beats changed since."""
        if everything:
            beliefs = [*memory.everything(self.engine.snapshot()), *self._alert_rows()]
        else:
            self._unstored.fleet = True
            beliefs = [*self._changed_rows()]
        seal = self.audit.last_seal(self.clock())
        seals = () if seal is None else (seal,)
        try:
            await self.store.commit(Commit(self.committer.next_number(), beliefs, seals=seals))
        except AdapterError as error:
            log.error("the last commit was not stored: %s", error, extra={"action": "last_page_lost"})
        else:
            if seal is not None:
                await asyncio.to_thread(self.audit.note_seal, seal)
                self.audit.send_to_witnesses(seal)
