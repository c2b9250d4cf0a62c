"""The hub's loop: drain what came in, let the engine judge, keep the page, carry out what was kept.

One event loop, one thread; the doors run on the same loop and give what they decoded to `hear`. Signals wait in a
bounded inbox and are taken from it in turns short enough for everybody else to get theirs. Nobody is judged while
anything waits: deadlines are looked at when the inbox is empty, so that a beat which is here counts.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import thread_time
from typing import Final, NamedTuple, Protocol, cast

from lifesigns.core.agent import NEVER
from lifesigns.core.changed_keys import ChangedKeys
from lifesigns.core.effects import (
    Effect,
    Fact,
    Intervention,
    Order,
    Poisoned,
    SendCanary,
    SendPing,
    Stage,
)
from lifesigns.core.engine import Engine
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import Beat, CanaryReturned, Report, Signal
from lifesigns.errors import AdapterError
from lifesigns.events import event_of
from lifesigns.hub import memory
from lifesigns.hub.audit.log import AuditLog
from lifesigns.hub.busyness import BUSY_SHARE, Busyness
from lifesigns.hub.changes import Changes
from lifesigns.hub.clock import Clock, steady_clock
from lifesigns.hub.committer import Committer
from lifesigns.hub.journal import Journal
from lifesigns.hub.last_beats import BATCH_MAX, EncodedBatch, LastBeats, SingleBeat
from lifesigns.hub.order_ledger import OpenOrder, OrderLedger, open_order
from lifesigns.hub.ownership import BUS, Refusal, refusal
from lifesigns.hub.pulse import Pulse
from lifesigns.hub.shares import TURN_FOR, Shares
from lifesigns.ports import Belief, Commit, Event, Store

TURN_MAX: Final = 2000
"""Signals heard before the loop gets back to its sockets: some ten milliseconds of calm beats. What takes longer ends after
`TURN_FOR`."""

PIECE: Final = 100
"""Signals heard between two looks at the time: a few milliseconds at worst."""

STOP_FOR: Final = 10.0
"""How long a page may take when the hub ends."""

AWAY_FOR: Final = 2.0
"""How long a store that is away is waited for then: one more try."""

A_MOMENT: Final = 0.001
"""A hub whose clock was set back goes on so long after the last one: it has been away, for nobody knows how long."""

STRAYS_MAX: Final = 10_000
"""Beats of agents that the engine did not take in, kept until the next sweep."""

ROWS_SHOWN: Final = 5

log = logging.getLogger("lifesigns.hub")


class OrderOutlet(Protocol):
    """Who brings orders to whom they are for."""

    def carry_out(self, entry: OpenOrder) -> None: ...
    def withdraw(self, agent_id: str, order_id: str) -> None: ...


class EventOutlet(Protocol):
    """Who tells what happened."""

    def tell(self, events: Sequence[Event]) -> None: ...


class AlertRows(Protocol):
    """Alerting has rows of its own: it is given what was kept, and gives what is to be kept."""

    def recall(self, beliefs: Sequence[Belief]) -> None: ...
    def changed(self) -> Sequence[Belief]: ...


class CanaryDoor(Protocol):
    """The door that canaries leave by, and come back through."""

    source: str

    def send_canary(self, seq: int) -> None: ...


class Delivery(NamedTuple):
    """What came in together, and when."""

    at: float
    signals: Sequence[Signal]
    encoded: EncodedBatch | None = None
    """The message it came in, if that is kept."""
    heard: asyncio.Future[None] | None = None
    """Who waits until it is heard."""
    led_to: list[Effect] | None = None
    """What hearing it led to, for who waits."""
    source: str = ""
    """For whom it is work to hear it."""


class Hub:
    """Runs the engine. What it orders and tells goes to those it is started with, when it is kept."""

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
    ) -> None:
        self.store = store
        self.audit = audit or AuditLog(store)
        self.clock = steady_clock(clock)
        self.pulse = Pulse()
        self.shares = Shares(self.clock)
        self.committer = Committer(store, self.audit)
        self.ledger = OrderLedger(self.committer.settle, self.clock)
        self._policies = policies or PolicyBook()
        self._fleet = fleet or FleetPolicy()
        self._make_busyness = busyness
        self._inbox: deque[Delivery] = deque()
        self._gathering = 0
        """Doors that have something which is not in the inbox yet."""
        self._inbox_max = inbox_max
        self.waiting = 0
        """Signals in the inbox."""
        self.unreadable = ""
        """Which rows of the store could not be read at the start; empty if all could."""
        self.last_beats = LastBeats()
        self._unstored = ChangedKeys()
        """Which beliefs of the engine are to be stored with the next commit."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = NEVER
        self._turn: asyncio.Handle | None = None
        self._writer: asyncio.Task[None] | None = None

    # --- beginning and end ----------------------------------------------------------------------------

    async def start(
        self,
        orders: OrderOutlet,
        events: EventOutlet,
        alerting: AlertRows | None = None,
        canaries: CanaryDoor | None = None,
    ) -> None:
        """Go on where the last hub stopped: its downtime counts for nobody, its open orders are given again. Without a door
        for them canaries show that the loop turns."""
        self._loop = asyncio.get_running_loop()
        self._orders, self._events, self._alerting, self._canaries = orders, events, alerting, canaries
        remembered = await self.store.open(epoch_min=int(self.clock()))
        self.epoch = remembered.epoch
        self._event_id = self.began_after = remembered.event
        unreadable: dict[str, str] = {}
        beliefs = memory.recalled(remembered.beliefs, unreadable)
        self._note_unreadable(unreadable)
        if self.clock() < beliefs.at:
            step = self.clock.go_on_from(beliefs.at + A_MOMENT)
            log.warning(
                "the clock was set back by %.3f s since the last hub; this one goes on from where that one was",
                step,
                extra={"action": "clock_set_back"},
            )
        now = self.clock()
        beliefs.at = beliefs.at or now  # The first hub of all has not been away.
        self.engine = Engine.restore(
            beliefs,
            now,
            self._policies,
            self._fleet,
            epoch=remembered.epoch,
            changes=self._unstored,
        )
        self.engine.canary_comes_by("" if canaries is None else canaries.source)
        self.engine.lives_on(socket.gethostname())
        self._busyness, self._turned_away = self._make_busyness(self.clock()), 0
        await self.audit.recall(remembered.beliefs)
        if alerting is not None:
            alerting.recall(remembered.beliefs)
        self.committer.go_on_from(remembered.page, remembered.event)
        self.ledger.beliefs = self.engine.beliefs
        self.changes = Changes(remembered.epoch)
        self.journal = Journal(remembered.epoch, self.clock())
        self._lapses = self.engine.beliefs.awareness.lapses
        self._lapse = self._lapses[-1] if self._lapses else None
        for kept in remembered.orders:
            order = open_order(kept)
            if order is not None:
                # We give it now: an agent that has heard us would refuse the epoch of the hub before.
                self.give(replace(order, epoch=remembered.epoch))
        self._writer = asyncio.create_task(self._write(), name="lifesigns pages")
        self.look()

    def _note_unreadable(self, rows: Mapping[str, str]) -> None:
        for name, error in rows.items():
            log.error(
                "the row %r of the store cannot be read and is left out: %s",
                name,
                error,
                extra={"action": "row_unreadable"},
            )
        if rows:
            named = ", ".join(sorted(rows)[:ROWS_SHOWN])
            self.unreadable = (
                f"{len(rows)} rows of the store cannot be read: {named}. They are as if they had never been; "
                "restore a backup if they are needed"
            )

    async def stop(self) -> None:
        """Hear what is here, keep everything, let go."""
        if self._gathering:
            await asyncio.sleep(0)  # The doors hand it over now.
        while self._inbox:
            self._drain()
        self.keep_journal()
        self.committer.finish()
        if self._writer is not None:
            away = self.committer.trouble is not None
            await asyncio.wait([self._writer], timeout=AWAY_FOR if away else STOP_FOR)
        self.vanish()
        if self.committer.trouble is None:
            await self._keep_everything()
        else:
            log.error(
                "the last page was not kept: %s", self.committer.trouble, extra={"action": "last_page_lost"}
            )
        await self.store.close()

    def vanish(self) -> None:
        """End as a crash would: nothing more is heard, kept or carried out."""
        for handle in (self._timer, self._turn, self._writer):
            if handle is not None:
                handle.cancel()

    # --- hearing --------------------------------------------------------------------------------------

    def hear(
        self,
        signals: Sequence[Signal],
        at: float | None = None,
        source: str = "",
        led_to: list[Effect] | None = None,
    ) -> bool:
        """Signals arrived now, or just now at that moment. False if there is no room: none of them is taken."""
        return self._wait(Delivery(self.clock() if at is None else at, signals, led_to=led_to, source=source))

    def hear_beats(self, beats: Sequence[Beat], raw: bytes, source: str, at: float) -> bool:
        """Beats arrived just now, in this message. As `hear`; but if nobody waits before them they are heard on the spot,
        while what was decoded is still at hand."""
        encoded = EncodedBatch(raw, source, at) if len(raw) <= BATCH_MAX else None
        if self._inbox or encoded is None or len(beats) > min(TURN_MAX, self._inbox_max):
            return self._wait(Delivery(at, beats, encoded, source=source))
        self.journal.note(at, beats)
        if len(beats) <= PIECE:
            self._hear_beats(beats, at, encoded)
        else:
            self.waiting += len(beats)
            self._inbox.append(Delivery(at, beats, encoded, source=source))
            self._drain()
        if self._timer is None or self.engine.wake_at() < self._timer_at:
            self.ask_turn()
        return True

    def _wait(self, delivery: Delivery) -> bool:
        waiting = self.waiting + len(delivery.signals)
        if waiting > self._inbox_max:
            self.pulse.turned_away += len(delivery.signals)
            return False
        self.waiting = waiting
        self._inbox.append(delivery)
        self.journal.note(delivery.at, delivery.signals)
        self.ask_turn()
        if waiting >= TURN_MAX:
            # Many doors bring more in one round of the loop than a turn takes out: who brings it helps to hear it.
            self._drain()
        return True

    async def keep(self, reports: Sequence[Signal]) -> Sequence[Effect] | None:
        """Hear words, and return what they led to when that is kept: only then are they acknowledged. None if there is no
        room for them."""
        heard: asyncio.Future[None] = self._loop.create_future()
        led_to: list[Effect] = []
        if not self._wait(Delivery(self.clock(), reports, None, heard, led_to)):
            return None
        await heard
        await self.committer.kept()
        return led_to

    def refusal(self, signal: Signal) -> Refusal | None:
        """Why this is not for an agent on the bus to say; None if it is."""
        return refusal(self.engine.beliefs, BUS, signal)

    def put_off(self, source: str) -> None:
        """What this source said was not taken, or waits for long."""
        self.engine.put_off(source, self.clock())

    def begin_gathering(self) -> None:
        """A door has got something that it will hand over in the next round of the loop: until it has done so nobody is
        judged."""
        self._gathering += 1

    def end_gathering(self) -> None:
        self._gathering -= 1

    def ask_turn(self) -> None:
        """Something is here: hear it soon."""
        if self._turn is None:
            self._turn = self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._turn = None
        if self._gathering:
            self.ask_turn()
            return
        self._drain()
        if len(self.last_beats) > len(self.engine.beliefs.agents) + STRAYS_MAX:
            self.last_beats.keep_only(self.engine.beliefs.agents)
        if self._inbox:
            self.ask_turn()
        else:
            self.look()
        if self._lapses and self._lapses[-1] is not self._lapse:
            self._lapse = self._lapses[-1]
            self.journal.lapsed(self._lapse.began_at, self._lapse.ended_at)

    def keep_journal(self) -> None:
        """Write down what was heard, for `lifesigns replay`."""
        self.committer.journal(self.journal.take(self.clock()))

    def _drain(self) -> None:
        """Hear what waits, at the moment it came; not for longer than a turn. Its source pays for it."""
        inbox, room, now = self._inbox, TURN_MAX, thread_time()
        until = now + TURN_FOR
        while inbox and room > 0 and now < until:
            delivery, began, heard = inbox.popleft(), now, 0
            count = len(delivery.signals)
            while True:
                self._hear_piece(delivery, heard, count)
                heard = min(heard + PIECE, count)
                now = thread_time()
                if heard == count or heard >= room or now >= until:
                    break
            if heard < count:
                inbox.appendleft(delivery._replace(signals=delivery.signals[heard:]))
            room -= heard
            self.waiting -= heard
            if delivery.source:
                self.shares.charge_apart(delivery.source, now - began)

    def _hear_piece(self, delivery: Delivery, begin: int, count: int) -> None:
        if count > PIECE:
            last = begin + PIECE >= count
            delivery = delivery._replace(
                signals=delivery.signals[begin : begin + PIECE], heard=delivery.heard if last else None
            )
        if delivery.encoded is not None:
            self._hear_beats(cast("Sequence[Beat]", delivery.signals), delivery.at, delivery.encoded)
        else:
            self._hear_each(delivery)

    def _hear_beats(self, beats: Sequence[Beat], at: float, encoded: EncodedBatch) -> None:
        engine, last_beats = self.engine, self.last_beats
        if at >= engine.wake_at():
            self._look_at_ourselves()
        effects = engine.hear(beats[0], at) if len(beats) == 1 else engine.hear_beats(beats, at)
        for beat in beats:
            last_beats[beat.agent_id] = encoded
        self.pulse.beats += len(beats)
        if effects:
            self._take(effects)

    def _hear_each(self, delivery: Delivery) -> None:
        at, reports = delivery.at, 0
        if at >= self.engine.wake_at():
            self._look_at_ourselves()
        for signal in delivery.signals:
            effects = self.engine.hear(signal, at)
            if isinstance(signal, Report):
                reports += 1
                self._touch(signal, at)
                self.ledger.heard(signal)
            else:
                self.last_beats[signal.agent_id] = SingleBeat(signal, at)
            if effects:
                self._take(effects)
                if delivery.led_to is not None:
                    delivery.led_to.extend(effects)
        self.pulse.reports += reports
        self.pulse.beats += len(delivery.signals) - reports
        if delivery.heard is not None and not delivery.heard.done():
            delivery.heard.set_result(None)

    # --- looking --------------------------------------------------------------------------------------

    def look(self) -> None:
        """Let fall due what is due, and come back when the next thing is."""
        now = self.clock()
        due_at = self.engine.wake_at()
        if due_at <= now:
            self._look_at_ourselves()
            effects = self.engine.advance(now)
            self.pulse.looked(due_at, now, self.clock(), len(effects))
            if effects:
                self._take(effects)
            due_at = self.engine.wake_at()
        if self._timer is not None:
            if due_at == self._timer_at:
                return  # After most turns: a beat moves no deadline forward.
            self._timer.cancel()
            self._timer = None
        if due_at != NEVER:
            self._timer, self._timer_at = (
                self._loop.call_later(max(0.0, due_at - now), self._time_to_look),
                due_at,
            )

    def _look_at_ourselves(self) -> None:
        """Before anybody is judged: did we get to hear all that was sent since we last asked?"""
        now = self.clock()
        if (looked := self._busyness.look(now)) is None:
            return
        since, share = looked
        refused, self._turned_away = self.pulse.turned_away > self._turned_away, self.pulse.turned_away
        self.pulse.busy = min(1.0, share)
        effects = (
            self.engine.fall_behind(since, now)
            if share >= BUSY_SHARE or refused
            else self.engine.catch_up(now)
        )
        if effects:
            self._take(effects)

    def _time_to_look(self) -> None:
        """A deadline: but first everything that is here already."""
        self._timer = None
        self.ask_turn()

    # --- effects --------------------------------------------------------------------------------------

    def _take(self, effects: Sequence[Effect]) -> None:
        """Facts and orders go on the next page. Pings and canaries are worth something only now."""
        events: list[Event] = []
        orders: list[Order] = []
        now = self.clock()
        for effect in effects:
            if isinstance(effect, SendCanary):
                self._send_canary(effect.seq)
            elif isinstance(effect, SendPing):
                self.give(effect)
            else:
                self._touch(effect, now)
                if isinstance(effect, Fact):
                    self._event_id += 1
                    events.append(event_of(self._event_id, effect))
                    self.pulse.told(effect, now)
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

    def give(self, order: Order) -> None:
        """It may be known outside now, if it is still wanted."""
        entry = self.ledger.open(order)
        if entry is not None:
            self._orders.carry_out(entry)

    def _touch(self, what: Report | Effect, now: float) -> None:
        if (agent_id := getattr(what, "agent_id", None)) is not None:
            self.changes.touch(agent_id, now)

    def announce(self, fact: Fact) -> None:
        """Something happened to the hub itself, or a person did it: it is kept and told as the engine's facts are."""
        self._event_id += 1
        self.committer.add([event_of(self._event_id, fact)])

    def _changed(self) -> Sequence[Belief]:
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
        """Let go of what the engine has forgotten, and store what changed without an event."""
        agents = self.engine.beliefs.agents
        if len(self.last_beats) > len(agents):
            self.last_beats.keep_only(agents)
        self.changes.keep_only(agents)
        if self._unstored:
            self.committer.wanted()

    async def _write(self) -> None:
        """One page after the other. What it holds is carried out and told when it is kept, and not before."""
        try:
            while await self.committer.due():
                events, orders = await self.committer.write(self._changed())
                for order in orders:
                    self.give(order)
                if events:
                    self._events.tell(events)
        except AdapterError as error:
            # Another hub has taken over, or the store is beyond repair: we go on watching, and do nothing.
            log.critical(
                "nothing is kept any more: %s",
                error,
                exc_info=error.__cause__,
                extra={"action": "store_lost"},
            )
            self.committer.give_up(error)
        except Exception as error:
            log.exception("nothing is kept any more", extra={"action": "store_lost"})
            self.committer.give_up(AdapterError(f"a bug of lifesigns: {error}", transient=False))

    async def _keep_everything(self) -> None:
        """Every belief as it is now, what beats said since its last page included."""
        beliefs = [*memory.everything(self.engine.snapshot()), *self._alert_rows()]
        seal = self.audit.last_seal(self.clock())
        seals = () if seal is None else (seal,)
        try:
            await self.store.commit(Commit(self.committer.next_number(), beliefs, seals=seals))
        except AdapterError as error:
            log.error("the last page was not kept: %s", error, extra={"action": "last_page_lost"})
        else:
            if seal is not None:
                await asyncio.to_thread(self.audit.put_down, seal)
                self.audit.tell_witnesses(seal)
