"""What the hub drops of its audit log and its history when they are too old, and how the log says so."""

from __future__ import annotations

from typing import Final

from lifesigns.events.hub_facts import AuditBroken, AuditRetired, HistoryForgotten
from lifesigns.hub.audit.log import Announce, AuditLog, AuditWriter
from lifesigns.hub.audit.reading import AT_ONCE
from lifesigns.ports import Store
from lifesigns.ports.store import first_event_since

RETIRE_EVERY: Final = 86400.0


class AuditRetention:
    """Drops old entries and old events. Each deletion is an entry of the log, stored first: so retired and forgotten
    rows can be told from removed ones."""

    def __init__(self, log: AuditLog, store: Store, writer: AuditWriter, announce: Announce) -> None:
        self._log = log
        self._store = store
        self._writer = writer
        self._announce = announce

    async def retire(self, now: float, keep_for: float) -> None:
        """Drop entries older than `keep_for`, at most once a day. That is an audited act itself, stored before the
        deletion: so retired entries can be told from removed ones."""
        state = self._log.state
        if self._log.proves and now - state.retired_at >= RETIRE_EVERY:
            before = await self._first_kept(now - keep_for)
            if before > state.retired:
                state.retired_from, state.retired, state.retired_at = state.retired, before, now
                self._announce(AuditRetired(now, before, keep_for))
                await self._writer.wait_until_stored()
        if state.retired > state.retired_from:
            await self._store.retire(state.retired_from, state.retired)

    async def forget_history(self, now: float, keep_for: float) -> float:
        """Since when to keep the history. It moves on once a day, or more often if the history is short; each step is
        an entry, stored before the deletion, so that forgotten events can be told from removed ones."""
        state, since = self._log.state, now - keep_for
        if since - state.kept_since >= min(RETIRE_EVERY, keep_for / 10):
            state.kept_since = since
            first = await first_event_since(self._store, since, now)
            gone = await self._gone_before(first)
            if gone and not self._log.trouble:
                self._log.give_up_sealing(gone, lambda why: self._announce(AuditBroken(now, why)))
            if first > state.history_from:
                state.history_from = first
                self._announce(HistoryForgotten(now, first, keep_for))
                await self._writer.wait_until_stored()
        return min(since, state.kept_since)

    async def _gone_before(self, first: int) -> str:
        """Which events are missing before this one: forgetting them would approve their removal."""
        expected = self._log.state.history_from
        while expected < first:
            some = await self._store.events(after=expected - 1, until=first - 1, limit=AT_ONCE)
            for event in some:
                if event.id != expected:
                    return f"events {expected} to {event.id - 1} are gone from the history"
                expected += 1
            if not some:
                return f"events {expected} to {first - 1} are gone from the history"
        return ""

    async def _first_kept(self, oldest: float) -> int:
        """The number of the first entry that is not too old. It goes by numbers, not moments: a clock may be set
        back."""
        n = self._log.state.retired
        while some := await self._store.audit_records(after=n - 1, limit=AT_ONCE):
            for one in some:
                if one.at >= oldest:
                    return one.n
            n = some[-1].n + 1
        return n
