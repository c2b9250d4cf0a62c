"""Alerts: what people should know, in sentences.

What stands right now (the hub is blind, an agent waits for a human) comes first and has no number; what happened comes
from the events that are kept. The law: an event that a person can do nothing about is no alert.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from lifesigns.events import CATALOGUE, fact_of
from lifesigns.ports import Event, NoticeSeverity
from lifesigns.views.moments import Moment, moment

TYPES: Final = tuple(row.name for row in CATALOGUE.values() if row.level is not None)
"""Events that may be alerts."""


class Acknowledgement(Struct, frozen=True):
    """Somebody has taken an alert on: nobody is reminded of it, unless it gets worse."""

    by: str
    at: Moment
    reason: str
    until: Moment | None
    """When people are reminded again if it still lasts; None: not at all."""


class NeedKind(StrEnum):
    """What a person is needed for, the most urgent first."""

    HUB = "hub"
    BRAKED = "braked"
    ESCALATED = "escalated"
    QUARANTINED = "quarantined"
    WAITING = "waiting"
    LOOK = "look"


class Need(Struct, frozen=True):
    """What only a person can settle."""

    kind: NeedKind
    title: str
    """Whom or what it is about: an agent, a group, what is wrong with the hub."""
    text: str
    """Why; without the title."""
    until: Moment | None = None
    """When it is decided without a person."""
    intervention_id: str = ""
    """The escalation to decide about."""
    answered: bool = False
    """Whether an answer is on its way to the agent that waits."""


class Alert(Struct, frozen=True):
    """One thing that people should know."""

    id: str
    """The number of its event; `standing:...` for what is so right now."""
    at: Moment | None
    """When it happened, or since when it is so; None if that is not known."""
    severity: NoticeSeverity
    type: str
    agent_id: str
    """Empty if it is about the hub, or a group."""
    text: str
    standing: bool
    what: str = ""
    """`text` as it goes on after the agent's id; all of it if it is about no agent."""
    key: str = ""
    """Under which people are told of it, and under which it can be acknowledged; empty if nobody is told."""
    kind: str = ""
    """What silences and routes call it: `stuck_agent`, `needs_human` ..."""
    open: bool = False
    """Whether it still lasts. What is open can be acknowledged."""
    group: str = ""
    """The key under which it is told together with others; empty if it is told alone."""
    acknowledged: Acknowledgement | None = None
    silenced_by: str = ""
    """Why nobody is told of it now; empty if somebody is."""
    need: Need | None = None
    """What a person is needed for; None if nobody is, or somebody has taken it on."""


class AlertList(Struct, frozen=True):
    """What stands now, then what happened, the newest first."""

    alerts: tuple[Alert, ...]
    before: int | None
    """Ask with this for older ones; None if there are none."""


class AcknowledgedAlerts(Struct, frozen=True):
    """What was acknowledged, and with which words."""

    keys: tuple[str, ...]
    """One, or all that were told under the key of a group."""
    acknowledged: Acknowledgement


class SilenceView(Struct, frozen=True):
    """Alerts nobody wants to hear of for a while. What is empty fits all."""

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
    """Whether it holds right now."""
    configured: bool
    """It stands in the hub's configuration, and is ended there."""


class SilenceList(Struct, frozen=True):
    """All silences, those of the configuration first."""

    silences: tuple[SilenceView, ...]


def alert_of(event: Event) -> Alert | None:
    """An event as an alert; None if it is none."""
    fact = fact_of(event)
    told = None if fact is None else CATALOGUE[event.type].alerting(fact)
    if told is None:
        return None
    level, text = told
    return Alert(str(event.id), moment(event.at), level, event.type, event.agent_id, text, standing=False)
