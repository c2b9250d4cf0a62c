"""Claims that were recovered: locks in the issue tracker whose worker was lost."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.config import durations
from lifesigns.views.claims import TYPES, RecoveredClaims, recovered_claims
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.routes import READERS, Request, Route


class RecoveredQuery(msgspec.Struct, rename={"for_": "for"}):
    """Of which time, and how many."""

    for_: Annotated[str, Meta(max_length=64, examples=["1h", "7d"])] = "7d"
    """The last so many seconds, or a number with a unit."""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


async def recovered(request: Request) -> Answer:
    """Locks of lost workers that were released in the issue tracker, the newest first."""
    query = request.query
    try:
        since = max(0.0, request.now - durations.parse(query.for_))
    except ValueError as error:
        raise Problem(400, str(error), field="for") from None
    events = await request.service.store.events(
        since=since, types=TYPES, newest_first=True, limit=query.limit
    )
    return answer(recovered_claims(events))


CALLS: Final = (
    Route("GET", "/api/v1/claims/recovered", READERS, recovered, RecoveredClaims, query=RecoveredQuery),
)
