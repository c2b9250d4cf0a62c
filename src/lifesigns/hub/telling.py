"""Telling: facts as events, under the names and with the fields that others build on (contract section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

import msgspec

from lifesigns.core import effects as e
from lifesigns.ports import Event
from lifesigns.wire.codec import written

_NAMES: Final[Mapping[type[e.Fact], str]] = {
    e.Flip: "HEALTH_STATE_CHANGED",
    e.FindingOpened: "FINDING_OPENED",
    e.FindingClosed: "FINDING_CLOSED",
    e.ClaimChanged: "CLAIM_CHANGED",
    e.MessageOverdue: "MESSAGE_OVERDUE",
    e.TaskVerdict: "TASK_JUDGED",
    e.NeedsHuman: "NEEDS_HUMAN",
    e.BreakerFlip: "CIRCUIT_BREAKER_STATE_CHANGED",
    e.Brake: "GROUP_BRAKED",
    e.Pause: "AGENT_PAUSED",
    e.Resumption: "AGENT_RESUMED",
    e.Clearance: "AGENT_CLEARED",
    e.RecoveryRequest: "RECOVERY_REQUESTED",
    e.Refusal: "SIGNAL_REFUSED",
    e.Poisoned: "AGENT_POISONED",
}
_RECOVERIES: Final = {
    e.Recovered.INITIATED: "RECOVERY_INITIATED",
    e.Recovered.COMPLETED: "RECOVERY_COMPLETED",
    e.Recovered.FAILED: "RECOVERY_FAILED",
}
_CHANGE: Final = {"was": "from", "now": "to"}
_RENAMED: Final[Mapping[str, Mapping[str, str]]] = {
    "HEALTH_STATE_CHANGED": _CHANGE,
    "CIRCUIT_BREAKER_STATE_CHANGED": _CHANGE,
    "RECOVERY_INITIATED": {"checkpoint_id": "from_checkpoint"},
    "RECOVERY_COMPLETED": {"agent_id": "new_agent_id"},
    "RECOVERY_FAILED": {"attempt": "attempts"},
    "AGENT_PAUSED": {"pause_for": "for_s"},
    "NUDGE_SENT": {"text": "message"},
    "ESCALATION_TRIGGERED": {"text": "reason"},
    "AGENT_TERMINATED": {"text": "reason", "checkpoint_id": "checkpoint"},
}
"""What our fields are called there."""
_encode: Final = msgspec.json.Encoder().encode


def event(number: int, fact: e.Fact) -> Event:
    """A fact as it is kept and told."""
    kind = type_of(fact)
    names = _told_names.get((kind, type(fact))) or _learn_names(fact, kind)
    data = {told: getattr(fact, name) for name, told in names}
    return Event(number, fact.at, kind, subject(fact), _encode(data))


_told_names: dict[tuple[str, type[e.Fact]], list[tuple[str, str]]] = {}
"""The fields of a fact, and what they are called in the event; by its type, of which there are few."""


def _learn_names(fact: e.Fact, kind: str) -> list[tuple[str, str]]:
    renamed = _RENAMED.get(kind, {})
    names = [(f.name, renamed.get(f.name, f.name)) for f in fields(fact) if f.name != "at"]
    return _told_names.setdefault((kind, type(fact)), names)


def message(event: Event) -> bytes:
    """An event as it is told outside: `{"id", "type", "at", "agent_id", "data"}`."""
    told = _Told(event.id, event.type, written(event.at), event.agent_id, msgspec.Raw(event.data))
    return _encode(told)


class _Told(msgspec.Struct):
    id: int
    type: str
    at: str | float
    agent_id: str
    data: msgspec.Raw


def type_of(fact: e.Fact) -> str:
    """The name under which others know this fact."""
    match fact:
        case e.Recovery():
            return _RECOVERIES[fact.stage]
        case e.HubVisibility():
            return "HUB_BLIND" if fact.blind else "HUB_SIGHTED"
        case e.ClaimChanged(stage=e.ClaimStage.RELEASED):
            return "CLAIM_RELEASED"
        case e.Intervention():
            return _intervention(fact)
        case _:
            return _NAMES[type(fact)]


def _intervention(fact: e.Intervention) -> str:
    match fact.rung, fact.stage:
        case e.Rung.NUDGE, e.Stage.ORDERED:
            return "NUDGE_SENT"
        case e.Rung.ESCALATE, e.Stage.ORDERED:
            return "ESCALATION_TRIGGERED"
        case e.Rung.TERMINATE, e.Stage.DONE:
            return "AGENT_TERMINATED"
        case _:
            return "INTERVENTION"


def subject(fact: e.Fact) -> str:
    """Whom a fact is about; empty if it is the hub itself."""
    if isinstance(fact, e.MessageOverdue):
        return fact.to
    agent_id: Any = getattr(fact, "agent_id", "")
    return str(agent_id)
