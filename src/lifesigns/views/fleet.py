"""An overview of the fleet, and the hub's own health."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from lifesigns.core.health import Doing, Health
from lifesigns.views.alerts import Alert
from lifesigns.views.moments import Moment


class Spare(Struct, frozen=True):
    """An agent that has room for more work."""

    agent_id: str
    load: float | None
    capacity_available: int | None


class HubHealth(Struct, frozen=True):
    """How far the hub can be trusted right now."""

    trouble: str
    """Its trouble in a word or two; empty if there is none."""
    blind: bool
    blind_since: Moment | None
    score: int
    """Its doubt of itself, 0 to 8; every wait for an answer is that much longer."""
    truce_until: Moment | None
    look_late_s: float
    look_late_max_s: float
    inbox: int
    store: str
    """`ok`, or what is wrong with it."""
    bus: str
    """`ok`, `none`, or what is wrong with it."""
    dead_man_switch: str
    """`ok`, `none`, or why it gets no ping."""
    epoch: int
    version: str
    at: Moment
    """The hub's time of this answer."""


class FleetView(Struct, frozen=True):
    """Counts by state, agents with room, and the hub's own health."""

    agents: int
    states: Mapping[Health, int]
    doing: Mapping[Doing, int]
    waiting_for_human: tuple[str, ...]
    braked: tuple[str, ...]
    """Groups with too many unwell agents at once: the hub does nothing there until a person decides."""
    least_loaded: tuple[Spare, ...]
    hub: HubHealth
    needs: tuple[Alert, ...] = ()
    """What only a person can settle, the most urgent first: current alerts, each with its `need`."""
    missing: tuple[int, ...] = ()
    """The slots of agents that are not counted, because no hub judges them right now."""
