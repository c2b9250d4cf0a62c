"""Alerts: what people should know, and who has acknowledged it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.events.alert_kinds import LOUDNESS
from lifesigns.events.hub_facts import AlertAcknowledged
from lifesigns.hub.alerting.alerts import Ack
from lifesigns.hub.alerting.alerts import Alert as OpenAlert
from lifesigns.hub.http_receiver import NotLeader, NotStored
from lifesigns.hub.service import Service
from lifesigns.ports import Event, NoticeSeverity
from lifesigns.views import Alert, AlertList, moment
from lifesigns.views.alerts import AcknowledgedAlerts, Acknowledgement, Need, NeedKind
from lifesigns.views.builders.alerts import TYPES, alert_of
from lifesigns.views.builders.standing_alerts import STANDING, STANDING_MAX, standing_alerts
from lifesigns.views.moments import moment_or_none
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.routes import ACTORS, READERS, Request, Route

READ: Final = 500
READS_MAX: Final = 10
"""Reads for one answer: not every stored event is an alert. The next page continues."""

YEAR: Final = 365 * 86400.0


class AlertsQuery(msgspec.Struct):
    """Which alerts."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    before: Annotated[int, Meta(ge=1, le=2**63 - 1)] | None = None
    """From the answer before: older ones."""
    severity: NoticeSeverity = NoticeSeverity.INFO
    """At least this severe."""


class AcknowledgeBody(msgspec.Struct, rename={"lasts_for": "for"}):
    """Why, and for how long."""

    reason: Annotated[str, Meta(max_length=2000)] = ""
    lasts_for: Annotated[float, Meta(gt=0, le=YEAR)] | None = None
    """Seconds until people are reminded again if it still lasts; without it they are not."""


async def alerts(request: Request) -> Answer:
    """What people should know: first what stands right now, then what happened, the newest first. What stands is on the
    first page only, beside its `limit`."""
    query, least = request.query, LOUDNESS[request.query.severity]
    now = (
        []
        if query.before is not None
        else [one for one in all_standing(request.service) if LOUDNESS[one.severity] >= least]
    )
    happened, before = await _happened(request, least)
    return answer(AlertList((*now, *happened), before))


async def acknowledge(request: Request) -> Answer:
    """Acknowledge an alert, by its `id` or `key` from the list, or all of a `group`: the channels that got it are told
    who has it, and send no reminders, unless it gets worse. They are told all the same when it is over."""
    key = await _key(request, request.path["alert_id"])
    wanted = request.body or AcknowledgeBody()
    until_at = float("inf") if wanted.lasts_for is None else request.now + wanted.lasts_for
    ack = Ack(request.principal.by, request.now, wanted.reason, until_at)
    found = request.service.notifier.acknowledge(key, ack)
    if not found:
        raise Problem(409, f"{key!r} is not open, or people are not told of it")
    view = _acknowledged(ack)
    about = found[0].agent_id if len(found) == 1 else ""
    request.service.hub.announce(
        AlertAcknowledged(request.now, key, ack.by, ack.why, view.until, len(found), about)
    )
    await on_record(request)
    return answer(AcknowledgedAlerts(tuple(one.key for one in found), view))


async def on_record(request: Request) -> None:
    """Return when what was just done is stored. If the store is away it takes effect all the same: the alert may be
    about just that."""
    try:
        await request.service.http_receiver.store_reports(())
    except (NotStored, NotLeader) as error:
        detail = "it is done, but the store is away: it is not on record yet, and would be lost with this hub"
        raise Problem(503, detail, headers={"Retry-After": "5"}) from error


# --- what stands --------------------------------------------------------------------------------------


def all_standing(service: Service) -> Iterator[Alert]:
    """What follows from the engine's beliefs; and every other open alert."""
    alerting = service.notifier.alerting
    believed = standing_alerts(
        service.engine.beliefs, service.troubles.now(), service.token_watch.expiring.now()
    )
    for one in believed:
        yield _as_told(msgspec.structs.replace(one, open=True), alerting.alerts.get(one.key))
    room, keys = STANDING_MAX - len(believed), {one.key for one in believed}
    for alert in alerting.alerts:
        if room > 0 and alert.is_open and alert.key not in keys and not alerting.is_over(alert):
            room -= 1
            yield _as_told(_view(alert), alert)


