"""Signing in to the dashboard: a link that works once, and a cookie that no script can read.

The link's answer says where to go without repeating the code: no referrer, nothing stored on the way.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.hub.sign_in import LINK_FOR
from lifesigns.views import Me, SignInLink, moment
from lifesigns.web.access import cookie_name, refused, session_of
from lifesigns.web.answers import Answer, Header, Problem, answer
from lifesigns.web.routes import EVERYBODY, NO_TOKEN, READERS, Request, Route

UNSEEN: Final[tuple[Header, ...]] = (
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
)


class SignInBody(msgspec.Struct):
    """The code of a sign-in link."""

    code: Annotated[str, Meta(min_length=1, max_length=128)]


async def make_link(request: Request) -> Answer:
    """A link that signs its first visitor in to the dashboard, as you. It works once, for five minutes."""
    now = request.now
    code = request.service.access.link(request.principal, now)
    scheme = "https" if request.site.host_policy.is_secure(dict(request.scope["headers"])) else "http"
    url = f"{scheme}://{request.header(b'host')}/sign-in?code={code}"
    return answer(SignInLink(code, url, moment(now + LINK_FOR)), 201, UNSEEN)


async def sign_in(request: Request) -> Answer:
    """Open a sign-in link: sets the cookie and leads to the dashboard."""
    if request.scope["method"] != "GET":  # Who only looks at a link must not use it up.
        raise Problem(405, "a sign-in link is opened with GET", headers={"Allow": "GET"})
    access, host_policy, now = request.service.access, request.site.host_policy, request.now
    session = access.redeem(request.query.code, now)
    if session is None:
        if request.who is not None:  # Clicked twice, or found in the history.
            return Answer(status=303, headers=((b"location", b"/"), *UNSEEN))
        detail = "this link was used already, or is too old; lifesigns open makes a new one"
        raise refused(request.scope, access, now, host_policy, detail)
    secure = "; Secure" if host_policy.is_secure(dict(request.scope["headers"])) else ""
    cookie = f"{cookie_name(request.scope, host_policy)}={session}; HttpOnly; SameSite=Strict; Path=/{secure}"
    return Answer(status=303, headers=((b"location", b"/"), (b"set-cookie", cookie.encode()), *UNSEEN))


async def sign_out(request: Request) -> Answer:
    """End the session of this browser. Nothing happens to others, or if there is none."""
    headers, host_policy = dict(request.scope["headers"]), request.site.host_policy
    session = session_of(headers, request.scope, host_policy)
    if session is not None:
        request.service.access.sign_out(session)
    secure = "; Secure" if host_policy.is_secure(headers) else ""
    name = cookie_name(request.scope, host_policy)
    gone = f"{name}=; Max-Age=0; HttpOnly; SameSite=Strict; Path=/{secure}"
    return Answer(status=204, headers=((b"set-cookie", gone.encode()), *UNSEEN))


async def me(request: Request) -> Answer:
    """Who you are to this hub, and for whom you may speak."""
    principal = request.principal
    agents = ["*"] if principal.speaks_for_all else principal.patterns.texts()
    return answer(Me(principal.name, principal.role, principal.token_id, agents), headers=UNSEEN)


CALLS: Final = (
    Route("POST", "/api/v1/sign-in-links", READERS, make_link, SignInLink, status=201),
    Route("GET", "/sign-in", NO_TOKEN, sign_in, query=SignInBody, status=303, also={401: "used or too old"}),
    Route("POST", "/sign-out", NO_TOKEN, sign_out, status=204),
    Route("GET", "/api/v1/me", EVERYBODY, me, Me),
)
