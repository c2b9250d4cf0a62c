"""Builds the view of an event."""

from __future__ import annotations

import msgspec

from lifesigns.ports import Event
from lifesigns.views.events import EventView
from lifesigns.views.moments import moment


def event_view(event: Event) -> EventView:
    """The public form of a stored event."""
    data = msgspec.json.decode(event.data)
    return EventView(event.id, event.type, moment(event.at), event.agent_id, data)
