"""Events as they happen: Server-Sent Events, resumable.

A client that comes back with the id of the last event it has seen first gets from the store what it missed, and then
what happens. If some of that is no longer stored (it is too old, or the id is another store's), an event of type `GAP`
says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from difflib import get_close_matches
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from lifesigns.errors import AdapterError
from lifesigns.events import event_of, message
from lifesigns.events.catalogue import AGENT_HEARTBEAT, CATALOGUE
from lifesigns.events.hub_facts import Gap
from lifesigns.ports import Event
from lifesigns.views import EventList
from lifesigns.views.builders.events import event_view
from lifesigns.web.answers import Answer, Problem, Stream, answer
from lifesigns.web.ids import AgentId
from lifesigns.web.routes import READERS, Request, Route
from lifesigns.web.speaking_rights import is_still_valid

RETRY_AFTER_MS: Final = 2000
KEEP_ALIVE_EVERY: Final = 15.0
"""Seconds: proxies close connections without traffic after a minute, some sooner."""
PAGE: Final = 500
ID_MAX: Final = 2**63 - 1

STREAM: Final = b"text/event-stream"
HEADERS: Final = (
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would hold the events back until it has a few kilobytes of them
)

EventType = Annotated[str, Meta(max_length=64, extra_json_schema={"enum": list(CATALOGUE)})]


class EventsQuery(msgspec.Struct):
    """Which events: every condition that is given must hold."""

    types: Annotated[tuple[EventType, ...], Meta(max_length=64)] = ()
    """All but `AGENT_HEARTBEAT`, if none is named."""
    agent: AgentId | None = None
    after: Annotated[int, Meta(ge=0, le=ID_MAX)] | None = None
    """The id of the last event that was seen; 0 for everything that is stored. The header `Last-Event-ID` is the same,
    and takes precedence."""


class EventsPage(EventsQuery):
    """Which events, and how many."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 100


async def listen(request: Request) -> Stream:
    """Events as they happen, as Server-Sent Events: `id`, `event` with the type, `data` with the event as JSON. Without
    `Last-Event-ID` it begins with what happens from now on. A listener that is too slow is cut off and reconnects by
    itself; one that was away for too long gets an event `GAP`."""
    _check_types(request.query)
    request.site.quotas.check_stream(request.principal)
    if request.service.feed.full:
        raise Problem(503, "there are too many listeners already", headers={"Retry-After": "10"})
    return Stream(_pieces(request), STREAM, HEADERS)


async def list_events(request: Request) -> Answer:
    """Stored events, in the order they happened, page by page: for scripts. `after` is where the last page ended."""
    query = request.query
    _check_types(query)
    events = await request.service.store.events(
        after=query.after or 0, types=query.types, agent_id=query.agent, limit=query.limit + 1
    )
    shown = events[: query.limit]
    more = shown[-1].id if len(events) > query.limit else None
    return answer(EventList(tuple(map(event_view, shown)), more))


def _check_types(query: EventsQuery) -> None:
    """Whoever misspells an event would wait for it for ever."""
    for name in query.types:
        if name not in CATALOGUE:
            near = get_close_matches(name.upper(), CATALOGUE, n=1)
            why = f"did you mean {near[0]}?" if near else "/docs lists the types of events"
            raise Problem(400, f"{name!r} is unknown; {why}", field="types")


# --- the stream ---------------------------------------------------------------------------------------


async def _pieces(request: Request) -> AsyncGenerator[bytes, None]:
    service, agent, clock = request.service, request.query.agent, asyncio.get_running_loop().time
    may_hear = is_still_valid(request)
    async with service.feed.listen(request.query.types, request.principal.token_id) as listener:
        # With the id a listener that is cut off before its first event knows where to continue.
        yield b"retry: %d\nid: %d\n\n" % (RETRY_AFTER_MS, _begins_after(request))
        seen = 0
        async for events, up_to in _missed(request):
            seen = up_to
            if events:
                yield _told(events)
        told_at = clock()
        while not listener.ended:
            events = await listener.next(KEEP_ALIVE_EVERY)
            if listener.overrun or not may_hear():
                return
            fresh = [e for e in events if (e.id > seen or not e.id) and agent in (None, e.agent_id)]
            if fresh or clock() - told_at >= KEEP_ALIVE_EVERY * 0.9:
                told_at = clock()
                yield _told(fresh) or b":\n\n"


async def _missed(request: Request) -> AsyncIterator[tuple[Sequence[Event], int]]:
    """The events while this listener was away, in pages, each with the id up to which they are complete; a gap comes
    first."""
    after = _last_seen(request)
    if after is None:
        return
    seen = after
    try:
        gap, seen = await _gap(request, after)
        if gap:
            yield [event_of(0, Gap(request.now, gap, after))], seen
        async for events in _kept(request, seen):
            seen = events[-1].id
            yield events, seen
    except AdapterError:
        # It need not get again what it has seen; and an unknown id must not keep new events from it.
        yield (
            [event_of(0, Gap(request.now, "the store cannot be read right now", after))],
            min(seen, request.service.feed.newest),
        )
    else:
        yield [], seen


async def _gap(request: Request, after: int) -> tuple[str, int]:
    """Why the events after this id are incomplete, empty if they are complete; and the id to continue after."""
    store = request.service.store
    if after == 0:
        return "", 0
    oldest, newest = await store.events(limit=1), await store.events(newest_first=True, limit=1)
    if not newest or after > newest[0].id:
        why = "this id is not known here: the store is another one. What follows begins now"
        return why, newest[0].id if newest else 0
    if after + 1 < oldest[0].id:
        return f"what was told before event {oldest[0].id} is not kept any more", after
    return "", after


async def _kept(request: Request, after: int) -> AsyncIterator[Sequence[Event]]:
    query, store = request.query, request.service.store
    types = tuple(name for name in query.types if name != AGENT_HEARTBEAT)
    if query.types and not types:
        return
    while True:
        events = await store.events(after=after, types=types, agent_id=query.agent, limit=PAGE)
        if events:
            yield events
            after = events[-1].id
        if len(events) < PAGE:  # The listener has newer ones: reading on might never end.
            return


def _last_seen(request: Request) -> int | None:
    """The id a listener comes back with. One that is no number counts as an unknown id."""
    said = request.header(b"last-event-id")
    if said is None:
        after: int | None = request.query.after
        return after
    return int(said) if said.isdecimal() and said.isascii() and len(said) < 19 else ID_MAX


def _begins_after(request: Request) -> int:
    after = _last_seen(request)
    return request.service.feed.newest if after is None or after == ID_MAX else after


def _told(events: Iterable[Event]) -> bytes:
    return b"".join(
        b"%sevent: %s\ndata: %s\n\n"
        % (b"id: %d\n" % event.id if event.id else b"", event.type.encode(), message(event))
        for event in events
    )


CALLS: Final = (
    Route(
        "GET",
        "/api/v1/events",
        READERS,
        listen,
        str,
        query=EventsQuery,
        content_types=("text/event-stream",),
        also={429: "this token has too many open", 503: "there are too many listeners already"},
    ),
    Route("GET", "/api/v1/events/list", READERS, list_events, EventList, query=EventsPage),
)
