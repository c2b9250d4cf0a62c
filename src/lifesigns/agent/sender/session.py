"""Agent session: one agent as the relay knows it: what it has to report, when it beats next, how sending went.

The law: `say` never waits and never raises. It appends to a bounded queue and, once per coalescing window, wakes the
relay. It drops reports only when the hub has stored them; it makes the newest beat when it sends it. If a life cannot
report its end, the next process that reaches the hub does (`farewells.py`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from lifesigns.agent import identity
from lifesigns.agent.probe import LoopProbe
from lifesigns.agent.sender.beat_builder import BeatBuilder
from lifesigns.agent.sender.rhythm import BeatRhythm
from lifesigns.agent.sender.vitals import Vitals
from lifesigns.agent.standstill import stack_of
from lifesigns.core.effects import Order
from lifesigns.core.signals import AgentLeft, BeatReceived, Report
from lifesigns.ports import SavedState
from lifesigns.wire.subjects import STOPPING

if TYPE_CHECKING:
    from lifesigns.agent.sender.relay import Relay

WORDS_MAX: Final = 10_000
ACTIVE_EVERY: Final = 1.0
ALERT_AFTER: Final = 180.0
"""No hub for this long is worth a callback: a restart or a short outage is not."""
FROZEN_AFTER: Final = 1.0
"""With a loop this late the agent beats faster."""


class Track(StrEnum):
    """Beats and reports go out beside each other; either may fail alone."""

    BEATS = "beats"
    REPORTS = "reports"


class Alert(Struct, frozen=True):
    """Sending fails, or works again (`well`)."""

    agent_id: str
    well: bool
    failures: int
    """How many tries in a row failed."""
    error: str
    unanswered_for: float = 0.0
    """Seconds without a hub's answer; 0 in the alert about the first failures, and when sending works again."""


class Stats(Struct, frozen=True):
    """How sending went so far."""

    sent: int
    """Beats and reports that arrived."""
    failed: int
    """Tries that failed."""
    consecutive_failures: int
    buffered: int
    dropped: int
    """Reports lost because too many waited; the oldest went first."""
    refused_orders: int
    connected: bool
    """Whether the last try arrived."""


class SessionOwner(Protocol):
    """Whose session it is. Called in the relay's thread."""

    def obey(self, order: Order) -> bool:
        """Whether the order was for this one, and is taken."""
        ...

    def introduce(self) -> None:
        """Say again what a hub that lost us should know."""
        ...


