"""Parameters: the requests that are more than one line, page by page or event by event. No I/O."""

from __future__ import annotations

import difflib
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypedDict

from lifesigns import wire
from lifesigns.client.request import Request, encoded, get, nothing, query_of
from lifesigns.errors import UsageError, WireError
from lifesigns.views import AgentHealth, AgentList, moment

PAGE_MAX: Final = 1000


class AgentFilterFields(TypedDict, total=False):
    """Selects agents: every given condition must hold."""

    id: str | Sequence[str]
    state: str | Sequence[str]
    doing: str | Sequence[str]
    task: str
    role: str
    host: str
    q: str


class BeatFields(TypedDict, total=False):
    """The optional fields of a beat."""

    timestamp: datetime | float | str
    seq: int
    incarnation: str
    status: str
    doing: str
    until: datetime | float | str | None
    load: float
    task_id: str
    tasks: Sequence[str]
    phase: str
    progress: str
    last_tool_call: str
    last_checkpoint: str
    token_count: int
    cost_usd: float
    error_count: int
    capacity_available: int
    loop_lag_ms: float
    metrics: Mapping[str, float]
    host: str
    pid: int
    role: str
    metadata: Mapping[str, str]


class PageFields:
    """Agents, page by page, until there are no more or there are enough."""

    def __init__(self, which: AgentFilterFields, limit: int | None) -> None:
        if limit is not None and limit < 0:
            raise UsageError(f"limit is {limit}, but it is a number of agents")
        self._which = which
        self._left = limit
        self._cursor: str | None = None
        self._ended = False

    def next(self) -> Request[AgentList] | None:
        """The request for the next page; None if there is none."""
        if self._ended or self._left == 0:
            return None
        size = PAGE_MAX if self._left is None else min(PAGE_MAX, self._left)
        return get("/api/v1/agents", AgentList, limit=size, cursor=self._cursor, **self._which)

    def read(self, page: AgentList) -> Sequence[AgentHealth]:
        """The agents of a page; remembers where to continue."""
        self._cursor = page.cursor
        self._ended = page.cursor is None
        if self._left is not None:
            self._left = max(0, self._left - len(page.agents))
        return page.agents


def events(types: Sequence[str], agent: str | None, after: int | None) -> Request[None]:
    """The stream of events."""
    query = query_of({"types": ",".join(types) or None, "agent": agent, "after": after})
    return Request("GET", "/api/v1/events", nothing, query, repeatable=True)


def beat_body(agent_id: str, fields: Mapping[str, Any]) -> bytes:
    """An encoded beat, checked before it is sent."""
    for name in fields:
        if name not in BeatFields.__annotations__:
            near = difflib.get_close_matches(name, BeatFields.__annotations__, 1)
            raise UsageError(f"{name} is no field of a beat" + (f"; did you mean {near[0]}?" if near else ""))
    given = {name: value for name, value in fields.items() if value is not None}
    raw = encoded({"agent_id": agent_id, **given})
    try:
        wire.decode_beat(raw)
    except WireError as error:
        raise UsageError(str(error)) from None
    return raw


def batch(messages: Iterable[Mapping[str, Any]]) -> bytes:
    """Many messages as one array."""
    return encoded(list(messages))


def new_id() -> str:
    """A unique id, which makes a repeated request the same."""
    return uuid.uuid4().hex


def written(at: datetime | float | str | None) -> str | None:
    """A moment in a query: RFC 3339. A number is seconds since 1970."""
    if isinstance(at, datetime):
        if at.tzinfo is None:
            raise UsageError(f"{at.isoformat()} has no time zone; the hub cannot know which one is meant")
        return at.isoformat()
    return moment(at) if isinstance(at, int | float) else at
