"""Agents: what the engine believes about them, and their last beat."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from lifesigns.core.agent import Agent
from lifesigns.views import AgentHealth, AgentList, LastBeat, moment
from lifesigns.views.builders import listing
from lifesigns.views.builders.agents import agent_health
from lifesigns.views.builders.calls import call_tape
from lifesigns.views.builders.listing import AgentFilter
from lifesigns.views.builders.rhythm import rhythm_of
from lifesigns.views.calls import CallHistoryView
from lifesigns.views.rhythm import Rhythm
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.ids import AgentId
from lifesigns.web.routes import EVERYBODY, READERS, Request, Route
from lifesigns.wire.limits import OURS

LIMIT_MAX: Final = 1000
IDS_MAX: Final = 100
"""Keeps the address well below the limits of proxies: an id may have 128 characters."""


class AgentsQuery(AgentFilter, frozen=True):
    """Which agents, how many, from where."""

    id: Annotated[tuple[AgentId, ...], Meta(max_length=IDS_MAX)] = ()
    """Only these; an unknown one is left out. Costs what they cost, however many others there are."""
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 100
    cursor: Annotated[str, Meta(pattern="^[0-9]{1,18}$")] | None = None
    """From the answer before: the next page."""
    since: str | None = None
    """`updated` of an earlier answer: only what changed since."""
    sort: Literal["first_heard", "need"] = "first_heard"
    """`need`: the agents that most need a person come first; this has no further pages."""


async def agents(request: Request) -> Answer:
    """Agents that match all filters, page by page; or with `since` only those that changed."""
    service, query, now = request.service, request.query, request.now
    changes = service.hub.changes
    changed_at = changes.moment(query.since) if query.since else None
    if changed_at is None:
        matches = query.matches
    else:
        since: float = changed_at

        def matches(agent: Agent) -> bool:
            return changes.since(agent, since) and bool(query.matches(agent))

    among = _named(request) if query.id else service.engine.agents()
    if query.sort == "need":
        found, more = listing.neediest(among, matches, query.limit), None
    else:
        after = int(query.cursor) if query.cursor else -1
        found, more = listing.page(among, matches, query.limit, after)
    beliefs = service.engine.beliefs
    return answer(
        AgentList(
            agents=tuple(agent_health(agent, beliefs, now) for agent in found),
            updated=changes.token(service.engine.now),
            cursor=None if more is None else str(more),
            complete=changed_at is None,
            gone=() if changed_at is None else _gone(request, changed_at),
        )
    )


def _gone(request: Request, since: float) -> tuple[str, ...]:
    """Who was forgotten since, and has not been heard of again."""
    engine = request.service.engine
    return tuple(one for one in request.service.hub.changes.gone_since(since) if engine.agent(one) is None)


def _named(request: Request) -> list[Agent]:
    """The agents in the query, in the order they were first heard."""
    found = [request.service.engine.agent(agent_id) for agent_id in dict.fromkeys(request.query.id)]
    return sorted((agent for agent in found if agent is not None), key=lambda agent: agent.order)


async def agent(request: Request) -> Answer:
    """Everything the hub believes about one agent."""
    return answer(agent_health(known(request), request.service.engine.beliefs, request.now))


async def heartbeat(request: Request) -> Answer:
    """The agent's last beat as it was received."""
    last = request.service.hub.last_beat(known(request).id)
    if last is None:
        raise Problem(404, f"{request.path['agent_id']!r} has not beaten since this hub started")
    beat, received_at = last
    said = {
        name: value
        for name, value in msgspec.to_builtins(beat).items()
        if value is not None and value != () and name not in OURS
    }
    return answer(LastBeat(moment(received_at), said))


async def calls(request: Request) -> Answer:
    """Its last tool calls, oldest first, with their repeats marked; and the calls it is in. Names and digests, no contents."""
    return answer(call_tape(known(request)))


async def rhythm(request: Request) -> Answer:
    """When its beats come, when the next one should, how surprising its silence is by now."""
    found, engine = known(request), request.service.engine
    return answer(rhythm_of(found, engine.policy_of(found).silence, request.now))


def known(request: Request) -> Agent:
    """The agent in the path; raises a `Problem` if there is none."""
    agent_id = request.path["agent_id"]
    found = request.service.engine.agent(agent_id)
    if found is None:
        raise Problem(404, f"no agent {agent_id!r} has been heard of")
    return found


CALLS: Final = (
    Route("GET", "/api/v1/agents", READERS, agents, AgentList, query=AgentsQuery),
    Route("GET", "/api/v1/agents/{agent_id}", EVERYBODY, agent, AgentHealth),
    Route("GET", "/api/v1/agents/{agent_id}/heartbeat", EVERYBODY, heartbeat, LastBeat),
    Route("GET", "/api/v1/agents/{agent_id}/calls", EVERYBODY, calls, CallHistoryView),
    Route("GET", "/api/v1/agents/{agent_id}/rhythm", EVERYBODY, rhythm, Rhythm),
)
