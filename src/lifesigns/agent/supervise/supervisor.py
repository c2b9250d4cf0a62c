"""Supervisor: the loop. It runs one life after another until no more is wanted; then we end as the last one did.

One wait (`poll`), one step: pass bytes on, hear signals, do what fell due. The small pure parts (`stopping`,
`restarts`, `interrupts`) and the watch decide; the supervisor acts.
"""

from __future__ import annotations

import math
import os
import random
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from lifesigns.agent.service_manager import ServiceManager
from lifesigns.agent.supervise import facts, status_messages
from lifesigns.agent.supervise.child import CannotStart, End, reap_orphans
from lifesigns.agent.supervise.exit_report import ExitReport
from lifesigns.agent.supervise.guardian import Guardian, stty_settings
from lifesigns.agent.supervise.interrupts import Interrupts
from lifesigns.agent.supervise.life import LOOK_EVERY, Handoff, Life
from lifesigns.agent.supervise.notices import NotifySocket
from lifesigns.agent.supervise.orders import OrderHandler
from lifesigns.agent.supervise.restarts import Next, Restarts
from lifesigns.agent.supervise.settings import Restart, Settings
from lifesigns.agent.supervise.status_messages import StatusMessage
from lifesigns.agent.supervise.status_printer import StatusPrinter
from lifesigns.agent.supervise.stopping import Stopping
from lifesigns.agent.supervise.streams import STDIN, OwnStreams
from lifesigns.agent.supervise.wakeup import Wakeup
from lifesigns.agent.supervise.watch import Watch
from lifesigns.core.effects import Effect, Order, Terminate
from lifesigns.core.signals import Signal
from lifesigns.core.words import duration

TIMED_OUT: Final = 124
"""What timeout(1) exits with."""
USERS_DOING: Final = 10.0
"""If a child ends this soon after Ctrl-C or a user's signal, the user ended it."""
LAST_WORD_FOR: Final = 1.0
"""How long our own end waits for a reader of the reason."""
HUB_FIRST_FOR: Final = 5.0
"""A reachable hub orders the next life itself, and knows which checkpoint is valid; we go ahead if it does not."""
NUDGE_EVERY: Final = 0.25
"""While a nudge waits for its moment."""

MakeWatch = Callable[[Callable[[], None]], Watch]
"""Makes the watch; gets the function that wakes this loop from another thread."""


