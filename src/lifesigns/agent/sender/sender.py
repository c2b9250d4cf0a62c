"""Sender: one line, and an agent is watched.

    async with lifesigns.Sender("coder-7", hub="http://127.0.0.1:8710", task="t-19") as life:
        life.progress("12/40 files")
        with life.tool("grep", {"pattern": "x"}) as call:
            call.result(...)

It beats from a thread of its own, so the hub sees a frozen loop instead of silence. The law: no call here waits, and
none raises because of the network. A value that makes no sense raises `UsageError` at the call that brought it.

This file is the entry point. Reports are in `agent/reporting.py`, `beat_builder.py` and `calls.py`, sending in
`session.py`, `relay.py` and `relay_loop.py`, orders in `order_handler.py`, `nudges.py` and `stopping.py`, the end in
`shutdown.py`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Final, Self

from lifesigns.agent import identity
from lifesigns.agent.reporting import Reporting
from lifesigns.agent.sender import shutdown
from lifesigns.agent.sender.beat_builder import BeatBuilder, amount, count, prose, text
from lifesigns.agent.sender.breaker_reports import BreakerReports
from lifesigns.agent.sender.callbacks import Callback, call, until_done
from lifesigns.agent.sender.calls import CANCELLED, CallScope
from lifesigns.agent.sender.nudges import Nudge, Nudges
from lifesigns.agent.sender.order_handler import OrderHandler
from lifesigns.agent.sender.relay import Relay
from lifesigns.agent.sender.rhythm import rhythm
from lifesigns.agent.sender.session import ALERT_AFTER, WORDS_MAX, AgentSession, Alert, Stats
from lifesigns.agent.sender.states import WAITING_MAX
from lifesigns.agent.sender.stopping import Ending, Stop, StopAction, StopFlag
from lifesigns.core import signals as s
from lifesigns.errors import UsageError
from lifesigns.ports import SavedState

CLOSE_FOR: Final = 2.0


class SenderCalls(CallScope):
    """The calls of a sender: no nudge interrupts an open one, and a failed one is reported soon."""

    def __init__(self, session: AgentSession, nudges: Nudges) -> None:
        super().__init__(session.agent_id, session.incarnation, session.builder, session.say)
        self._session, self._nudges = session, nudges

    def began(self, call: object) -> None:
        self._nudges.began(call)

    def ended(self, call: object) -> None:
        self._nudges.ended(call)

    def unwell(self) -> None:
        self._session.beat_faster()


class Sender(Reporting):
    """One life of an agent. `lifesigns.assembly.senders` adds the connection to the hub, and the docs for users."""

    def __init__(
        self,
        agent_id: str | None = None,
        hub: str | None = None,
        *,
        task: str | None = None,
        role: str | None = None,
        profile: str | None = None,
        interval: float | None = None,
        token: str | None = None,
        key: str | None = None,
        host: str | None = None,
        metadata: Mapping[str, object] | None = None,
        incarnation: str | None = None,
        on_nudge: Callback[Nudge] | None = None,
        on_stop: Callback[Stop] | None = None,
        on_alert: Callback[Alert] | None = None,
        retries: int = 3,
        retry_after: float = 5.0,
        words_max: int = WORDS_MAX,
        close_for: float = CLOSE_FOR,
        alert_after: float = ALERT_AFTER,
    ) -> None:
        self._identity = known = identity.identify(agent_id, incarnation, task)
        beat_rhythm, policy = rhythm(profile, interval)
        self._find_relay = partial(self._relay_to, hub, token, key)
        self._find_relay()  # A wrong address raises now; the relay is chosen at the start, because a fork may lie between.
        self._close_for = amount(close_for, "close_for")
        self._loop: asyncio.AbstractEventLoop | None = None
        builder = BeatBuilder(
            host=text(host or socket.gethostname()),
            pid=os.getpid(),
            role=None if role is None else text(role),
            task=None if known.task is None else text(known.task),
        )
        self._session = AgentSession(
            known.agent_id,
            known.incarnation,
            builder,
            beat_rhythm,
            words_max=max(1, count(words_max, "words_max")),
            retries=max(1, count(retries, "retries")),
            retry_after=amount(retry_after, "retry_after"),
            tell=None if on_alert is None else lambda alert: self._call(on_alert, alert),
            alert_after=amount(alert_after, "alert_after"),
        )
        self._breakers = BreakerReports(known.agent_id, known.incarnation, self._session.say)
        beside = known.supervised_at is not None and hub in (None, known.supervised_at)
        self._orders = OrderHandler(
            self._session, self._breakers, on_nudge, on_stop, policy=policy, supervised=beside
        )
        super().__init__(builder, SenderCalls(self._session, self._orders.nudges))
        self._started = False
        self._leave_by = float("inf")
        if metadata:
            self.metadata(**metadata)

    @abstractmethod
    def _relay_to(self, hub: str | None, token: str | None, key: str | None) -> Relay:
        """The relay this process has to that hub; the assembly knows."""

    # --- who it is ----------------------------------------------------------------------------------------------

    @property
    def agent_id(self) -> str:
        return self._identity.agent_id

    @property
    def incarnation(self) -> str:
        """This life, as every message names it."""
        return self._identity.incarnation

    @property
    def resume_from(self) -> str | None:
        """The checkpoint to continue from, if this life follows another one."""
        return self._identity.resume_from

    @property
    def handoff(self) -> str | None:
        """Finished and open work, if this life follows another one."""
        return self._identity.handoff

    @property
    def stats(self) -> Stats:
        """How sending went so far."""
        return self._session.stats()

    # --- what it is told ------------------------------------------------------------------------------------------

    @property
    def stopping(self) -> StopFlag:
        """Set when the hub wants this agent to end: `is_set()`, `wait(timeout)`, `await life.stopping`."""
        return self._orders.stopping

    def nudges(self) -> AsyncIterator[Nudge]:
        """`async for nudge in life.nudges()`: each at a turn boundary, until the sender ends. Not with `on_nudge`."""
        return self._orders.nudges.each()

    def next_nudge(self, timeout: float | None = None) -> Nudge | None:
        """The next nudge, for threads; None if none came in time."""
        return self._orders.nudges.next(timeout)

    # --- its life -------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Begin to beat. `with` and `async with` do this and `close` by themselves."""
        self._start("process" if shutdown.is_main_thread() else "word")
        return self

    def close(self, reason: str = "done", *, crashed: bool = False) -> None:
        """Say good-bye and wait until it has arrived, `close_for` at most. Inside a coroutine, await `aclose`.

        `crashed` means that it did not want to end: the hub tells people, and respawns it if it may.
        """
        self._orders.wait_until_saved()
        self.leave(reason, crashed=crashed)
        self.wait_until_gone()

    async def aclose(self, reason: str = "done", *, crashed: bool = False) -> None:
        """`close` for coroutines."""
        await self._orders.until_saved()
        self.leave(reason, crashed=crashed)
        if not self._started or self._session.mute:
            return
        if not await until_done(self._session.gone, max(0.0, self._leave_by - time.monotonic())):
            self._session.leave_farewell()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.close(self._reason(error), crashed=self._crashed(error))

    async def __aenter__(self) -> Self:
        self._start("task")
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        await self.aclose(self._reason(error), crashed=self._crashed(error))

    def _start(self, how: Ending) -> None:
        if self._started:
            raise UsageError(
                f"the sender of {self.agent_id} was started before: a Sender lives once, make a new one"
            )
        self._started = True
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None
        session, relay = self._session, self._find_relay()
        self._builder.pid = os.getpid()
        if self._loop is not None:
            session.probe = relay.probe(self._loop)
        self._orders.listen(self._loop, StopAction(how, self._loop))
        session.begin(self._orders, relay)
        self._orders.introduce()
        self._breakers.begin()
        identity.mark_speaking(self.agent_id)
        shutdown.register(self)
        relay.join(session)

    def leave(self, reason: str, *, crashed: bool = False) -> None:
        """Say good-bye and wait for nothing; later calls have no effect."""
        if not self._started:
            return
        self._breakers.end()
        self._orders.report_stopped()
        agent_id, incarnation = self.agent_id, self.incarnation
        last: s.Report = s.AgentLeft(agent_id=agent_id, incarnation=incarnation, reason=prose(reason))
        orphaned = not self.stopping and identity.is_orphaned(agent_id)
        if crashed or orphaned:
            detail = "Its supervisor was killed." if orphaned else prose(reason)
            last = s.ProcessExited(
                agent_id=agent_id, incarnation=incarnation, detail=detail, orphaned=orphaned
            )
        self._leave_by = min(self._leave_by, time.monotonic() + self._close_for)
        self._session.say_last(last, self._leave_by)
        self._orders.nudges.close()
        shutdown.unregister(self)

    def wait_until_gone(self) -> None:
        """Wait until the good-bye has arrived, or `close_for` is over."""
        if self._started and not self._session.mute:
            self._session.wait_until_gone(max(0.0, self._leave_by - time.monotonic()))

    def fall_silent(self) -> None:
        """In a forked child: this life goes on in the parent."""
        self._session.mute = True
        self._orders.nudges.close()

    # --- parts ----------------------------------------------------------------------------------------------------

    def _reason(self, error: BaseException | None) -> str:
        """Why the block ended; an error that leaves it is fatal."""
        if self.stopping and (error is None or isinstance(error, CANCELLED)):
            return f"stopped: {self.stopping.reason}"
        if error is None:
            return "done"
        if self._crashed(error):
            self.error(shutdown.error_line(error), recoverable=False)
        return shutdown.error_line(error)

    def _crashed(self, error: BaseException | None) -> bool:
        """Whether the block ended by a failure."""
        return not self.stopping and shutdown.is_crash(error)

    def _report_saved(self, saved: s.CheckpointSaved, content: bytes | None) -> None:
        if content is None:
            identity.mark_saved(saved.checkpoint_id, self.agent_id)
        room = content is not None and self._session.state_bytes + len(content) <= WAITING_MAX
        self._session.say(SavedState(saved, content) if content is not None and room else saved)

    def _call(self, callback: Callback[Alert], alert: Alert) -> None:
        call(callback, alert, self._loop)
