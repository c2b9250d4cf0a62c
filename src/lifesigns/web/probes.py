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
    """Whether store and bus are there and the hub can see: 503 if not. A hub that is blind because it is overloaded stays
    ready: whoever sent its agents elsewhere would make them silent. What exactly is wrong, with paths and addresses, is shown
    only to those who may see the fleet; to all others it is `away`."""
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
