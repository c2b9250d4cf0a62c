"""Events as they are told: `docs/reference/http-api.md` names their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from lifesigns.ports import Event
from lifesigns.views.moments import Moment, moment


class EventView(Struct, frozen=True):
    """Something that happened, or a fact that became true."""

    id: int
    """Rises by one with every event that is kept; 0 for those that are only told."""
    type: str
    at: Moment
    agent_id: str
    """Whom it is about; empty if it is the hub itself."""
    data: Mapping[str, Any]


class EventList(Struct, frozen=True):
    """Events in the order they happened."""

    events: tuple[EventView, ...]
    after: int | None
    """Ask with this to go on; None if these are all there are now."""


def event_view(event: Event) -> EventView:
    """An event as it was kept."""
    data = msgspec.json.decode(event.data)
    return EventView(event.id, event.type, moment(event.at), event.agent_id, data)
