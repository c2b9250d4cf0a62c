"""Signing in to the dashboard: a link that works once, and a cookie that no script can read; and the open sessions.

Following a link must not sign a browser in: another site could lead a visitor here, who would then work as the maker of
the link. So the link shows a page, and its button signs in: a POST by our own page (`Origin`), with a nonce that the
page and a cookie of this browser share. The answer redirects without repeating the code: no referrer, nothing cached on
the way.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hmac import compare_digest
from typing import Annotated, Final
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta

from lifesigns.events.hub_facts import SessionEnded, SignedIn
from lifesigns.hub.principals import Principal, Role
from lifesigns.hub.sign_in import LINK_FOR, Session, session_id
from lifesigns.views import Me, SessionList, SessionView, SignInLink, moment
from lifesigns.web import sign_in_page
from lifesigns.web.access import cookie_name, refused, session_of
from lifesigns.web.answers import Answer, Header, Problem, answer
from lifesigns.web.routes import EVERYBODY, NO_TOKEN, READERS, Request, Route

UNSEEN: Final[tuple[Header, ...]] = (
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
)
NONCE: Final = "_sign_in"
"""The suffix of the nonce's cookie."""
CODE_MAX: Final = 128


class SignInBody(msgspec.Struct):
    """The code of a sign-in link."""

    code: Annotated[str, Meta(min_length=1, max_length=CODE_MAX)]


async def make_link(request: Request) -> Answer:
    """A link that signs its first visitor in to the dashboard, as you. It works once, for five minutes."""
    now = request.now
    request.site.quotas.check_link(request.principal, now)
    code = request.service.access.sign_ins.link(request.principal.token_id, now)
    scheme = "https" if request.host_policy.is_secure(dict(request.scope["headers"])) else "http"
    url = f"{scheme}://{request.header(b'host')}/sign-in?code={code}"
    return answer(SignInLink(code, url, moment(now + LINK_FOR)), 201, UNSEEN)


async def sign_in(request: Request) -> Answer:
    """Show a sign-in link: a page that says as whom it signs in, and a button that does. Following the link changes
    nothing, so no other page can sign a visitor in."""
    principal = request.service.access.maker(request.query.code, request.now)
    if principal is None:
        return _of_no_use(request)
    nonce = secrets.token_urlsafe(16)
    cookie = _cookie(request, f"{cookie_name(request.scope, request.host_policy)}{NONCE}", nonce, LINK_FOR)
    page = sign_in_page.page(principal, request.query.code, nonce)
    headers = (cookie, *sign_in_page.GUARDED)
    return Answer(page, content_type=b"text/html; charset=utf-8", headers=headers)


async def redeem(request: Request) -> Answer:
    """The button of that page: sets the cookie and redirects to the dashboard."""
    access, host_policy, now = request.service.access, request.host_policy, request.now
    if request.header(b"origin") is None:
        raise Problem(403, "a browser that signs in has to say its Origin")
    form = dict(parse_qsl(request.body.decode("latin-1")))
    headers = dict(request.scope["headers"])
    nonce = session_of(headers, request.scope, host_policy, NONCE)
    if not nonce or not compare_digest(nonce.encode(), form.get("nonce", "").encode()):
        raise Problem(403, "this sign-in was not begun in this browser; open the link again")
    address = host_policy.address(request.scope)
    sessions_max = request.site.limits.sessions_per_token
    session = access.redeem(form.get("code", "")[:CODE_MAX], now, address, sessions_max)
    if session is None:
        return _of_no_use(request)
    principal = access.session(session, now)
    if principal is not None:
        request.service.hub.announce(SignedIn(now, session_id(session), principal.by, address))
    cookie = _cookie(request, cookie_name(request.scope, host_policy), session)
    return Answer(status=303, headers=((b"location", b"/"), cookie, *UNSEEN))


