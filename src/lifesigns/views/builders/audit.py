"""Builds the entries of the audit log from its records."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from lifesigns.events import CATALOGUE, fact_told
from lifesigns.events.catalogue import THE_HUB
from lifesigns.ports import AuditRecord
from lifesigns.views.audit import AuditEntry
from lifesigns.views.moments import moment


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
