"""Access: tokens without their secrets, sign-in links, sessions, and the caller's own identity."""

from __future__ import annotations

from msgspec import Struct

from lifesigns.views.moments import Moment


class TokenView(Struct, kw_only=True):
    """A token, without its secret."""

    id: str
    role: str
    name: str
    agents: str
    made_at: Moment
    expires_at: Moment | None
    used_at: Moment | None


class NewTokenView(TokenView, kw_only=True):
    """A new token; this is the only time it can be seen."""

    token: str


class TokenList(Struct):
    """All tokens, oldest first."""

    tokens: list[TokenView]


class SignInLink(Struct):
    """A link that signs one person in, once."""

    code: str
    url: str
    expires_at: Moment


class SessionView(Struct, kw_only=True):
    """A session of the dashboard."""

    id: str
    name: str
    role: str
    token_id: str
    address: str
    """Where the link was opened."""
    made_at: Moment
    used_at: Moment
    ends_at: Moment
    """At the latest; earlier after half a day without use."""
    own: bool
    """Whether it is the session that asks."""


class SessionList(Struct):
    """All sessions you may know of, the newest first."""

    sessions: list[SessionView]


class Me(Struct):
    """Who you are to this hub."""

    name: str
    role: str
    token_id: str
    agents: list[str]
    """The ids or patterns you may speak for; `*` is all."""
