"""The store: what the hub must not forget.

One hub writes, commit by commit: its beliefs, facts and orders belong together and are stored together or not at all.
Nothing is carried out before its commit is stored. The hub numbers its commits and its events, so that a commit which
is written twice, because nobody knows whether the first time succeeded, is stored once.

Values are bytes: the store does not look into them. All moments are seconds since 1970.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from typing import Final, Protocol

from msgspec import Struct

RAW_FOR: Final = 24 * 3600.0
"""How long the journal is kept: long enough to ask in the morning how another policy would have judged the night."""

RAW_MAX: Final = 512 * 1024 * 1024
"""Bytes of the journal. Forty agents produce 20 MB a day; at 2,000 signals a second, the most a hub writes down, this
is a few hours."""


SEALS_FOR: Final = 7 * 24 * 3600.0
"""How long seals are kept. The newest proves everything the others prove; an auditor who wants to hold a hub to its log
of a year ago has a seal from then."""


CLOCK_WRONG: Final = 24 * 3600.0
"""Who tells of something that happens later than this was wrong about the time."""


class Belief(Struct, frozen=True):
    """One stored belief; `value` None deletes it."""

    kind: str
    key: str
    value: bytes | None


class Event(Struct, frozen=True):
    """A fact as it is stored and published. Ids rise without gaps."""

    id: int
    at: float
    type: str
    agent_id: str
    data: bytes
    """A JSON object."""


class StoredOrder(Struct, frozen=True):
    """An order without an outcome yet."""

    order_id: str
    at: float
    agent_id: str
    data: bytes


class Sample(Struct, frozen=True):
    """One minute of an agent's life in numbers; None where it reported nothing."""

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
    status: str | None = None
    """What it says of itself. This and what follows are of workers, who say how many tasks they have room for."""
    tasks: int | None = None
    """That it works on."""
    capacity: int | None = None
    tasks_completed: int | None = None
    tasks_failed: int | None = None
    """In its life so far, as it says, like its uptime."""
    uptime_s: float | None = None


class Chunk(Struct, frozen=True):
    """A stretch of the journal: the signals the hub received, kept for a short while to judge them again."""

    from_at: float
    to_at: float
    signals: int
    data: bytes


class AuditRecord(Struct, frozen=True):
    """An entry of the audit log: an act, or a permission. `n` rises from 0 without gaps."""

    n: int
    event_id: int
    at: float
    agent_id: str
    who: str
    """Who did it; empty: the hub, by its policy."""
    leaf: bytes
    """The hash of the entry. It stays when the entry is retired."""
    entry: bytes | None
    """The event as published, in JSON; None: retired."""


class Seal(Struct, frozen=True):
    """A signed checkpoint of the audit log: what its first `size` entries were."""

    size: int
    at: float
    note: str


class Commit(Struct, frozen=True):
    """What is written at once. The first has number 1."""

    number: int
    beliefs: Sequence[Belief] = ()
    events: Sequence[Event] = ()
    orders: Sequence[StoredOrder] = ()
    settled: Sequence[str] = ()
    """Orders with an outcome."""
    samples: Sequence[Sample] = ()
    journal: Sequence[Chunk] = ()
    audit_records: Sequence[AuditRecord] = ()
    """Of the audited events."""
    seals: Sequence[Seal] = ()


class StoredState(Struct, frozen=True):
    """What a hub finds when it opens its store."""

    epoch: int
    """The fencing epoch of this hub: higher than that of every hub before it."""
    commit: int
    """The number of the last commit; 0 if there is none."""
    event: int
    """The id of the last event; 0 if there is none."""
    beliefs: Sequence[Belief]
    """None of them for a hub that has a copy and only asks what changed."""
    orders: Sequence[StoredOrder]
    """Unsettled orders, oldest first."""


class BeliefMark(Struct, frozen=True):
    """A moment in the life of the stored beliefs: whoever has read them up to here can ask later what changed since."""

    server: str
    """Differs after a restart of the server: it may be another one, or have an older state."""
    commit: int
    """The number of the last commit."""
    position: str
    """For the store alone."""
    count: int
    """How many beliefs there are."""

    def follows(self, other: BeliefMark) -> bool:
        """Whether the store can tell what changed since the other mark."""
        return self.server == other.server and self.commit >= other.commit


TakeBeliefs = Callable[[Sequence[Belief]], Awaitable[None]]
"""Takes some hundred beliefs."""


class StoredToken(Struct, frozen=True):
    """A token's record. It holds only a digest, not the token itself."""

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
    """Proves that a hub wrote this row."""


class HubRow(Struct, frozen=True):
    """A hub on this store, as it last renewed its row."""

    name: str
    beat: int
    """Raised with every renewal: a hub whose beat rises lives."""
    url: str
    version: str
    leads: bool
    """Whether this hub was the last to open the store."""
    zone: str = ""
    """Where it runs, as configured; empty if it has no zone."""
    copied: int = -1
    """The commit up to which this hub, standing by, has a copy of the beliefs; -1: it has none."""
    drained: bool = False
    """It is to hand over, and not to judge while another hub can."""


