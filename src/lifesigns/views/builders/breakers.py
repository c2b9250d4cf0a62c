"""Builds the list of all breakers."""

from __future__ import annotations

from collections.abc import Iterator

from lifesigns.core.beliefs import Beliefs
from lifesigns.views.agents import BreakerView
from lifesigns.views.builders.agents import breakers_of


def all_breakers(beliefs: Beliefs, now: float) -> Iterator[BreakerView]:
    """Every breaker that agents have reported in their current lives, and those of recoveries."""
    for agent_id in dict.fromkeys((*beliefs.breakers, *beliefs.lineages)):
        yield from breakers_of(agent_id, beliefs, now)
