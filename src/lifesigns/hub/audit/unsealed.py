"""Entries that were never sealed, though the hub had the time: somebody took their seals away."""

from __future__ import annotations

from typing import Final

from lifesigns.ports import Store

OVERDUE_AFTER: Final = 300.0
"""A hub seals within a minute of an entry."""
AWAKE_FOR: Final = 180.0
"""Seconds for which a hub wrote down events since: one that was just started may not have sealed yet."""


async def overdue(store: Store, sealed: int) -> str:
    """Why entries from number `sealed` on should have been sealed; empty if there are none, or not for long enough."""
    for first in await store.audit_records(after=sealed - 1, limit=1):
        since = [event.at for event in await store.events(since=first.at + OVERDUE_AFTER, limit=1)]
        newest = [event.at for event in await store.events(newest_first=True, limit=1)]
        if since and newest and newest[0] - since[0] >= AWAKE_FOR:
            return f"entry {first.n} and those after it are not sealed, though a hub wrote on: their checkpoints are gone"
    return ""
