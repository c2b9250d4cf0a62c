"""The hub's loop: drain what came in, let the engine judge, keep the page, carry out what was kept.

One event loop, one thread; the doors run on the same loop and give what they decoded to `hear`. Signals wait in a
bounded inbox and are taken from it in turns short enough for everybody else to get theirs. Nobody is judged while
anything waits: deadlines are looked at when the inbox is empty, so that a beat which is here counts.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from lifesigns.core.agent import NEVER
from lifesigns.core.effects import Effect, Fact, Order, Poisoned, SendCanary, SendPing
from lifesigns.core.engine import Engine
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import Signal, Word
from lifesigns.errors import AdapterError
from lifesigns.hub import memory, telling
from lifesigns.hub.clock import Clock, steady_clock
from lifesigns.hub.orders import kept_order, open_order, settled_by
from lifesigns.hub.pages import Pages
from lifesigns.hub.pulse import Pulse
from lifesigns.ports import Belief, Event, Page, Store

TURN_MAX: Final = 4000
"""Signals heard before the loop gets back to its sockets: some ten milliseconds."""

STOP_FOR: Final = 10.0
"""How long a page may take when the hub ends; a store that is away is not waited for longer."""

log = logging.getLogger("lifesigns.hub")


class Hub:
    """Runs the engine. `carry_out` is given orders when they are kept, `tell` the events."""

    def __init__(
        self,
        store: Store,
        *,
        carry_out: Callable[[Order], None],
        tell: Callable[[Sequence[Event]], None],
        send_canary: Callable[[int], None],
        policies: PolicyBook | None = None,
        fleet: FleetPolicy | None = None,
        clock: Clock | None = None,
        inbox_max: int = 200_000,
    ) -> None:
        self.store = store
        self.clock = clock or steady_clock()
        self.pulse = Pulse()
        self._policies = policies or PolicyBook()
        self._fleet = fleet or FleetPolicy()
        self._carry_out = carry_out
        self._tell = tell
        self._send_canary = send_canary
        self._inbox: deque[tuple[float, Signal | asyncio.Future[None]]] = deque()
        """What came in and when; between them the bookmarks of those who wait for what stands before."""
        self._inbox_max = inbox_max
        self._touched = memory.Touched()
        self._timer: asyncio.TimerHandle | None = None
        self._turn: asyncio.Handle | None = None
        self._writer: asyncio.Task[None] | None = None

    # --- beginning and end ----------------------------------------------------------------------------

    async def start(self) -> None:
        """Go on where the last hub stopped: its downtime counts for nobody, its open orders are given again."""
        self._loop = asyncio.get_running_loop()
        remembered = await self.store.open()
        self.epoch = remembered.epoch
        self._event_id = remembered.event
        self.engine = Engine.restore(
            memory.recalled(remembered.beliefs),
            self.clock(),
            self._policies,
            self._fleet,
            epoch=remembered.epoch,
        )
        self.pages = Pages(
            self.store, remembered.page, beliefs=self._changed, kept=self._page_kept, encode=kept_order
        )
        for kept in remembered.orders:
            order = open_order(kept)
            if order is not None:
                self._carry_out(order)
        self._writer = asyncio.create_task(self._write(), name="lifesigns pages")
        self.look()

    async def stop(self) -> None:
        """Hear what is here, keep everything, let go."""
        while self._inbox:
            self._drain()
        self.pages.finish()
        if self._writer is not None:
            await asyncio.wait([self._writer], timeout=STOP_FOR)
        self.vanish()
        if self.pages.trouble is None:
            await self._keep_everything()
        else:
            log.error(
                "the last page was not kept: %s", self.pages.trouble, extra={"action": "last_page_lost"}
            )
        await self.store.close()

    def vanish(self) -> None:
        """End as a crash would: nothing more is heard, kept or carried out."""
        for handle in (self._timer, self._turn, self._writer):
            if handle is not None:
                handle.cancel()

    # --- hearing --------------------------------------------------------------------------------------

    def hear(self, signals: Sequence[Signal]) -> bool:
        """Signals arrived now. False if there is no room: none of them is taken."""
        if len(self._inbox) + len(signals) > self._inbox_max:
            self.pulse.turned_away += len(signals)
            return False
        now = self.clock()
        self._inbox.extend((now, signal) for signal in signals)
        if self._turn is None:
            self._turn = self._loop.call_soon(self._take_turn)
        return True

    async def keep(self, words: Sequence[Signal]) -> bool:
        """Hear words, and return when what they changed is kept: only then are they acknowledged."""
        if not self.hear(words):
            return False
        heard: asyncio.Future[None] = self._loop.create_future()
        self._inbox.append((0.0, heard))
        await heard
        await self.pages.kept()
        return True

    @property
    def waiting(self) -> int:
        """Signals in the inbox."""
        return len(self._inbox)

    def _take_turn(self) -> None:
        self._turn = None
        self._drain()
        if self._inbox:
            self._turn = self._loop.call_soon(self._take_turn)
        else:
            self.look()

    def _drain(self) -> None:
        """Hear what waits, at the moment it came; not for longer than a turn."""
        inbox, hear, pulse = self._inbox, self.engine.hear, self.pulse
        for _ in range(min(len(inbox), TURN_MAX)):
            at, signal = inbox.popleft()
            if isinstance(signal, asyncio.Future):
                if not signal.done():
                    signal.set_result(None)
                continue
            effects = hear(signal, at)
            if isinstance(signal, Word):
                pulse.words += 1
                self._touched.by(signal)
                if (order_id := settled_by(signal)) is not None:
                    self.pages.settle(order_id)
            else:
                pulse.beats += 1
            if effects:
                self._take(effects)

    # --- looking --------------------------------------------------------------------------------------

    def look(self) -> None:
        """Let fall due what is due, and come back when the next thing is."""
        now = self.clock()
        due_at = self.engine.wake_at()
        if due_at <= now:
            self.pulse.looked(now - due_at)
            effects = self.engine.advance(now)
            if effects:
                self._take(effects)
            due_at = self.engine.wake_at()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due_at != NEVER:
            self._timer = self._loop.call_later(max(0.0, due_at - now), self._time_to_look)

    def _time_to_look(self) -> None:
        """A deadline: but first everything that is here already."""
        self._timer = None
        if self._turn is None:
            self._turn = self._loop.call_soon(self._take_turn)

    # --- effects --------------------------------------------------------------------------------------

    def _take(self, effects: Sequence[Effect]) -> None:
        """Facts and orders go on the next page. Pings and canaries are worth something only now."""
        events: list[Event] = []
        orders: list[Order] = []
        for effect in effects:
            if isinstance(effect, SendCanary):
                self._send_canary(effect.seq)
            elif isinstance(effect, SendPing):
                self._carry_out(effect)
            else:
                self._touched.by(effect)
                if isinstance(effect, Fact):
                    self._event_id += 1
                    events.append(telling.event(self._event_id, effect))
                    self.pulse.told(effect, self.clock())
                    if isinstance(effect, Poisoned):
                        log.error("%s: %s", effect.agent_id, effect.error, extra={"action": "agent_poisoned"})
                else:
                    orders.append(effect)
        if events or orders:
            self.pages.add(events, orders)

    def _changed(self) -> Sequence[Belief]:
        return self._touched.take(self.engine.snapshot())

    def _page_kept(self, events: Sequence[Event], orders: Sequence[Order]) -> None:
        for order in orders:
            self._carry_out(order)
        if events:
            self._tell(events)

    async def _write(self) -> None:
        try:
            await self.pages.write_on()
        except AdapterError as error:
            # Another hub has taken over, or the store is beyond repair: we go on watching, and do nothing.
            log.critical("nothing is kept any more: %s", error, extra={"action": "store_lost"})

    async def _keep_everything(self) -> None:
        """Every belief as it is now, what beats said since its last page included."""
        beliefs = list(memory.everything(self.engine.snapshot()))
        try:
            await self.store.commit(Page(self.pages.next_number(), beliefs))
        except AdapterError as error:
            log.error("the last page was not kept: %s", error, extra={"action": "last_page_lost"})
