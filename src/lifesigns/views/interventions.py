"""Interventions: each step of the ladder, and how far it came."""

from __future__ import annotations

from msgspec import Struct

from lifesigns.core.effects import Rung, Stage
from lifesigns.core.health import FailureClass
from lifesigns.views.moments import Moment


class StageReached(Struct, frozen=True):
    """A stage that an intervention reached, and when."""

    at: Moment
    stage: Stage
    attempt: int
    text: str
    by: str


class InterventionRecord(Struct):
    """One intervention from its order to its outcome."""

    id: str
    agent_id: str
    rung: Rung
    stage: Stage
    attempt: int
    reason: str
    by: str
    """Who ordered it; empty if the hub did it by its policy."""
    ordered_at: Moment
    open: bool
    stages: list[StageReached]
    failure_class: FailureClass | None = None
    """That of the failure it is to mend, when it was ordered."""


class InterventionList(Struct):
    """The newest first."""

    interventions: list[InterventionRecord]
