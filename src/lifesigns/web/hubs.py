"""Hubs: those on the same store as this one. One judges, the others stand by."""

from __future__ import annotations

from typing import Final

from lifesigns.events.hub_facts import HubDrained, HubForgotten, HubResumed
from lifesigns.hub.lease import HubSighting, Lease
from lifesigns.views.hubs import HubList, HubState, HubView
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.forwarded import REACHED
from lifesigns.web.routes import ADMINS, READERS, Request, Route

HUBS: Final = "/api/v1/hubs"


async def hubs(request: Request) -> Answer:
    """The hubs on the store of this one: which of them judges, which stand by, which are lost. None if this hub has its
    store for itself."""
    lease = request.service.lease
    if lease is None:
        return answer(HubList(()))
    here = request.scope.get(REACHED, lease.name)
    return answer(HubList(tuple(_view(seen, here) for seen in lease.sightings())))


async def forget(request: Request) -> Answer:
    """Forget a hub that is lost and will not come back. One that is there announces itself again within a second."""
    lease, found = _named(request)
    name = found.row.name
    if not found.lost:
        raise Problem(409, f"the hub {name!r} is there; stop it first")
    await lease.forget(name)
    request.service.hub.announce(HubForgotten(request.now, name, request.principal.by))
    return Answer(status=204)


async def drain(request: Request) -> Answer:
    """Let a hub hand over, and not judge until it is started anew or resumed; before its machine is worked on. It hands over
    within seconds, and stands by meanwhile; it takes over only if no other hub does."""
    lease, found = _named(request)
    name = found.row.name
    if found.lost:
        raise Problem(409, f"the hub {name!r} is lost; lifesigns hubs forget {name} if it will not come back")
    if found.row.leads and not any(
        seen.row.name != name and seen.can_take_over for seen in lease.sightings()
    ):
        raise Problem(409, f"the hub {name!r} judges, and no other hub stands by to take over from it")
    # Before it hands over: what it stores after that is another hub's.
    request.service.hub.announce(HubDrained(request.now, name, request.principal.by))
    await request.service.hub.committer.wait_until_stored()
    await lease.drain(name)
    return Answer(status=204)


async def resume(request: Request) -> Answer:
    """Let a hub that was drained take over again when it is its turn."""
    lease, found = _named(request)
    await lease.drain(found.row.name, drained=False)
    request.service.hub.announce(HubResumed(request.now, found.row.name, request.principal.by))
    return Answer(status=204)


def _named(request: Request) -> tuple[Lease, HubSighting]:
    name, lease = request.path["name"], request.service.lease
    found = next(
        (seen for seen in (() if lease is None else lease.sightings()) if seen.row.name == name), None
    )
    if lease is None or found is None:
        raise Problem(404, f"there is no hub {name!r} on this store; lifesigns hubs lists them")
    return lease, found


def _view(seen: HubSighting, here: str) -> HubView:
    row = seen.row
    if row.leads:
        state = HubState.JUDGES
    elif seen.lost:
        state = HubState.LOST
    else:
        state = HubState.DRAINED if row.drained else HubState.STANDS_BY
    ready = row.leads or (row.copied >= 0 and not seen.lost)
    return HubView(
        row.name, row.url, row.version, state, round(seen.still_for, 1), ready, row.zone, row.name == here
    )


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
    Route(
        "POST",
        "/api/v1/hubs/{name}/drain",
        ADMINS,
        drain,
        None,
        status=204,
        also={404: "there is no such hub", 409: "it is lost, or judges and no other hub could"},
    ),
    Route(
        "DELETE",
        "/api/v1/hubs/{name}/drain",
        ADMINS,
        resume,
        None,
        status=204,
        also={404: "there is no such hub"},
    ),
)
