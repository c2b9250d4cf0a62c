"""The circuit breakers of all agents, as they report them, and those of their recoveries."""

from __future__ import annotations

from msgspec import Struct

from lifesigns.views.agents import BreakerView


class BreakerList(Struct, frozen=True):
    """Breakers, page by page."""

    breakers: tuple[BreakerView, ...]
    cursor: str | None
    """Pass this for the next page."""
