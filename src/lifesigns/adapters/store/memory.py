"""MemoryStore: keeps everything as long as the process lives; for tests, demos and simulations.

`MemoryStore("name")` finds the data of an earlier one of the same name, as a restarted hub finds its file.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Final

from msgspec.structs import astuple, replace

from lifesigns.adapters.store.event_filter import EventFilter
from lifesigns.adapters.store.ledger import Ledger, check_turn, next_ledger, taken_over
from lifesigns.adapters.store.sampling import HOUR, MINUTE, first_kept_hour, hour_of
from lifesigns.errors import AdapterError
from lifesigns.ports import (
    AuditRecord,
    Belief,
    Chunk,
    Commit,
    Event,
    HubRow,
    Sample,
    Seal,
    StoredOrder,
    StoredState,
    StoredToken,
)
from lifesigns.ports.store import RAW_FOR, RAW_MAX, SEALS_FOR, BeliefMark, TakeBeliefs, first_event_since


@dataclass
class _Kept:
    """The data that outlives the hub."""

    ledger: Ledger = field(default_factory=lambda: Ledger(0, 0, 0))
    beliefs: dict[tuple[str, str], Belief] = field(default_factory=dict)
    events: dict[int, Event] = field(default_factory=dict)
    orders: dict[str, StoredOrder] = field(default_factory=dict)
    minutes: dict[tuple[str, float], Sample] = field(default_factory=dict)
    hours: dict[tuple[str, float], Sample] = field(default_factory=dict)
    journal: list[Chunk] = field(default_factory=list)
    audit_records: dict[int, AuditRecord] = field(default_factory=dict)
    seals: dict[int, Seal] = field(default_factory=dict)
    tokens: dict[str, StoredToken] = field(default_factory=dict)
    hubs: dict[str, tuple[HubRow, int]] = field(default_factory=dict)
    """With the epoch in which each took over."""


_kept_by_name: Final[dict[str, _Kept]] = {}


class MemoryStore:
    """Keeps everything in this process. Implements `lifesigns.ports.Store`."""

    def __init__(self, name: str | None = None) -> None:
        self._name = "the memory store" if name is None else f"the memory store {name!r}"
        self._kept = _Kept() if name is None else _kept_by_name.setdefault(name, _Kept())
        self._epoch: int | None = None
        self._hub = ""
        self._epoch_seen: int | None = None
        self._closed = False

    @property
    def shared(self) -> bool:
        """No other process sees it."""
        return False

    async def identity(self) -> str:
        """No other process sees it."""
        return ""

    async def open(self, *, epoch_min: int = 0, beliefs: bool = True) -> StoredState:
        """Take over from the previous hub."""
        self._refuse_if_closed()
        kept = self._kept
        before = kept.ledger
        quicker = self._epoch_seen is not None and before.epoch != self._epoch_seen
        after = replace(before, epoch=max(before.epoch + 1, epoch_min))
        kept.ledger = taken_over(self._name, () if quicker else (astuple(after),))
        self._epoch = kept.ledger.epoch
        if self._hub in kept.hubs:
            kept.hubs[self._hub] = kept.hubs[self._hub][0], self._epoch
        oldest_first = sorted(kept.orders.values(), key=lambda order: order.at)
        found = list(kept.beliefs.values()) if beliefs else []
        return StoredState(self._epoch, kept.ledger.commit, kept.ledger.event, found, oldest_first)

    async def renew(
        self, name: str, url: str, version: str, zone: str = "", copied: int = -1
    ) -> Sequence[HubRow]:
        """Raise the beat of this hub, and see the others."""
        self._refuse_if_closed()
        kept = self._kept
        before, epoch = kept.hubs.get(name, (HubRow(name, 0, url, version, leads=False), -1))
        kept.hubs[name] = (
            replace(before, beat=before.beat + 1, url=url, version=version, zone=zone, copied=copied),
            epoch,
        )
        self._hub, self._epoch_seen = name, kept.ledger.epoch
        return [
            replace(row, leads=epoch == kept.ledger.epoch) for _, (row, epoch) in sorted(kept.hubs.items())
        ]

    async def drain(self, name: str, *, drained: bool = True) -> None:
        """Tell a hub to hand over, and not to judge; or that it may."""
        self._refuse_if_closed()
        if name in self._kept.hubs:
            row, epoch = self._kept.hubs[name]
            self._kept.hubs[name] = replace(row, drained=drained), epoch

    async def release(self, name: str) -> None:
        """Delete the row of a hub."""
        self._refuse_if_closed()
        self._kept.hubs.pop(name, None)

    async def commit(self, commit: Commit) -> None:
        """Store a commit."""
        self._refuse_if_closed()
        kept = self._kept
        ledger = next_ledger(self._name, kept.ledger, self._epoch, commit)
        if ledger is None:
            return
        for belief in commit.beliefs:
            if belief.value is None:
                kept.beliefs.pop((belief.kind, belief.key), None)
            else:
                kept.beliefs[belief.kind, belief.key] = belief
        kept.events.update((event.id, event) for event in commit.events)
        kept.orders.update((order.order_id, order) for order in commit.orders)
        for order_id in commit.settled:
            kept.orders.pop(order_id, None)
        for sample in commit.samples:
            at = sample.at // MINUTE * MINUTE
            kept.minutes[sample.agent_id, at] = replace(sample, at=at)
        kept.journal.extend(commit.journal)
        kept.audit_records.update((record.n, record) for record in commit.audit_records)
        kept.seals.update((seal.size, seal) for seal in commit.seals)
        kept.ledger = ledger

    async def belief(self, kind: str, key: str) -> bytes | None:
        """One of them."""
        self._refuse_if_closed()
        found = self._kept.beliefs.get((kind, key))
        return None if found is None else found.value

    async def belief_mark(self) -> BeliefMark:
        """The mark of this moment."""
        self._refuse_if_closed()
        return BeliefMark("", self._kept.ledger.commit, "", len(self._kept.beliefs))

    async def read_beliefs(self, since: BeliefMark | None, take: TakeBeliefs) -> None:
        """Pass on everything, whatever the mark."""
        self._refuse_if_closed()
        await take(list(self._kept.beliefs.values()))

    async def read_belief_keys(self) -> Collection[tuple[str, str]]:
        """Kind and key of all beliefs."""
        self._refuse_if_closed()
        return set(self._kept.beliefs)

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
        """The events that match."""
        self._refuse_if_closed()
        query = EventFilter(after, until, since, types, agent_id, newest_first, limit)
        events = self._kept.events.values()
        matching = filter(query.wants, reversed(events) if newest_first else events)
        return list(islice(matching, query.count_max))

    async def samples(self, agent_id: str, since: float, until: float) -> Sequence[Sample]:
        """Hours, then minutes."""
        self._refuse_if_closed()
        return [
            sample
            for kept in (self._kept.hours, self._kept.minutes)
            for sample in sorted(kept.values(), key=lambda sample: sample.at)
            if sample.agent_id == agent_id and since <= sample.at < until
        ]

    async def journal(self, since: float, until: float) -> AsyncIterator[Chunk]:
        """In order."""
        self._refuse_if_closed()
        for chunk in [
            chunk for chunk in self._kept.journal if since <= chunk.to_at and chunk.from_at < until
        ]:
            yield chunk

    async def forget(self, now: float, *, keep_for: float, raw_for: float = RAW_FOR) -> int:
        """Thin out and drop."""
        self._refuse_if_closed()
        check_turn(self._name, self._kept.ledger, self._epoch)
        gone = self._drop_chunks(now - min(raw_for, keep_for)) + self._drop_seals(now - SEALS_FOR)
        gone += self._drop_events(await first_event_since(self, now - keep_for, now))
        return gone + self._drop_samples(now - keep_for) + self._thin(first_kept_hour(now))

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
        """The records that match."""
        self._refuse_if_closed()
        audit_records = self._kept.audit_records.values()
        matching = (
            record
            for record in (reversed(audit_records) if newest_first else audit_records)
            if record.n > after
            and (before is None or record.n < before)
            and agent_id in (None, record.agent_id)
            and who in (None, record.who)
        )
        return list(islice(matching, max(0, limit)))

    async def seals(
        self, *, after: int = -1, newest_first: bool = False, limit: int = 1000
    ) -> Sequence[Seal]:
        """The seals of longer logs."""
        self._refuse_if_closed()
        longer = sorted(
            (seal for seal in self._kept.seals.values() if seal.size > after),
            key=lambda seal: seal.size,
            reverse=newest_first,
        )
        return longer[:limit]

    async def retire(self, first: int, before: int) -> int:
        """Drop entries, keep their leaves."""
        self._refuse_if_closed()
        check_turn(self._name, self._kept.ledger, self._epoch)
        audit_records = [
            record
            for record in self._kept.audit_records.values()
            if first <= record.n < before and record.entry is not None
        ]
        self._kept.audit_records.update(
            (record.n, replace(record, agent_id="", who="", entry=None)) for record in audit_records
        )
        return len(audit_records)

    async def tokens(self) -> Sequence[StoredToken]:
        """All of them, oldest first."""
        self._refuse_if_closed()
        return sorted(self._kept.tokens.values(), key=lambda token: (token.made_at, token.id))

    async def keep_token(self, token: StoredToken) -> None:
        """Store a new or changed token."""
        self._refuse_if_closed()
        self._kept.tokens[token.id] = token

    async def drop_token(self, token_id: str) -> bool:
        """Delete a token; whether there was one."""
        self._refuse_if_closed()
        return self._kept.tokens.pop(token_id, None) is not None

    @property
    def damage(self) -> str:
        """Memory is not damaged."""
        return ""

    async def ping(self) -> None:
        """Check that it is still ours."""
        self._refuse_if_closed()
        if self._epoch is not None:
            check_turn(self._name, self._kept.ledger, self._epoch)

    async def close(self) -> None:
        """Close; the data of a named store stays, without the row of this hub."""
        self._kept.hubs.pop(self._hub, None)
        self._closed = True

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise AdapterError(f"{self._name} is closed", transient=False)

    def _drop_events(self, before: int) -> int:
        old = [event_id for event_id in self._kept.events if event_id < before]
        for event_id in old:
            del self._kept.events[event_id]
        return len(old)

    def _drop_samples(self, before: float) -> int:
        kept, gone = self._kept, 0
        for samples in (kept.minutes, kept.hours):
            for key in [key for key, sample in samples.items() if sample.at < before]:
                del samples[key]
                gone += 1
        return gone

    def _drop_chunks(self, before: float) -> int:
        journal = self._kept.journal
        young = [chunk for chunk in journal if chunk.to_at >= before]
        sizes = accumulate(len(chunk.data) for chunk in reversed(young))
        self._kept.journal = young[len(young) - sum(size <= RAW_MAX for size in sizes) :]
        return len(journal) - len(self._kept.journal)

    def _drop_seals(self, before: float) -> int:
        seals = self._kept.seals
        old = [size for size, seal in seals.items() if seal.at < before and size < max(seals)]
        for size in old:
            del seals[size]
        return len(old)

    def _thin(self, kept_from: int) -> int:
        kept = self._kept
        old = sorted(
            (sample for sample in kept.minutes.values() if sample.at < kept_from * HOUR),
            key=lambda sample: sample.at,
        )
        by_hour: dict[tuple[str, float], list[Sample]] = {}
        for sample in old:
            key = (sample.agent_id, sample.at // HOUR * HOUR)
            by_hour.setdefault(key, [kept.hours[key]] if key in kept.hours else []).append(sample)
            del kept.minutes[sample.agent_id, sample.at]
        for key, samples in by_hour.items():
            kept.hours[key] = Sample(*key, *hour_of(astuple(sample)[2:] for sample in samples))
        return len(old)
