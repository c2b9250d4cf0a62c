"""Public events: `docs/reference/http-api.md` names their types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from lifesigns.views.moments import Moment


class EventView(Struct, frozen=True):
    """Something that happened, or a fact that became true."""

    id: int
    """Rises by one with every stored event; 0 for those that are only published."""
    type: str
    at: Moment
    agent_id: str
    """The agent it is about; empty if it is the hub itself."""
    data: Mapping[str, Any]


class EventList(Struct, frozen=True):
    """Events in the order they happened."""

    events: tuple[EventView, ...]
    after: int | None
    """Pass this to go on; None if these are all for now."""
