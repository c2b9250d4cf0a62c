"""Recoveries of the whole fleet: in progress, ended, and how often they succeeded."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.config import durations
from lifesigns.ports import Event
from lifesigns.views.builders.recoveries import TYPES, active_recoveries, recoveries_view
from lifesigns.views.recoveries import Recoveries
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.routes import READERS, Request, Route

READ: Final = 1000
READS_MAX: Final = 10
"""Reads of `READ` events each, at most."""


class RecoveriesQuery(msgspec.Struct, rename={"for_": "for"}):
    """Of which time, and how much of it."""

    for_: Annotated[str, Meta(max_length=64, examples=["1h", "7d"])] = "7d"
    """How far back to count: seconds, or a number with a unit."""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    """How many steps are listed; the counts are of all."""


async def recoveries(request: Request) -> Answer:
    """Agents that are being respawned or wait for a person's decision about it, what happened before, and the share
    that succeeded."""
    query = request.query
    try:
        since = max(0.0, request.now - durations.parse(query.for_))
    except ValueError as error:
        raise Problem(400, str(error), field="for") from None
    events, complete = await _told(request, since)
    active = active_recoveries(request.service.engine)
    return answer(recoveries_view(active, events, query.limit, complete=complete))


async def _told(request: Request, since: float) -> tuple[list[Event], bool]:
    """The events, the newest first, and whether these are all."""
    found: list[Event] = []
    until: int | None = None
    for _ in range(READS_MAX):
        read = await request.service.store.events(
            until=until, since=since, types=TYPES, newest_first=True, limit=READ
        )
        found.extend(read)
        if len(read) < READ:
            return found, True
        until = read[-1].id - 1
    return found, False


CALLS: Final = (Route("GET", "/api/v1/recoveries", READERS, recoveries, Recoveries, query=RecoveriesQuery),)