def _view(alert: OpenAlert) -> Alert:
    first = alert.text.partition("\n")[0]
    return Alert(
        f"{STANDING}{alert.key}",
        moment(alert.since),
        alert.level or alert.severity or alert.sort.severity,
        alert.sort.events[0] if alert.sort.events else alert.kind.upper(),
        alert.agent_id,
        alert.sentence or (f"{alert.title}: {first}" if first else alert.title),
        standing=True,
        open=True,
        need=_to_look_at(alert, first),
    )


def _to_look_at(alert: OpenAlert, first: str) -> Need | None:
    """An agent that could not be stopped, or not be judged, needs a look until a person has acknowledged it."""
    if alert.kind not in ("needs_human", "agent_poisoned") or not alert.agent_id or alert.ack is not None:
        return None
    reason = alert.details.get("reason", "")
    text = f"{reason}: {first}" if reason and first else first or alert.title
    return Need(NeedKind.LOOK, alert.agent_id, text)


def _as_told(view: Alert, alert: OpenAlert | None) -> Alert:
    """Add the state of its notices."""
    named = bool(view.agent_id) and view.text.startswith(view.agent_id)
    what = view.text.removeprefix(view.agent_id) if named or not view.agent_id else f": {view.text}"
    if alert is None or not alert.is_open:
        return msgspec.structs.replace(view, what=what, key="")
    return msgspec.structs.replace(
        view,
        what=what,
        at=view.at or moment(alert.since),
        key=alert.key,
        kind=alert.kind,
        open=True,
        group=next((key for key in alert.alert_groups.values() if key != alert.key), ""),
        acknowledged=None if alert.ack is None else _acknowledged(alert.ack),
        silenced_by=alert.silenced_by,
    )


def _acknowledged(ack: Ack) -> Acknowledgement:
    return Acknowledgement(ack.by, moment(ack.at), ack.why, moment_or_none(ack.until_at))


async def _key(request: Request, alert_id: str) -> str:
    """The key of the alert with this id in the list; or the id itself, if it is a key."""
    if alert_id.startswith(STANDING):
        found = next((one.key for one in all_standing(request.service) if one.id == alert_id), "")
    elif alert_id.isascii() and alert_id.isdecimal() and len(alert_id) < 19:
        number = int(alert_id)
        events = await request.service.store.events(after=number - 1, until=number, limit=1)
        alert = request.service.notifier.alerting.about(events[0]) if events else None
        found = "" if alert is None else alert.key
    else:
        return alert_id
    if not found:
        raise Problem(409, f"{alert_id!r} is over, or people are not told of it")
    return found


# --- what happened ------------------------------------------------------------------------------------


async def _happened(request: Request, least: int) -> tuple[list[Alert], int | None]:
    query, store = request.query, request.service.store
    found: list[Alert] = []
    until = None if query.before is None else query.before - 1
    for _ in range(READS_MAX):
        events = await store.events(until=until, types=TYPES, newest_first=True, limit=READ)
        for event in events:
            if len(found) == query.limit:
                return found, event.id + 1
            alert = _event_view(request, event)
            if alert is not None and LOUDNESS[alert.severity] >= least:
                found.append(alert)
        if len(events) < READ:
            return found, None
        until = events[-1].id - 1
    return found, None if until is None else until + 1


def _event_view(request: Request, event: Event) -> Alert | None:
    view = alert_of(event)
    return None if view is None else _as_told(view, request.service.notifier.alerting.about(event))


CALLS: Final = (
    Route("GET", "/api/v1/alerts", READERS, alerts, AlertList, query=AlertsQuery),
    Route(
        "POST",
        "/api/v1/alerts/{alert_id}/ack",
        ACTORS,
        acknowledge,
        AcknowledgedAlerts,
        body=AcknowledgeBody | None,
        also={409: "it is over, or people are not told of it"},
    ),
)
