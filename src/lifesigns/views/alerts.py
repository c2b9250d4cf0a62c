"""Alerts: what people should know, in sentences.

What is wrong right now (the hub is blind, an agent waits for a human) comes first and has no number; what happened
comes after it, the newest first.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from lifesigns.ports import NoticeSeverity
from lifesigns.views.moments import Moment


class Acknowledgement(Struct, frozen=True):
    """Somebody has acknowledged an alert: there are no reminders, unless it gets worse."""

    by: str
    at: Moment
    reason: str
    until: Moment | None
    """When reminders begin again if it still lasts; None: never."""


class NeedKind(StrEnum):
    """What a person is needed for, the most urgent first."""

    HUB = "hub"
    BRAKED = "braked"
    ESCALATED = "escalated"
    QUARANTINED = "quarantined"
    WAITING = "waiting"
    LOOK = "look"


class Need(Struct, frozen=True):
    """Something that only a person can settle."""

    kind: NeedKind
    title: str
    """Its subject: an agent, a group, or the trouble of the hub."""
    text: str
    """Why; without the title."""
    until: Moment | None = None
    """When it is decided without a person."""
    intervention_id: str = ""
    """The escalation to decide about."""
    answered: bool = False
    """Whether an answer is on its way to the waiting agent."""


class Alert(Struct, frozen=True):
    """One thing that people should know."""

    id: str
    """The number of its event; `standing:...` for what is wrong right now."""
    at: Moment | None
    """When it happened or began; None if that is unknown."""
    severity: NoticeSeverity
    type: str
    agent_id: str
    """Empty if it is about the hub, or a group."""
    text: str
    standing: bool
    what: str = ""
    """`text` after the agent's id; all of it if it is about no agent."""
    key: str = ""
    """The key of its notices and of its acknowledgement; empty if nobody is told."""
    kind: str = ""
    """Its name in silences and routes: `stuck_agent`, `needs_human` ..."""
    open: bool = False
    """Whether it still lasts. An open alert can be acknowledged."""
    group: str = ""
    """The key of the group it is sent with; empty if it is sent alone."""
    acknowledged: Acknowledgement | None = None
    silenced_by: str = ""
    """Why nobody is told of it now; empty if somebody is."""
    need: Need | None = None
    """What a person is needed for; None if nobody is, or somebody has acknowledged it."""


class AlertList(Struct, frozen=True):
    """What is wrong now, then what happened, the newest first."""

    alerts: tuple[Alert, ...]
    before: int | None
    """Pass this for older ones; None if there are none."""


class AcknowledgedAlerts(Struct, frozen=True):
    """What was acknowledged, and how."""

    keys: tuple[str, ...]
    """One key, or all of a group."""
    acknowledged: Acknowledgement


class SilenceView(Struct, frozen=True):
    """A silence: alerts that nobody is told about for a while. An empty field matches all."""

    id: str
    agents: tuple[str, ...]
    """Ids, or patterns such as `build-*`."""
    kinds: tuple[str, ...]
    """Names of alerts, or of the events they are made from."""
    roles: tuple[str, ...]
    by: str
    reason: str
    from_at: Moment | None
    """None: from the beginning."""
    until_at: Moment | None
    """None: for good."""
    active: bool
    """Whether it is active right now."""
    configured: bool
    """It comes from the hub's configuration, and ends there."""


class SilenceList(Struct, frozen=True):
    """All silences, those of the configuration first."""

    silences: tuple[SilenceView, ...]
