"""Claims that were recovered because their worker was lost, at the hub and in the issue tracker."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.config import durations
from lifesigns.views.builders.claims import TYPES, recovered_claims
from lifesigns.views.claims import RecoveredClaim, RecoveredClaims
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.routes import READERS, Request, Route

READ: Final = 1000
READS_MAX: Final = 10
"""Reads of `READ` events each, at most: among them are claims that were granted or given back."""


class RecoveredQuery(msgspec.Struct, rename={"for_": "for"}):
    """Of which time, and how many."""

    for_: Annotated[str, Meta(max_length=64, examples=["1h", "7d"])] = "7d"
    """The last so many seconds, or a number with a unit."""
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


async def recovered(request: Request) -> Answer:
    """Claims of lost workers that were released, at the hub and in the issue tracker, the newest first."""
    query = request.query
    try:
        since = max(0.0, request.now - durations.parse(query.for_))
    except ValueError as error:
        raise Problem(400, str(error), field="for") from None
    found: list[RecoveredClaim] = []
    until: int | None = None
    for _ in range(READS_MAX):
        events = await request.service.store.events(
            until=until, since=since, types=TYPES, newest_first=True, limit=READ
        )
        found.extend(recovered_claims(events))
        if len(events) < READ or len(found) >= query.limit:
            break
        until = events[-1].id - 1
    return answer(RecoveredClaims(tuple(found[: query.limit])))


CALLS: Final = (
    Route("GET", "/api/v1/claims/recovered", READERS, recovered, RecoveredClaims, query=RecoveredQuery),
)
