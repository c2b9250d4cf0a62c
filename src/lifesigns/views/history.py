"""History: an agent's life in the order of time, with a limited number of points.

Changes are worth more than the time between them: with too many points, samples are merged first, then the oldest
findings go, and flips and interventions only when nothing else is left.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from lifesigns.core.effects import (
    Kind,
    Rung,
    Severity,
    Stage,
)
from lifesigns.core.health import Cause, Health
from lifesigns.views.moments import Moment


class SamplePoint(Struct, frozen=True, tag_field="type", tag="sample"):
    """A stretch of an agent's life in numbers, a minute or longer; None where it reported nothing."""

    at: Moment
    beats: int
    late_max_s: float
    """The latest beat, after it was expected."""
    load: float | None
    cpu_percent: float | None
    memory_mb: float | None
    token_count: int | None
    """Of its life so far, like cost and errors."""
    cost_usd: float | None
    error_count: int | None


class FlipPoint(Struct, frozen=True, tag_field="type", tag="flip"):
    """Its health changed."""

    at: Moment
    event_id: int
    was: Health = msgspec.field(name="from")
    to: Health
    reason: str
    cause: Cause | None


class FindingPoint(Struct, frozen=True, tag_field="type", tag="finding"):
    """A detector noticed something, or it is over."""

    at: Moment
    event_id: int
    kind: Kind
    open: bool
    severity: Severity | None
    """None when it is over, like text and numbers."""
    text: str | None
    numbers: Mapping[str, int | float | str] | None


class InterventionPoint(Struct, frozen=True, tag_field="type", tag="intervention"):
    """A step of the ladder came this far."""

    at: Moment
    event_id: int
    id: str
    rung: Rung
    stage: Stage
    attempt: int
    text: str
    by: str
    """Who ordered it; empty if the hub did it by its policy."""


Point = SamplePoint | FlipPoint | FindingPoint | InterventionPoint


class History(Struct, frozen=True):
    """What happened to an agent, in the order of time."""

    agent_id: str
    since: Moment = msgspec.field(name="from")
    to: Moment
    points: tuple[Point, ...]
    complete: bool
    """False if there was more than fits: samples were merged, or the oldest points left out."""
    unreadable: int = 0
    """Events that could not be read, and are left out."""
