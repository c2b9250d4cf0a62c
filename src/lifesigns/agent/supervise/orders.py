"""Orders: what the watch wants done with the child, done once, and its outcome told.

A repeated order gets the same answer again. One of a hub that has been replaced is refused; so is one that means another
life.
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
"""An agent that was cut off finds the hub again within its retries, some seconds apart, and is heard."""
ENDS_WITHIN: Final = 5.0
"""An agent that tells its own crash is still there for a moment. If it stays, it lives."""


class ProcessHandle(Protocol):
    """What can be done with the child."""

    life: Life | None
    last: Life | None
    stopping: Stopping | None

    def stop(self, stopping: Stopping) -> None: ...
    def spare(self, order_id: str) -> None: ...
    def start_now(self, inherited: Handoff, now: float) -> None: ...
    def tell(self, signal_: Signal, now: float) -> None: ...


class OrderHandler:
    """Obeys."""

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
                self._body.spare(order.withdrawn)
            case StopStranger():
                self._replaced(order, now)
            case Respawn():
                self._start(order, now)
            case TurnBreaker():
                self._turn(order, now)
            case _:
                pass  # Everything else is for people, or for an agent that speaks for itself.

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
            # Its silence was ours: we speak for it, we read this, and it runs.
            reason = f"it runs: nothing was heard after beat {order.seq_seen} because we could not be heard"
            failed = TerminationFailed(agent_id=order.agent_id, order_id=order.order_id, reason=reason)
            self._body.tell(failed, now)
        else:
            # Who speaks for itself hears the order too, and has its time to save before it is asked by a signal; or to
            # show that it lives, when it was only not heard: then the order is withdrawn.
            save_for = max(order.save_for, REFUTES_WITHIN) if order.on_silence else order.save_for
            ask_at = now + save_for if life.speaks else now
            self._body.stop(Stopping(order.reason, now, order.save_for, ask_at=ask_at, order=order))

    def _replaced(self, order: StopStranger, now: float) -> None:
        """Our life was replaced elsewhere; not one that we had before."""
        life = self._body.life
        if life is not None and means(order, life.incarnation):
            self._body.stop(Stopping(order.reason, now, self._settings.save_for, order=order))

    def _turn(self, order: TurnBreaker, now: float) -> None:
        """A breaker is in the program itself: one that speaks answers for it, and we must not."""
        life = self._body.life
        if life is None or not means(order, life.incarnation) or not life.speaks:
            reason = "the program that has it does not run, or does not speak"
            word = BreakerNotTurned(agent_id=order.agent_id, order_id=order.order_id, reason=reason)
            self._answer(order, word, now)

    def stopped(self, stopping: Stopping, now: float) -> None:
        """The end that an order wanted has come."""
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
        """It did not even end by force. Should it end later, that is told, too."""
        order = stopping.order
        if isinstance(order, Terminate):
            reason = "it is still there 10 s after SIGKILL"
            failed = TerminationFailed(agent_id=order.agent_id, order_id=order.order_id, reason=reason)
            self._body.tell(failed, now)

    def _start(self, order: Respawn, now: float) -> None:
        """A new life in place of the one that ended; unless that has a successor already."""
        life, last = self._body.life, self._body.last
        if life is not None and life.end is None and self._body.stopping is None:
            if self._waiting is None and order.incarnation == life.incarnation:
                self._waiting, self._waits_until = order, now + ENDS_WITHIN
                return
            reason = f"{life.incarnation} lives already"
        elif life is not None:
            # It was told to end, or its end is known and its last bytes are on their way.
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

    def buried(self, now: float) -> None:
        """The life before is over now: start what waited for that."""
        self._waits_until = math.inf
        order, self._waiting = self._waiting, None
        if order is not None:
            self._start(order, now)

    def wake_at(self) -> float:
        """When the wait for an end is over."""
        return self._waits_until

    def waited(self, now: float) -> None:
        """If the wait is over and the life before is not, it lives."""
        if now < self._waits_until:
            return
        self._waits_until, life = math.inf, self._body.life
        if self._waiting is not None and life is not None and life.end is None:
            self._refuse(self._waiting, f"{life.incarnation} lives already", now)
            self._waiting = None

    def started(self, life: Life, now: float) -> None:
        """A life began; perhaps the one that was ordered."""
        order, self._respawn = self._respawn, None
        if order is not None:
            word = RespawnStarted(
                agent_id=order.agent_id,
                order_id=order.order_id,
                task_id=order.task_id,
                new_incarnation=life.incarnation,
            )
            self._answer(order, word, now)

    def start_failed(self, reason: str, now: float) -> None:
        """The life that was ordered could not begin."""
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