class Supervisor:
    """Runs one command. Needs the main thread, because signals arrive there."""

    def __init__(self, settings: Settings, make_watch: MakeWatch, policy: Mapping[str, object]) -> None:
        self._settings = settings
        self._policy = policy
        self._ours = OwnStreams()
        self._folder = Path(tempfile.mkdtemp(prefix="lifesigns-run-"))
        terminal = self._ours.terminal
        self._guardian = Guardian(
            self._folder,
            terminal.fd if terminal else None,
            stty_settings(terminal.fd) if terminal and terminal.keys else "",
        )
        self._wakeup = Wakeup()
        self._notify = NotifySocket(self._folder)
        self._manager = ServiceManager()
        self._speaker = StatusPrinter(
            self._ours.err,
            settings.agent_id,
            settings.verbosity,
            is_raw=lambda: terminal is not None and terminal.is_raw,
        )
        self._watch = make_watch(self._wakeup.wake)
        self._orders = OrderHandler(settings, self)
        self._restarts = Restarts(settings.restart)
        self._interrupts = Interrupts()
        self._users_act_at = -math.inf
        self._users_end = False
        self.life: Life | None = None
        self.stopping: Stopping | None = None
        self.last: Life | None = None
        """The previous life, while there is none."""
        self._outcome: End | None = None
        self._beat_at = math.inf
        self._start_at = math.inf
        self._start_as = Handoff()
        self._finish_at = math.inf
        self._max_at = math.inf

    # --- from the first start to the last end -----------------------------------------------------------

    def run(self) -> End:
        """Run it all. Returns how the child ended, which is how we shall end."""
        try:
            now = time.monotonic()
            if self._settings.max_for is not None:
                self._max_at = now + self._settings.max_for
            self._start(self._start_as, now)
            while self._outcome is None:
                ready = self._wait()
                self._step(ready, time.monotonic())
            return self._outcome
        finally:
            self._close()

    def _wait(self) -> set[int]:
        poll = select.poll()
        poll.register(self._wakeup.fd, select.POLLIN)
        poll.register(self._notify.fd, select.POLLIN)
        if self.life is not None:
            for fd, events in self.life.streams.wants().items():
                poll.register(fd, events)
        timeout = self._wake_at() - time.monotonic()
        return {fd for fd, _ in poll.poll(None if timeout == math.inf else max(0, math.ceil(timeout * 1000)))}

    def _wake_at(self) -> float:
        now, life = time.monotonic(), self.life
        moments = [self._watch.wake_at(), self._speaker.wake_at(), self._orders.wake_at()]
        moments += [self._start_at, self._finish_at, self._manager.due_at]
        if now < self._max_at:
            moments.append(self._max_at)
        if life is not None and life.end is not None:
            moments.append(now + LOOK_EVERY)
        elif life is not None:
            moments.append(self._beat_at)
            if self.stopping is not None:
                moments.append(self.stopping.wake_at())
            if life.nudges:
                moments.append(now + NUDGE_EVERY)
        return min(moments)

    def _step(self, ready: set[int], now: float) -> None:
        life = self.life
        if life is not None:
            life.follow(ready, now)
        if self._notify.fd in ready:
            self._hear_notices(now)
        self._manager.look(now)
        if self._wakeup.fd in ready:
            for number in self._wakeup.take():
                self._hear_signal(number, now)
        self._hear(self._watch.look(now), now)
        self._orders.waited(now)
        if life is not None and life.end is None:
            self._look_after(life, now)
        if life is not None and life.end is not None:
            self._finish_life(life, now)
        if now >= self._max_at:
            self._time_is_up(now)
        if now >= self._start_at:
            self._start(self._start_as, now)
        if now >= self._finish_at and self.last is not None:
            self._outcome = self.last.end
        self._speaker.flush(now)

    def _hear_notices(self, now: float) -> None:
        """What the child says to its service manager: us, and the one that started us."""
        for said in self._notify.take():
            if self.life is not None:
                self.life.notices.hear(said, now)
                if self.stopping is not None and self.life.notices.more_time:
                    self.stopping.extend(self.life.notices.more_time, now)
            if "STATUS" in said:
                self._manager.say(STATUS=said["STATUS"])

    def _look_after(self, life: Life, now: float) -> None:
        """What is due for a living child."""
        if self.stopping is not None and (number := self.stopping.due(now)) is not None:
            life.child.send(number)
            life.child.send(signal.SIGCONT)  # A stopped child could not hear it.
        if self.stopping is not None and self.stopping.overdue(now):
            self._orders.stop_failed(self.stopping, now)
        for outcome in life.deliver(now):
            self.tell(outcome, now)
        if now >= self._beat_at:
            every = self._watch.beat_every
            self._beat_at = max(self._beat_at + every, now + every / 2)
            life.state_changed(now)
            if os.getpid() == 1:
                reap_orphans({life.child.pid, self._guardian.pid})
            for signal_ in self._observations(life, now):
                self.tell(signal_, now)

    def _observations(self, life: Life, now: float) -> Iterator[Signal]:
        """Reports about a living child. A child with a sender at the hub beats by itself."""
        if self._watch.remote:
            yield from life.hearing(now)
        yield from life.activity() if self._watch.remote and life.speaks else life.beats(now)

    def _close(self) -> None:
        if self._ours.terminal is not None:
            self._ours.terminal.restore()
        if self.life is not None:  # We fail: the child must not outlive us.
            self.life.child.send(signal.SIGKILL)
            self.life.close()
        self._speaker.flush(time.monotonic(), last=True)
        self._ours.err.finish(LAST_WORD_FOR)
        self._manager.say(STOPPING="1")
        self._watch.close()
        self._guardian.close()
        self._notify.close()
        self._wakeup.close()
        self._ours.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- lives ------------------------------------------------------------------------------------------

    def _start(self, inherited: Handoff, now: float) -> None:
        self._start_at = self._finish_at = math.inf
        terminal = self._ours.terminal
        if terminal is not None:
            terminal.make_raw()
        self._guardian.expect()
        try:
            life = Life(
                self._settings,
                inherited,
                self._ours,
                self,
                self._folder,
                now,
                self._guardian.watch,
                self._notify,
            )
        except CannotStart as error:
            self._guardian.watch(None)
            if terminal is not None:
                terminal.restore()
            self.say(StatusMessage("CANNOT_START", str(error), details={"status": error.status}), now)
            self._orders.start_failed(str(error), now)
            self._outcome = End(status=error.status)
            return
        self.life, self.last, self.stopping = life, None, None
        self._watch.attend(life)
        if inherited.attempt > 1:
            text = f"{self._settings.agent_id} was started again."
            self.say(
                StatusMessage("RESTARTED", text, minor=True, details={"attempt": inherited.attempt}), now
            )
        self._start_as = inherited
        self._beat_at = now
        for word in life.introduction(self._policy):
            self.tell(word, now)
        self._orders.started(life, now)
        self._manager.say(READY="1", STATUS=f"{self._settings.agent_id} runs")
        life.state_changed(now)

    def _finish_life(self, life: Life, now: float) -> None:
        """The child has ended: end what it left behind, pass on its last bytes, then decide what follows."""
        if self.last is None:
            self.last = life  # The first time we look at its end.
            exit_report = ExitReport(self._settings.agent_id, life)
            for signal_ in life.last_checkpoint():
                self.tell(signal_, now)
            self.tell(exit_report.left() if self._wanted(life) else exit_report.exited(), now)
        if not life.finished(now):
            return
        self.life = None
        if self._ours.terminal is not None:
            self._ours.terminal.restore()
        life.close()
        self._guardian.watch(None)
        self._what_next(life, now)
        if self._outcome is None:
            self._orders.child_ended(now)

    def _wanted(self, life: Life) -> bool:
        """Whether the user ended it, by hand or by a time limit: then nothing starts it anew."""
        by_hand = self._users_end or life.ended_at - self._users_act_at < USERS_DOING
        return by_hand or life.ended_at >= self._max_at

    def _what_next(self, life: Life, now: float) -> None:
        assert life.end is not None
        stopping, self.stopping = self.stopping, None
        exit_report = ExitReport(self._settings.agent_id, life)
        if life.ended_at >= self._max_at:
            self._outcome = End(status=TIMED_OUT)
            reason = f"it ran longer than {duration(self._settings.max_for or 0.0)} (--max-time)"
            self.say(exit_report.stopped(reason, forced=bool(stopping and stopping.forced)), now)
        elif stopping is not None and stopping.order is not None:
            self._orders.stopped(stopping, now)
            self.say(exit_report.stopped(stopping.reason, forced=stopping.forced), now)
            self._finish_at = now + self._successor_wait(isinstance(stopping.order, Terminate))
        elif life.told_to_stop and not self._wanted(life):
            self.say(exit_report.stopped("the hub wants it", forced=False), now)
            self._finish_at = now + self._successor_wait(told_to_stop=True)
        elif self._wanted(life) or life.streams.broken:
            self._outcome = life.end
        else:
            self._follow(life, exit_report, now)

    def _successor_wait(self, told_to_stop: bool) -> float:
        """How long we wait for the hub's order to start anew."""
        restarts = self._settings.restart.when is not Restart.NEVER and not self._users_end
        return self._settings.respawn_wait if told_to_stop and self._watch.remote and restarts else 0.0

    def _follow(self, life: Life, exit_report: ExitReport, now: float) -> None:
        assert life.end is not None
        plan = self._restarts.ended(
            now,
            failed=life.end.failed,
            lived_for=life.lived_for(now),
            chance=random.random(),  # noqa: S311 -- spreads restarts, hides nothing
        )
        if plan.next is Next.RESTART and self._watch.answers:
            plan = replace(plan, wait=max(plan.wait, HUB_FIRST_FOR))
        self.say(exit_report.ended(plan, self._settings.restart), now)
        if plan.next is Next.RESTART:
            self._start_at = now + plan.wait
            self._start_as = exit_report.inheritance(self._start_as)
        else:
            self._outcome = life.end

    def start_now(self, inherited: Handoff, now: float) -> None:
        """An order wants the next life at once."""
        self._start(inherited, now)

    # --- what ends it -----------------------------------------------------------------------------------

    def stop(self, stopping: Stopping) -> None:
        """Begin to end the child."""
        if self.stopping is None:
            self.stopping = stopping

    def cancel_stop(self, order_id: str) -> None:
        """An order to end the child was withdrawn: forget it, if nothing was done about it yet."""
        order = None if self.stopping is None or self.stopping.begun else self.stopping.order
        if order is not None and order.order_id == order_id:
            self.stopping = None

    def _time_is_up(self, now: float) -> None:
        if self.life is None:
            if self._outcome is None:
                self._outcome = End(status=TIMED_OUT)
                reason = f"{duration(self._settings.max_for or 0.0)} (--max-time) are over"
                self.say(
                    StatusMessage("TIME_IS_UP", f"{self._settings.agent_id} is not started again: {reason}."),
                    now,
                )
        elif self.life.end is not None:
            if (
                now >= self._max_at + self._settings.save_for
            ):  # Its last bytes have no reader, and time is up.
                self._outcome = End(status=TIMED_OUT)
        elif self.stopping is None:
            self.stopping = Stopping("its time is up", now, self._settings.save_for)

    def _hear_signal(self, number: int, now: float) -> None:
        life = self.life
        match number:
            case signal.SIGCHLD:
                if life is not None:
                    life.state_changed(now)
            case signal.SIGWINCH:
                if life is not None:
                    life.streams.resize()
            case signal.SIGTSTP:
                self._suspend(os.getpid())
            case signal.SIGCONT:
                self._take_terminal()
            case _:
                self._pass_on(number, now)

    def _pass_on(self, number: int, now: float) -> None:
        """A signal of the user. Without a child it is for us alone."""
        life = self.life
        if number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
            self._users_act_at = now
        elif life is None:
            return
        if life is None or life.end is not None:
            # A user who ends us does not wait: the last bytes may wait for a reader that is gone.
            self._outcome = End(signal=number) if life is None else life.end
            return
        if number == signal.SIGINT:
            self._stop_harder(now)
        if number == signal.SIGTERM:
            if self._users_end and self.stopping is not None:
                self.stopping.hurry(now)
            self._users_end = True
            self.stop(Stopping("asked to end", now, self._settings.save_for))
        else:
            life.child.send(number)

    def _stop_harder(self, now: float) -> None:
        life = self.life
        assert life is not None
        more = self._interrupts.pressed(now, answered=life.output_at > self._interrupts.at)
        if more is not None:
            life.child.send(more)

    # --- keys: what the user does at a terminal of the child's -------------------------------------------

    def interrupted(self) -> None:
        """Ctrl-C goes to the child by its pty. We only note it, and help if it does not."""
        self._users_act_at = time.monotonic()
        self._stop_harder(self._users_act_at)

    def suspended(self) -> bool:
        """Ctrl-Z. A session of its own cannot be stopped by its terminal, so we do it; unless the child would not
        have stopped: a shell that ignores it, or another program in front of the child."""
        life = self.life
        if life is None or life.streams.pty is None:
            return False
        if os.tcgetpgrp(life.streams.pty) != life.child.pid or facts.ignores(life.child.pid, signal.SIGTSTP):
            return False
        self._suspend(0)
        return True

    def _suspend(self, group: int) -> None:
        """Stop, the child first, and go on after SIGCONT."""
        if self._ours.terminal is not None:
            self._ours.terminal.restore()
        life = self.life
        if life is not None:
            life.child.send(signal.SIGSTOP)
        self._wakeup.stop_here(group)
        if life is not None:
            life.child.send(signal.SIGCONT)
        self._take_terminal()

    def _take_terminal(self) -> None:
        if self._ours.terminal is not None and self.life is not None and self.life.end is None:
            self._ours.terminal.make_raw()
            self.life.streams.resize()
            self.life.child.send(signal.SIGWINCH)  # It draws itself anew.

    # --- words ------------------------------------------------------------------------------------------

    def tell(self, signal_: Signal, now: float) -> None:
        """Report to the watch, and handle the effects it returns."""
        self._hear(self._watch.tell(signal_, now), now)

    def _hear(self, effects: Iterable[Effect | StatusMessage], now: float) -> None:
        stopped = self.life.child.pid if self.life is not None and self.life.stopped_at is not None else None
        for effect in effects:
            if isinstance(effect, StatusMessage):
                self.say(effect, now)
            elif isinstance(effect, Order):
                self._orders.obey(effect, now)
            else:
                for verdict in status_messages.of(effect, stopped, attended=self._ours.tty[STDIN]):
                    self.say(verdict, now)

    def say(self, verdict: StatusMessage, now: float) -> None:
        """Say it, between two lines of the child's."""
        self._speaker.say(verdict, now)
        if not verdict.minor:
            self._manager.say(STATUS=verdict.text)
