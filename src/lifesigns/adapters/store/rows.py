"""Rows: the databases' rows, in the same columns in the same order.

Samples are rows, not packed chunks. Measured with ids of eleven letters, a row takes 84 bytes and 5 µs, a sample in a
compressed chunk of a hundred 40 bytes and 9 µs, and a late minute means reading and rewriting a chunk. Their key begins
with the minute, because the minutes of all agents come at once: these rows are appended side by side. With the agent
first, each would go to its own database page, 4 kB written for 84 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from lifesigns.adapters.store.sampling import MINUTE, hour_of
from lifesigns.adapters.store.values import INT_MAX, countable, escaped, unescaped
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
    StoredToken,
)
from lifesigns.ports.merging import Numbers

Row = Sequence[Any]
StoredRow = Iterable[Any]
"""A row as a database gives it."""


def commit_rows(commit: Commit) -> list[tuple[str, list[Row]]]:
    """The changes of a commit: names of queries, always the same, and the rows for each. Of duplicates, the later counts.
    No two of them touch the same row, so their order does not matter."""
    beliefs = {(belief.kind, belief.key): belief for belief in commit.beliefs}.values()
    seals = {seal.size: seal for seal in commit.seals}.values()
    settled = frozenset(commit.settled)
    orders = {order.order_id: order for order in commit.orders if order.order_id not in settled}.values()
    return [
        ("keep_beliefs", [_belief_row(belief) for belief in beliefs if belief.value is not None]),
        ("drop_beliefs", [_belief_row(belief)[:2] for belief in beliefs if belief.value is None]),
        ("keep_events", [_event_row(event) for event in commit.events]),
        ("keep_orders", [_order_row(order) for order in orders]),
        ("settle_orders", [(escaped(order_id),) for order_id in settled]),
        ("keep_minutes", _minute_rows(commit.samples)),
        (
            "keep_chunks",
            [(chunk.from_at, chunk.to_at, chunk.signals, chunk.data) for chunk in commit.journal],
        ),
        ("keep_audit_records", [_audit_row(record) for record in commit.audit_records]),
        ("keep_seals", [(seal.size, seal.at, seal.note) for seal in seals]),
    ]


def belief_of(row: StoredRow) -> Belief:
    """The belief of a row."""
    kind, key, value = row
    return Belief(unescaped(kind), unescaped(key), value)


def event_of(row: StoredRow) -> Event:
    """The event of a row."""
    id_, at, type_, agent_id, data = row
    return Event(id_, at, unescaped(type_), unescaped(agent_id), data)


def order_of(row: StoredRow) -> StoredOrder:
    """The order of a row."""
    order_id, at, agent_id, data = row
    return StoredOrder(unescaped(order_id), at, unescaped(agent_id), data)


def hub_of(row: StoredRow) -> HubRow:
    """The hub of a row; the first column is the epoch of the store."""
    _, name, beat, url, version, zone, copied, drained, leads = row
    return HubRow(unescaped(name), beat, unescaped(url), version, bool(leads), zone, copied, bool(drained))


def chunk_of(row: StoredRow) -> Chunk:
    """The chunk of a row; the first column is its position."""
    _, from_at, to_at, signals, data = row
    return Chunk(from_at, to_at, signals, data)


def audit_record_of(row: StoredRow) -> AuditRecord:
    """The audit record of a row."""
    n, event_id, at, agent_id, who, leaf, entry = row
    return AuditRecord(n, event_id, at, unescaped(agent_id), unescaped(who), leaf, entry)


def audit_query(after: int, before: int | None, agent_id: str | None, who: str | None, limit: int) -> Row:
    """The parameters of the queries `audit_records` and `newest_audit_records`."""
    return (
        countable(after),
        INT_MAX if before is None else countable(before),
        None if agent_id is None else escaped(agent_id),
        None if who is None else escaped(who),
        max(0, countable(limit)),
    )


def seal_of(row: StoredRow) -> Seal:
    """The seal of a row."""
    return Seal(*row)


def token_of(row: StoredRow) -> StoredToken:
    """The token of a row."""
    id_, digest, role, name, agents, *rest = row
    return StoredToken(unescaped(id_), digest, unescaped(role), unescaped(name), unescaped(agents), *rest)


def token_row(token: StoredToken) -> Row:
    """The row of a token."""
    words = (escaped(token.role), escaped(token.name), escaped(token.agents))
    return (
        escaped(token.id),
        token.digest,
        *words,
        token.made_at,
        token.expires_at,
        token.used_at,
        token.mac,
    )


def sample_of(row: StoredRow, every: int) -> Sample:
    """The sample of a row; `every` tells minutes from hours."""
    number, agent_id, *numbers = row
    sample = Sample(unescaped(agent_id), float(number * every), *numbers)
    return sample if sample.status is None else replace(sample, status=unescaped(sample.status))


def hour_rows(hour: int, existing: Iterable[Row], minutes: Iterable[Row]) -> list[Row]:
    """One row for each agent: an hour's existing row combined with its minutes."""
    by_agent: dict[str, list[Numbers]] = {}
    for _, agent_id, *numbers in (*existing, *sorted(minutes, key=itemgetter(0))):
        by_agent.setdefault(agent_id, []).append(tuple(numbers))
    return [(hour, agent_id, *hour_of(by_agent[agent_id])) for agent_id in sorted(by_agent)]


def _belief_row(belief: Belief) -> Row:
    return (escaped(belief.kind), escaped(belief.key), belief.value)


def _event_row(event: Event) -> Row:
    return (event.id, event.at, escaped(event.type), escaped(event.agent_id), event.data)


def _order_row(order: StoredOrder) -> Row:
    return (escaped(order.order_id), order.at, escaped(order.agent_id), order.data)


def _audit_row(record: AuditRecord) -> Row:
    whom = (escaped(record.agent_id), escaped(record.who))
    return (record.n, record.event_id, record.at, *whom, record.leaf, record.entry)


def _counted(value: int | None) -> int | None:
    return None if value is None else countable(value)


def _minute_rows(samples: Iterable[Sample]) -> list[Row]:
    """Keyed by the number of minutes since 1970 and the agent, in this order; of duplicates, the later."""
    by_key: dict[tuple[int, str], Row] = {}
    for sample in samples:
        key = int(sample.at // MINUTE), escaped(sample.agent_id)
        by_key[key] = (
            *key,
            countable(sample.beats),
            sample.late_max,
            sample.load,
            sample.cpu_percent,
            sample.memory_mb,
            _counted(sample.tokens),
            sample.cost_usd,
            _counted(sample.errors),
            None if sample.status is None else escaped(sample.status),
            *map(_counted, (sample.tasks, sample.capacity, sample.tasks_completed, sample.tasks_failed)),
            sample.uptime_s,
        )
    return [by_key[key] for key in sorted(by_key)]
