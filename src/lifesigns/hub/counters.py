"""The hub's own counters, for `/api/v1/fleet`, metrics and doctors.

Counted where it happens, so it must cost next to nothing: an addition, or for a `Histogram` a search in a short list.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from lifesigns.core.effects import Fact, Flip, Intervention, Refusal, Rung, Stage
from lifesigns.core.health import Health
from lifesigns.hub.forgeries import Forgeries

LATE_UP_TO: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds. A check of deadlines is late by a millisecond or two, our promise is 100 ms, and from a second on the hub
says that it stood still."""

HTTP: Final = "http"
BUS: Final = "bus"

COMMIT_UP_TO: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds. A commit on a good disk takes one or two milliseconds, a large one on a busy server a second."""


class Histogram:
    """A histogram: how many values lie between one bound and the next, and their sum."""

    __slots__ = ("counts", "total", "up_to")

    def __init__(self, up_to: Sequence[float]) -> None:
        self.up_to = up_to
        """Bounds in ascending order; each includes its own value."""
        self.counts = [0] * (len(up_to) + 1)
        """The last one counts the values above all bounds."""
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.up_to, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)


@dataclass(slots=True)
class HubCounters:
    """Counts since the hub began."""

    beats: int = 0
    reports: int = 0
    turned_away: int = 0
    """Signals that found the inbox full."""
    refused: int = 0
    """Signals that the engine refused."""
    unreadable: int = 0
    """Messages that were unreadable, or not for their sender to send."""
    not_own: Counter[str] = field(default_factory=Counter)
    """Signals about the tasks, checkpoints and messages of others, by the way they came."""
    forged: Forgeries = field(default_factory=Forgeries)
    busy: float = 0.0
    """Share of its time that the hub was busy, at the last check: see `busyness.py`."""
    looks: int = 0
    look_late: float = 0.0
    look_late_max: float = 0.0
    """How late the deadlines were checked: last time, and at worst."""
    looks_late: Histogram = field(default_factory=lambda: Histogram(LATE_UP_TO))
    found: int = 0
    found_late: float = 0.0
    found_late_max: float = 0.0
    """How long after it fell due the hub noticed a disconnection."""
    finds_late: Histogram = field(default_factory=lambda: Histogram(LATE_UP_TO))
    flips: dict[Health, int] = field(default_factory=dict)
    interventions: dict[tuple[Rung, Stage], int] = field(default_factory=dict)
    witness: Callable[[float, float, float, int], None] | None = None
    """Called after each check: when it was due, when it began and ended, how many effects it had."""

    def looked(self, due_at: float, began_at: float, ended_at: float, effects: int) -> None:
        """Count a check of deadlines. The first one finds what fell due while no hub ran: it is not late."""
        late = began_at - due_at if self.looks else 0.0
        self.looks += 1
        self.look_late = late
        self.look_late_max = max(self.look_late_max, late)
        self.looks_late.add(late)
        if self.witness is not None:
            self.witness(due_at, began_at, ended_at, effects)

    def count_fact(self, fact: Fact, now: float) -> None:
        """Count a fact of the engine."""
        if isinstance(fact, Flip):
            self.flips[fact.now] = self.flips.get(fact.now, 0) + 1
            if fact.now is Health.DISCONNECTED:
                self.found += 1
                self.found_late = now - fact.at
                self.found_late_max = max(self.found_late_max, self.found_late)
                self.finds_late.add(self.found_late)
        elif isinstance(fact, Intervention):
            step = (fact.rung, fact.stage)
            self.interventions[step] = self.interventions.get(step, 0) + 1
        elif isinstance(fact, Refusal):
            self.refused += fact.count
