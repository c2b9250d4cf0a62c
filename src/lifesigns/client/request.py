"""Requests: one call of the API as a value, and the meaning of its answer. No I/O.

A `Request` has everything about a call: what to send, how to read its answer, and whether it may be repeated. The two
clients, one blocking and one not, only add the network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, Generic, TypeVar, cast
from urllib.parse import quote

import msgspec

from lifesigns.errors import HubError, UsageError, WireError
from lifesigns.views import ProblemDetails
from lifesigns.wire.limits import check_id

T = TypeVar("T")

TEMPORARY: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that may pass by themselves."""
DETAIL_MAX: Final = 500


class Request(msgspec.Struct, Generic[T], frozen=True):
    """One call, ready to be sent."""

    method: str
    path: str
    read: Callable[[bytes], T]
    """Reads the answer's value. Its errors become a `HubError`."""
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    repeatable: bool = False
    """Whether it may be sent again when nobody knows if it was received: it changes nothing, or the same thing only
    once."""
    waits_for: float = 0.0
    """How long the hub may keep it waiting on purpose."""
    also_good: frozenset[int] = frozenset()
    """Statuses that look like a failure and are an answer."""


class Reply(msgspec.Struct, frozen=True):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def retry_after(self) -> float | None:
        """How long the hub wants us to wait, if it says so in seconds."""
        text = self.headers.get("retry-after", "")
        return float(text) if text.isdecimal() and len(text) < 10 else None


def get(path: str, shape: type[T], *, waits_for: float = 0.0, **query: object) -> Request[T]:
    """A GET request; without the query's Nones."""
    return Request("GET", path, reader(shape), query_of(query), repeatable=True, waits_for=waits_for)


def post(path: str, shape: type[T], body: object, *, repeatable: bool = False) -> Request[T]:
    """A POST request with a JSON body."""
    return Request("POST", path, reader(shape), body=encoded(body), repeatable=repeatable)


def nothing(_: bytes) -> None:
    """Reads the empty answer of a call."""


def value_of(request: Request[T], reply: Reply, hub: str) -> T:
    """The value of a reply. Raises `HubError`."""
    if not 200 <= reply.status < 300 and reply.status not in request.also_good:
        raise refusal(reply, hub)
    try:
        return request.read(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HubError(
            f"{hub}{request.path}: its answer is not what a lifesigns hub of this version says: {error}",
            status=reply.status,
            transient=False,
        ) from error


def refusal(reply: Reply, hub: str) -> HubError:
    """The error that a reply means."""
    try:
        problem = _PROBLEM.decode(reply.body)
        detail, field, code = problem.detail or problem.title, problem.field, problem.code
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        detail, field, code = "", None, None
        if 300 <= reply.status < 400:
            detail = f"it leads to {reply.headers.get('location', 'nowhere')!r}; is this a lifesigns hub?"
    request_id = reply.headers.get("x-request-id")
    text = f"{hub}: HTTP {reply.status}"
    if detail:
        text += f": {field}: {detail[:DETAIL_MAX]}" if field else f": {detail[:DETAIL_MAX]}"
    if request_id and reply.status >= 500:
        text += f" (request {request_id})"  # The hub's log has lines with it.
    return HubError(
        text,
        status=reply.status,
        detail=detail[:DETAIL_MAX],
        field=field,
        code=code,
        request_id=request_id,
        retry_after=reply.retry_after,
        transient=reply.status in TEMPORARY,
    )


def agent_path(agent_id: str, *rest: str) -> str:
    """The path of an agent; its id may contain a slash."""
    try:
        check_id(agent_id, "agent_id")
    except WireError as error:
        raise UsageError(str(error)) from None
    return "/".join(("/api/v1/agents", *(quote(part, safe="") for part in (agent_id, *rest))))


def path(*parts: str) -> str:
    """A path with names in it."""
    for part in parts:
        if not part or part in (".", ".."):
            raise UsageError(f"{part!r} is no name of anything")
    return "/api/v1/" + "/".join(quote(part, safe="") for part in parts)


def query_of(query: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """An encoded query: lists are repeated, Nones left out."""
    return tuple(
        (name.rstrip("_"), _plain(one))
        for name, value in query.items()
        if value is not None
        for one in (value if isinstance(value, list | tuple | frozenset | set) else (value,))
    )


def encoded(value: object) -> bytes:
    """A value as JSON. Raises `UsageError` for what JSON cannot represent."""
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as error:
        raise UsageError(f"this cannot be written as JSON: {error}") from None


def reader(shape: type[T]) -> Callable[[bytes], T]:
    """A reader of JSON with this shape."""
    of: Any = shape
    return cast("Callable[[bytes], T]", _decoder(of).decode)


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@cache
def _decoder(shape: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(shape)


_PROBLEM: Final = msgspec.json.Decoder(ProblemDetails)
