"""The fleet at a glance."""

from __future__ import annotations

from typing import Final

from lifesigns.views import FleetView
from lifesigns.web.answers import Answer, answer
from lifesigns.web.routes import READERS, Request, Route


async def fleet(request: Request) -> Answer:
    """Counts by state, which agents have room for more work, and how far the hub itself can be trusted."""
    return answer(request.site.fleet_snapshot.fleet())


CALLS: Final = (Route("GET", "/api/v1/fleet", READERS, fleet, FleetView),)
