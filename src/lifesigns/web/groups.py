"""Groups: agents that share a host or a provider. The hub does nothing where too many are unwell at once until a person
decides: here.
"""

from __future__ import annotations

from typing import Final

from lifesigns.core.signals import GroupReleased
from lifesigns.views.builders.groups import group_view
from lifesigns.views.groups import GroupList, GroupView
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.paging import PageQuery, page
from lifesigns.web.routes import ACTORS, READERS, Request, Route


async def groups(request: Request) -> Answer:
    """Every group: the whole fleet, each host, each provider; how many of its agents are unwell, and whether it is
    braked."""
    state = request.service.engine.beliefs.fleet.groups
    views = [group_view(name, state[name], request.now) for name in sorted(state)]
    found, cursor = page(sorted(views, key=lambda one: not one.braked), request.query)
    return answer(GroupList(tuple(found), cursor))


async def release(request: Request) -> Answer:
    """Allow interventions in a braked group for an hour. An agent is in several groups, and is left alone as long as
    one of them is braked."""
    name, service = request.path["group"], request.service
    group = service.engine.beliefs.fleet.groups.get(name)
    if group is None:
        raise Problem(404, f"there is no group {name!r}; as in 'fleet', 'host ws-1', 'provider x'")
    if not group.braked:
        raise Problem(409, f"{name!r} is not braked: {group.unwell} of {group.members} are unwell")
    await service.http_receiver.store_reports([GroupReleased(group=name, by=request.principal.by)])
    return answer(group_view(name, group, request.now), 202)


CALLS: Final = (
    Route("GET", "/api/v1/groups", READERS, groups, GroupList, query=PageQuery),
    Route(
        "POST",
        "/api/v1/groups/{group}/release",
        ACTORS,
        release,
        GroupView,
        status=202,
        also={404: "there is no such group", 409: "it is not braked"},
    ),
)
