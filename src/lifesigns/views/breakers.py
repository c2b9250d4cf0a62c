"""The circuit breakers of all agents, as they report them, and those of their recoveries."""

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
    """Every breaker that agents have reported in their current lives, and those of recoveries."""
    for agent_id in dict.fromkeys((*beliefs.breakers, *beliefs.lineages)):
        yield from breakers_of(agent_id, beliefs, now)
