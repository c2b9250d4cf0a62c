"""Audit records: which events say that somebody was acted on, or allowed to act. The one list of them.

The law: whatever names who did it (`by`) is an audited act, also if its kind is not on the list. A list can be forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from lifesigns.core import merkle
from lifesigns.core.health import Health
from lifesigns.hub import telling
from lifesigns.ports import AuditRecord, Event

RETIRED: Final = "AUDIT_RETIRED"
"""Entries were retired by policy: all before number `before`."""
BROKEN: Final = "AUDIT_BROKEN"
"""The log was found not to be what was sealed."""
FLIP: Final = "HEALTH_STATE_CHANGED"
DECIDED: Final = frozenset({Health.DISCONNECTED, Health.TERMINATED})
"""A flip to one of these is a decision about the agent; the others are observations."""

AUDITED: Final = frozenset(
    {
        "NUDGE_SENT",
        "ESCALATION_TRIGGERED",
        "AGENT_TERMINATED",
        "INTERVENTION",
        "RECOVERY_INITIATED",
        "RECOVERY_COMPLETED",
        "RECOVERY_FAILED",
        "CLAIM_RELEASED",
        "GROUP_BRAKED",
        "AGENT_PAUSED",
        "AGENT_RESUMED",
        "AGENT_CLEARED",
        "RECOVERY_REQUESTED",
        "ALERT_ACKNOWLEDGED",
        "SILENCE_MADE",
        "SILENCE_ENDED",
        "TOKEN_CREATED",
        "TOKEN_REVOKED",
        RETIRED,
        BROKEN,
    }
)
_NAMES_SOMEBODY: Final = b'"by":"'
_WHO_MAX: Final = 300


class _Flip(msgspec.Struct):
    to: str


class _Who(msgspec.Struct):
    by: Any = ""


class AuditText(msgspec.Struct):
    """An entry, read."""

    id: int
    type: str
    at: str | float
    agent_id: str
    data: Mapping[str, Any]


_flip: Final = msgspec.json.Decoder(_Flip).decode
_who: Final = msgspec.json.Decoder(_Who).decode
read: Final = msgspec.json.Decoder(AuditText).decode
"""An entry as it is kept. Raises `msgspec.MsgspecError`."""


def is_deed(event: Event) -> bool:
    """Whether this event goes into the log."""
    if event.type == FLIP:
        return _flip(event.data).to in DECIDED
    return event.type in AUDITED or _NAMES_SOMEBODY in event.data


def audit_record(n: int, event: Event) -> AuditRecord:
    """The entry number `n`."""
    entry = telling.message(event)
    who = who_did(_who(event.data).by)
    return AuditRecord(n, event.id, event.at, event.agent_id, who, merkle.leaf(entry), entry)


def who_did(by: object) -> str:
    """Who did it, by what the event says; empty: the hub, by its policy."""
    return by[:_WHO_MAX] if isinstance(by, str) else ""
