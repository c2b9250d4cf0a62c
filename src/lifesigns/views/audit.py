"""Audit: who did what. Who is not named is the hub, which did it by its policy. `hub/audit/records.py` says what an audited act is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from lifesigns.ports import AuditRecord
from lifesigns.views.moments import Moment, moment

THE_HUB: Final = "lifesigns"


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
        return (
            "unreadable",
            "see lifesigns audit verify",
            "",
        )  # Somebody changed it: it is to be seen all the same.
    words = AUDITED.get(told.type) or _act(told.type.lower().replace("_", " "))
    return *words(told.data), record.who or THE_HUB


Words = Callable[[Mapping[str, Any]], tuple[str, str]]


def _step(data: Mapping[str, Any]) -> tuple[str, str]:
    said = data.get("text") or data.get("message") or data.get("reason") or ""
    return f"{data.get('rung', 'intervention')} {data.get('stage', '')}".strip(), str(said)


def _recovery(data: Mapping[str, Any]) -> tuple[str, str]:
    task = f"task {data['task_id']}" if data.get("task_id") else "no task"
    reason = f": {data['reason']}" if data.get("reason") else ""
    return f"recovery {data.get('stage', '')}".strip(), f"{task}{reason}"


def _release(data: Mapping[str, Any]) -> tuple[str, str]:
    return "claim released", f"task {data.get('task_id')}: {data.get('reason') or 'given back'}"


def _flip(data: Mapping[str, Any]) -> tuple[str, str]:
    return f"judged {data.get('to')}", str(data.get("reason") or "")


def _retired(data: Mapping[str, Any]) -> tuple[str, str]:
    return (
        "entries retired",
        f"all before {data.get('before')}, older than {data.get('keep_for_s', 0) / 86400:g} days",
    )


def _broken(data: Mapping[str, Any]) -> tuple[str, str]:
    return "audit log found broken", str(data.get("reason"))


def _brake(data: Mapping[str, Any]) -> tuple[str, str]:
    what = "group braked" if data.get("on") else "group released"
    return what, f"{data.get('group')}: {data.get('unwell')} of {data.get('members')} are unwell"


def _act(what: str) -> Words:
    def said(data: Mapping[str, Any]) -> tuple[str, str]:
        return what, "" if data.get("for_s") is None else f"for {data['for_s']:g} s"

    return said


def _requested(data: Mapping[str, Any]) -> tuple[str, str]:
    reason = f": {data['reason']}" if data.get("reason") else ""
    return "recovery requested", f"task {data.get('task_id')}{reason}"


def _taken_on(data: Mapping[str, Any]) -> tuple[str, str]:
    many = f" ({data['count']} alerts)" if data.get("count", 1) != 1 else ""
    return "alert acknowledged", f"{data.get('key')}{many}{_until(data)}"


def _silenced(data: Mapping[str, Any]) -> tuple[str, str]:
    which = (f"{name} {', '.join(data[name])}" for name in ("agents", "kinds", "roles") if data.get(name))
    return "silence made", f"{data.get('id')}: {'; '.join(which)}{_until(data)}"


def _unsilenced(data: Mapping[str, Any]) -> tuple[str, str]:
    return "silence ended", str(data.get("id"))


def _until(data: Mapping[str, Any]) -> str:
    until = f" until {data['until']}" if data.get("until") else ""
    return f"{until}: {data['reason']}" if data.get("reason") else until


def _token(what: str) -> Words:
    def said(data: Mapping[str, Any]) -> tuple[str, str]:
        return what, ", ".join(str(data[key]) for key in ("id", "role", "name", "agents") if data.get(key))

    return said


AUDITED: Final[Mapping[str, Words]] = {
    **dict.fromkeys(("NUDGE_SENT", "ESCALATION_TRIGGERED", "AGENT_TERMINATED", "INTERVENTION"), _step),
    **dict.fromkeys(("RECOVERY_INITIATED", "RECOVERY_COMPLETED", "RECOVERY_FAILED"), _recovery),
    "CLAIM_RELEASED": _release,
    "GROUP_BRAKED": _brake,
    "HEALTH_STATE_CHANGED": _flip,
    "AUDIT_RETIRED": _retired,
    "AUDIT_BROKEN": _broken,
    "AGENT_PAUSED": _act("paused"),
    "AGENT_RESUMED": _act("resumed"),
    "AGENT_CLEARED": _act("cleared"),
    "RECOVERY_REQUESTED": _requested,
    "ALERT_ACKNOWLEDGED": _taken_on,
    "SILENCE_MADE": _silenced,
    "SILENCE_ENDED": _unsilenced,
    "TOKEN_CREATED": _token("token created"),
    "TOKEN_REVOKED": _token("token revoked"),
}
"""By the event's type: what was done, and the details."""
