"""An overview of the fleet, and the hub's own health."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from lifesigns.core.engine import Engine
from lifesigns.core.health import Doing, Health
from lifesigns.views.alerts import Alert
from lifesigns.views.census import census
from lifesigns.views.moments import Moment, moment, moment_or_none

SPARE_MAX = 10


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


def fleet_view(engine: Engine, hub: HubHealth, needs: tuple[Alert, ...] = ()) -> FleetView:
    """The fleet now. Looks at every agent: the caller caches it for a moment."""
    counted = census(engine.beliefs)
    waiting: list[str] = []
    if counted.doing[Doing.WAITING_FOR_HUMAN]:
        waiting = [agent.id for agent in engine.agents() if agent.doing is Doing.WAITING_FOR_HUMAN]
    groups = engine.beliefs.fleet.groups
    return FleetView(
        agents=counted.agents,
        states=counted.states,
        doing=counted.doing,
        waiting_for_human=tuple(waiting[:1000]),
        braked=tuple(name for name, group in groups.items() if group.braked),
        least_loaded=tuple(Spare(a.id, a.load, a.capacity) for a in engine.least_loaded(SPARE_MAX)),
        hub=hub,
        needs=needs,
    )


def hub_health(
    engine: Engine,
    now: float,
    *,
    inbox: int,
    look_late: float,
    look_late_max: float,
    store: str,
    bus: str,
    dead_man_switch: str,
    epoch: int,
    version: str,
) -> HubHealth:
    """The hub's health now."""
    aware, score = engine.beliefs.awareness, engine.self_doubt(now)
    return HubHealth(
        trouble=_trouble(aware.blind, store, bus, score),
        blind=aware.blind,
        blind_since=moment_or_none(aware.blind_since),
        score=score,
        truce_until=moment_or_none(aware.truce_until if aware.truce_until > now else None),
        look_late_s=round(look_late, 4),
        look_late_max_s=round(look_late_max, 4),
        inbox=inbox,
        store=store,
        bus=bus,
        dead_man_switch=dead_man_switch,
        epoch=epoch,
        version=version,
        at=moment(now),
    )


def _trouble(blind: bool, store: str, bus: str, score: int) -> str:
    if blind:
        return "blind"
    if store != "ok":
        return "store away"
    if bus not in ("ok", "none"):
        return "bus away"
    return f"in doubt ({score} of 8)" if score else ""
