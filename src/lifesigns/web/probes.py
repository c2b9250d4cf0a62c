"""Probes: whether the process lives, and whether it can do its work."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from lifesigns.core.health import Health
from lifesigns.views import AgentAlive, Alive, Ready
from lifesigns.views.builders.agents import agent_health
from lifesigns.web.agents import known
from lifesigns.web.answers import Answer, answer
from lifesigns.web.routes import EVERYBODY, NO_TOKEN, READERS, Request, Route

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


class AgentProbeQuery(Struct):
    """From which state on an agent counts as unwell."""

    at: Literal["degraded", "stuck", "failing", "disconnected"] = "disconnected"


async def agent_healthz(request: Request) -> Answer:
    """Whether one agent lives, by its status: 503 if it is disconnected (silent, crashed, frozen) or has ended. With `at=stuck`
    and the like from that state on. A hub that cannot see says 200: nobody is to be restarted for that."""
    agent = known(request)
    unwell = agent.health in _UNWELL_FROM[request.query.at]
    seen = agent_health(agent, request.service.engine.beliefs, request.now)
    return answer(AgentAlive("unwell" if unwell else "ok", str(seen.state), seen.why), 503 if unwell else 200)


_BY_NEED: Final = (Health.DEGRADED, Health.STUCK, Health.FAILING, Health.DISCONNECTED, Health.TERMINATED)
_UNWELL_FROM: Final = {str(state): frozenset(_BY_NEED[at:]) for at, state in enumerate(_BY_NEED)}

CALLS: Final = (
    Route(
        "GET",
        "/healthz/{agent_id}",
        EVERYBODY,
        agent_healthz,
        AgentAlive,
        query=AgentProbeQuery,
        also={503: "it is unwell"},
        also_at=(503,),
    ),
    Route("GET", "/healthz", NO_TOKEN, healthz, Alive),
    Route("GET", "/readyz", NO_TOKEN, readyz, Ready, also={503: "something is missing"}, also_at=(503,)),
)
