"""Audit: who did what. Without a name it was the hub, by its policy. `events/catalogue.py` has the words."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from lifesigns.events import CATALOGUE, fact_told
from lifesigns.events.catalogue import THE_HUB
from lifesigns.ports import AuditRecord
from lifesigns.views.moments import Moment, moment


class AuditEntry(Struct, frozen=True):
    """One record."""

    n: int
    """Its place in the log; the first is 0."""
    at: Moment
    who: str
    """Name and id of a token, or `lifesigns` for the hub's own acts; empty if the entry is retired."""
    what: str
    agent_id: str
    detail: str


class AuditList(Struct, frozen=True):
    """Audited acts, the newest first."""

    entries: tuple[AuditEntry, ...]
    before: int | None
    """Pass this for older ones; None if there are none."""


class AuditProof(Struct, frozen=True):
    """The proof that an entry is in the log of a checkpoint (RFC 6962, section 2.1.1)."""

    n: int
    entry: str | None
    """The entry as published; None if it is retired. `leaf` is its hash."""
    leaf: str
    size: int
    proof: tuple[str, ...]
    """The hashes from `leaf` to the root in the checkpoint, in hex, the nearest first."""
    checkpoint: str


class AuditConsistency(Struct, frozen=True):
    """The proof that the log of a checkpoint begins with an older log (RFC 6962, section 2.1.2)."""

    from_size: int
    size: int
    proof: tuple[str, ...]
    checkpoint: str


class _StoredEvent(Struct):
    type: str
    data: dict[str, Any]


_decode: Final = msgspec.json.Decoder(_StoredEvent).decode


def audit_entry(record: AuditRecord) -> AuditEntry:
    """An audited act in words."""
    what, detail, who = _words(record)
    return AuditEntry(record.n, moment(record.at), who, what, record.agent_id, detail)


def _words(record: AuditRecord) -> tuple[str, str, str]:
    if record.entry is None:
        return "retired", "older than the log keeps more than hashes of", ""
    try:
        event = _decode(record.entry)
    except msgspec.MsgspecError:
        # Somebody changed it: people must see it all the same.
        return "unreadable", "see lifesigns audit verify", ""
    who, row = record.who or THE_HUB, CATALOGUE.get(event.type)
    fact = fact_told(event.type, record.at, record.agent_id, event.data)
    if row is None or row.audit is None or fact is None:
        return event.type.lower().replace("_", " "), "", who
    return *row.audit(fact), who
