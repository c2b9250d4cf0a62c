"""Many agents: filtered, sorted, page by page."""

from __future__ import annotations

from msgspec import Struct

from lifesigns.views.agents import AgentHealth


class AgentList(Struct, frozen=True):
    """Agents, and how to go on: `cursor` for the next page, `updated` for later changes."""

    agents: tuple[AgentHealth, ...]
    updated: str
    cursor: str | None
    complete: bool
    """False if these are only the ones that changed since the given token."""
    gone: tuple[str, ...]
    """Agents that the hub has forgotten since then."""
    missing: tuple[int, ...] = ()
    """The slots of agents that are not in it, because no hub judges them right now."""