class Store(Protocol):
    """Stores commits. Every method raises `AdapterError` on failure: transient if it may succeed later.

    Only `open` takes over. Reading or changing tokens without it works beside a running hub.
    """

    async def open(self, *, epoch_min: int = 0, beliefs: bool = True) -> StoredState:
        """Create or migrate what is needed, and take over from the previous hub: its commits are refused from now on.
        The new epoch is one more than the last, and at least `epoch_min`. The caller passes the milliseconds since 1970:
        a restored old copy of a store has forgotten the last epochs, but the agents have not. Without `beliefs` it does
        not read them."""

    @property
    def shared(self) -> bool:
        """Whether hubs on several machines can use it, and so have to agree which of them judges."""

    async def identity(self) -> str:
        """The same for all hubs on this store, and no other store has it; empty if it is not `shared`."""

    async def renew(
        self, name: str, url: str, version: str, zone: str = "", copied: int = -1
    ) -> Sequence[HubRow]:
        """Raise the beat of this hub; returns the rows of all hubs, by name. From then on `open` takes over only from
        the hub that led here: if another was quicker, it raises `Deposed`."""

    async def drain(self, name: str, *, drained: bool = True) -> None:
        """Note in the row of a hub that it is to hand over, and not to judge; or that it may. Nothing if there is no
        such row."""

    async def release(self, name: str) -> None:
        """Delete the row of a hub: it has stopped, or will never come back."""

    async def commit(self, commit: Commit) -> None:
        """Store a commit, all of it or nothing; it is on disk when this returns. A stored number is skipped; a number
        that is not the next, of a commit or of an event, is our `Bug`: so the hub passes the next commit only after
        this one. Refused for good (not transient) if another hub has taken over since."""

    async def belief(self, kind: str, key: str) -> bytes | None:
        """The value of one belief, also beside a hub that runs; None if there is none."""

    async def belief_mark(self) -> BeliefMark:
        """The mark of this moment, also beside a hub that runs."""

    async def read_beliefs(self, since: BeliefMark | None, take: TakeBeliefs) -> None:
        """Pass to `take` what changed since a mark that the present one follows, and perhaps more; without a mark, all
        beliefs. Some hundred at a time, in any order, also beside a hub that runs. It does not tell which were deleted."""

    async def read_belief_keys(self) -> Collection[tuple[str, str]]:
        """Kind and key of all beliefs."""

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
        """The minutes of an agent that begin at `since` or later and before `until`, in order; beyond a day they are
        hours, with the same meaning."""

    def journal(self, since: float, until: float) -> AsyncIterator[Chunk]:
        """The chunks that end at `since` or later and begin before `until`, in the order of storing; read a few at a
        time, because there may be hundreds of megabytes."""

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
        """Entries of the audit log with `after < n < before`, about this agent, by this person."""

    async def seals(
        self, *, after: int = -1, newest_first: bool = False, limit: int = 1000
    ) -> Sequence[Seal]:
        """Signed checkpoints of logs longer than `after`, the shortest first."""

    async def forget(self, now: float, *, keep_for: float, raw_for: float = RAW_FOR) -> int:
        """Thin out samples, drop samples older than `keep_for` and the events before the `first_event_since` then, chunks
        older than `raw_for`, the oldest chunks beyond `RAW_MAX`, and seals older than `SEALS_FOR` except the newest; returns
        the number of rows. Never drops a belief or an audited act. Works in small steps with commits in between. Refused
        like a commit."""

    async def retire(self, first: int, before: int) -> int:
        """Drop the contents of audit entries with `first <= n < before`, and whom they name; returns their number.
        Number, moment and leaf stay for ever. Works in small steps, and is refused, like `forget`."""

    async def tokens(self) -> Sequence[StoredToken]: ...

    async def keep_token(self, token: StoredToken) -> None:
        """Store a new or changed token."""

    async def drop_token(self, token_id: str) -> bool:
        """Delete a token; whether there was one."""

    @property
    def damage(self) -> str:
        """What a read found damaged, until a full check finds it whole; empty if no damage is known."""

    async def ping(self) -> None:
        """Return if it would take a commit now; fail if not."""

    async def close(self) -> None:
        """Delete the row of this hub, if it has one, and disconnect."""


async def first_event_since(store: Store, moment: float, now: float) -> int:
    """The id of the first event that is not older than this; one more than the last id if all are.

    Events go by their ids, so that the history has no gaps, ever: a moment is when something fell due, and may be
    earlier than that of the event before. One that lies ahead, of a clock that was wrong, keeps nothing."""
    after = 0
    while some := await store.events(after=after, since=moment, limit=100):
        for event in some:
            if event.at <= now + CLOCK_WRONG:
                return event.id
        after = some[-1].id
    return 1 + max((event.id for event in await store.events(newest_first=True, limit=1)), default=0)
