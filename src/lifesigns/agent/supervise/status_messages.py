"""Status messages: facts of the engine, and the child's outcome, as sentences and as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct, field

from lifesigns.core.effects import (
    Effect,
    Finding,
    Flip,
    Intervention,
    Kind,
    NeedsHuman,
    Poisoned,
    Rung,
    Severity,
    Stage,
)
from lifesigns.core.health import UNWELL, Doing, Health
from lifesigns.events.catalogue import HEALTH_STATE_CHANGED, NEEDS_HUMAN, NUDGE_SENT


class StatusMessage(Struct, frozen=True):
    """A message. A `minor` one appears only on request."""

    type: str
    text: str
    minor: bool = False
    details: dict[str, Any] = field(default_factory=dict)


def of(effect: Effect, stopped_pid: int | None, *, attended: bool = True) -> Iterable[StatusMessage]:
    """The message for an effect of the engine. `stopped_pid`: the child, if a signal has stopped it. `attended`:
    whether a person sits at its terminal and sees its questions."""
    match effect:
        case Flip():
            yield _flip(effect, stopped_pid)
        case Intervention(rung=Rung.NUDGE, stage=Stage.DELIVERED):
            yield StatusMessage(
                NUDGE_SENT, f"{effect.agent_id} was nudged.", details={"attempt": effect.attempt}
            )
        case Intervention(rung=Rung.NUDGE, stage=Stage.FAILED):
            text = f"{effect.agent_id} could not be nudged: {effect.text}"
            yield StatusMessage(
                "NUDGE_FAILED", text, details={"attempt": effect.attempt, "reason": effect.text}
            )
        case NeedsHuman(reason=Doing.WAITING_FOR_HUMAN) if not attended:
            yield StatusMessage(
                NEEDS_HUMAN, effect.text, details={"reason": effect.reason, "text": effect.text}
            )
        case NeedsHuman():
            text = f"{effect.agent_id} needs a person: {effect.text}"
            yield StatusMessage(
                NEEDS_HUMAN, text, minor=True, details={"reason": effect.reason, "text": effect.text}
            )
        case Poisoned():
            yield StatusMessage(
                "BUG", f"lifesigns itself failed: {effect.error}", details={"error": effect.error}
            )


def _flip(flip: Flip, stopped_pid: int | None) -> StatusMessage:
    details = {
        "from": flip.was,
        "to": flip.now,
        "reason": flip.reason,
        "cause": flip.cause,
        "evidence": [_finding(finding) for finding in flip.evidence],
    }
    crashed = any(finding.kind is Kind.EXIT for finding in flip.evidence)
    calm = flip.now in (Health.STARTING, Health.TERMINATED) or flip.was is Health.STARTING
    minor = flip.now not in UNWELL and (calm or (flip.now is Health.DEGRADED and not flip.evidence))
    return StatusMessage(HEALTH_STATE_CHANGED, _flip_text(flip, stopped_pid), minor or crashed, details)


def _flip_text(flip: Flip, stopped_pid: int | None) -> str:
    if flip.now is Health.HEALTHY:
        return f"{flip.agent_id} is {'well again' if flip.was is not Health.STARTING else 'running'}."
    frozen = any(f.kind is Kind.FREEZE and f.severity is Severity.DISCONNECTED for f in flip.evidence)
    if flip.now is Health.DISCONNECTED and frozen:
        if stopped_pid is not None:
            return f"{flip.agent_id} is frozen: a signal has stopped it; `kill -CONT {stopped_pid}` lets it go on."
        return f"{flip.agent_id} is frozen: {flip.reason}"
    return f"{flip.agent_id} is {flip.now}: {flip.reason}"


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "text": finding.text,
        "numbers": dict(finding.numbers),
    }
