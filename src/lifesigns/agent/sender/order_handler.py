"""Order handler: what a sender does with the orders its gate lets through.

Under `lifesigns run` the sender hears a stop and leaves it for the supervisor, which can force it and reports the
outcome: if we took the order, a supervisor that looks a moment later would not find it.

Everything here runs in the relay's thread and waits for nothing: it answers pings at once, queues nudges for the
agent, and gives a stop a thread of its own.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final

from lifesigns.agent import identity
from lifesigns.agent.order_gate import OrderGate, means
from lifesigns.agent.sender.beat_builder import text
from lifesigns.agent.sender.breaker_reports import BreakerReports
from lifesigns.agent.sender.callbacks import Callback, call, until_done
from lifesigns.agent.sender.nudges import Nudge, Nudges
from lifesigns.agent.sender.session import AgentSession
from lifesigns.agent.sender.stopping import END_FOR, Stop, StopAction, StopFlag
from lifesigns.core import signals as s
from lifesigns.core.effects import (
    AskBack,
    AskStatus,
    OfferTask,
    Order,
    Remind,
    Respawn,
    SendNudge,
    SendPing,
    SetInterval,
    StopStranger,
    Terminate,
    TurnBreaker,
    Withdraw,
)
from lifesigns.core.signals import Answer

log: Final = logging.getLogger("lifesigns.sender")

_saving: ContextVar[bool] = ContextVar("saving", default=False)
"""Inside the agent's save hook. If that closes its sender, the close must not wait for the hook."""


