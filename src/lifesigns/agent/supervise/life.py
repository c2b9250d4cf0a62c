"""Life: one life of the agent: a child, its connections to us, and what we saw of it."""

from __future__ import annotations

import math
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil
from msgspec import Struct

from lifesigns.agent.identity import ACTIVE, new_incarnation
from lifesigns.agent.supervise import prompts
from lifesigns.agent.supervise.child import Child, End
from lifesigns.agent.supervise.facts import ProcessObserver
from lifesigns.agent.supervise.notices import Notices, NotifySocket
from lifesigns.agent.supervise.nudging import Nudge
from lifesigns.agent.supervise.prompts import Screen
from lifesigns.agent.supervise.reads_input import ReadsInput, reads_input
from lifesigns.agent.supervise.repetition import Novelty, Repetition
from lifesigns.agent.supervise.settings import LINGER_FOR, NudgeBy, Settings
from lifesigns.agent.supervise.streams import DRAIN_FOR, Keys, OwnStreams, Streams
from lifesigns.agent.supervise.tail import Tail
from lifesigns.agent.supervise.terminal import takes_keys
from lifesigns.agent.supervise.traffic import Traffic
from lifesigns.core.health import Doing
from lifesigns.core.policy import FreezePolicy
from lifesigns.core.signals import (
    ActivitySeen,
    AgentRegistered,
    BeatReceived,
    CheckpointSaved,
    DoingChanged,
    Metrics,
    Signal,
)

HANDOFF_MAX: Final = 4096
CHECKPOINT_MAX: Final = 1024
DEAF_AFTER: Final = 10.0
"""By this time a program has started its sender if it has one; a later one is noticed when it starts."""
ASKS_AFTER: Final = 1.0
"""A program that asks has been quiet for a moment."""
BUSY_MARGIN: Final = 60.0
"""We say ourselves when the time is over that a child asked for; this is for the case that we cannot."""
WORKS_CPU: Final = 10.0
"""Percent of a core, by judgement, not measured: a spinner alone costs less, anything above is work behind it."""
LOOK_EVERY: Final = 0.05
"""How often we check, during an end, whether all processes are gone."""


class Handoff(Struct, frozen=True):
    """What a life gets from the previous one, or from a hub."""

    attempt: int = 1
    incarnation: str = ""
    checkpoint: str | None = None
    handoff: str = ""


