"""Orders: carries out the watch's orders for the child, each once, and reports the outcomes.

A repeated order gets the same answer again. We refuse orders of a replaced hub, and orders for another life.
"""

from __future__ import annotations

import math
from typing import Final, Protocol

from lifesigns.agent.order_gate import OrderGate, means
from lifesigns.agent.supervise.life import Handoff, Life
from lifesigns.agent.supervise.nudging import Nudge
from lifesigns.agent.supervise.settings import Settings
from lifesigns.agent.supervise.stopping import Stopping
from lifesigns.core.effects import (
    Order,
    Respawn,
    SendNudge,
    SendPing,
    StopStranger,
    Terminate,
    TurnBreaker,
    Withdraw,
)
from lifesigns.core.signals import (
    BreakerNotTurned,
    PongReceived,
    RespawnFailed,
    RespawnStarted,
    Signal,
    TerminationDone,
    TerminationFailed,
)

REFUTES_WITHIN: Final = 15.0
"""A cut-off agent reaches the hub again within its retries, some seconds apart."""
ENDS_WITHIN: Final = 5.0
"""An agent that reports its own crash still runs for a moment. If it stays longer, it lives."""


class ProcessHandle(Protocol):
    """What can be done with the child."""

    life: Life | None
    last: Life | None
    stopping: Stopping | None

    def stop(self, stopping: Stopping) -> None: ...
    def cancel_stop(self, order_id: str) -> None: ...
    def start_now(self, inherited: Handoff, now: float) -> None: ...
    def tell(self, signal_: Signal, now: float) -> None: ...


