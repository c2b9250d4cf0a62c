"""Monitor: the hub's side. The real engine, a store that forgets nothing that matters, and their failures.

It can stall (read nothing for a while, then everything at once), restart (come back from the bytes of its snapshot,
under a new epoch), be killed between storing an order and carrying it out, and get a clock that jumps. The world
carries its orders out after its effects are stored, as by design; after a restart it repeats orders without an
outcome, as the hub does.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from lifesigns.core import effects as e
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.engine import Engine
from lifesigns.core.signals import BeatReceived, OrderOutcome, Signal
from lifesigns.hub.order_ledger import awaited

if TYPE_CHECKING:
    from lifesigns.simulation.world import World

SHAKEN_FOR: Final = 600.0
"""After an outage of its own the monitor's waits are longer: a score of 8 takes 4 minutes to fall, and more
may have been added to it."""

CRASHED_FOR: Final = (1.0, 60.0)
"""How long it is away after a crash, until it is started again."""

ACTS: Final = (e.SendNudge, e.Escalate, e.Terminate, e.VerifyCheckpoint, e.Respawn)

READING: Final = 20e-6
"""How long the monitor takes to read one signal of a backlog."""


class Monitor:
    """Runs the engine, stores, dispatches."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.engine = Engine(world.policies, world.fleet)
        self.engine.has_zones(world.zones.others)
        self.offset = 0.0
        """Its clock minus the world's."""
        self._wall = 0.0
        """By how much wall clocks were moved in total."""
        self.never_before = -inf
        self.stalled = False
        self.down = False
        self.deaf_since = inf
        """Since when it last stood still or was away."""
        self.shaken_until = -inf
        self.epoch = 1
        self._inbox: list[Signal] = []
        self._doomed = False
        self._given: dict[str, e.Order] = {}
        """Orders whose outcome has not come back."""
        self._snapshot: bytes | None = None
        self._unsaved: list[Signal] = []
        """Signals since the snapshot. Reports are acknowledged when stored, so senders repeat these."""

    @property
    def listening(self) -> bool:
        return not (self.stalled or self.down)

    def hear(self, signal: Signal) -> None:
        """A signal arrived now."""
        if self.listening:
            self._read(signal, self._world.now + self.offset)
        elif self.stalled:
            copy = replace(signal) if isinstance(signal, BeatReceived) else signal
            self._inbox.append(copy)

    def _read(self, signal: Signal, now: float) -> None:
        if isinstance(signal, OrderOutcome):
            self._given.pop(signal.order_id, None)
        if self._snapshot is not None and not isinstance(signal, BeatReceived):
            self._unsaved.append(signal)
        effects = self.engine.hear(signal, now)
        if effects:
            self.take(effects)

    def take(self, effects: Sequence[e.Effect]) -> None:
        """Store, then carry out."""
        world = self._world
        for witness in world.witnesses:
            witness(effects)
        orders = [effect for effect in effects if isinstance(effect, e.Order)]
        self._given |= {
            order.order_id: order
            for order in orders
            if not isinstance(order, e.SendPing | e.SetInterval | e.AskSecondOpinion)
        }
        dies = self._doomed and any(isinstance(order, ACTS) for order in orders)
        if self._snapshot is not None or dies:
            self.save()  # Beliefs, facts and orders are one transaction.
        if dies:
            self._doomed = False
            world.at(world.now, world.strikes.go_down, CRASHED_FOR)
        for effect in effects:
            if isinstance(effect, e.Order):
                if not dies:
                    world.dispatch(effect)
            elif isinstance(effect, e.SendCanary):
                world.send_canary(effect)
            elif isinstance(effect, e.FindingOpened):
                world.scorer.check_finding(effect)
            elif isinstance(effect, e.FindingClosed):
                world.agent(effect.agent_id).accused_of.discard(effect.kind)
            elif isinstance(effect, e.Recovery):
                world.counts.recovery(effect, over=not world.agent(effect.agent_id).running)
            elif isinstance(effect, e.NeedsHuman):
                world.operators.needed(effect)

    # --- bad days -----------------------------------------------------------------------------------

    def stall(self) -> None:
        self.stalled, self.deaf_since = True, self._world.now
        self._world.monitor_changed()

    def wake(self, slept_for: float) -> None:
        """Read everything that arrived meanwhile, then judge."""
        self.stalled = False
        self._shaken(slept_for, asleep=True)
        inbox, self._inbox = self._inbox, []
        now = self._world.now + self.offset
        for number, signal in enumerate(inbox):
            self.never_before = max(self.never_before, now + number * READING)
            self._read(signal, now + number * READING)

    def save(self) -> None:
        """Store beliefs as a real store would: as bytes."""
        self._snapshot = msgspec.msgpack.encode(self.engine.snapshot())
        self._unsaved.clear()

    def go_down(self) -> None:
        self.down, self.deaf_since = True, self._world.now
        self._world.monitor_changed()

    def doom(self) -> None:
        """It dies before it carries out its next order."""
        self._doomed = True

    def come_back(self, away_for: float) -> None:
        assert self._snapshot is not None
        beliefs = msgspec.msgpack.decode(self._snapshot, type=Beliefs)
        self._snapshot = None
        self.epoch += 1
        step = max(0.0, self._wall - self.offset)
        self.offset += step
        now = self._world.now + self.offset
        self.engine = Engine.restore(beliefs, now, self._world.policies, self._world.fleet, epoch=self.epoch)
        self.engine.has_zones(self._world.zones.others)
        self.down = False
        self._shaken(away_for + step, asleep=False)
        self._give_again(now)
        unsaved, self._unsaved = self._unsaved, []
        for signal in unsaved:
            self.hear(signal)

    def waits_for(self, order: e.Order) -> bool:
        """Whether an order still waits for its agent."""
        return awaited(order, self.engine.beliefs, self._world.monitor_now)

    def _give_again(self, now: float) -> None:
        """Earlier orders without an outcome."""
        for order in list(self._given.values()):
            if awaited(order, self.engine.beliefs, now):
                self._world.hand_over(replace(order, epoch=self.epoch))
            else:
                del self._given[order.order_id]
                self._world.invariants.withdrawn(order)

    def _shaken(self, away_for: float, *, asleep: bool) -> None:
        self._world.scorer.excuse(away_for, asleep=asleep)
        self._world.monitor_changed()

    def jump(self, by: float) -> None:
        """Set the wall clock. A hub reads it at its start, counts on from there by itself, and never goes back
        (`hub/clock.py`)."""
        self._wall += by
