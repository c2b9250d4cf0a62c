"""Tokens: admins make, list and revoke them. The token itself is only in the answer that made it."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from lifesigns.errors import AdapterError
from lifesigns.events.hub_facts import TokenCreated, TokenRevoked, TokenRotated
from lifesigns.hub.principals import Role
from lifesigns.hub.token_table import NewToken
from lifesigns.ports import StoredToken
from lifesigns.views import NewTokenView, TokenList, TokenView, moment
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.routes import ADMINS, Request, Route
from lifesigns.web.sessions import UNSEEN

DAY: Final = 86400.0
YEARS_MAX: Final = 100 * 365 * DAY


class TokenBody(msgspec.Struct, kw_only=True):
    """What the token is for."""

    role: Role
    name: Annotated[str, Meta(min_length=1, max_length=100)]
    """The name under which its acts are recorded."""
    agents: Annotated[str, Meta(max_length=16_384)] = ""
    """For role `agent`: ids, or beginnings of ids with a `*`, with commas between."""
    expires_after: Annotated[float, Meta(gt=0, le=YEARS_MAX)] | Literal["never"] | None = None
    """Seconds, or `never`. Without it a token of role agent is valid for `limits.agent_token_for`, others until
    revoked."""


class RotateBody(msgspec.Struct):
    """How a token gets its new secret."""

    grace: Annotated[float, Meta(ge=0, le=YEARS_MAX)] = DAY
    """Seconds for which the old one stays valid."""


class KeyBody(msgspec.Struct, kw_only=True):
    """The public half of a key, and the agents that sign with it."""

    public_key: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    """Ed25519, in hex."""
    name: Annotated[str, Meta(min_length=1, max_length=100)]
    agents: Annotated[str, Meta(min_length=1, max_length=16_384)]
    """Ids, or beginnings of ids with a `*`, with commas between."""
    expires_after: Annotated[float, Meta(gt=0, le=YEARS_MAX)] | None = None
    """Seconds; without it the key is valid until revoked."""


async def list_tokens(request: Request) -> Answer:
    """All tokens, oldest first, without their secrets."""
    return answer(TokenList([_view(token) for token in request.service.access.tokens.list()]), headers=UNSEEN)


async def create(request: Request) -> Answer:
    """Make a token. It is in this answer and nowhere else: the hub stores only its digest."""
    wanted, now = request.body, request.now
    lasts = wanted.expires_after
    if lasts is None and wanted.role is Role.AGENT:
        lasts = request.site.limits.agent_token_for
    expires_at = now + lasts if isinstance(lasts, float) else None
    try:
        made: NewToken = await request.service.access.tokens.create(
            role=wanted.role, name=wanted.name, agents=wanted.agents, expires_at=expires_at, now=now
        )
    except AdapterError as error:
        raise _store_away(f"the token was not made: {error}") from error
    view = _view(made.stored)
    by = request.principal.by
    request.service.hub.announce(TokenCreated(now, view.id, view.role, view.name, view.agents, by))
    # The token is in this answer only: no one gets one that is not recorded.
    await request.service.http_receiver.store_reports(())
    return answer(NewTokenView(token=made.token, **msgspec.structs.asdict(view)), 201, UNSEEN)


async def add_key(request: Request) -> Answer:
    """Accept what these agents sign with this key. It is listed and revoked like a token, with the role `key`."""
    wanted, now = request.body, request.now
    expires_at = None if wanted.expires_after is None else now + wanted.expires_after
    try:
        stored = await request.service.access.tokens.add_key(
            bytes.fromhex(wanted.public_key),
            name=wanted.name,
            agents=wanted.agents,
            expires_at=expires_at,
            now=now,
        )
    except AdapterError as error:
        raise _store_away(f"the key was not kept: {error}") from error
    view = _view(stored)
    request.service.hub.announce(
        TokenCreated(now, view.id, view.role, view.name, view.agents, request.principal.by)
    )
    await request.service.http_receiver.store_reports(())
    return answer(view, 201)


async def rotate(request: Request) -> Answer:
    """Make a new secret for a token: in this answer and nowhere else. The old one stays valid for a grace, in which its
    holders can get the new one."""
    token_id, now = request.path["token_id"], request.now
    grace = DAY if request.body is None else request.body.grace
    try:
        made = await request.service.access.tokens.rotate(token_id, grace, now)
    except AdapterError as error:
        raise _store_away(f"the token has no new secret: {error}") from error
    if made is None:
        raise Problem(404, f"there is no token {token_id!r}")
    until = moment(now + grace)
    request.service.hub.announce(TokenRotated(now, token_id, request.principal.by, until))
    await request.service.http_receiver.store_reports(())
    view = msgspec.structs.asdict(_view(made.stored))
    return answer(NewTokenView(token=made.token, **view), 201, UNSEEN)


async def revoke(request: Request) -> Answer:
    """Refuse this token from now on, and every session made with it."""
    token_id = request.path["token_id"]
    try:
        known = await request.service.access.tokens.revoke(token_id, request.now)
    except AdapterError as error:
        raise _store_away(
            f"the token is revoked, but the store has not forgotten it yet and would let it in after a restart: {error}"
        ) from error
    if not known:
        raise Problem(404, f"there is no token or key {token_id!r}")
    request.service.hub.announce(TokenRevoked(request.now, token_id, request.principal.by))
    await request.service.http_receiver.store_reports(())
    return Answer(status=204)


def _view(token: StoredToken) -> TokenView:
    return TokenView(
        id=token.id,
        role=token.role,
        name=token.name,
        agents=token.agents,
        made_at=moment(token.made_at),
        expires_at=None if token.expires_at is None else moment(token.expires_at),
        used_at=None if token.used_at is None else moment(token.used_at),
    )


def _store_away(detail: str) -> Problem:
    return Problem(503, detail, headers={"Retry-After": "5"})


CALLS: Final = (
    Route("GET", "/api/v1/tokens", ADMINS, list_tokens, TokenList),
    Route("POST", "/api/v1/tokens", ADMINS, create, NewTokenView, body=TokenBody, status=201),
    Route("POST", "/api/v1/keys", ADMINS, add_key, TokenView, body=KeyBody, status=201),
    Route(
        *("POST", "/api/v1/tokens/{token_id}/rotate", ADMINS, rotate, NewTokenView),
        body=RotateBody | None,
        status=201,
        also={404: "there is no such token"},
    ),
    Route(
        "DELETE",
        "/api/v1/tokens/{token_id}",
        ADMINS,
        revoke,
        status=204,
        also={404: "there is no such token"},
    ),
)
