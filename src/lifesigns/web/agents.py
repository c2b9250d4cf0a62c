"""Agents: what is believed about them, and their last beat."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from lifesigns import views
from lifesigns.assembly.messages import OURS
from lifesigns.core.agent import Agent
from lifesigns.views import AgentHealth, AgentList, LastBeat, Wanted, listing, moment
from lifesigns.views.calls import CallHistoryView, call_tape
from lifesigns.views.rhythm import Rhythm, rhythm_of
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.calls import EVERYBODY, READERS, Asked, Call
from lifesigns.web.ids import AgentId

LIMIT_MAX: Final = 1000
IDS_MAX: Final = 100
"""So that the address stays well below what proxies take: an id may have 128 signs."""


class AgentsQuery(Wanted, frozen=True):
    """Which agents, how many, from where."""

    id: Annotated[tuple[AgentId, ...], Meta(max_length=IDS_MAX)] = ()
    """Only these; one that is not known is left out. Costs what they cost, however many others there are."""
    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 100
    cursor: Annotated[str, Meta(pattern="^[0-9]{1,18}$")] | None = None
    """From the answer before: the next page."""
    since: str | None = None
    """`updated` of an earlier answer: only what changed since."""
    sort: Literal["first_heard", "need"] = "first_heard"
    """`need`: who needs somebody most comes first; this has no further pages."""


async def agents(asked: Asked) -> Answer:
    """Agents that match all filters, page by page; or with `since` only those that changed."""
    service, query, now = asked.service, asked.query, asked.now
    changes = service.hub.changes
    changed_at = changes.moment(query.since) if query.since else None
    if changed_at is None:
        matches = query.matches
    else:
        since: float = changed_at

        def matches(agent: Agent) -> bool:
            return changes.since(agent, since) and bool(query.matches(agent))

    among = _named(asked) if query.id else service.engine.agents()
    if query.sort == "need":
        found, more = listing.neediest(among, matches, query.limit), None
    else:
        after = int(query.cursor) if query.cursor else -1
        found, more = listing.page(among, matches, query.limit, after)
    beliefs = service.engine.beliefs
    return answer(
        AgentList(
            agents=tuple(views.agent_health(agent, beliefs, now) for agent in found),
            updated=changes.token(now),
            cursor=None if more is None else str(more),
            complete=changed_at is None,
            gone=() if changed_at is None else tuple(changes.gone_since(changed_at)),
        )
    )


def _named(asked: Asked) -> list[Agent]:
    """Those that were asked for by name, in the order they were first heard of."""
    found = [asked.service.engine.agent(agent_id) for agent_id in dict.fromkeys(asked.query.id)]
    return sorted((agent for agent in found if agent is not None), key=lambda agent: agent.order)


async def agent(asked: Asked) -> Answer:
    """Everything that is believed about one agent."""
    return answer(views.agent_health(known(asked), asked.service.engine.beliefs, asked.now))


async def heartbeat(asked: Asked) -> Answer:
    """The agent's last beat as it was received."""
    last = asked.service.last_beat(known(asked).id)
    if last is None:
        raise Problem(404, f"{asked.path['agent_id']!r} has not beaten since this hub started")
    beat, received_at = last
    said = {
        name: value
        for name, value in msgspec.to_builtins(beat).items()
        if value is not None and value != () and name not in OURS
    }
    return answer(LastBeat(moment(received_at), said))


async def calls(asked: Asked) -> Answer:
    """Its last tool calls, oldest first, with their repeats marked; and the calls it is in. Names and digests, no contents."""
    return answer(call_tape(known(asked)))


async def rhythm(asked: Asked) -> Answer:
    """When its beats come, when the next one should, how surprising its silence is by now."""
    found, engine = known(asked), asked.service.engine
    return answer(rhythm_of(found, engine.policy_of(found).silence, asked.now))


def known(asked: Asked) -> Agent:
    """The agent in the path, or the problem that there is none."""
    agent_id = asked.path["agent_id"]
    found = asked.service.engine.agent(agent_id)
    if found is None:
        raise Problem(404, f"no agent {agent_id!r} has been heard of")
    return found


CALLS: Final = (
    Call("GET", "/api/v1/agents", READERS, agents, AgentList, query=AgentsQuery),
    Call("GET", "/api/v1/agents/{agent_id}", EVERYBODY, agent, AgentHealth),
    Call("GET", "/api/v1/agents/{agent_id}/heartbeat", EVERYBODY, heartbeat, LastBeat),
    Call("GET", "/api/v1/agents/{agent_id}/calls", EVERYBODY, calls, CallHistoryView),
    Call("GET", "/api/v1/agents/{agent_id}/rhythm", EVERYBODY, rhythm, Rhythm),
)
