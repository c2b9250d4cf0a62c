"""Alerts: what people should know."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.views import Alert, AlertList, Level
from lifesigns.views.alerts import ALERTING, RANK, alert_of
from lifesigns.views.standing import standing
from lifesigns.web.answers import Answer, answer
from lifesigns.web.calls import READERS, Asked, Call

READ: Final = 500
READS_MAX: Final = 10
"""Events that are looked through for one answer: not everything that is kept may be an alert. The next page goes on."""


class AlertsQuery(msgspec.Struct):
    """Which alerts."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    before: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None
    """From the answer before: older ones."""
    severity: Level = Level.INFO
    """At least this severe."""


async def alerts(asked: Asked) -> Answer:
    """What people should know: first what stands right now, then what happened, the newest first. What stands is on the
    first page only, beside its `limit`."""
    query, least = asked.query, RANK[asked.query.severity]
    now: list[Alert] = []
    if query.before is None:
        away = [(trouble.what, trouble.since, trouble.why) for trouble in asked.service.troubles()]
        now = standing(asked.service.engine.beliefs, away)
    happened, before = await _happened(asked, least)
    return answer(AlertList((*(one for one in now if RANK[one.severity] >= least), *happened), before))


async def _happened(asked: Asked, least: int) -> tuple[list[Alert], int | None]:
    query, store = asked.query, asked.service.store
    found: list[Alert] = []
    until = None if query.before is None else query.before - 1
    for _ in range(READS_MAX):
        events = await store.events(until=until, types=tuple(ALERTING), newest_first=True, limit=READ)
        for event in events:
            if len(found) == query.limit:
                return found, event.id + 1
            alert = alert_of(event)
            if alert is not None and RANK[alert.severity] >= least:
                found.append(alert)
        if len(events) < READ:
            return found, None
        until = events[-1].id - 1
    return found, None if until is None else until + 1


CALLS: Final = (Call("GET", "/api/v1/alerts", READERS, alerts, AlertList, query=AlertsQuery),)
