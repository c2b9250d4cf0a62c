"""Circuit breakers of agents: as agents report them, and operated by a person.

A name is unique within one agent; several agents may have a breaker of the same name. A request is for all of them, or
for the one that `agent` names. The answer comes when the request is stored; the agent's side carries it out, and the
outcome is in the intervention's stages and in the breaker's next report.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from lifesigns.core.effects import Rung
from lifesigns.core.signals import BreakerAct, BreakerState, BreakerTurnRequested
from lifesigns.views import BreakerList, BreakerView
from lifesigns.views.builders.agents import breakers_of
from lifesigns.views.builders.breakers import all_breakers
from lifesigns.views.interventions import InterventionList
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.ids import AgentId
from lifesigns.web.interventions import ask, asked_for, request_key
from lifesigns.web.paging import PageQuery, page
from lifesigns.web.routes import ACTORS, READERS, Request, Route

AT_ONCE_MAX: Final = 1000
"""Agents whose breaker one request may operate."""


class BreakersQuery(PageQuery):
    """Which breakers: every condition that is given must hold."""

    state: tuple[BreakerState, ...] = ()
    agent: AgentId | None = None


class BreakerAgentQuery(msgspec.Struct):
    """Whose breaker of this name; without it, that of every agent with one."""

    agent: AgentId | None = None


class BreakerReasonBody(msgspec.Struct):
    """Why; it is recorded."""

    reason: Annotated[str, Meta(max_length=2000)] = ""


async def breakers(request: Request) -> Answer:
    """Every circuit breaker that agents report."""
    found, cursor = page(_wanted(request), request.query)
    return answer(BreakerList(tuple(found), cursor))


async def breaker(request: Request) -> Answer:
    """The breakers of this name, one of each agent that has it."""
    name = request.path["name"]
    named = [breaker for breaker in _wanted(request) if breaker.name == name]
    if not named:
        raise Problem(404, f"no agent reports a breaker {name!r}")
    found, cursor = page(named, request.query)
    return answer(BreakerList(tuple(found), cursor))


def _wanted(request: Request) -> Iterator[BreakerView]:
    query = request.query
    return (
        breaker
        for breaker in all_breakers(request.service.engine.beliefs, request.now)
        if (not query.state or breaker.state in query.state)
        and (query.agent is None or breaker.agent_id == query.agent)
    )


# --- turning -----------------------------------------------------------------------------------------------


async def reset(request: Request) -> Answer:
    """Close the breakers of this name and clear their state, as if they were new."""
    return await _turned(request, BreakerAct.RESET)


async def open_(request: Request) -> Answer:
    """Open the breakers of this name as if they had failed: calls are refused until their wait is over, then one is tried.
    An open one begins its wait anew."""
    return await _turned(request, BreakerAct.OPEN)


async def close(request: Request) -> Answer:
    """Close the breakers of this name and let them count from zero; the next wait is as long as the last would have been."""
    return await _turned(request, BreakerAct.CLOSE)


async def _turned(request: Request, act: BreakerAct) -> Answer:
    name = request.path["name"]
    key = f"{act} {name} {request.query.agent or ''} {request_key(request)}"
    became = await asked_for(request, Rung.BREAKER, key)
    if not became:
        became = await ask(request, Rung.BREAKER, key, _turns(request, act, name, key))
    if not became:
        raise Problem(409, f"every agent that had a breaker {name!r} ended before it could be turned")
    return answer(InterventionList(list(became.values())), 202)


def _turns(request: Request, act: BreakerAct, name: str, key: str) -> list[BreakerTurnRequested]:
    by, reason = request.principal.by, request.body.reason if request.body is not None else ""
    return [
        BreakerTurnRequested(agent_id=owner, by=by, key=key, name=name, act=act, reason=reason)
        for owner in _owners(request, name)
    ]


def _owners(request: Request, name: str) -> list[str]:
    beliefs, agent = request.service.engine.beliefs, request.query.agent
    some = (agent,) if agent is not None else dict.fromkeys((*beliefs.breakers, *beliefs.lineages))
    owners = [
        owner
        for owner in some
        if any(known.name == name for known in breakers_of(owner, beliefs, request.now))
    ]
    if not owners:
        of = "" if agent is None else f" of {agent!r}"
        raise Problem(404, f"there is no breaker {name!r}{of} that was reported in this life of its agent")
    if len(owners) > AT_ONCE_MAX:
        raise Problem(409, f"{len(owners)} agents have a breaker {name!r}: name one at a time with agent=")
    return owners


def _turning(what: str, handle: Callable[[Request], Awaitable[Any]]) -> Route:
    return Route(
        "POST",
        f"/api/v1/breakers/{{name}}/{what}",
        ACTORS,
        handle,
        InterventionList,
        query=BreakerAgentQuery,
        body=BreakerReasonBody | None,
        status=202,
        also={
            404: "no agent that lives reports a breaker of this name",
            409: "too many have one, or all ended",
            422: "this `Idempotency-Key` was used for another body",
        },
    )


CALLS: Final = (
    Route("GET", "/api/v1/breakers", READERS, breakers, BreakerList, query=BreakersQuery),
    Route(
        "GET",
        "/api/v1/breakers/{name}",
        READERS,
        breaker,
        BreakerList,
        query=BreakersQuery,
        also={404: "no agent reports a breaker of this name"},
    ),
    _turning("reset", reset),
    _turning("open", open_),
    _turning("close", close),
)
