"""History: what happened to one agent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.config import durations
from lifesigns.ports import Event
from lifesigns.views import History
from lifesigns.views.builders.history import CHANGES, FINDINGS, POINTS_MAX, history
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.routes import EVERYBODY, Request, Route

PAGE: Final = 1000
PAGES_MAX: Final = 20
"""Pages read at most: for an agent with more events the oldest are left out."""

When = Annotated[datetime, Meta(tz=True)]


class HistoryQuery(msgspec.Struct, rename={"for_": "for", "since": "from"}):
    """Which time."""

    for_: Annotated[str, Meta(max_length=64, examples=["1h", "30 min", "7d"])] | None = None
    """How long before `to`: seconds, or a number with a unit. An hour if neither this nor `from` is given."""
    since: When | None = None
    to: When | None = None
    """Now, if it is not given."""


async def agent_history(request: Request) -> Answer:
    """Samples, flips, findings and interventions of an agent in the order of time, in at most 2,000 points. If there
    are more, samples are merged first; flips and interventions stay the longest."""
    agent_id, service = request.path["agent_id"], request.service
    since, to = _moments(request.query, request.now)
    changes, all_changes = await _events(request, CHANGES, since, to)
    findings, all_findings = await _events(request, FINDINGS, since, to)
    samples = await service.store.samples(agent_id, since, to)
    if not (changes or findings or samples) and service.engine.agent(agent_id) is None:
        raise Problem(404, f"no agent {agent_id!r} has been heard of")
    return answer(
        history(
            agent_id,
            since,
            to,
            changes=changes,
            findings=findings,
            samples=samples,
            complete=all_changes and all_findings,
        )
    )


async def _events(
    request: Request, types: Sequence[str], since: float, to: float
) -> tuple[list[Event], bool]:
    """The newest events of these types in that time, oldest first, and whether these are all."""
    store, agent_id = request.service.store, request.path["agent_id"]
    found: list[Event] = []
    until: int | None = None
    for _ in range(PAGES_MAX):
        read = await store.events(
            until=until, since=since, types=types, agent_id=agent_id, newest_first=True, limit=PAGE
        )
        found.extend(event for event in read if event.at <= to)
        if len(read) < PAGE:
            return found[::-1], True
        if len(found) > POINTS_MAX:
            break
        until = read[-1].id - 1
    return found[::-1], False


def _moments(period: HistoryQuery, now: float) -> tuple[float, float]:
    to = now if period.to is None else period.to.timestamp()
    if period.since is not None:
        if period.for_ is not None:
            raise Problem(400, "is given together with `from`: one of the two is enough", field="for")
        since = period.since.timestamp()
    else:
        try:
            since = to - durations.parse("1h" if period.for_ is None else period.for_)
        except ValueError as error:
            raise Problem(400, str(error), field="for") from None
    if since >= to:
        field = "for" if period.since is None else "from"
        raise Problem(400, "there is no time between `from` and `to`", field=field)
    return max(since, 0.0), max(to, 0.0)


CALLS: Final = (
    Route(
        "GET",
        "/api/v1/agents/{agent_id}/history",
        EVERYBODY,
        agent_history,
        History,
        query=HistoryQuery,
        also={404: "nobody has heard of this agent"},
    ),
)
