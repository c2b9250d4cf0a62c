"""The monitor's thread: it sleeps until something is due, hears reports, looks, judges, tells.

    look        what was said ──► own beats, in their order ──► loops that owe an answer ──► the ended ──► judge ──► tell
    tick        once every `tick`: ask the loops, look at threads and processes
    in between  only if somebody ended, a loop owes an answer, or one that beats by itself falls due

Wake-ups cost, not work: waking a hundred times for one agent each costs a hundred times as much as waking once for a
hundred. While a loop answers, we need not tell the engine so for each of its agents, because we would know otherwise.
Only this thread touches the engine.
"""

from __future__ import annotations

import asyncio
import logging
import selectors
import threading
from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic
from typing import TYPE_CHECKING, Final, cast

from lifesigns.agent.monitor.attachment import Ending
from lifesigns.agent.monitor.events import Event, events_of, heartbeats, last_heartbeat_at
from lifesigns.agent.monitor.loops import LoopWatch
from lifesigns.agent.monitor.processes import ProcessAttachment
from lifesigns.agent.monitor.wakeup import Wakeup
from lifesigns.agent.monitor.watched import WatchedAgent
from lifesigns.core.effects import Effect, Flip, Poisoned, Refusal, SendPing
from lifesigns.core.engine import Engine
from lifesigns.core.health import Health
from lifesigns.core.signals import (
    AgentLeft,
    AgentRegistered,
    Beat,
    BeatReceived,
    ProcessExited,
    Report,
    Signal,
)

if TYPE_CHECKING:
    from lifesigns.agent.monitor.hub_mirror import HubMirror
    from lifesigns.agent.sender.relay import Relay

log: Final = logging.getLogger("lifesigns.monitor")

SELF: Final = "lifesigns:monitor"
"""Our own beat, so that the engine hears something while all agents are silent: here, nothing is between them and us."""

BEATS_EVERY: Final = 60.0
"""How often the engine hears a beat of healthy agents whose beats we make: it only has to know them."""

LATE: Final = 0.05
"""A look this late is on time: a busy machine wakes no thread more precisely."""

INBOX_MAX: Final = 100_000
ENDED_MAX: Final = 1_000
"""How many ended agents we remember by name."""

REAPED_AFTER: Final = 0.05
"""How soon to look again for the status of a child that another thread is just reaping."""


