"""Signing in to the dashboard: a link that works once, and a cookie that no script can read.

The link's answer says where to go without repeating the code: no referrer, nothing stored on the way.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.assembly.hub import LINK_FOR
from lifesigns.views import Me, SignInLink, moment
from lifesigns.web.access import cookie_name, refused, session_of
from lifesigns.web.answers import Answer, Header, Problem, answer
from lifesigns.web.calls import EVERYBODY, NO_TOKEN, READERS, Asked, Call

UNSEEN: Final[tuple[Header, ...]] = (
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"no-referrer"),
)


class Code(msgspec.Struct):
    """The code of a sign-in link."""

    code: Annotated[str, Meta(min_length=1, max_length=128)]


async def make_link(asked: Asked) -> Answer:
    """A link that signs its first visitor in to the dashboard, as you. It works once, for five minutes."""
    now = asked.now
    code = asked.service.access.link(asked.visitor, now)
    scheme = "https" if asked.site.doorway.is_secure(dict(asked.scope["headers"])) else "http"
    url = f"{scheme}://{asked.header(b'host')}/sign-in?code={code}"
    return answer(SignInLink(code, url, moment(now + LINK_FOR)), 201, UNSEEN)


async def sign_in(asked: Asked) -> Answer:
    """Open a sign-in link: sets the cookie and leads to the dashboard."""
    if asked.scope["method"] != "GET":  # Who only looks at a link must not use it up.
        raise Problem(405, "a sign-in link is opened with GET", headers={"Allow": "GET"})
    access, doorway, now = asked.service.access, asked.site.doorway, asked.now
    session = access.redeem(asked.query.code, now)
    if session is None:
        if asked.who is not None:  # Clicked twice, or found in the history.
            return Answer(status=303, headers=((b"location", b"/"), *UNSEEN))
        detail = "this link was used already, or is too old; lifesigns open makes a new one"
        raise refused(asked.scope, access, now, doorway, detail)
    secure = "; Secure" if doorway.is_secure(dict(asked.scope["headers"])) else ""
    cookie = f"{cookie_name(asked.scope, doorway)}={session}; HttpOnly; SameSite=Strict; Path=/{secure}"
    return Answer(status=303, headers=((b"location", b"/"), (b"set-cookie", cookie.encode()), *UNSEEN))


async def sign_out(asked: Asked) -> Answer:
    """End the session of this browser. Nothing happens to others, or if there is none."""
    headers, doorway = dict(asked.scope["headers"]), asked.site.doorway
    session = session_of(headers, asked.scope, doorway)
    if session is not None:
        asked.service.access.sign_out(session)
    secure = "; Secure" if doorway.is_secure(headers) else ""
    name = cookie_name(asked.scope, doorway)
    gone = f"{name}=; Max-Age=0; HttpOnly; SameSite=Strict; Path=/{secure}"
    return Answer(status=204, headers=((b"set-cookie", gone.encode()), *UNSEEN))


async def me(asked: Asked) -> Answer:
    """Who you are to this hub, and for whom you may speak."""
    visitor = asked.visitor
    agents = ["*"] if visitor.speaks_for_all else visitor.patterns.texts()
    return answer(Me(visitor.name, visitor.role, visitor.token_id, agents), headers=UNSEEN)


CALLS: Final = (
    Call("POST", "/api/v1/sign-in-links", READERS, make_link, SignInLink, status=201),
    Call("GET", "/sign-in", NO_TOKEN, sign_in, query=Code, status=303, also={401: "used or too old"}),
    Call("POST", "/sign-out", NO_TOKEN, sign_out, status=204),
    Call("GET", "/api/v1/me", EVERYBODY, me, Me),
)
