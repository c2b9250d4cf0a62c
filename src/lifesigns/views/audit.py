"""Audit: who did what. Who is not named is the hub, which did it by its policy. `events/catalogue.py` has the words."""

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
    """Name and id of a token, or `lifesigns` for what the hub does by its policy; empty if the entry is retired."""
    what: str
    agent_id: str
    detail: str


class AuditList(Struct, frozen=True):
    """Audited acts, the newest first."""

    entries: tuple[AuditEntry, ...]
    before: int | None
    """Ask with this for older ones; None if there are none."""


class AuditProof(Struct, frozen=True):
    """That an entry is in the log which a checkpoint speaks of (RFC 6962, section 2.1.1)."""

    n: int
    entry: str | None
    """The entry as it was told; None if it is retired. `leaf` is its hash."""
    leaf: str
    size: int
    proof: tuple[str, ...]
    """The hashes that lead from `leaf` to the root in the checkpoint, in hex, the nearest first."""
    checkpoint: str


class AuditConsistency(Struct, frozen=True):
    """That the log which a checkpoint speaks of begins with an older one (RFC 6962, section 2.1.2)."""

    from_size: int
    size: int
    proof: tuple[str, ...]
    checkpoint: str


class _Told(Struct):
    type: str
    data: dict[str, Any]


_told: Final = msgspec.json.Decoder(_Told).decode


def audit_entry(record: AuditRecord) -> AuditEntry:
    """An audited act as people read it."""
    what, detail, who = _words(record)
    return AuditEntry(record.n, moment(record.at), who, what, record.agent_id, detail)


def _words(record: AuditRecord) -> tuple[str, str, str]:
    if record.entry is None:
        return "retired", "older than the log keeps more than hashes of", ""
    try:
        told = _told(record.entry)
    except msgspec.MsgspecError:
        # Somebody changed it: it is to be seen all the same.
        return "unreadable", "see lifesigns audit verify", ""
    who, row = record.who or THE_HUB, CATALOGUE.get(told.type)
    fact = fact_told(told.type, record.at, record.agent_id, told.data)
    if row is None or row.audit is None or fact is None:
        return told.type.lower().replace("_", " "), "", who
    return *row.audit(fact), who