class Life:
    """Starts the child; raises `CannotStart`. `began` gets its group at once, before anything else happens."""

    def __init__(
        self,
        settings: Settings,
        inherited: Handoff,
        ours: OwnStreams,
        keys: Keys,
        folder: Path,
        now: float,
        began: Callable[[int], None],
        notify: NotifySocket,
    ) -> None:
        self.incarnation = inherited.incarnation or new_incarnation()
        self.started_at = self.output_at = now
        self.tail = Tail()
        self.nudges: list[Nudge] = []
        self.stopped_at: float | None = None
        """Since when a signal has stopped it."""
        self.end: End | None = None
        self.ended_at = math.inf
        self._settings = settings
        self._folder = folder
        self._told_bytes = 0
        self._repetition = Repetition()
        self._traffic = Traffic()
        self.notices = Notices(settings.watchdog, now)
        self._noted = self.notices.state
        self._watched_every = settings.watchdog
        self._busy_until = math.inf
        self._linger_until = math.inf
        self._alone = False
        self._speaks, self._told_to_stop = folder / "speaks", folder / "told to stop"
        # Left by the previous life. We have read its checkpoint, or the hub knows better.
        self._reports = (folder / "checkpoint", folder / ACTIVE)
        for mark in (self._speaks, self._told_to_stop, *self._reports):
            mark.unlink(missing_ok=True)
        self._reported_at = 0
        self._said_deaf = False
        self._question: str | None = None
        self._now = now
        self.streams = Streams(ours, keys, self._seen, pty=settings.pty, feed=settings.nudge is NudgeBy.STDIN)
        try:
            environ = environment(settings, inherited, self.incarnation, folder)
            environ = notify.environ(environ, settings.watchdog)
            self.child = Child.start(settings.command, environ, self.streams.file_actions)
        except BaseException:
            self.streams.close()
            raise
        began(self.child.pid)
        self.streams.started()
        self._observer = _observe(self.child.pid)

    # --- what we see -----------------------------------------------------------------------------------

    def _seen(self, data: bytes) -> None:
        self.tail.add(data)
        if data.replace(b"^C", b"").strip():  # The terminal's echo of Ctrl-C; the child wrote nothing.
            self.output_at = self._now

    def follow(self, ready: set[int], now: float) -> None:
        """Pass on what arrived."""
        self._now = now
        self.streams.follow(ready)

    def state_changed(self, now: float) -> None:
        """The system reports a change of the child: stopped, continued, ended."""
        while self.end is None and (stopped := self.child.stop_changed()) is not None:
            self.stopped_at = now if stopped else None
        if self.end is None and (end := self.child.end()) is not None:
            self.end, self.ended_at = end, now

    @property
    def speaks(self) -> bool:
        """Whether it beats for itself."""
        return self._speaks.exists()

    @property
    def told_to_stop(self) -> bool:
        """Whether it ends because the hub told it to, which we may not have heard yet."""
        return self._told_to_stop.exists()

    def lived_for(self, now: float) -> float:
        return min(now, self.ended_at) - self.started_at

    # --- what we say of it -------------------------------------------------------------------------------

    def introduction(self, policy: Mapping[str, object]) -> Iterator[Signal]:
        """The first reports about it: it is there, it works, and it counts as having written output."""
        agent_id, life, task_id = self._settings.agent_id, self.incarnation, self._settings.task_id
        host = socket.gethostname()
        yield AgentRegistered(agent_id=agent_id, incarnation=life, host=host, task_id=task_id, policy=policy)
        yield DoingChanged(agent_id=agent_id, incarnation=life, doing=Doing.WORKING)
        yield ActivitySeen(agent_id=agent_id, incarnation=life, kind="output")

    def activity(self, cpu_percent: float | None = None) -> Iterator[Signal]:
        """Its activity since the last look: output, or a sign of a sender or a checkpoint in it."""
        self.streams.wake()
        reported_at = max(map(_changed_at, self._reports))
        fresh = self.tail.bytes - self._told_bytes
        if reported_at > self._reported_at:
            yield ActivitySeen(agent_id=self._settings.agent_id, incarnation=self.incarnation)
        elif fresh:
            kind, line = self._output(fresh, cpu_percent)
            yield ActivitySeen(
                agent_id=self._settings.agent_id, incarnation=self.incarnation, kind=kind, note=line
            )
        self._told_bytes, self._reported_at = self.tail.bytes, reported_at

    def _output(self, fresh: int, cpu_percent: float | None) -> tuple[str, str]:
        """What kind of activity its newest output is, and the line that shows it if it only repeats itself. A spinner
        says nothing about the work behind it: that shows by the CPU, and by bytes that come and go. And a
        program that takes keys may draw its screen again and again while it waits for its user."""
        look = self._repetition.look(self.tail.fresh(fresh))
        if look.novelty is Novelty.REPEATED_ERROR:
            return look.novelty, look.line
        if look.novelty is Novelty.REPETITION:
            pids = [self.child.pid] if self._observer is None else self._observer.pids
            works = cpu_percent is None or cpu_percent >= WORKS_CPU or self._traffic.moved(pids)
            idles = self._settings.idle_after is None and self._screen().raw
            if not works and not idles:
                return look.novelty, look.line
        return "output", ""

    def hearing(self, now: float) -> Iterator[Signal]:
        """Whether a hub can nudge it. A child with a sender hears nudges itself; one that has shown no sender for a
        while is deaf, unless its user chose a way. Until then the hub's own policy counts."""
        deaf = self._settings.nudge is NudgeBy.NONE and not self.speaks
        if deaf is not self._said_deaf and (not deaf or now - self.started_at >= DEAF_AFTER):
            self._said_deaf = deaf
            yield AgentRegistered(
                agent_id=self._settings.agent_id,
                incarnation=self.incarnation,
                policy={"ladder": {"nudge_enabled": not deaf}},
            )

    def beats(self, now: float) -> Iterator[Signal]:
        """A report of activity if there was any since the last beat, and a beat. The beat has no number: when the
        child begins to beat itself, it counts from one."""
        facts = None if self._observer is None else self._observer.look(now)
        if facts is None:
            return
        yield from self.activity(facts.cpu_percent)
        yield from self._waiting(now)
        yield from self._noticed(now)
        yield BeatReceived(
            self._settings.agent_id,
            incarnation=self.incarnation,
            task_id=self._settings.task_id,
            loop_lag_ms=max(self.notices.lag(now), 0.0 if self.stopped_at is None else now - self.stopped_at)
            * 1000,
            metrics=Metrics(facts.cpu_percent, facts.memory_mb, uptime_s=now - self.started_at),
            host=socket.gethostname(),
            pid=self.notices.main_pid or self.child.pid,
            metadata={
                "state": facts.state,
                "processes": str(facts.processes),
                "output_bytes": str(self.tail.bytes),
                "output_lines": str(self.tail.lines),
            },
        )

    def _waiting(self, now: float) -> Iterator[Signal]:
        """Reports that it waits for its user, with its question; and that it no longer does. While the user types,
        the line on the screen is theirs and tells us nothing new."""
        if self.streams.input is not None and not self.streams.input.cursor.at_start:
            return
        asked = self._question
        self._question = self.question() if now - self.output_at >= ASKS_AFTER else None
        if self._question != asked:
            doing = Doing.WORKING if self._question is None else Doing.WAITING_FOR_HUMAN
            yield DoingChanged(
                agent_id=self._settings.agent_id,
                incarnation=self.incarnation,
                doing=doing,
                note=self._question or "",
            )

    def _noticed(self, now: float) -> Iterator[Signal]:
        """What it said to its service manager since the last beat. A status is progress if it is another one; a
        watchdog only shows that its loop goes round."""
        notices, agent_id, life = self.notices, self._settings.agent_id, self.incarnation
        if notices.watchdog_every != self._watched_every:
            self._watched_every = notices.watchdog_every
            yield AgentRegistered(
                agent_id=agent_id, incarnation=life, policy=watchdog_policy(self._watched_every)
            )
        if self._question is not None:
            return
        if notices.state != self._noted or now >= self._busy_until:
            if notices.state != self._noted:
                yield ActivitySeen(agent_id=agent_id, incarnation=life, kind="status")
            self._noted, self._busy_until = notices.state, math.inf
            doing = Doing.DRAINING if notices.stopping else Doing.WORKING
            yield DoingChanged(agent_id=agent_id, incarnation=life, doing=doing, note=notices.status)
        if notices.more_time:
            self._busy_until, notices.more_time = now + notices.more_time, 0.0
            until = self._busy_until + BUSY_MARGIN
            yield DoingChanged(
                agent_id=agent_id, incarnation=life, doing=Doing.BUSY, until=until, note=notices.status
            )

    def question(self) -> str | None:
        """What it asks its user now."""
        return prompts.question(self._screen(), self._reading())

    def may_ask(self) -> bool:
        """Whether the child might take typed text for an answer now."""
        return prompts.may_ask(self._screen(), self._reading())

    def _screen(self) -> Screen:
        pty, typed = self.streams.pty, self.streams.input
        return Screen(
            self.tail.last(prompts.LINES),
            open=self.tail.open,
            tty=pty is not None and typed is not None,
            raw=pty is not None and typed is not None and takes_keys(pty),
        )

    def _reading(self) -> ReadsInput:
        if self.streams.input is None:
            return ReadsInput.NO  # Its input, if any, comes from elsewhere; it asks no person.
        return reads_input(
            self.child.pid, [self.child.pid] if self._observer is None else self._observer.pids
        )

    def deliver(self, now: float) -> Iterator[Signal]:
        """Deliver the nudges whose moment has come; the outcome of each."""
        for nudge in list(self.nudges):
            outcome = nudge.deliver(
                self.child.pid,
                self.streams,
                self._folder / "nudges",
                quiet_since=self.output_at,
                asks=self.may_ask,
                now=now,
            )
            if outcome is not None:
                self.nudges.remove(nudge)
                yield outcome

    # --- its end -----------------------------------------------------------------------------------------

    def finished(self, now: float) -> bool:
        """After its end: whether its session is empty and its last byte passed on. Works towards that."""
        if not self._alone and self.child.others():
            if self._linger_until == math.inf:
                self._linger_until = now + LINGER_FOR
                self.child.send(signal.SIGTERM)
                self.child.send(signal.SIGCONT)
            elif now >= self._linger_until:
                self.child.send(signal.SIGKILL)
            return False
        self._alone = True
        if not self.streams.drained():
            return False
        return self.streams.pty is None or not self.streams.open or now >= self.ended_at + DRAIN_FOR

    def close(self) -> None:
        """Release its pid and its files."""
        self.streams.close()
        self.child.reap()

    def last_checkpoint(self) -> Iterator[Signal]:
        """Where the next life can continue: a hub that orders it has to know. Not before this life's end, or a
        program that seldom saves would get a stale-checkpoint finding."""
        if checkpoint_id := self.checkpoint():
            yield CheckpointSaved(
                agent_id=self._settings.agent_id,
                incarnation=self.incarnation,
                checkpoint_id=checkpoint_id,
                task_id=self._settings.task_id,
            )

    def checkpoint(self) -> str | None:
        """The checkpoint it left: the first line of the file `checkpoint` in its folder."""
        with suppress(OSError):
            said = (self._folder / "checkpoint").read_bytes()[:CHECKPOINT_MAX]
            return said.decode(errors="replace").strip().partition("\n")[0] or None
        return None


