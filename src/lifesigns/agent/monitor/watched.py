"""Watched: one agent. The handle for its owner, and what we know of the agent.

It reports as a `Sender` does (`agent/reporting.py`). A sign of life costs its owner a few attribute writes; the next
look picks it up.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from math import inf
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from lifesigns.agent.monitor.attachment import Attachment, Ending
from lifesigns.agent.reporting import Reporting
from lifesigns.agent.sender.beat_builder import BeatBuilder, amount, count
from lifesigns.agent.sender.calls import BusyCall, CallScope
from lifesigns.core.health import Doing, Health
from lifesigns.core.signals import TOKENS_ONLY, BeatReceived, DoingChanged, ModelFinished, Report

if TYPE_CHECKING:
    from lifesigns.agent.monitor.loops import LoopWatch
    from lifesigns.agent.monitor.monitor_thread import MonitorThread


class DeclaredCall(BusyCall):
    """A declared blocking call: we expect nothing of its agent and the agent's loop."""

    __slots__ = ("_loop_watch", "_watched", "task", "until")

    def __init__(self, watched: WatchedAgent, scope: CallScope, call_id: str, note: str, bound: float | None):
        super().__init__(scope, call_id, note, bound)
        self._watched = watched
        self._loop_watch = watched.loop_watch
        self.until = -inf
        self.task: asyncio.Task[Any] | None = None
        """The task that declared it; None outside of tasks."""

    def _begin(self) -> None:
        self.until = monotonic() + (self._watched.call_max if self._bound is None else self._bound)
        self.task = _current_task()
        self._watched.declared.append(self)
        if self._loop_watch is not None:
            self._loop_watch.excuse(self)
        super()._begin()

    def _end(self) -> None:
        self._watched.declared.remove(self)
        if self._loop_watch is not None:
            self._loop_watch.excuse_no_more(self)
        super()._end()


class WatchedAgent(Reporting):
    """One watched agent."""

    __slots__ = (
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
        "declared",
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
        "named",
        "next_beat",
        "own_policy",
        "policy_alone",
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
        builder = BeatBuilder(between_calls=Doing.UNKNOWN)
        super().__init__(builder, CallScope(name, incarnation, builder, self._say))
        now = monotonic()
        self._rounds = rounds
        self.declared: list[DeclaredCall] = []
        self.what = what
        self.name = name
        self.named = True
        """Whether somebody chose this name for it."""
        self.role = role
        self.incarnation = incarnation
        self.attachment = attachment
        self.by_itself = attachment.by_itself
        self.freeze_after = inf
        self.suspect_after = inf
        self.call_max = inf
        self.next_beat = BeatReceived(name, incarnation=incarnation)
        """The beat we make for it while we see it alive. One object for all its life: the engine keeps none."""
        self.since = now
        self.acted_at = now
        """When it last did something by itself; an answer to our question does not count."""
        self.active_at = now
        """Its last sign of life of any kind."""
        self.active_by = ""
        self.beat_at: float | None = None
        self.folded_at = now
        """The engine has heard its signs of life up to here."""
        self.beats = 0
        self.beats_from = 0
        """How often its loop had answered before this agent came."""
        self.heartbeats_before = 0
        """Counts of earlier and ended lives, which no other counter holds any more."""
        self.last_heartbeat_at: float | None = None
        """The last one of a life that ended."""
        self.own_policy: Mapping[str, Any] = {}
        self.policy_alone: Mapping[str, Any] = {}
        """The same, for an agent that beats by itself."""
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

    def is_excused(self, now: float) -> bool:
        """Whether this agent, or another on its loop, declared a silence that holds now."""
        if self.loop_watch is not None and self.loop_watch.excused:
            return True
        return any(now < declared.until for declared in tuple(self.declared))

    def leave(self, reason: str = "") -> None:
        """Say good-bye: silence after this is no failure."""
        self._rounds.ended(self, Ending(False, reason))

    # --- reports ----------------------------------------------------------------------------------------------

    def status(self, status: str | None) -> None:
        super().status(status)
        self._changed()

    def load(self, load: float | None) -> None:
        super().load(load)
        self._changed()

    def capacity(self, tasks: int | None) -> None:
        super().capacity(tasks)
        self._changed()

    def phase(self, phase: str | None) -> None:
        super().phase(phase)
        self._changed()

    def metadata(self, **values: object) -> None:
        super().metadata(**values)
        self._changed()

    def tokens(self, tokens_in: int = 0, tokens_out: int = 0, cost: float = 0.0) -> None:
        self._scope.tell(
            ModelFinished,
            call_id=TOKENS_ONLY,  # Our beats carry no totals.
            tokens_in=count(tokens_in, "tokens_in"),
            tokens_out=count(tokens_out, "tokens_out"),
            cost_usd=amount(cost, "cost"),
        )

    def busy(self, note: str = "", *, bound: float | None = None) -> DeclaredCall:
        return DeclaredCall(self, self._scope, str(next(self._call_ids)), note, bound)

    def _say(self, report: Report) -> None:
        self.active_at = self.acted_at = monotonic()
        if isinstance(report, DoingChanged):
            report = replace(report, until=_on_our_clock(report.until))
        self._refresh_beat()  # Before the report: an older beat heard after it would undo it.
        self._rounds.submit(report)

    @property
    def builder(self) -> BeatBuilder:
        """What its beats at a hub say."""
        return self._builder

    def _changed(self) -> None:
        """Its next beat is one that we make, and has something new to carry."""
        self._refresh_beat()
        self._rounds.beat(self)

    def _refresh_beat(self) -> None:
        beat, builder = self.next_beat, self._builder
        beat.status, beat.load, beat.capacity_available = builder.status, builder.load, builder.capacity
        beat.doing, beat.until = builder.doing, _on_our_clock(builder.until)
        beat.metadata = builder.metadata

    def __repr__(self) -> str:
        return f"<Watched {self.name} {self.health}>"


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _on_our_clock(moment: float | None) -> float | None:
    """A wall-clock time on the clock of the monitor's engine."""
    return None if moment is None else moment - time() + monotonic()
