"""Vitals: a hub and its fleet in plain numbers, as they are at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from lifesigns.core.effects import Kind, Rung, Stage
from lifesigns.core.health import Doing, Health
from lifesigns.core.signals import BreakerState

PER_AGENT_MAX: Final = 200
"""In a larger fleet agents are not shown one by one: four series each is what a scrape can carry without anybody
noticing, and 50,000 series hold up the hub for a second. Its API has every agent."""


class Spread(Protocol):
    """How values are spread: `counts[n]` of them are at most `up_to[n]` and above the bound before; the last is the rest."""

    @property
    def up_to(self) -> Sequence[float]: ...

    @property
    def counts(self) -> Sequence[int]: ...

    @property
    def total(self) -> float: ...


@dataclass(frozen=True, slots=True)
class AgentVitals:
    """One agent."""

    id: str
    up: bool
    beat_at: float | None
    """None: it was never heard."""
    tokens: int
    cost_usd: float


@dataclass(frozen=True, slots=True)
class Vitals:
    """What is counted is counted since the hub began; everything else is as it is now."""

    version: str
    epoch: int

    # the fleet
    states: Mapping[Health, int]
    doing: Mapping[Doing, int]
    findings: Mapping[Kind, int]
    breakers: Mapping[BreakerState, int]
    flips: Mapping[Health, int]
    interventions: Mapping[tuple[Rung, Stage], int]
    each: Sequence[AgentVitals]
    """Empty in a fleet of more than `PER_AGENT_MAX`."""

    # what comes in
    beats: int
    reports: int
    refused: int
    unreadable: int
    turned_away: int
    dropped: int
    """Messages on the bus that came faster than they were heard."""
    inbox: int

    # the hub itself
    found_late: Spread
    looks_late: Spread
    look_late: float
    blind: bool
    score: int
    orders_waiting: int
    listeners: int
    answers: Mapping[int, int]
    """HTTP answers by status class: 2 for 2xx."""

    # what it leans on
    store_up: bool
    bus_up: bool | None
    """None: it has no bus."""
    commits: Spread
    events_kept: int
    events_lost: int
