"""Watched: one agent. The handle its owner speaks through, and what is known of it.

A sign of life costs its owner a few attribute writes; it is folded in at the next look.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from lifesigns.agent.monitor.attachment import Attachment, Ending
from lifesigns.agent.monitor.work_reports import Reporting
from lifesigns.core.health import Doing, Health
from lifesigns.core.signals import BeatReceived, DoingChanged, Report

if TYPE_CHECKING:
    from lifesigns.agent.monitor.loops import LoopWatch
    from lifesigns.agent.monitor.monitor_thread import MonitorThread


@dataclass(eq=False, slots=True)
class DeclaredCall:
    """A blocking call that was announced."""

    note: str
    until: float
    task: asyncio.Task[Any] | None
    """The task that announced it; None outside of tasks."""


class WatchedAgent(Reporting):
    """One watched agent."""

    __slots__ = (
        "_busy",
        "_rounds",
        "acted_at",
        "active_at",
        "active_by",
        "attachment",
        "beat_at",
        "beats",
        "beats_from",
        "by_itself",
        "call_max",
        "disconnections",
        "ending",
        "folded_at",
        "freeze_after",
        "health",
        "heartbeats_before",
        "incarnation",
        "last_heartbeat_at",
        "loop_watch",
        "lost_at",
        "name",
        "own_policy",
        "policy_alone",
        "pulse",
        "role",
        "since",
        "suspect_after",
        "thread_id",
        "what",
    )

    def __init__(
        self,
        rounds: MonitorThread,
        what: object,
        name: str,
        role: str | None,
        incarnation: str,
        attachment: Attachment,
    ) -> None:
        now = monotonic()
        self._rounds = rounds
        self._busy: list[DeclaredCall] = []
        self.what = what
        self.name = name
        self.role = role
        self.incarnation = incarnation
        self.attachment = attachment
        self.by_itself = attachment.by_itself
        self.freeze_after = inf
        self.suspect_after = inf
        self.call_max = inf
        self.pulse = BeatReceived(name, incarnation=incarnation)
        """The beat we make for it while it is seen alive. One for all its life: the engine keeps none."""
        self.since = now
        self.acted_at = now
        """When it last did something of its own; an answer to our question is none."""
        self.active_at = now
        """Its last sign of life of any kind."""
        self.active_by = ""
        self.beat_at: float | None = None
        self.folded_at = now
        """Its signs of life up to here have been heard by the engine."""
        self.beats = 0
        self.beats_from = 0
        """How often its loop had answered before it was there."""
        self.heartbeats_before = 0
        """Those that are no longer counted elsewhere: of earlier lives, of one that ended."""
        self.last_heartbeat_at: float | None = None
        """The last one of a life that ended."""
        self.own_policy: Mapping[str, Any] = {}
        self.policy_alone: Mapping[str, Any] = {}
        """The same, for when nobody beats for it."""
        self.thread_id: int | None = None
        self.loop_watch: LoopWatch | None = None
        self.health = Health.STARTING
        self.lost_at: float | None = None
        """When it was last seen before it was disconnected; None while it is not."""
        self.disconnections = 0
        self.ending: Ending | None = None

    # --- signs of life ----------------------------------------------------------------------------------------

    def beat(self) -> None:
        """I live."""
        self.thread_id = threading.get_ident()
        self.beats += 1
        self.active_by = "beat"
        self.active_at = self.beat_at = monotonic()

    def activity(self, kind: str = "activity") -> None:
        """I did something, which is as good as a beat."""
        self.active_by = kind
        self.active_at = self.acted_at = monotonic()

    def load(self, load: float, *, capacity: int | None = None) -> None:
        """How much of it is taken, from 0 to 1, and how many more tasks it could take: see `least_loaded`."""
        self.pulse.load, self.pulse.capacity_available = load, capacity
        self._rounds.beat(self)

    def is_excused(self, now: float) -> bool:
        """Whether it declared that it would be silent now, or somebody did for the loop it needs."""
        if self.loop_watch is not None and self.loop_watch.excused:
            return True
        return any(now < declared.until for declared in tuple(self._busy))

    # --- words ------------------------------------------------------------------------------------------------

    def say(self, report: Report) -> None:
        self.active_at = self.acted_at = monotonic()
        self._rounds.submit(report)

    @contextmanager
    def busy(self, note: str = "", *, bound: float | None = None) -> Iterator[None]:
        """Around a call that blocks: nothing is expected of this agent, and of its loop, for `bound` seconds.

        Without a bound it is what the policy allows a call (`stall.call_max`). Over its bound, it is a finding.
        """
        until = monotonic() + (self.call_max if bound is None else bound)
        declared = DeclaredCall(note, until, _current_task())
        where = self.loop_watch
        self._busy.append(declared)
        if where is not None:
            where.excuse(declared)
        self._say_doing(Doing.BUSY, until, note)
        try:
            yield
        finally:
            self._busy.remove(declared)
            if where is not None:
                where.excuse_no_more(declared)
            outer = self._busy[-1] if self._busy else None
            if outer is None:
                self._say_doing(Doing.UNKNOWN, None, "")
            else:
                self._say_doing(Doing.BUSY, outer.until, outer.note)

    def leave(self, reason: str = "") -> None:
        """Say good-bye: silence after this is no failure."""
        self._rounds.ended(self, Ending(False, reason))

    def _say_doing(self, doing: Doing, until: float | None, note: str) -> None:
        known_until = None if until is None or until == inf else until
        self.say(
            DoingChanged(
                agent_id=self.name, incarnation=self.incarnation, doing=doing, until=known_until, note=note
            )
        )

    def __repr__(self) -> str:
        return f"<Watched {self.name} {self.health}>"


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
