"""Hubs: those on the same store as this one. One judges, the others stand by."""

from __future__ import annotations

from typing import Final

from lifesigns.events.hub_facts import HubForgotten
from lifesigns.hub.lease import HubSighting
from lifesigns.views.hubs import HubList, HubState, HubView
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.routes import ADMINS, READERS, Request, Route

HUBS: Final = "/api/v1/hubs"


async def hubs(request: Request) -> Answer:
    """The hubs on the store of this one: which of them judges, which stand by, which are lost. None if this hub has its
    store for itself."""
    lease = request.service.lease
    return answer(HubList(tuple(map(_view, () if lease is None else lease.sightings()))))


async def forget(request: Request) -> Answer:
    """Forget a hub that is lost and will not come back. One that is there announces itself again within a second."""
    name, lease = request.path["name"], request.service.lease
    found = next(
        (seen for seen in (() if lease is None else lease.sightings()) if seen.row.name == name), None
    )
    if lease is None or found is None:
        raise Problem(404, f"there is no hub {name!r} on this store; lifesigns hubs lists them")
    if not found.lost:
        raise Problem(409, f"the hub {name!r} is there; stop it first")
    await lease.forget(name)
    request.service.hub.announce(HubForgotten(request.now, name, request.principal.by))
    return Answer(status=204)


def _view(seen: HubSighting) -> HubView:
    row = seen.row
    state = HubState.JUDGES if row.leads else HubState.LOST if seen.lost else HubState.STANDS_BY
    return HubView(row.name, row.url, row.version, state, round(seen.still_for, 1))


CALLS: Final = (
    Route("GET", HUBS, READERS, hubs, HubList),
    Route(
        "DELETE",
        "/api/v1/hubs/{name}",
        ADMINS,
        forget,
        None,
        status=204,
        also={404: "there is no such hub", 409: "it is there"},
    ),
)
