"""The stream of events of the whole fleet: the streams of all slots as one.

Each event keeps the order of its slot. The id by which a client comes back says of each slot where it was, so nothing is
missing and nothing comes twice. If one of the streams ends (its hub is gone, say), all end: the client comes back with
that id.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final

import msgspec

from lifesigns.hub.slots import SLOTS
from lifesigns.web.answers import Answer, Problem, Stream
from lifesigns.web.events import HEADERS, STREAM
from lifesigns.web.merging import number_of
from lifesigns.web.slot_calls import App, Scope, query_of, streaming, with_query

LAST_ID: Final = b"last-event-id"
WAITING_MAX: Final = 1000


def places_in(said: str) -> list[str] | None:
    """Of each slot the last event that a client has seen; None if it is no id of ours."""
    parts = said.split("-")
    return parts if len(parts) == SLOTS and all(part.isdecimal() for part in parts) else None


async def fleet_events(
    apps: Sequence[App | None], scope: Scope, may_hear: Callable[[], bool]
) -> Answer | Stream:
    """`GET /events`, for as long as this client may hear."""
    if away := [slot for slot, app in enumerate(apps) if app is None]:
        raise Problem(503, f"nobody judges slot {away[0]} right now", headers={"Retry-After": "1"})
    query = [pair for pair in query_of(scope) if pair[0] != "after"]
    after = dict(query_of(scope)).get("after")
    said = next((value.decode("latin-1") for name, value in scope["headers"] if name == LAST_ID), after)
    places = None if said is None else places_in(said) or ([said] * SLOTS if said == "0" else None)
    stack = AsyncExitStack()
    streams: list[AsyncIterator[bytes]] = []
    try:
        for slot, app in enumerate(apps):
            assert app is not None
            own = {} if said is None else {"last_event_id": said if places is None else places[slot]}
            status, pieces = await stack.enter_async_context(streaming(app, with_query(scope, query), **own))
            if status != 200:
                body = b"".join([piece async for piece in pieces]) if status else b""
                await stack.aclose()
                if not status or status >= 500:
                    raise Problem(503, f"nobody judges slot {slot} right now", headers={"Retry-After": "1"})
                return Answer(body, status, b"application/problem+json")
            streams.append(pieces)
    except BaseException:
        await stack.aclose()
        raise
    return Stream(_merged(streams, stack, may_hear), STREAM, HEADERS)


async def _merged(
    streams: Sequence[AsyncIterator[bytes]], stack: AsyncExitStack, may_hear: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    places = ["0"] * SLOTS
    queue: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue(WAITING_MAX)

    async def read(slot: int) -> None:
        rest = b""
        try:
            async for piece in streams[slot]:
                *blocks, rest = (rest + piece).split(b"\n\n")
                for block in blocks:
                    await queue.put((slot, block))
        finally:
            await queue.put(None)

    tasks = [asyncio.create_task(read(slot)) for slot in range(SLOTS)]
    begun: set[int] = set()
    early: list[tuple[int, bytes]] = []
    try:
        while (found := await queue.get()) is not None:
            slot, block = found
            if not may_hear():
                return
            if len(begun) == SLOTS:
                yield _renamed(block, slot, places) + b"\n\n"
            elif not block.startswith(b"retry:"):
                early.append(found)  # Its id needs the place of every slot.
            else:
                begun.add(slot)
                places[slot] = _id_of(block) or places[slot]
                if len(begun) == SLOTS:
                    yield block.partition(b"\n")[0] + b"\nid: %s\n\n" % "-".join(places).encode()
                    for one, held in early:
                        yield _renamed(held, one, places) + b"\n\n"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await stack.aclose()


def _id_of(block: bytes) -> str:
    return next((line[4:].decode() for line in block.split(b"\n") if line.startswith(b"id: ")), "")


def _renamed(block: bytes, slot: int, places: list[str]) -> bytes:
    """An event under the id of the whole stream, and its number of the whole fleet."""
    lines: list[bytes] = []
    for line in block.split(b"\n"):
        if line.startswith(b"id: "):
            places[slot] = line[4:].decode()
            lines.append(b"id: %s" % "-".join(places).encode())
        elif line.startswith(b"data: "):
            event = msgspec.json.decode(line[6:])
            event["id"] = number_of(event.get("id") or 0, slot)
            lines.append(b"data: " + msgspec.json.encode(event))
        else:
            lines.append(line)
    return b"\n".join(lines)
