"""Silences: alerts that cause no notice for a while. Everything is recorded all the same."""

from __future__ import annotations

import secrets
from hashlib import blake2b
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.errors import UsageError
from lifesigns.events.alert_kinds import EVENTS, KINDS
from lifesigns.events.hub_facts import SilenceEnded, SilenceMade
from lifesigns.hub.alerting.rules import Matcher, Silence
from lifesigns.ports.correlation import correlation_id
from lifesigns.views.alerts import SilenceList, SilenceView
from lifesigns.views.moments import LAST, moment_or_none
from lifesigns.web.alerts import YEAR, on_record
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.routes import ACTORS, READERS, Request, Route

NAMES: Final = (*KINDS, *EVENTS)

Patterns = Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=128)], ...], Meta(max_length=100)]
Kinds = Annotated[
    tuple[Annotated[str, Meta(extra_json_schema={"enum": list(NAMES)})], ...], Meta(max_length=100)
]


class SilenceBody(msgspec.Struct, kw_only=True, rename={"lasts_for": "for"}):
    """What to silence, for how long, and why. At least one of `agents`, `kinds` and `roles`; all that are given have to
    fit."""

    agents: Patterns = ()
    """Ids, or patterns such as `build-*`."""
    kinds: Kinds = ()
    """Names of alerts such as `stuck_agent`, or of the events they are made from."""
    roles: Patterns = ()
    lasts_for: Annotated[float, Meta(gt=0, le=YEAR)]
    """Seconds."""
    reason: Annotated[str, Meta(min_length=1, max_length=2000)]


async def silences(request: Request) -> Answer:
    """Every silence, those of the configuration first."""
    configured = {one.id for one in request.service.notifier.alerting.rules.silences}
    found = (
        _view(one, request.now, configured=one.id in configured)
        for one in request.service.notifier.alerting.silences()
        if one.until_at > request.now
    )
    return answer(SilenceList(tuple(found)))


async def silence(request: Request) -> Answer:
    """Send no notice of some alerts for a while. What lasts longer than the silence is sent then."""
    wanted, now = request.body, request.now
    if not (wanted.agents or wanted.kinds or wanted.roles):
        raise Problem(400, "is missing, as are kinds and roles: ['*'] silences everything", field="agents")
    for kind in wanted.kinds:
        if kind not in NAMES:
            raise Problem(400, f"{kind[:100]!r} is none of {', '.join(NAMES)}", field="kinds")
    which = Matcher(wanted.kinds, wanted.agents, wanted.roles)
    made = Silence(
        f"s-{_name(request)}", which, now + wanted.lasts_for, request.principal.by, wanted.reason, now
    )
    try:
        request.service.notifier.silence(made)
    except UsageError as error:
        raise Problem(409, str(error)) from error
    view = _view(made, now)
    request.service.hub.announce(
        SilenceMade(now, view.id, view.by, view.agents, view.kinds, view.roles, view.reason, view.until_at)
    )
    await on_record(request)
    return answer(view, 201)


def _name(request: Request) -> str:
    """A new name. Of one call to all slots it is the same in each, so that one call can end it."""
    if request.service.hub.slot is None:
        return secrets.token_hex(4)
    return blake2b(correlation_id.get().encode(), digest_size=4).hexdigest()


async def unsilence(request: Request) -> Answer:
    """End a silence: what it held back and still lasts is sent now."""
    silence_id, notifier = request.path["silence_id"], request.service.notifier
    if any(one.id == silence_id for one in notifier.alerting.rules.silences):
        raise Problem(409, f"{silence_id!r} stands in the hub's configuration: end it there")
    if not notifier.end_silence(silence_id):
        raise Problem(404, f"there is no silence {silence_id!r}, or it is over")
    request.service.hub.announce(SilenceEnded(request.now, silence_id, request.principal.by))
    await on_record(request)
    return Answer(status=204)


def _view(one: Silence, now: float, *, configured: bool = False) -> SilenceView:
    return SilenceView(
        id=one.id,
        agents=one.which.agents,
        kinds=one.which.kinds,
        roles=one.which.roles,
        by=one.by,
        reason=one.why,
        from_at=moment_or_none(one.from_at or None),
        until_at=moment_or_none(one.until_at if one.until_at < LAST else None),
        active=one.active(now),
        configured=configured,
    )


_PLACE: Final = "/api/v1/silences"

CALLS: Final = (
    Route("GET", _PLACE, READERS, silences, SilenceList),
    Route(
        "POST",
        _PLACE,
        ACTORS,
        silence,
        SilenceView,
        body=SilenceBody,
        status=201,
        also={409: "there are too many already"},
    ),
    Route(
        "DELETE",
        f"{_PLACE}/{{silence_id}}",
        ACTORS,
        unsilence,
        status=204,
        also={404: "there is none, or it is over", 409: "it stands in the configuration"},
    ),
)
