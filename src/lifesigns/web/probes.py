"""Probes: whether the process lives, and whether it can do its work."""

from __future__ import annotations

from typing import Final

from lifesigns.views import Alive, Ready
from lifesigns.web.answers import Answer, answer
from lifesigns.web.routes import NO_TOKEN, READERS, Request, Route

WELL: Final = ("ok", "none")


async def healthz(request: Request) -> Answer:
    """Whether the process lives."""
    return answer(Alive())


async def readyz(request: Request) -> Answer:
    """Whether store and bus work and the hub can see: 503 if not. A hub that is blind because it is overloaded stays
    ready: to send its agents elsewhere would make them silent. The details, with paths and addresses, are only for
    those who may see the fleet; all others get `away`."""
    service, aware = request.service, request.service.engine.beliefs.awareness
    store, bus, blind = service.store_state, service.bus_state, aware.blind
    ready = store in WELL and bus in WELL and (not blind or aware.overloaded)
    if request.who is None or request.who.role not in READERS:
        store, bus = (state if state in WELL else "away" for state in (store, bus))
    return answer(Ready("ok" if ready else "unready", store, bus, blind), 200 if ready else 503)


CALLS: Final = (
    Route("GET", "/healthz", NO_TOKEN, healthz, Alive),
    Route("GET", "/readyz", NO_TOKEN, readyz, Ready, also={503: "something is missing"}, also_at=(503,)),
)
