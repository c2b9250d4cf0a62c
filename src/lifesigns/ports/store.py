"""The store: what the hub must not forget.

One hub writes, page by page: what it now believes, the facts it told and the orders it gave belong together and are
kept together or not at all. Nothing is carried out before its page is kept. The hub numbers its pages and its events, so
that a page which is written twice, because nobody knows whether the first time succeeded, is there once.

Values are bytes: what is in them is the hub's business. All moments are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

RAW_FOR: Final = 24 * 3600.0
"""How long the journal is kept: long enough to ask in the morning what another policy would have said at night."""

RAW_MAX: Final = 512 * 1024 * 1024
"""Bytes of it. Forty agents say 20 MB a day; at 2,000 signals a second, more than which a hub does not write down, this is
a few hours."""


SEALS_FOR: Final = 7 * 24 * 3600.0
"""How long seals are kept. The newest says everything the others say; who wants to hold a hub to what its log was a year ago
has a seal of his own from then."""


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
class StoredOrder:
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
class Chunk:
    """A stretch of what the hub heard, signal by signal: kept for a short while, to be judged anew."""

    from_at: float
    to_at: float
    signals: int
    data: bytes


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """An entry of the audit log: something was done to somebody, or allowed. `n` rises from 0 without gaps."""

    n: int
    event_id: int
    at: float
    agent_id: str
    who: str
    """Who did it; empty: the hub, by its policy."""
    leaf: bytes
    """The hash of the entry. It stays when the entry is retired."""
    entry: bytes | None
    """The event as it was told, in JSON; None: retired."""


@dataclass(frozen=True, slots=True)
class Seal:
    """A signed checkpoint of the audit log: what its first `size` entries were."""

    size: int
    at: float
    note: str


@dataclass(frozen=True, slots=True)
class Commit:
    """What is written at once. The first is number 1."""

    number: int
    beliefs: Sequence[Belief] = ()
    events: Sequence[Event] = ()
    orders: Sequence[StoredOrder] = ()
    settled: Sequence[str] = ()
    """Orders whose outcome came back."""
    samples: Sequence[Sample] = ()
    journal: Sequence[Chunk] = ()
    audit_records: Sequence[AuditRecord] = ()
    """Those of the events that are audited."""
    seals: Sequence[Seal] = ()


@dataclass(frozen=True, slots=True)
class StoredState:
    """What a hub finds when it opens its store."""

    epoch: int
    """The fencing epoch of this hub: higher than that of every hub before it."""
    page: int
    """The number of the last page; 0 if there is none."""
    event: int
    """The id of the last event; 0 if there is none."""
    beliefs: Sequence[Belief]
    orders: Sequence[StoredOrder]
    """Those that are not settled, oldest first."""


@dataclass(frozen=True, slots=True)
class StoredToken:
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
    mac: bytes = b""
    """By which a hub knows that it has written this row."""


class Store(Protocol):
    """Keeps pages. Every method raises `AdapterError` if it cannot: transient if it may succeed later.

    Only `open` takes over. Who reads or changes tokens without it does so beside a hub that runs.
    """

    async def open(self, *, epoch_min: int = 0) -> StoredState:
        """Make or migrate what is needed, and take over from the hub before: its pages are refused from now on.

        The new epoch is one more than the last, and at least `epoch_min`. The caller passes the seconds since 1970: an old
        copy of a store that is put back has forgotten the last epochs, but the agents have not."""

    async def commit(self, page: Commit) -> None:
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

    def journal(self, since: float, until: float) -> AsyncIterator[Chunk]:
        """The chunks that end at `since` or later and begin before `until`, in the order they were kept; read a few at a
        time, for there may be hundreds of megabytes."""

    async def audit_records(
        self,
        *,
        after: int = -1,
        before: int | None = None,
        agent_id: str | None = None,
        who: str | None = None,
        newest_first: bool = False,
        limit: int = 1000,
    ) -> Sequence[AuditRecord]:
        """Entries of the audit log with `after < n < before`, about this agent, by this one."""

    async def seals(
        self, *, after: int = -1, newest_first: bool = False, limit: int = 1000
    ) -> Sequence[Seal]:
        """Signed checkpoints of logs longer than `after`, the shortest first."""

    async def forget(self, now: float, *, keep_for: float, raw_for: float = RAW_FOR) -> int:
        """Thin out samples, drop events and samples older than `keep_for`, chunks older than `raw_for` and the oldest of
        those beyond `RAW_MAX`, and seals older than `SEALS_FOR` but for the newest; how many rows went. Never a belief
        nor an audited act. In small steps, between which pages are kept. Refused as a page is."""

    async def retire(self, first: int, before: int) -> int:
        """Drop the entries of the audited acts with `first <= n < before`, and whom they name; of how many. Number, moment and
        leaf stay for ever. In small steps, and refused, as `forget`."""

    async def tokens(self) -> Sequence[StoredToken]: ...

    async def keep_token(self, token: StoredToken) -> None:
        """Keep a token, or what has changed about it."""

    async def drop_token(self, token_id: str) -> bool:
        """Whether there was one."""

    @property
    def damage(self) -> str:
        """What a read has found damaged, until a look at everything finds it whole; empty if nothing is known."""

    async def ping(self) -> None:
        """Whether it would take a page now; fails if not."""

    async def close(self) -> None: ...
