"""Fleet snapshot: the fleet in numbers. It reads every agent, so all requests within a second get the same."""

from __future__ import annotations

from typing import Final

from lifesigns import __version__
from lifesigns.hub.service import Service
from lifesigns.views import FleetView, HubHealth
from lifesigns.views.builders.fleet import fleet_view, hub_health
from lifesigns.views.builders.standing_alerts import needs
from lifesigns.web.alerts import all_standing

KEPT_FOR: Final = 1.0


class FleetSnapshot:
    """Reads the fleet at most once a second."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._seen: FleetView | None = None
        self._seen_at = 0.0

    def fleet(self) -> FleetView:
        """Counts by state, agents with room, and the hub's own health."""
        now = self._service.clock()
        if self._seen is None or now - self._seen_at >= KEPT_FOR:
            who = needs(all_standing(self._service))
            self._seen, self._seen_at = fleet_view(self._service.engine, self._hub(now), who), now
        return self._seen

    def _hub(self, now: float) -> HubHealth:
        service = self._service
        counters = service.hub.counters
        return hub_health(
            service.engine,
            now,
            inbox=service.hub.inbox.waiting,
            look_late=counters.look_late,
            look_late_max=counters.look_late_max,
            store=service.store_state,
            bus=service.bus_state,
            dead_man_switch=service.dead_man_state,
            epoch=service.hub.epoch,
            version=__version__,
        )
