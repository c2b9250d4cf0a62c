"""Where stores of one kind are made for a test, and closed after it; and small pages to put into them."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.adapters.store.postgres import PostgresStore
from lifesigns.adapters.store.sql import migrations
from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.adapters.store.sqlite_file import migrate
from lifesigns.ports import Belief, Commit, Event, Sample, StoredOrder, StoredState

AnyStore = MemoryStore | SqliteStore | PostgresStore


async def _nothing() -> None:
    """A new place is empty by itself."""


@dataclass
class Ground:
    """`make` gives another store at the same place, as a hub that starts again has it."""

    _maker: Callable[[int], AnyStore]
    _wipe: Callable[[], Awaitable[None]] = _nothing
    _place: int = 0
    _made: list[AnyStore] = field(default_factory=list)

    def make(self) -> AnyStore:
        store = self._maker(self._place)
        self._made.append(store)
        return store

    async def opened(self) -> tuple[AnyStore, StoredState]:
        store = self.make()
        return store, await store.open()

    async def store(self) -> AnyStore:
        store, _ = await self.opened()
        return store

    async def move(self) -> None:
        """To a place where nothing is kept yet."""
        await self.close()
        self._place += 1
        await self._wipe()

    async def close(self) -> None:
        for store in self._made:
            await store.close()
        self._made.clear()


def old_file(path: Path, version: int) -> SqliteStore:
    """A store on a file of an older version, with one event of the fourth hub."""
    connection = apsw.Connection(str(path))
    migrate(connection, "it", migrations("sqlite")[:version])
    connection.execute("UPDATE hub SET epoch = 4, page = 1, event = 1")
    connection.execute("INSERT INTO events VALUES (1, 1.0, 'FLIP', 'a', x'7b7d')")
    connection.close()
    return SqliteStore(path)


def event(number: int, *, at: float | None = None, type_: str = "FLIP", agent_id: str = "coder-7") -> Event:
    return Event(number, float(number) if at is None else at, type_, agent_id, b'{"n": %d}' % number)


def order(order_id: str, *, at: float = 1.0) -> StoredOrder:
    return StoredOrder(order_id, at, "coder-7", b'{"nudge": true}')


def believed(key: str, value: bytes | None = b"{}", kind: str = "agent") -> Belief:
    return Belief(kind, key, value)


def sample(
    agent_id: str, at: float, *, beats: int = 1, late_max: float = 0.0, load: float | None = None
) -> Sample:
    return Sample(agent_id, at, beats, late_max, load)


async def fill(store: AnyStore, *events: Event, page: int = 1) -> None:
    """One page with these events."""
    await store.commit(Commit(page, events=events))


async def all_ids(store: AnyStore) -> list[int]:
    """Page by page, for there may be many."""
    ids: list[int] = []
    for _ in itertools.count():
        found = await store.events(after=ids[-1] if ids else 0, limit=5000)
        if not found:
            break
        ids += [event.id for event in found]
    return ids