class AgentSession:
    """What a sender and its relay share. The queue is written by any thread, the rest by the relay's."""

    may_repeat = True
    """Whether the relay may make a beat by itself: not if a beat repeats what a supervisor saw, which may be out of date."""

    def __init__(
        self,
        agent_id: str,
        incarnation: str,
        builder: BeatBuilder,
        rhythm: BeatRhythm,
        *,
        words_max: int = WORDS_MAX,
        retries: int = 3,
        retry_after: float = 5.0,
        tell: Callable[[Alert], None] | None = None,
        alert_after: float = ALERT_AFTER,
    ) -> None:
        self.agent_id = agent_id
        self.incarnation = incarnation
        self.builder = builder
        self.rhythm = rhythm
        self.retry_after = retry_after
        self._mark_active = identity.activity_mark()
        self._activity, self._active_at = builder.activity, 0.0
        self.probe: LoopProbe | None = None
        self.due_at = 0.0
        self.mute = False
        """In a forked child: this session's life goes on in the parent."""
        self.leaving_by: float | None = None
        self.owes_last_beat = False
        """It leaves, and its beats have not carried everything: tokens, for example."""
        self.leaves_well = False
        """It leaves by its own will, so its last beat may say `stopping`."""
        self.is_stopping = False
        self.gone: Future[None] = Future()
        self.refused_orders = 0
        self._relay: Relay | None = None
        self._owner: SessionOwner | None = None
        self._reports: deque[Report] = deque()
        self._under_way: Sequence[Report] = ()
        """Taken by the relay, not yet confirmed by the hub."""
        self._fates: dict[SavedState, bool] = {}
        """States that need no more upload, and whether the hub keeps them."""
        self._words_max = words_max
        self.retries = retries
        self._tell = tell
        self._alert_after = alert_after
        self._seq = 0
        self._told: object = builder.totals
        """What its last beat carried."""
        self._faster_from: float | None = None
        self._told_interval: float | None = None
        """How often the hub wants it to beat."""
        self._sent = self._failed = self._dropped = 0
        self._failures = dict.fromkeys(Track, 0)
        self._alerted = self._missed_hub = False
        self._connected = False

    # --- the sender's side: any thread ------------------------------------------------------------------------

    def begin(self, owner: SessionOwner, relay: Relay) -> None:
        """From now on it speaks, through this relay."""
        self._owner, self._relay = owner, relay

    def say(self, report: Report) -> None:
        """Send a report with the next message."""
        relay = self._relay
        if self.mute or relay is None or self.leaving_by is not None:
            return
        self._append(report)
        if self._mark_active is not None:
            self._note_activity()
        if not relay.rung:
            relay.ring()

    def say_last(self, report: Report, by: float) -> None:
        """The last report; it has until then to arrive."""
        relay = self._relay
        if self.mute or relay is None or self.leaving_by is not None:
            return
        self._append(report)
        self.owes_last_beat = self.builder.totals != self._told
        self.leaves_well = isinstance(report, AgentLeft)
        self.leaving_by = by
        relay.hurry()

    @property
    def seq(self) -> int:
        """The number of its last beat."""
        return self._seq

    def hurry(self) -> None:
        """Send now instead of at the end of the window."""
        if self._relay is not None and not self.mute:
            self._relay.hurry()

    def wait_until_gone(self, timeout: float) -> None:
        """Wait until its last report has arrived or was given up, no longer than this."""
        with suppress(NotInTime):
            self.gone.result(timeout)
            return
        self.leave_farewell()

    def leave_farewell(self) -> None:
        """Leave the unsent reports about its end for the next process that reaches the hub. Any thread; twice is harmless."""
        if self._relay is not None and not self.mute:
            waiting = list(self._reports)  # First: what is taken meanwhile is under way then.
            self._relay.farewells.leave([*self._under_way, *waiting])

    def beat_faster(self) -> None:
        """The hub asks about this agent, or it is unwell: beat faster for a while."""
        self._faster_from = time.monotonic()

    def follow_interval(self, interval: float) -> None:
        """The hub wants a beat so often, within what this agent promised."""
        self._told_interval = interval
        self.hurry()

    def stats(self) -> Stats:
        return Stats(
            self._sent,
            self._failed,
            max(self._failures.values()),
            len(self._reports) + len(self._under_way),
            self._dropped,
            self.refused_orders,
            self._connected,
        )

    def _note_activity(self) -> None:
        """`lifesigns run` is told that something was done, once a second at most, also while nothing can be sent. The
        sender's own reports, such as a pong, are no activity of the agent."""
        if self._mark_active is None or (activity := self.builder.activity) == self._activity:
            return
        now = time.monotonic()
        if now - self._active_at >= ACTIVE_EVERY:
            self._activity, self._active_at = activity, now
            self._mark_active()

    def _append(self, report: Report) -> None:
        if len(self._reports) >= self._words_max:
            self._drop_oldest()
        self._reports.append(report)

    def _drop_oldest(self) -> None:
        try:
            self._reports.popleft()
        except IndexError:
            return  # The relay was quicker.
        self._dropped += 1

    # --- the relay's side -------------------------------------------------------------------------------------

    def obey(self, order: Order) -> bool:
        return self._owner is not None and self._owner.obey(order)

    def introduce(self) -> None:
        """The way to the hub was lost and found, or the hub is asked whether it hears us."""
        if self._owner is not None:
            self._owner.introduce()

    def every(self, now: float) -> float:
        """Seconds between its beats now."""
        stirred, idle = self._faster_from, self.builder.idle_at
        return self.rhythm.every(
            stirred_for=None if stirred is None else now - stirred,
            idle_for=None if idle is None else now - idle,
            told=self._told_interval,
        )

    def beat(self, now: float, vitals: Vitals) -> BeatReceived:
        """Its next beat."""
        lag = stack = None
        if self.probe is not None and self.leaving_by is None:
            lag = self.probe.lag(now)
            if lag >= FROZEN_AFTER:
                self.beat_faster()
                if self.probe.asked_at is not None:  # It is frozen now: people first ask where.
                    stack = stack_of(self.probe.thread_id)
        self._seq += 1
        self._note_activity()
        self._told = self.builder.totals
        beat = self.builder.beat(self.agent_id, self.incarnation, self._seq, vitals, lag, stack)
        if self.is_stopping:
            beat.status = STOPPING
        return beat

    def stops(self) -> None:
        """Others than a hub may listen: its last beat is owed, and says `stopping`."""
        if self.leaves_well and not self.is_stopping:
            self.is_stopping = self.owes_last_beat = True

    def take(self, most: int) -> list[Report]:
        """The oldest reports, up to a checkpoint's state: that is uploaded first, and later reports wait for it."""
        taken: list[Report] = []
        self._under_way = taken
        while self._reports and len(taken) < most:
            try:
                # At every moment it is in one of the two: its agent's thread may leave a farewell right now.
                taken.append(self._reports[0])
                taken[-1] = report = self._reports.popleft()
            except IndexError:
                break  # A full queue dropped its oldest at this very time.
            if not isinstance(report, SavedState):
                continue
            if report not in self._fates:
                self._reports.appendleft(report)
                del taken[-1]
                break
            if self._fates.pop(report):
                del taken[-1]
            else:
                taken[-1] = report.saved
        return taken

    def carried(self) -> None:
        """The hub has stored what was taken."""
        self._under_way = ()

    def next_state(self) -> SavedState | None:
        """The state to upload before any further report."""
        report = next(iter(list(self._reports)), None)
        return report if isinstance(report, SavedState) and report not in self._fates else None

    def uploaded(self, state: SavedState, *, kept: bool) -> None:
        """A state is at the hub; or it never will be, and we report only its digest."""
        if any(report is state for report in list(self._reports)):
            self._fates[state] = kept
        self._sent += kept
        if kept:
            identity.mark_saved(state.saved.checkpoint_id, self.agent_id)

    def give_up_states(self) -> None:
        """There is no time left to upload: report only the digests."""
        for report in list(self._reports):
            if isinstance(report, SavedState):
                self._fates.setdefault(report, False)

    @property
    def state_bytes(self) -> int:
        """How much waits to be uploaded."""
        return sum(len(report.content) for report in list(self._reports) if isinstance(report, SavedState))

    @property
    def has_reports(self) -> bool:
        return bool(self._reports or self._under_way)

    def arrived(self, count: int, track: Track) -> None:
        """So many beats or reports arrived."""
        self._sent += count
        self._connected = True
        if not any(self._failures.values()):
            return
        failures = max(self._failures.values())
        self._failures[track] = 0
        if any(self._failures.values()):
            return
        self.introduce()
        if self._alerted:
            self._alerted = self._missed_hub = False
            self._alert(Alert(self.agent_id, True, failures, ""))

    def end(self) -> None:
        """Release the waiters for its last report."""
        self.leaving_by = 0.0
        if not self.gone.done():
            self.gone.set_result(None)

    def lost(self, error: str, track: Track) -> None:
        """A try failed."""
        self._failed += 1
        self._failures[track] += 1
        self._connected = False
        if self._failures[track] == self.retries and not self._alerted:
            self._alerted = True
            self._alert(Alert(self.agent_id, False, self._failures[track], error))

    def no_hub(self, unanswered_for: float, error: str) -> None:
        """No hub has answered for so long: after a while make one callback, until a hub answers."""
        if unanswered_for >= self._alert_after and not self._missed_hub and self.leaving_by is None:
            self._alerted = self._missed_hub = True
            failures = max(self._failures.values())
            self._alert(Alert(self.agent_id, False, failures, error, unanswered_for))

    def _alert(self, alert: Alert) -> None:
        if self._tell is not None:
            self._tell(alert)
