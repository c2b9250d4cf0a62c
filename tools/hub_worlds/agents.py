"""Agents that do nothing wrong, until they die. Each writes down what it was told, and under which epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from lifesigns import wire
from lifesigns.agent.order_gate import OrderGate, means
from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.wire import subjects

if TYPE_CHECKING:
    from tools.hub_worlds.world import World

ANSWER_WITHIN: Final = 5.0
RETRY_AFTER: Final = 1.0
"""As `agent/sender` does."""


@dataclass(slots=True)
class Obeyed:
    """A line of the ledger."""

    at: float
    order: e.Order


class Agent:
    """One life. Over the bus, or over HTTP to any hub."""

    def __init__(self, world: World, name: str, zone: str, *, over_bus: bool) -> None:
        self._world = world
        self.id = name
        self.zone = zone
        self.over_bus = over_bus
        self.incarnation = f"{name}.1"
        self.alive = False
        self.died_at = inf
        self.ledger: list[Obeyed] = []
        self._gate = OrderGate()
        self._seq = 0
        self._number = 0
        self._unkept: dict[int, bytes] = {}
        self._hubs = world.chance.sample(world.hub_names, len(world.hub_names))
        self._relay = f"relay:{name}"
        world.network.place(name, zone)

    def start(self, _: object = None) -> None:
        self.alive = True
        if self.over_bus:
            ending = subjects.ending(self.id)
            self._world.bus.subscribe(f"{subjects.ORDERS}.{ending}", self.id, self._order_came)
            self._world.bus.subscribe(f"{subjects.KEPT}.{self._relay}.{ending}", self.id, self._kept)
        self.say(s.AgentRegistered(agent_id=self.id, incarnation=self.incarnation, host=f"host-{self.id}"))
        self._beat_on()

    def die(self) -> None:
        self.alive, self.died_at = False, self._world.now

    # --- speaking -------------------------------------------------------------------------------------

    def _beat_on(self, _: object = None) -> None:
        if not self.alive:
            return
        self.beat()
        self._repeat()
        self._world.at(self._world.now + self._world.interval, self._beat_on)

    def beat(self) -> None:
        self._seq += 1
        beat = s.BeatReceived(self.id, self._seq, self.incarnation, loop_lag_ms=2.0, host=f"host-{self.id}")
        raw = wire.encode_beat(beat)
        if self.over_bus:
            self._world.bus.publish(self.id, f"{subjects.BEATS}.{subjects.ending(self.id)}", raw)
        else:
            self._post(raw, 0)

    def _beat_again(self, _: object) -> None:
        if self.alive:
            self.beat()

    def say(self, signal: s.Signal) -> None:
        """Once, and again until it is kept."""
        self._number += 1
        self._unkept[self._number] = wire.encode_signal(signal)
        self._send(self._number)

    def _send(self, number: int) -> None:
        raw = self._unkept[number]
        if self.over_bus:
            subject = f"{subjects.REPORTS}.{self._relay}.{number}.{subjects.ending(self.id)}"
            self._world.bus.publish(self.id, subject, raw)
        else:
            self._post(raw, number)

    def _repeat(self) -> None:
        for number in [*self._unkept][:3]:
            self._send(number)

    def _kept(self, _subject: str, payload: bytes) -> None:
        self._unkept.pop(int(payload), None)

    def _post(self, raw: bytes, number: int) -> None:
        """To the hub that answered last, or the next one in turn. A number belongs to a report."""
        world, hub = self._world, self._hubs[0]

        def answered(orders: Sequence[bytes] | None) -> None:
            if orders is None:
                if self._hubs[0] == hub:
                    self._hubs.append(self._hubs.pop(0))
                    if self.alive:
                        world.at(world.now + RETRY_AFTER, self._beat_again)
                return
            self._unkept.pop(number, None)
            for order in orders:
                self._order_came("", order)

        world.post(self.id, hub, raw, beats=not number, within=ANSWER_WITHIN, answered=answered)

    # --- obeying --------------------------------------------------------------------------------------

    def _order_came(self, _subject: str, raw: bytes) -> None:
        order = wire.decode_order(raw)
        if not self.alive or not means(order, self.incarnation) or isinstance(order, e.Respawn):
            return
        if self._gate.is_deposed(order):
            return
        if self._gate.is_known(order.order_id):
            if (answer := self._gate.answer_to(order.order_id)) is not None:
                self.say(answer)
            return
        self.ledger.append(Obeyed(self._world.now, order))
        self._world.laws.obeyed(self, order)
        self._carry_out(order)

    def _carry_out(self, order: e.Order) -> None:
        match order:
            case e.SendPing():
                self.say(s.PongReceived(agent_id=self.id, incarnation=self.incarnation, seq=order.seq))
                self.beat()
            case e.SendNudge():
                delivered = s.NudgeDelivered(
                    agent_id=self.id, incarnation=self.incarnation, order_id=order.order_id
                )
                self._gate.answered(order.order_id, delivered)
                self.say(delivered)
                self.say(
                    s.NudgeAnswered(
                        agent_id=self.id,
                        incarnation=self.incarnation,
                        nudge_id=order.order_id,
                        answer=s.Answer.PROGRESS,
                    )
                )
            case e.Terminate() if order.on_silence:
                refused = s.TerminationFailed(
                    agent_id=self.id, incarnation=self.incarnation, order_id=order.order_id, reason="it lives"
                )
                self._gate.answered(order.order_id, refused)
                self.say(refused)
                self.beat()
            case e.Terminate() | e.StopStranger():
                self._world.laws.stopped(self, order)
            case e.Withdraw():
                self._gate.is_known(order.withdrawn)
            case _:
                pass