class MonitorThread:
    """The thread and all it knows. Any thread may call `submit`, `begin`, `ended` and `forget`."""

    def __init__(self, engine: Engine, tick: float, tell: Callable[[list[Event]], None]) -> None:
        self.engine = engine
        self.tick = tick
        self.records: dict[str, WatchedAgent] = {}
        """The watched agents, and the last that ended, by name."""
        self._tell = tell
        self._inbox: deque[Report | Callable[[float], None]] = deque()
        self._loops: dict[asyncio.AbstractEventLoop, LoopWatch] = {}
        self._singles: dict[str, WatchedAgent] = {}
        """Threads and processes, checked once a tick."""
        self._own: dict[str, WatchedAgent] = {}
        """Agents that beat by themselves."""
        self._leaving: dict[str, WatchedAgent] = {}
        """Ended processes whose status we do not know yet."""
        self._ended: deque[WatchedAgent] = deque()
        self._find_relay: Callable[[], Relay | None] = lambda: None
        self.mirror: HubMirror | None = None
        """Where a hub sees them."""
        self._pulse = BeatReceived(SELF)
        self._news: list[Event] = []
        self._tick_at = self._beat_at = self._looked_at = 0.0
        self._planned = 0.0
        self._thread: threading.Thread | None = None
        self._selector: selectors.BaseSelector | None = None
        self._wakeup: Wakeup | None = None
        self._stopped = False

    # --- from any thread ----------------------------------------------------------------------------------------

    def start(self, find_relay: Callable[[], Relay | None]) -> None:
        self._find_relay = find_relay
        self._wakeup = Wakeup()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wakeup, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._run, name="lifesigns-monitor", daemon=True)
        self._thread.start()

    def stop(self, within: float) -> None:
        """End the thread. It never runs foreign code, so it ends at once."""
        self._stopped = True
        self._ring()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(within)

    def mute(self) -> None:
        """In a forked child: the thread does not exist, and its selector belongs to the parent."""
        self._stopped = True
        if self.mirror is not None:
            self.mirror.mute()
        self._close_doors()

    def submit(self, report: Report) -> None:
        """Queue a report for the next look."""
        if not self._stopped and len(self._inbox) < INBOX_MAX:
            self._inbox.append(report)

    def beat(self, watched: WatchedAgent) -> None:
        """Hear the agent's beat at the next look: it carries something new."""
        if not self._stopped and len(self._inbox) < INBOX_MAX:
            self._inbox.append(lambda now: self._hear(watched.next_beat, now))

    def begin(self, watched: WatchedAgent) -> None:
        self._command(lambda now: self._begin(watched, now))

    def ended(self, watched: WatchedAgent, ending: Ending) -> None:
        """An agent ended; the first report of it counts."""
        if watched.ending is None:
            watched.ending = ending
            self._command(lambda now: self._end(watched, ending, now))

    def replaced(self, watched: WatchedAgent) -> None:
        """A new life began under its name, so the old one needs no event."""
        if watched.ending is None:
            watched.ending = Ending(False, "replaced", forget=True)
            self._command(lambda now: self._detach(watched))

    def speaks_for_itself(self, watched: WatchedAgent) -> None:
        """An emitter answered a ping: from now on its own answers count."""
        self._command(lambda now: self._let_speak(watched, now))

    def loop_watch(self, loop: asyncio.AbstractEventLoop) -> LoopWatch:
        known = self._loops.get(loop)
        return known or self._loops.setdefault(loop, LoopWatch(loop))

    def _command(self, command: Callable[[float], None]) -> None:
        if not self._stopped:
            self._inbox.append(command)
            self._ring()

    def _ring(self) -> None:
        if self._wakeup is not None:
            self._wakeup.ring()

    # --- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        assert self._selector is not None
        self._open_mirror()
        self._tick_at = self._looked_at = monotonic()
        self._planned = 0.0
        stopped = False
        while not stopped:
            stopped = self._stopped  # One more look after the last report, which may be an agent's end.
            wait = 0.0 if stopped else self._looked_at + self._planned - monotonic()
            ready = self._selector.select(max(0.0, wait))
            try:
                self._look(monotonic(), [key.data for key, _ in ready])
            except Exception:
                log.exception("a bug of ours in the monitor; it goes on at the next tick")
                self._planned = self.tick
        for watched in list(self.records.values()):
            watched.attachment.detach()
        if self.mirror is not None:
            self.mirror.stop(lambda watched: _left(watched, "its monitor was stopped"))
        self._close_doors()

    def _open_mirror(self) -> None:
        try:
            relay = self._find_relay()
        except Exception:
            log.exception("the way to a hub cannot be found; the monitor goes on without one")
            return
        if relay is not None:
            from lifesigns.agent.monitor.hub_mirror import HubMirror  # Not by a monitor that is alone.

            self.mirror = HubMirror(relay)

    def _close_doors(self) -> None:
        if self._selector is not None:
            self._selector.close()
        if self._wakeup is not None:
            self._wakeup.close()

    def _look(self, now: float, ready: list[WatchedAgent | None]) -> None:
        counts = min(now - self._looked_at, self._planned + LATE)
        self._looked_at = now
        if None in ready and self._wakeup is not None:
            self._wakeup.silence()
        self._take_inbox(now)
        for loop_watch in list(self._loops.values()):
            loop_watch.look(now, counts)
        self._fold_beats(now)
        for loop_watch in list(self._loops.values()):
            self._tell_frozen(loop_watch, now)
            if loop_watch.owed_before and not loop_watch.owes:
                self._beat_for(loop_watch, now)
        for watched in ready:
            if watched is not None:
                self._release_descriptor(watched)
        for watched in list(self._leaving.values()):
            watched.attachment.look()
        if now >= self._tick_at:
            self._make_tick(now)
        self._take_inbox(now)
        self._note(self.engine.advance(now))
        self._planned = max(0.0, self._next_at(now) - now)
        if self._news:
            news, self._news = self._news, []
            self._tell(news)

    def _next_at(self, now: float) -> float:
        at = self._tick_at
        if self._leaving:
            at = min(at, now + REAPED_AFTER)
        for loop_watch in self._loops.values():
            if loop_watch.owes:
                at = min(at, now + loop_watch.look_again_after())
        for watched in self._own.values():
            agent = self.engine.agent(watched.name)
            if agent is not None:
                # An agent that has beaten since its deadline was set needs no look before it can be late again.
                again_at = watched.active_at + watched.suspect_after if agent.calm else 0.0
                at = min(at, max(agent.armed_at, again_at))
        return at

    def _take_inbox(self, now: float) -> None:
        while self._inbox:
            item = self._inbox.popleft()
            if isinstance(item, Report):
                self._hear(item, now)
                if self.mirror is not None:
                    self.mirror.say(item, now)
            else:
                item(now)

    # --- what is seen -----------------------------------------------------------------------------------------------

    def _fold_beats(self, now: float) -> None:
        """The signs of life of agents that beat by themselves, each at its own time; an excused agent counts as alive."""
        fresh = [(w.active_at, w) for w in self._own.values() if w.active_at > w.folded_at]
        fresh += [(now, w) for w in self._own.values() if w.is_excused(now)]
        for at, watched in sorted(fresh, key=lambda pair: pair[0]):
            watched.folded_at = at
            if self.engine.agent(watched.name) is None:
                self._introduce(watched, at)  # It was silent for so long that the engine forgot it.
            self._hear(watched.next_beat, at)

    def _make_tick(self, now: float) -> None:
        self._tick_at += self.tick
        if self._tick_at <= now:
            self._tick_at = now + self.tick
        self._hear(self._pulse, now)
        if self.mirror is not None:
            self.mirror.look()
        beats = now >= self._beat_at
        if beats:
            self._beat_at = now + BEATS_EVERY
        for loop_watch in list(self._loops.values()):
            if beats:
                self._beat_for(loop_watch, now)
            if not loop_watch.ask(now):
                self._close_loop(loop_watch)
        for watched in list(self._singles.values()):
            if not watched.attachment.look():
                if isinstance(watched.attachment, ProcessAttachment):
                    self._leaving[watched.name] = watched
            elif not watched.by_itself:
                watched.folded_at = now
                watched.beats += 1
                if beats or watched.health is not Health.HEALTHY:
                    self._hear(watched.next_beat, now)

    def _beat_for(self, loop_watch: LoopWatch, now: float) -> None:
        """A beat for each agent on a loop; it carries how long the loop has owed an answer."""
        owes, owed = loop_watch.owes, loop_watch.owed_before
        loop_watch.owed_before = owes
        if owes or owed:
            for watched in loop_watch.own.values():
                self._hear_lag(watched, owes, now)
            for watched in loop_watch.carried.values():
                watched.next_beat.loop_lag_ms = 1000 * owes
        hear, note = self.engine.hear, self._note
        for watched in loop_watch.carried.values():
            effects = hear(watched.next_beat, now)
            if effects:
                note(effects)

    def _tell_frozen(self, loop_watch: LoopWatch, now: float) -> None:
        """The agents whose `freeze.after` their loop has exceeded."""
        if not loop_watch.owes:
            return
        for watched in loop_watch.members:
            if watched.freeze_after <= loop_watch.owes and watched.health is not Health.DISCONNECTED:
                loop_watch.tell_when_it_turns(self._ring)
                loop_watch.owed_before = loop_watch.owes
                self._hear_lag(watched, loop_watch.owes, now)

    def _hear_lag(self, watched: WatchedAgent, owes: float, now: float) -> None:
        watched.next_beat.loop_lag_ms = 1000 * owes
        self._hear(watched.next_beat, now)
        watched.next_beat.loop_lag_ms = None if watched.by_itself else 0.0

    def _release_descriptor(self, watched: WatchedAgent) -> None:
        """A process ended: its descriptor is of no more use."""
        fd = watched.attachment.watched_fd
        if self._selector is not None and fd is not None:
            self._selector.unregister(fd)
            self._leaving[watched.name] = watched

    # --- beginnings and ends ----------------------------------------------------------------------------------------

    def _begin(self, watched: WatchedAgent, now: float) -> None:
        if watched.ending is not None and watched.ending.forget:
            return
        self._introduce(watched, now)
        if self.mirror is not None:
            self.mirror.begin(watched, watched.builder)
        loop_watch = watched.loop_watch
        if loop_watch is not None:
            self._loops[loop_watch.loop] = loop_watch
            (loop_watch.own if watched.by_itself else loop_watch.carried)[watched.name] = watched
            watched.beats_from = loop_watch.answered
            if loop_watch.is_new:
                loop_watch.ask(now)
            loop_watch.ping(watched)
        else:
            self._singles[watched.name] = watched
        if watched.by_itself:
            self._own[watched.name] = watched
        fd = watched.attachment.watched_fd
        if fd is not None and self._selector is not None:
            self._selector.register(fd, selectors.EVENT_READ, watched)
        if watched.attachment.look() and watched.ending is None:
            self._hear(watched.next_beat, now)  # The start of watching is the first sign of life.

    def _introduce(self, watched: WatchedAgent, now: float) -> None:
        self._hear(
            AgentRegistered(
                agent_id=watched.name,
                incarnation=watched.incarnation,
                role=watched.role,
                policy=watched.policy_alone if watched.by_itself else watched.own_policy,
            ),
            now,
        )

    def _let_speak(self, watched: WatchedAgent, now: float) -> None:
        loop_watch = watched.loop_watch
        if loop_watch is not None and loop_watch.carried.pop(watched.name, None) is watched:
            watched.by_itself = True
            watched.heartbeats_before += loop_watch.answered - watched.beats_from
            watched.next_beat.loop_lag_ms = None
            loop_watch.own[watched.name] = self._own[watched.name] = watched
            self._introduce(watched, now)

    def _end(self, watched: WatchedAgent, ending: Ending, now: float) -> None:
        agent = self.engine.agent(watched.name)
        watched.heartbeats_before, watched.last_heartbeat_at = heartbeats(watched), last_heartbeat_at(watched)
        if ending.forget and self.records.get(watched.name) is watched:
            del self.records[watched.name]
        report: ProcessExited | AgentLeft
        if ending.crashed:
            report = ProcessExited(
                agent_id=watched.name,
                incarnation=watched.incarnation,
                status=ending.status,
                signal=ending.signal,
                detail=ending.reason,
            )
        else:
            report = _left(watched, ending.reason)
        if self.mirror is not None:
            self.mirror.end(watched, report)
        self._detach(watched)
        if agent is not None and agent.incarnation == watched.incarnation:
            self._hear(report, now)
        if not ending.forget:
            self._remember(watched)

    def _detach(self, watched: WatchedAgent) -> None:
        if self.mirror is not None:
            self.mirror.end(watched, None)  # If it was not told before, somebody else has its name now.
        for table in (self._singles, self._own, self._leaving):
            if table.get(watched.name) is watched:
                del table[watched.name]
        loop_watch = watched.loop_watch
        if loop_watch is not None:
            for members in (loop_watch.carried, loop_watch.own):
                if members.get(watched.name) is watched:
                    del members[watched.name]
            if not loop_watch.carried and not loop_watch.own:
                self._loops.pop(loop_watch.loop, None)
        fd = watched.attachment.watched_fd
        if fd is not None and self._selector is not None and fd in self._selector.get_map():
            self._selector.unregister(fd)
        watched.attachment.detach()

    def _close_loop(self, loop_watch: LoopWatch) -> None:
        for watched in loop_watch.members:
            self.ended(watched, Ending(False, "its event loop was closed"))

    def _remember(self, watched: WatchedAgent) -> None:
        self._ended.append(watched)
        while len(self._ended) > ENDED_MAX:
            oldest = self._ended.popleft()
            if self.records.get(oldest.name) is oldest:
                del self.records[oldest.name]

    # --- hearing ----------------------------------------------------------------------------------------------------

    def _hear(self, signal: Beat | Report, now: float) -> None:
        effects = self.engine.hear(cast("Signal", signal), now)
        if effects:
            self._note(effects)

    def _note(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Flip):
                watched, agent = self.records.get(effect.agent_id), self.engine.agent(effect.agent_id)
                # Tell nothing about any life but the one watched now.
                if watched is not None and agent is not None and agent.incarnation == watched.incarnation:
                    self._news += events_of(effect, watched, agent)
            elif isinstance(effect, SendPing):
                watched = self.records.get(effect.agent_id)
                if watched is not None and watched.loop_watch is not None:
                    watched.loop_watch.ping(watched)
            elif isinstance(effect, Refusal):
                log.debug("%s: not believed: %s", effect.agent_id, effect.reason)
            elif isinstance(effect, Poisoned):
                log.error("%s: a bug of ours, it is set aside: %s", effect.agent_id, effect.error)


def _left(watched: WatchedAgent, reason: str) -> AgentLeft:
    return AgentLeft(agent_id=watched.name, incarnation=watched.incarnation, reason=reason)