class OrderHandler:
    """Carries orders out."""

    def __init__(self, settings: Settings, body: ProcessHandle) -> None:
        self._settings = settings
        self._body = body
        self._gate = OrderGate()
        self._respawn: Respawn | None = None
        self._waiting: Respawn | None = None
        self._waits_until = math.inf

    def obey(self, order: Order, now: float) -> None:
        """Do it, or begin to."""
        if self._gate.is_deposed(order):
            return
        if (answer := self._gate.answer_to(order.order_id)) is not None:
            self._body.tell(answer, now)
            return
        match order:
            case SendPing():
                self._ping(order, now)
            case SendNudge():
                self._nudge(order, now)
            case Terminate():
                self._terminate(order, now)
            case Withdraw():
                self._body.cancel_stop(order.withdrawn)
            case StopStranger():
                self._replaced(order, now)
            case Respawn():
                self._start(order, now)
            case TurnBreaker():
                self._turn(order, now)
            case _:
                pass  # All other orders are for people, or for an agent with a sender.

    def _ping(self, order: SendPing, now: float) -> None:
        life = self._body.life
        if life is not None and means(order, life.incarnation) and life.end is None and not life.speaks:
            pong = PongReceived(agent_id=order.agent_id, incarnation=life.incarnation, seq=order.seq)
            self._body.tell(pong, now)

    def _nudge(self, order: SendNudge, now: float) -> None:
        life = self._body.life
        if life is None or life.speaks or not means(order, life.incarnation):
            return
        if not self._gate.is_known(order.order_id):
            life.nudges.append(Nudge(order, self._settings.nudge, now))

    def _terminate(self, order: Terminate, now: float) -> None:
        life = self._body.life
        if life is None:
            self._answer(order, TerminationDone(agent_id=order.agent_id, order_id=order.order_id), now)
        elif not means(order, life.incarnation):
            reason = f"{order.incarnation} is not the life that runs; that is {life.incarnation}"
            failed = TerminationFailed(agent_id=order.agent_id, order_id=order.order_id, reason=reason)
            self._answer(order, failed, now)
        elif order.on_silence and not life.speaks and life.end is None:
            # The silence was ours: we beat for the child, we read this order, and the child runs.
            reason = f"it runs: nothing was heard after beat {order.seq_seen} because we could not be heard"
            failed = TerminationFailed(agent_id=order.agent_id, order_id=order.order_id, reason=reason)
            self._body.tell(failed, now)
        else:
            # A child with a sender hears the order too, and has time to save before we send a signal; or to show that
            # it lives, if it was only silent: then the hub withdraws the order.
            save_for = max(order.save_for, REFUTES_WITHIN) if order.on_silence else order.save_for
            ask_at = now + save_for if life.speaks else now
            self._body.stop(Stopping(order.reason, now, order.save_for, ask_at=ask_at, order=order))

    def _replaced(self, order: StopStranger, now: float) -> None:
        """Our current life was replaced elsewhere, not an earlier one."""
        life = self._body.life
        if life is not None and means(order, life.incarnation):
            self._body.stop(Stopping(order.reason, now, self._settings.save_for, order=order))

    def _turn(self, order: TurnBreaker, now: float) -> None:
        """A breaker is in the program itself: a sender in there answers, and we must not."""
        life = self._body.life
        if life is None or not means(order, life.incarnation) or not life.speaks:
            reason = "the program that has it does not run, or does not speak"
            word = BreakerNotTurned(agent_id=order.agent_id, order_id=order.order_id, reason=reason)
            self._answer(order, word, now)

    def stopped(self, stopping: Stopping, now: float) -> None:
        """The child has ended as ordered."""
        order, last = stopping.order, self._body.last
        if isinstance(order, Terminate):
            done = TerminationDone(
                agent_id=order.agent_id,
                incarnation=order.incarnation,
                order_id=order.order_id,
                checkpoint_id=last.checkpoint() if last is not None else None,
                forced=stopping.forced,
            )
            self._answer(order, done, now)

    def stop_failed(self, stopping: Stopping, now: float) -> None:
        """Not even force ended it. If it ends later, we report that, too."""
        order = stopping.order
        if isinstance(order, Terminate):
            reason = "it is still there 10 s after SIGKILL"
            failed = TerminationFailed(agent_id=order.agent_id, order_id=order.order_id, reason=reason)
            self._body.tell(failed, now)

    def _start(self, order: Respawn, now: float) -> None:
        """Start a new life in place of the ended one, unless that already has a successor."""
        life, last = self._body.life, self._body.last
        if life is not None and life.end is None and self._body.stopping is None:
            if self._waiting is None and order.incarnation == life.incarnation:
                self._waiting, self._waits_until = order, now + ENDS_WITHIN
                return
            reason = f"{life.incarnation} lives already"
        elif life is not None:
            # It was asked to end, or it has ended and its last bytes are on their way.
            self._waiting, self._waits_until = order, math.inf
            return
        elif last is None or not means(order, last.incarnation):
            reason = f"{order.incarnation} is not the life that ended here"
        else:
            self._respawn = order
            inherited = Handoff(order.attempt + 1, order.new_incarnation, order.checkpoint_id, order.handoff)
            self._body.start_now(inherited, now)
            return
        self._refuse(order, reason, now)

    def child_ended(self, now: float) -> None:
        """The previous life is over: start the one that waited for it."""
        self._waits_until = math.inf
        order, self._waiting = self._waiting, None
        if order is not None:
            self._start(order, now)

    def wake_at(self) -> float:
        """When the wait for an end is over."""
        return self._waits_until

    def waited(self, now: float) -> None:
        """If the wait is over and the previous life is not, it lives."""
        if now < self._waits_until:
            return
        self._waits_until, life = math.inf, self._body.life
        if self._waiting is not None and life is not None and life.end is None:
            self._refuse(self._waiting, f"{life.incarnation} lives already", now)
            self._waiting = None

    def started(self, life: Life, now: float) -> None:
        """A life began, perhaps the ordered one."""
        order, self._respawn = self._respawn, None
        if order is not None:
            self._answer(order, RespawnStarted(agent_id=order.agent_id, order_id=order.order_id), now)

    def start_failed(self, reason: str, now: float) -> None:
        """The ordered life could not begin."""
        order, self._respawn = self._respawn, None
        if order is not None:
            self._refuse(order, reason, now)

    def _refuse(self, order: Respawn, reason: str, now: float) -> None:
        self._answer(
            order, RespawnFailed(agent_id=order.agent_id, order_id=order.order_id, reason=reason), now
        )

    def _answer(self, order: Order, word: Signal, now: float) -> None:
        self._gate.answered(order.order_id, word)
        self._body.tell(word, now)
