"""Builds the overview of the fleet and the hub's own health."""

from __future__ import annotations

from lifesigns.core.engine import Engine
from lifesigns.core.health import Doing
from lifesigns.views.alerts import Alert
from lifesigns.views.builders.census import census
from lifesigns.views.fleet import FleetView, HubHealth, Spare
from lifesigns.views.moments import moment, moment_or_none

SPARE_MAX = 10


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
