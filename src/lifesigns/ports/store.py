"""The store: what the hub must not forget.

One hub writes, page by page: what it now believes, the facts it told and the orders it gave belong together and are
kept together or not at all. Nothing is carried out before its page is kept. The hub numbers its pages and its events, so
that a page which is written twice, because nobody knows whether the first time succeeded, is there once.

Values are bytes: what is in them is the hub's business. All moments are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Belief:
    """One thing that is believed; `value` None: no longer."""

    kind: str
    key: str
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Event:
    """A fact as it is kept and told. Ids rise without gaps."""

    id: int
    at: float
    type: str
    agent_id: str
    data: bytes
    """A JSON object."""


@dataclass(frozen=True, slots=True)
class KeptOrder:
    """An order that was given and whose outcome has not come back."""

    order_id: str
    at: float
    agent_id: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Sample:
    """One minute of an agent's life in numbers; None where it told nothing."""

    agent_id: str
    at: float
    """The beginning of the minute."""
    beats: int
    late_max: float
    """The latest beat, in seconds after it was expected."""
    load: float | None = None
    cpu_percent: float | None = None
    memory_mb: float | None = None
    tokens: int | None = None
    cost_usd: float | None = None
    errors: int | None = None
    """Tokens, cost and errors are totals of its life so far; everything else is of this minute."""


@dataclass(frozen=True, slots=True)
class Page:
    """What is written at once. The first is number 1."""

    number: int
    beliefs: Sequence[Belief] = ()
    events: Sequence[Event] = ()
    orders: Sequence[KeptOrder] = ()
    settled: Sequence[str] = ()
    """Orders whose outcome came back."""
    samples: Sequence[Sample] = ()


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a hub finds when it opens its store."""

    epoch: int
    """One more than the last hub had: the fencing epoch of this one."""
    page: int
    """The number of the last page; 0 if there is none."""
    event: int
    """The id of the last event; 0 if there is none."""
    beliefs: Sequence[Belief]
    orders: Sequence[KeptOrder]
    """Those that are not settled, oldest first."""


@dataclass(frozen=True, slots=True)
class KeptToken:
    """Who may come in. The token itself is not kept, only its digest."""

    id: str
    digest: bytes
    role: str
    name: str
    agents: str
    """For agents: the id or the prefix (`coder-*`) it may speak for."""
    made_at: float
    expires_at: float | None = None
    used_at: float | None = None


class Store(Protocol):
    """Keeps pages. Every method raises `AdapterError` if it cannot: transient if it may succeed later.

    Only `open` takes over. Who reads or changes tokens without it does so beside a hub that runs.
    """

    async def open(self) -> Remembered:
        """Make or migrate what is needed, and take over from the hub before: its pages are refused from now on."""

    async def commit(self, page: Page) -> None:
        """Keep a page, all of it or nothing; it is on the disk when this returns. A number that is kept already is
        skipped; one that is not the next, of a page or of an event, is our `Bug`: so the next page is not given before
        this one is kept. Refused for good (not transient) if another hub has taken over since."""

    async def events(
        self,
        *,
        after: int = 0,
        until: int | None = None,
        since: float | None = None,
        types: Sequence[str] = (),
        agent_id: str | None = None,
        newest_first: bool = False,
        limit: int = 1000,
    ) -> Sequence[Event]:
        """Events with `after < id <= until`, not older than `since`, of these types (none: all) and this agent."""

    async def samples(self, agent_id: str, since: float, until: float) -> Sequence[Sample]:
        """The minutes of an agent that begin at `since` or later and before `until`, in order; older than a day they are
        hours, with the same meaning."""

    async def forget(self, now: float, *, keep_for: float) -> int:
        """Thin out samples, drop events and samples older than `keep_for`; how many rows went. Never a belief. In small
        steps, between which pages are kept. Refused as a page is."""

    async def tokens(self) -> Sequence[KeptToken]: ...

    async def keep_token(self, token: KeptToken) -> None:
        """Keep a token, or what has changed about it."""

    async def drop_token(self, token_id: str) -> bool:
        """Whether there was one."""

    async def ping(self) -> None:
        """Whether it would take a page now; fails if not."""

    async def close(self) -> None: ...