def watchdog_policy(every: float | None) -> Mapping[str, object]:
    """A program that promises to be heard is frozen when it is not; to end it for that, we wait twice as long."""
    default = FreezePolicy()
    if every is None:
        return {"freeze": {"after": default.after, "conclusive_after": default.conclusive_after}}
    return {"freeze": {"after": every, "conclusive_after": max(default.conclusive_after, 2 * every)}}


def _changed_at(file: Path) -> int:
    """When a file was last written, in nanoseconds; 0 if it is not there."""
    with suppress(OSError):
        return file.stat().st_mtime_ns
    return 0


def _observe(pid: int) -> ProcessObserver | None:
    try:
        return ProcessObserver(pid)
    except psutil.Error:
        return None


def environment(settings: Settings, inherited: Handoff, incarnation: str, folder: Path) -> Mapping[str, str]:
    """A child's environment: ours, and its identity."""
    told: dict[str, str | None] = {
        "AGENT_ID": settings.agent_id,
        "INCARNATION": incarnation,
        "TASK": settings.task_id,
        "HUB": settings.hub or settings.child_hub,
        "RUN": str(folder),
        "NUDGES": str(folder / "nudges") if settings.nudge in (NudgeBy.FILE, NudgeBy.SIGNAL) else None,
        "ATTEMPT": str(inherited.attempt),
        "CHECKPOINT": inherited.checkpoint,
        "HANDOFF": cut(inherited.handoff, HANDOFF_MAX) or None,
    }
    environ = {
        name: value for name, value in os.environ.items() if name.removeprefix("LIFESIGNS_") not in told
    }
    return environ | {f"LIFESIGNS_{name}": value for name, value in told.items() if value is not None}


def cut(text: str, bytes_max: int) -> str:
    """As much of a text as fits, without characters that the environment cannot hold."""
    return text.replace("\0", "").encode()[:bytes_max].decode(errors="ignore")
