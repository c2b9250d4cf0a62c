"""The circuit breakers of all agents, as they report them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from lifesigns.core.beliefs import Beliefs
from lifesigns.views.agents import BreakerView, breakers_of


class BreakerList(Struct, frozen=True):
    """Breakers, page by page."""

    breakers: tuple[BreakerView, ...]
    cursor: str | None
    """Pass this for the next page."""


def all_breakers(beliefs: Beliefs, now: float) -> Iterator[BreakerView]:
    """Every breaker that agents have reported in their current lives."""
    for agent_id in beliefs.breakers:
        yield from breakers_of(agent_id, beliefs, now)
