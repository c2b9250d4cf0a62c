"""Audit: who did what. Without a name it was the hub, by its policy. `events/catalogue.py` has the words."""

from __future__ import annotations

from msgspec import Struct

from lifesigns.views.moments import Moment


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
