"""Audit records: the events about acts on agents and permissions: those with an audit entry in the catalogue.

The law: an event that names its author (`by`) is an audited act, even if the catalogue forgets to say so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from lifesigns.core import merkle
from lifesigns.core.effects import Fact
from lifesigns.core.health import Health
from lifesigns.events import CATALOGUE, fact_told, message
from lifesigns.events.catalogue import HEALTH_STATE_CHANGED
from lifesigns.ports import AuditRecord, Event

DECIDED: Final = frozenset({Health.DISCONNECTED, Health.TERMINATED})
"""A flip to one of these is a decision about the agent; the others are observations."""

AUDITED: Final = frozenset(row.name for row in CATALOGUE.values() if row.audit is not None)
_NAMES_SOMEBODY: Final = b'"by":"'
_WHO_MAX: Final = 300


class _Flip(msgspec.Struct, rename=CATALOGUE[HEALTH_STATE_CHANGED].fields):
    now: str


class _Actor(msgspec.Struct):
    by: Any = ""


class AuditText(msgspec.Struct):
    """A parsed entry."""

    id: int
    type: str
    at: str | float
    agent_id: str
    data: Mapping[str, Any]


_flip: Final = msgspec.json.Decoder(_Flip).decode
_who: Final = msgspec.json.Decoder(_Actor).decode
read: Final = msgspec.json.Decoder(AuditText).decode
"""Parses a stored entry. Raises `msgspec.MsgspecError`."""


def is_audited(event: Event) -> bool:
    """Whether this event goes into the log."""
    if event.type == HEALTH_STATE_CHANGED:
        return _flip(event.data).now in DECIDED
    return event.type in AUDITED or _NAMES_SOMEBODY in event.data


def audit_record(n: int, event: Event) -> AuditRecord:
    """The entry number `n`."""
    entry = message(event)
    who = who_did(_who(event.data).by)
    return AuditRecord(n, event.id, event.at, event.agent_id, who, merkle.leaf(entry), entry)


def fact_in(record: AuditRecord) -> Fact | None:
    """The fact of an entry; None if it is retired, or unreadable."""
    try:
        told = read(record.entry or b"")
    except msgspec.MsgspecError:
        return None
    return fact_told(told.type, record.at, record.agent_id, told.data)


def who_did(by: object) -> str:
    """The author in the event; empty: the hub, by its policy."""
    return by[:_WHO_MAX] if isinstance(by, str) else ""
