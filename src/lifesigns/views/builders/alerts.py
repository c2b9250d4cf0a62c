"""Builds alerts from events."""

from __future__ import annotations

from typing import Final

from lifesigns.events import CATALOGUE, fact_of
from lifesigns.ports import Event
from lifesigns.views.alerts import Alert
from lifesigns.views.moments import moment

TYPES: Final = tuple(row.name for row in CATALOGUE.values() if row.level is not None)
"""Events that may be alerts."""


def alert_of(event: Event) -> Alert | None:
    """The alert of an event; None if it is none."""
    fact = fact_of(event)
    alerting = None if fact is None else CATALOGUE[event.type].alerting(fact)
    if alerting is None:
        return None
    level, text = alerting
    return Alert(str(event.id), moment(event.at), level, event.type, event.agent_id, text, standing=False)
