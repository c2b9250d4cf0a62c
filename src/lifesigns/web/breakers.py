"""Circuit breakers of agents, as they report them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lifesigns.core.signals import BreakerState
from lifesigns.views import BreakerList, BreakerView
from lifesigns.views.breakers import all_breakers
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.calls import READERS, Asked, Call
from lifesigns.web.ids import AgentId
from lifesigns.web.paging import Paged, page


class BreakersQuery(Paged):
    """Which breakers: every condition that is given must hold."""

    state: tuple[BreakerState, ...] = ()
    agent: AgentId | None = None


async def breakers(asked: Asked) -> Answer:
    """Every circuit breaker that agents report."""
    found, cursor = page(_wanted(asked), asked.query)
    return answer(BreakerList(tuple(found), cursor))


async def breaker(asked: Asked) -> Answer:
    """The breakers of this name, one of each agent that has it."""
    name = asked.path["name"]
    named = [breaker for breaker in _wanted(asked) if breaker.name == name]
    if not named:
        raise Problem(404, f"no agent reports a breaker {name!r}")
    found, cursor = page(named, asked.query)
    return answer(BreakerList(tuple(found), cursor))


def _wanted(asked: Asked) -> Iterator[BreakerView]:
    query = asked.query
    return (
        breaker
        for breaker in all_breakers(asked.service.engine.beliefs)
        if (not query.state or breaker.state in query.state)
        and (query.agent is None or breaker.agent_id == query.agent)
    )


CALLS: Final = (
    Call("GET", "/api/v1/breakers", READERS, breakers, BreakerList, query=BreakersQuery),
    Call(
        "GET",
        "/api/v1/breakers/{name}",
        READERS,
        breaker,
        BreakerList,
        query=BreakersQuery,
        also={404: "no agent reports a breaker of this name"},
    ),
)