class OrderHandler:
    """Carries orders out, for one life."""

    def __init__(
        self,
        session: AgentSession,
        breakers: BreakerReports,
        on_nudge: Callback[Nudge] | None,
        on_stop: Callback[Stop] | None,
        *,
        policy: Mapping[str, object] | None = None,
        supervised: bool = False,
    ) -> None:
        self.nudges = Nudges(None if on_nudge is None else self._telling(on_nudge))
        self.stopping = StopFlag()
        self._session = session
        self._breakers = breakers
        self._on_stop = on_stop
        self.policy = policy
        self._supervised = supervised
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ender: StopAction | None = None
        self._saved: Future[str | None] = Future()
        self._gate = OrderGate()
        self.on_task_order: Callback[OfferTask | AskBack] | None = None
        """What a worker does that is offered a task, or asked for one."""

    def listen(self, loop: asyncio.AbstractEventLoop | None, ender: StopAction) -> None:
        """The agent starts, with its loop, if it has one, and the way to end it."""
        self._loop, self._ender = loop, ender
        if loop is not None:
            self.nudges.attach_loop(loop)

    def introduce(self) -> None:
        """What a hub should know before the first beat, and again when the way to it was lost."""
        builder = self._session.builder
        self._say(
            s.AgentRegistered,
            role=builder.role,
            host=builder.host,
            task_id=builder.task,
            policy=self.policy,
            follows_interval=True,
        )
        self._breakers.tell_all()

    def obey(self, order: Order) -> bool:
        """Carry it out, if it is for us, new, and from the current hub. False if it is (also) for a supervisor or
        another life."""
        if not means(order, self._session.incarnation) or isinstance(order, Respawn):
            return False
        if self._gate.is_deposed(order):
            self._session.refused_orders += 1
            return True
        taken = not (self._supervised and isinstance(order, Terminate | Withdraw))
        if not self._gate.is_known(order.order_id):
            self._carry_out(order)
        return taken

    def _carry_out(self, order: Order) -> None:
        match order:
            case SendPing():
                self.pinged(order)
            case SetInterval():
                self._session.follow_interval(order.interval)
            case SendNudge():
                self.nudged(order)
            case AskStatus():
                self.asked(order)
            case Remind():
                self.reminded(order)
            case Terminate() | StopStranger():
                self.told_to_stop(order)
            case TurnBreaker():
                self.told_to_turn(order)
            case OfferTask() | AskBack():
                self.asked_to_move(order)
            case Withdraw():
                self._gate.is_known(order.withdrawn)  # We do not obey it if it comes after this.
            case _:
                pass  # An order of a newer hub version.

    # --- pings and nudges -----------------------------------------------------------------------------------------

    def pinged(self, ping: SendPing) -> None:
        """Answer at once, and with a beat too: an answer may wait behind a report, or get lost. No status: that would
        count as the agent's statement about its task.

        A hub that pings may have missed our announcement and rhythm, so we repeat them.
        """
        session = self._session
        session.beat_faster()
        session.due_at = 0.0
        self._say(s.PongReceived, seq=ping.seq, task_id=session.builder.task)
        self.introduce()
        session.hurry()

    def nudged(self, nudge: SendNudge) -> None:
        self._session.beat_faster()
        self._say(s.NudgeDelivered, order_id=nudge.order_id)
        self.nudges.add(self._nudge(nudge.order_id, nudge.text, attempt=nudge.attempt))

    def asked(self, question: AskStatus) -> None:
        self._session.beat_faster()
        self.nudges.add(self._nudge(question.order_id, question.text, task_id=question.task_id))

    def reminded(self, reminder: Remind) -> None:
        self._session.beat_faster()
        self.nudges.add(self._nudge(reminder.order_id, reminder.text))

    def _nudge(self, nudge_id: str, words: str, *, attempt: int = 1, task_id: str | None = None) -> Nudge:
        return Nudge(
            nudge_id,
            words,
            attempt=attempt,
            task_id=task_id,
            say_seen=lambda seen: self._say(s.NudgeSeen, nudge_id=seen),
            say_answer=self._say_answer,
        )

    def _say_answer(self, nudge_id: str, answer: Answer, note: str) -> None:
        self._say(s.NudgeAnswered, nudge_id=nudge_id, answer=answer, note=note)

    def _telling(self, on_nudge: Callback[Nudge]) -> Callable[[Nudge], None]:
        """The callback; reports `seen` when it really begins."""

        async def run(nudge: Nudge) -> None:
            nudge.seen()
            outcome = on_nudge(nudge)
            if inspect.isawaitable(outcome):
                await outcome

        def run_plain(nudge: Nudge) -> None:
            nudge.seen()
            on_nudge(nudge)

        taken = run if inspect.iscoroutinefunction(on_nudge) else run_plain
        return lambda nudge: _ignore(call(taken, nudge, self._loop))

    def asked_to_move(self, order: OfferTask | AskBack) -> None:
        if self.on_task_order is not None:
            _ignore(call(self.on_task_order, order, self._loop))

    # --- breakers -----------------------------------------------------------------------------------------------

    def told_to_turn(self, order: TurnBreaker) -> None:
        """Report the new state first, then the outcome: a reader of the outcome can already see the state."""
        if self._breakers.turn(order.name, order.act):
            log.info(
                "%s: %s of breaker %r, by %s",
                self._session.agent_id,
                order.act,
                order.name,
                order.by or "the hub",
                extra={"action": "breaker_turned"},
            )
            self._say(s.BreakerTurned, order_id=order.order_id)
        else:
            reason = f"there is no breaker {order.name!r} in the agent's process"
            self._say(s.BreakerNotTurned, order_id=order.order_id, reason=reason)

    # --- stop ---------------------------------------------------------------------------------------------------

    def told_to_stop(self, order: Terminate | StopStranger) -> None:
        if isinstance(order, Terminate) and order.on_silence:
            self._refute(order)
            return
        if isinstance(order, Terminate):
            stop = Stop(order.order_id, order.reason, order.save_for, order.by)
        else:
            stop = Stop(order.order_id, order.reason, 0.0, replaced=True)
        if self.stopping.set(stop):
            if self._supervised and not stop.replaced:
                identity.mark_told_to_stop(self._session.agent_id)
            threading.Thread(target=self._stop, args=(stop,), name="lifesigns-stop", daemon=True).start()

    def _refute(self, order: Terminate) -> None:
        """The hub wants us to end because it hears nothing of us. We read this, so we live: refuse, and beat at once."""
        session = self._session
        reason = f"it lives: beat {session.seq} is out, and the order knows of none after {order.seq_seen}"
        log.warning("%s: a stop is refused: %s", session.agent_id, reason, extra={"action": "stop_refused"})
        session.refused_orders += 1
        session.beat_faster()
        self._say(s.TerminationFailed, order_id=order.order_id, reason=reason)
        self._say(s.PongReceived, seq=0, task_id=session.builder.task)
        self.introduce()
        session.hurry()

    def _stop(self, stop: Stop) -> None:
        """Save, then end, then check that it ended."""
        self._saved.set_result(None if stop.replaced else self._save(stop))
        if self._ender is not None:
            self._ender.end(stop)
        with suppress(NotInTime):
            self._session.gone.result(END_FOR)
            return
        # A supervisor has harder means, and reports their outcome.
        if not stop.replaced and not self._supervised:
            reason = f"it was asked to stop and still runs {END_FOR:g} s after it has saved"
            self._say(s.TerminationFailed, order_id=stop.order_id, reason=reason)

    def _save(self, stop: Stop) -> str | None:
        """What the agent's save hook returns, within its time."""
        if self._on_stop is None:
            return None
        until = time.monotonic() + stop.save_for
        try:
            saved = call(self._hook(self._on_stop), stop, self._loop).result(until - time.monotonic())
        except NotInTime:
            log.error("%s: the save hook took longer than %g s", self._session.agent_id, stop.save_for)
            return None
        except BaseException:  # noqa: BLE001 -- the agent's code; `call` has logged it, and the agent ends anyway
            return None
        if not isinstance(saved, str) or not saved:
            return None
        checkpoint, task = text(saved), self._session.builder.task
        self._session.builder.checkpoint_at = time.time()
        self._say(s.CheckpointSaved, checkpoint_id=checkpoint, task_id=task)
        return checkpoint

    def _hook(self, on_stop: Callback[Stop]) -> Callback[Stop]:
        async def run(stop: Stop) -> object:
            _saving.set(True)
            outcome = on_stop(stop)
            return await outcome if inspect.isawaitable(outcome) else outcome

        def run_plain(stop: Stop) -> object:
            _saving.set(True)
            return on_stop(stop)

        return run if inspect.iscoroutinefunction(on_stop) else run_plain

    def report_stopped(self) -> None:
        """The agent ends now: if a termination asked for it, that order is carried out."""
        stop = self.stopping.stop
        if stop is not None and not stop.replaced:
            saved = self._saved.result() if self._saved.done() else None
            self._say(s.TerminationDone, order_id=stop.order_id, checkpoint_id=saved)

    def wait_until_saved(self) -> None:
        """An agent that ends on request must not end before its save hook is done."""
        stop = self.stopping.stop
        if stop is not None and not _saving.get():
            with suppress(NotInTime):
                self._saved.result(stop.save_for + 1.0)

    async def until_saved(self) -> None:
        """`wait_until_saved` for coroutines."""
        stop = self.stopping.stop
        if stop is not None and not _saving.get():
            await until_done(self._saved, stop.save_for + 1.0)

    # --- parts --------------------------------------------------------------------------------------------------

    def _say(self, kind: Callable[..., s.Report], **values: object) -> None:
        session = self._session
        session.say(kind(agent_id=session.agent_id, incarnation=session.incarnation, **values))


def _ignore(outcome: Future[Any]) -> None:
    """Its errors are logged where they happen."""