def _of_no_use(request: Request) -> Answer:
    """A link clicked twice leads to the dashboard; without a session it counts as a guess."""
    if request.who is not None:
        return Answer(status=303, headers=((b"location", b"/"), *UNSEEN))
    detail = "this link was used already, or is too old; lifesigns open makes a new one"
    raise refused(request.scope, request.service.access, request.now, request.host_policy, detail)


def _cookie(request: Request, name: str, value: str, lasts: float | None = None) -> Header:
    secure = "; Secure" if request.host_policy.is_secure(dict(request.scope["headers"])) else ""
    age = "" if lasts is None else f"; Max-Age={lasts:.0f}"
    return (b"set-cookie", f"{name}={value}{age}; HttpOnly; SameSite=Strict; Path=/{secure}".encode())


async def sign_out(request: Request) -> Answer:
    """End the session of this browser. Other sessions stay; without one nothing happens."""
    headers, host_policy, access = (
        dict(request.scope["headers"]),
        request.host_policy,
        request.service.access,
    )
    session = session_of(headers, request.scope, host_policy)
    if session is not None and (principal := access.session(session, request.now)) is not None:
        access.sign_ins.sign_out(session)
        by = principal.by
        request.service.hub.announce(SessionEnded(request.now, session_id(session), by, by))
    gone = _cookie(request, cookie_name(request.scope, host_policy), "", 0)
    return Answer(status=204, headers=(gone, *UNSEEN))


async def list_sessions(request: Request) -> Answer:
    """Who is signed in to the dashboard, the newest first. An admin sees all, others those made with the same token."""
    own = session_of(dict(request.scope["headers"]), request.scope, request.host_policy)
    own_id = None if own is None else session_id(own)
    views = [
        SessionView(
            id=one,
            name=principal.name,
            role=principal.role,
            token_id=principal.token_id,
            address=session.address,
            made_at=moment(session.made_at),
            used_at=moment(session.used_at),
            ends_at=moment(session.ends_at),
            own=one == own_id,
        )
        for one, (session, principal) in _known_to(request).items()
    ]
    return answer(SessionList(sorted(views, key=lambda view: view.made_at, reverse=True)))


async def end_session(request: Request) -> Answer:
    """End a session: its browser is signed out."""
    wanted = request.path["session_id"]
    known = _known_to(request).get(wanted)
    if known is None:
        raise Problem(404, f"there is no session {wanted!r}")
    request.service.access.sign_ins.end_session(wanted)
    request.service.hub.announce(SessionEnded(request.now, wanted, request.principal.by, known[1].by))
    return Answer(status=204)


def _known_to(request: Request) -> Mapping[str, tuple[Session, Principal]]:
    who, sessions = request.principal, request.service.access.sessions(request.now)
    if who.role is Role.ADMIN:
        return sessions
    return {one: known for one, known in sessions.items() if known[0].token_id == who.token_id}


async def me(request: Request) -> Answer:
    """Who you are to this hub, and which agents you may speak for."""
    principal = request.principal
    agents = ["*"] if principal.speaks_for_all else principal.patterns.texts()
    return answer(Me(principal.name, principal.role, principal.token_id, agents), headers=UNSEEN)


CALLS: Final = (
    Route(
        "POST",
        "/api/v1/sign-in-links",
        READERS,
        make_link,
        SignInLink,
        status=201,
        also={429: "too many of this token wait"},
    ),
    Route(
        *("GET", "/sign-in", NO_TOKEN, sign_in, str),
        query=SignInBody,
        content_types=("text/html",),
        also={401: "used or too old"},
    ),
    Route("POST", "/sign-in", NO_TOKEN, redeem, body=bytes, status=303, also={401: "used or too old"}),
    Route("POST", "/sign-out", NO_TOKEN, sign_out, status=204),
    Route("GET", "/api/v1/sessions", READERS, list_sessions, SessionList),
    Route(
        *("DELETE", "/api/v1/sessions/{session_id}", READERS, end_session),
        status=204,
        also={404: "there is no such session"},
    ),
    Route("GET", "/api/v1/me", EVERYBODY, me, Me),
)
