"""Forgetting, a little at a time: each step is a transaction of its own, and pages get in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, Protocol

from lifesigns.adapters.store.sampling import HOUR, MINUTE, first_kept_hour, numbers
from lifesigns.ports.store import RAW_MAX, SEALS_FOR

AGENTS_AT_ONCE: Final = 100
"""Thinned out in one step: 6,000 rows, about 20 ms for which a page waits."""
ROWS_AT_ONCE: Final = 2000
"""Dropped in one step."""
CHUNKS_AT_ONCE: Final = 20
"""The same for the journal, whose rows are large: a few megabytes. So many are read in one step, too."""

_TEXT_END: Final = chr(0x10FFFF)
"""No id reaches it."""


class Forgetful(Protocol):
    """The single steps."""

    async def drop_some(self, query: str, beyond: float, count: int) -> int:
        """Drop up to `count` that are beyond this moment, or this size; how many went."""

    async def retire_some(self, first: int, before: int) -> int:
        """Retire the audit records with `first <= n < before`; how many."""

    async def oldest_minute(self) -> int | None: ...

    async def agents_in_minute(self, minute: int) -> Sequence[str]:
        """In the order of their ids."""

    async def thin_out(self, hour: int, first: str, end: str) -> int:
        """Make hours of the minutes of this hour, of the agents in [first, end); how many minutes went."""


async def forget(store: Forgetful, now: float, keep_for: float, raw_for: float) -> int:
    """Drop what is older than `keep_for`, of the journal what is older than `raw_for` or too much, and make hours of
    minutes older than a day; how many rows went."""
    before = now - keep_for
    gone = await _drop(store, "drop_events", before)
    gone += await _drop(store, "drop_minutes", numbers(before, before, MINUTE)[0])
    gone += await _drop(store, "drop_hours", numbers(before, before, HOUR)[0])
    gone += await _drop(store, "drop_chunks", now - min(raw_for, keep_for), CHUNKS_AT_ONCE)
    gone += await _drop(store, "drop_chunks_beyond", RAW_MAX, CHUNKS_AT_ONCE)
    gone += await _drop(store, "drop_seals", now - SEALS_FOR)
    while (oldest := await store.oldest_minute()) is not None and oldest // 60 < first_kept_hour(now):
        for first, end in _slices(await store.agents_in_minute(oldest)):
            gone += await store.thin_out(oldest // 60, first, end)
    return gone


async def retire(store: Forgetful, first: int, before: int) -> int:
    """Retire audit records; how many."""
    return sum(
        [
            await store.retire_some(some, min(some + ROWS_AT_ONCE, before))
            for some in range(first, before, ROWS_AT_ONCE)
        ]
    )


async def _drop(store: Forgetful, query: str, beyond: float, count: int = ROWS_AT_ONCE) -> int:
    gone = some = await store.drop_some(query, beyond, count)
    while some == count:
        some = await store.drop_some(query, beyond, count)
        gone += some
    return gone


def _slices(agent_ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Ranges [first, end) that together hold every id, and each about `AGENTS_AT_ONCE` of these."""
    return pairwise(["", *agent_ids[AGENTS_AT_ONCE::AGENTS_AT_ONCE], _TEXT_END])
