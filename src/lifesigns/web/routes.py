"""Routes: what the API consists of, and which route a path means.

A `Route` says everything about one row of the API: method, path, roles, what it reads and what it answers. `app.py`
needs nothing else to serve it, `openapi.py` nothing else to describe it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import msgspec

from lifesigns.hub.principals import Principal, Role
from lifesigns.hub.service import Service
from lifesigns.web.answers import Answer, Problem, Stream
from lifesigns.web.forwarded import HOST_POLICY
from lifesigns.web.host_policy import HostPolicy

EVERYBODY: Final = frozenset(Role) - {Role.KEY}
SPEAKERS: Final = frozenset({Role.AGENT, Role.OPERATOR, Role.ADMIN})
READERS: Final = frozenset({Role.VIEWER, Role.OPERATOR, Role.ADMIN})
ACTORS: Final = frozenset({Role.OPERATOR, Role.ADMIN})
ADMINS: Final = frozenset({Role.ADMIN})
NO_TOKEN: Final = frozenset[Role]()
"""Open to every client that reaches the port."""

KEY_MAX: Final = 200


class NoQuery(msgspec.Struct):
    """A query without parameters."""


@dataclass(slots=True)
class Request:
    """One request, read and checked."""

    service: Service
    who: Principal | None
    path: Mapping[str, str]
    query: Any
    body: Any
    """Of the route's type; the raw bytes where that is `bytes`."""
    scope: Mapping[str, Any]
    site: Any = None
    """The state of the web itself: see `app.Site`."""

    @property
    def principal(self) -> Principal:
        assert self.who is not None
        return self.who

    @property
    def host_policy(self) -> HostPolicy:
        """Of the hub that the client reached: this one, or the one that forwarded its call."""
        policy: HostPolicy = self.scope.get(HOST_POLICY) or self.site.host_policy
        return policy

    @property
    def now(self) -> float:
        return self.service.clock()

    def header(self, name: bytes) -> str | None:
        """A header of the request; lower-case name."""
        for key, value in self.scope["headers"]:
            if key == name:
                return bytes(value).decode("latin-1")
        return None

    @property
    def idempotency_key(self) -> str:
        """By which a repeated request is known; empty if it has none. Raises a `Problem` if it is too long."""
        key = self.header(b"idempotency-key") or ""
        if len(key) > KEY_MAX:
            raise Problem(
                400, f"Idempotency-Key is longer than {KEY_MAX} characters", field="Idempotency-Key"
            )
        return key


Handler = Callable[[Request], Awaitable[Answer | Stream]]


class Route(msgspec.Struct, frozen=True):
    """One row of the API."""

    method: str
    path: str
    """With parameters in braces: `/api/v1/agents/{agent_id}`."""
    who: frozenset[Role]
    handle: Handler
    """Its docstring describes the route in the API."""
    answers: Any = None
    """The type of the answer's JSON; None if it has none."""
    query: type[msgspec.Struct] = NoQuery
    body: Any = None
    """The type of the request's JSON; `bytes` if the handler reads it itself."""
    large: bool = False
    """Whether that JSON may be as large as a batch also of an agent: its type reads no more of it than is quick."""
    status: int = 200
    content_types: tuple[str, ...] = ("application/json",)
    """Possible types of the answer."""
    also: Mapping[int, str] = msgspec.field(default_factory=dict)
    """Other answers to mention in the docs."""
    also_at: tuple[int, ...] = ()
    """Other statuses at which the answer has the same type."""


class RouteTable:
    """Finds routes by method and path."""

    def __init__(self, calls: Iterable[Route]) -> None:
        self.calls = tuple(calls)
        self._plain: dict[bytes, dict[str, Route]] = {}
        self._by_length: dict[int, list[tuple[tuple[str, ...], dict[str, Route]]]] = {}
        for call in self.calls:
            if "{" not in call.path:
                self._plain.setdefault(call.path.encode(), {})[call.method] = call
            else:
                self._add(tuple(call.path.split("/")), call)

    def _add(self, parts: tuple[str, ...], call: Route) -> None:
        rows = self._by_length.setdefault(len(parts), [])
        for known, methods in rows:
            if known == parts:
                methods[call.method] = call
                return
        rows.append((parts, {call.method: call}))

    def find(self, method: str, raw_path: bytes) -> tuple[Route, Mapping[str, str]]:
        """The route, and the parameters in its path. Raises a `Problem` if there is none.

        The path is split before it is decoded: an id may contain a slash, written `%2F`.
        """
        parameters: Mapping[str, str] = {}
        methods = self._plain.get(raw_path)
        if methods is None:
            methods, parameters = self._match(raw_path)
        if methods is None:
            raise Problem(404, f"there is nothing at {_shown(raw_path)}")
        call = methods.get("GET" if method == "HEAD" else method)
        if call is None:
            allowed = ", ".join(sorted(methods))
            raise Problem(405, f"{method} is not possible here, but {allowed}", headers={"Allow": allowed})
        return call, parameters

    def _match(self, raw_path: bytes) -> tuple[dict[str, Route] | None, Mapping[str, str]]:
        parts = raw_path.split(b"/")
        for pattern, methods in self._by_length.get(len(parts), ()):
            found: dict[str, str] = {}
            for expected, part in zip(pattern, parts, strict=True):
                if expected.startswith("{"):
                    found[expected[1:-1]] = _decoded(part)
                elif expected.encode() != part:
                    break
            else:
                return methods, found
        return None, {}


def _decoded(part: bytes) -> str:
    try:
        text = unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise Problem(400, f"{_shown(part)} in the path is not UTF-8") from None
    if not text or not text.isprintable():
        raise Problem(400, f"{_shown(part)} in the path is no name")
    return text


def _shown(raw: bytes) -> str:
    return repr(raw[:100].decode("ascii", "backslashreplace"))
