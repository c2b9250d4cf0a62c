"""Facts are told under the names and with the fields of the contract."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lifesigns.core import effects as e
from lifesigns.core.health import Cause, Health
from lifesigns.core.signals import BreakerState, Priority
from lifesigns.hub import telling

STEP: dict[str, Any] = {"agent_id": "a", "id": "1-1", "attempt": 1, "text": "why"}
FACTS: list[tuple[e.Fact, str, dict[str, Any]]] = [
    (
        e.Flip(5.0, "a", Health.HEALTHY, Health.DISCONNECTED, "silent", Cause.CRASH),
        "HEALTH_STATE_CHANGED",
        {
            "agent_id": "a",
            "from": "healthy",
            "to": "disconnected",
            "reason": "silent",
            "cause": "crash",
            "evidence": [],
        },
    ),
    (e.Intervention(5.0, rung=e.Rung.NUDGE, stage=e.Stage.ORDERED, **STEP), "NUDGE_SENT", {"message": "why"}),
    (e.Intervention(5.0, rung=e.Rung.NUDGE, stage=e.Stage.SEEN, **STEP), "INTERVENTION", {"stage": "seen"}),
    (
        e.Intervention(5.0, rung=e.Rung.ESCALATE, stage=e.Stage.ORDERED, **STEP),
        "ESCALATION_TRIGGERED",
        {"agent_id": "a", "reason": "why"},
    ),
    (
        e.Ending(5.0, rung=e.Rung.TERMINATE, stage=e.Stage.DONE, checkpoint_id="cp", **STEP),
        "AGENT_TERMINATED",
        {"agent_id": "a", "reason": "why", "checkpoint": "cp"},
    ),
    (
        e.Recovery(5.0, "a", "t", e.Recovered.INITIATED, 2, "cp"),
        "RECOVERY_INITIATED",
        {"task_id": "t", "from_checkpoint": "cp", "attempt": 2},
    ),
    (e.Recovery(5.0, "a", "t", e.Recovered.COMPLETED, 2), "RECOVERY_COMPLETED", {"new_agent_id": "a"}),
    (
        e.Recovery(5.0, "a", "t", e.Recovered.FAILED, 3, reason="no"),
        "RECOVERY_FAILED",
        {"task_id": "t", "reason": "no", "attempts": 3},
    ),
    (
        e.BreakerFlip(5.0, "a", "api", BreakerState.CLOSED, BreakerState.OPEN),
        "CIRCUIT_BREAKER_STATE_CHANGED",
        {"name": "api", "from": "closed", "to": "open"},
    ),
    (e.HubVisibility(5.0, True, "the canary is late"), "HUB_BLIND", {}),
    (e.HubVisibility(5.0, False, "it is back"), "HUB_SIGHTED", {}),
    (
        e.ClaimChanged(5.0, "t", "a", e.ClaimStage.RELEASED, 7, "stale"),
        "CLAIM_RELEASED",
        {"task_id": "t", "token": 7},
    ),
    (e.MessageOverdue(5.0, "m", "a", "b", Priority.HIGH, 9.0), "MESSAGE_OVERDUE", {"to": "b"}),
    (e.NeedsHuman(5.0, "a", "waiting", "look"), "NEEDS_HUMAN", {"text": "look"}),
]


@pytest.mark.parametrize(
    ("fact", "kind", "says"), FACTS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_fact_has_its_public_name_and_fields(fact: e.Fact, kind: str, says: dict[str, Any]) -> None:
    event = telling.event(3, fact)
    assert (event.id, event.at, event.type) == (3, 5.0, kind)
    assert says.items() <= json.loads(event.data).items()


def test_every_kind_of_fact_has_a_name() -> None:
    """A new fact without one would end the hub at the worst moment."""
    named = {kind.__name__ for kind in (*telling._NAMES, e.Recovery, e.HubVisibility, e.Intervention)}
    assert {kind.__name__ for kind in e.Fact.__subclasses__()} == named
