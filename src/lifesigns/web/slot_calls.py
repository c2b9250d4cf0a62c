"""Calls to the hub of one slot, from within its process: its answer as a whole, or piece by piece.

Whether that hub judges here or stands by, its application answers: the one that stands by asks the one that judges. The
client's own token goes along, so each hub answers what this client may know.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import msgspec

from lifesigns.ports.request_ids import HEADER
from lifesigns.web.answers import Answer, Problem

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
App = Callable[
    [Scope, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]

_NOT_PASSED_ON: Final = frozenset(
    {b"accept-encoding", b"content-encoding", b"content-length", b"transfer-encoding"}
)
"""Of the client's headers: an answer is read here, and a body has been."""

Query = Sequence[tuple[str, str]]


@dataclass(slots=True)
class SlotAnswer:
    """The answer of one slot; status 0 if it was cut off."""

    slot: int
    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""

    def json(self) -> Any:
        """The body's value."""
        return msgspec.json.decode(self.body)

    def header(self, name: bytes) -> bytes:
        return next((value for key, value in self.headers if key == name), b"")


class _NoConnection:
    """In place of the client's connection, which an answer that is cut off must not cut."""

    was_cut = False

    def cut(self) -> None:
        self.was_cut = True

    def count_for_no_address(self) -> None:
        pass


def query_of(scope: Scope) -> list[tuple[str, str]]:
    """The query of a call, as pairs."""
    return parse_qsl(scope["query_string"].decode("ascii", "replace"), keep_blank_values=True)


def with_query(scope: Scope, query: Query) -> Scope:
    """The call with another query."""
    return {**scope, "query_string": urlencode(query).encode()}


def inner_scope(scope: Scope, connection: _NoConnection, body: bytes, more: Mapping[bytes, bytes]) -> Scope:
    """A call as a slot gets it."""
    dropped = _NOT_PASSED_ON | more.keys()
    headers = [header for header in scope["headers"] if header[0] not in dropped] + [*more.items()]
    if body:
        headers.append((b"content-length", b"%d" % len(body)))
    method = "GET" if scope["method"] == "HEAD" else scope["method"]  # What is merged needs the bodies.
    return {
        **scope,
        "method": method,
        "headers": headers,
        "state": {**scope.get("state", {}), "connection": connection},
    }


def as_is(found: SlotAnswer) -> Answer:
    """The answer of one slot, for the client."""
    if found.status == 0 or (found.status == 503 and not found.body):
        raise nobody_judges([found.slot])
    dropped = (b"content-type", b"content-length", HEADER)
    headers = [header for header in found.headers if header[0] not in dropped]
    return Answer(found.body, found.status, found.header(b"content-type") or b"application/json", headers)


def nobody_judges(slots: Sequence[int], more: str = "") -> Problem:
    """To whom asks about these slots."""
    named = ", ".join(map(str, slots))
    detail = f"nobody judges slot {named} right now; another hub takes it over within seconds"
    return Problem(503, f"{detail}; {more}" if more else detail, headers={"Retry-After": "1"})


async def ask(app: App | None, slot: int, scope: Scope, body: bytes = b"", **more: str) -> SlotAnswer:
    """Ask the hub of a slot; nobody is there if there is no `app`."""
    found = SlotAnswer(slot, 503 if app is None else 0)
    if app is None:
        return found
    connection, pieces = _NoConnection(), list[bytes]()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            found.status, found.headers = message["status"], list(message["headers"])
        else:
            pieces.append(message.get("body", b""))

    headers = {name.replace("_", "-").encode(): value.encode() for name, value in more.items()}
    await app(inner_scope(scope, connection, body, headers), _saying(body), send)
    found.body = b"".join(pieces)
    if connection.was_cut:
        found.status = 0
    return found


async def ask_all(apps: Sequence[App | None], scope: Scope, body: bytes = b"") -> list[SlotAnswer]:
    """The answers of all slots, in their order."""
    return await asyncio.gather(*(ask(app, slot, scope, body) for slot, app in enumerate(apps)))


@asynccontextmanager
async def streaming(app: App, scope: Scope, **more: str) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
    """The status of an answer that goes on, and its pieces, until the block is left."""
    queue: asyncio.Queue[Message | None] = asyncio.Queue(1000)
    headers = {name.replace("_", "-").encode(): value.encode() for name, value in more.items()}

    async def run() -> None:
        try:
            await app(inner_scope(scope, _NoConnection(), b"", headers), _saying(b""), queue.put)
        finally:
            await queue.put(None)

    async def pieces() -> AsyncIterator[bytes]:
        while (message := await queue.get()) is not None:
            if piece := message.get("body", b""):
                yield piece

    task = asyncio.create_task(run())
    try:
        head = await queue.get()
        yield (0 if head is None else head["status"]), pieces()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _saying(body: bytes) -> Callable[[], Awaitable[Message]]:
    """A client that says this, and then listens."""
    said = False

    async def receive() -> Message:
        nonlocal said
        if said:
            await asyncio.Event().wait()
        said = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive
