"""Facts are told under the names and with the fields of the contract."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lifesigns.core import effects as e
from lifesigns.core.health import Cause, FailureClass, Health
from lifesigns.core.signals import BreakerState, Priority
from lifesigns.events import CATALOGUE, event_of, fact_of
from lifesigns.events import hub_facts as h
from lifesigns.events.catalogue import AGENT_HEARTBEAT
from lifesigns.ports import Event
from lifesigns.simulation import Faults, SimulationConfig, World
from tests.simulation.sizes import size

FOUND = e.Finding(e.Kind.SILENCE, 1.0, e.Severity.STUCK, "silent", {"for": 3.0, "who": "it"}, True)
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
    (e.FindingOpened(5.0, "a", FOUND), "FINDING_OPENED", {"agent_id": "a"}),
    (
        e.FailureClassified(5.0, "a", FailureClass.TRANSIENT, FailureClass.TERMINAL, "why"),
        "FAILURE_CLASSIFIED",
        {"from": "transient", "to": "terminal", "reason": "why"},
    ),
    (e.FindingClosed(5.0, "a", e.Kind.SILENCE, 1.0), "FINDING_CLOSED", {"kind": "silence", "since": 1.0}),
    (e.ClaimChanged(5.0, "t", "a", e.ClaimStage.GRANTED, 7), "CLAIM_CHANGED", {"stage": "granted"}),
    (
        e.TaskMove(5.0, "t", "b", e.MoveStage.OFFERED, "a", "it is stuck"),
        "TASK_MOVE",
        {"agent_id": "b", "giver": "a", "stage": "offered"},
    ),
    (e.TaskVerdict(5.0, "t", "a", "late", "it said so"), "TASK_JUDGED", {"verdict": "late"}),
    (e.Brake(5.0, "fleet", True, 5, 6), "GROUP_BRAKED", {"on": True}),
    (e.Pause(5.0, "a", "ann", 60.0), "AGENT_PAUSED", {"by": "ann", "for_s": 60.0}),
    (e.Resumption(5.0, "a", "ann"), "AGENT_RESUMED", {"by": "ann"}),
    (e.Clearance(5.0, "a", "ann"), "AGENT_CLEARED", {"by": "ann"}),
    (e.RecoveryRequest(5.0, "a", "t", "ann"), "RECOVERY_REQUESTED", {"task_id": "t"}),
    (e.Refusal(5.0, "a", "retired incarnation", 3), "SIGNAL_REFUSED", {"count": 3}),
    (e.Poisoned(5.0, "a", "KeyError"), "AGENT_POISONED", {"error": "KeyError"}),
]
OF_THE_HUB: list[e.Fact] = [
    *(h.HubTroubleBegan(5.0, part, "why") for part in h.HubPart),
    *(h.HubTroubleOver(5.0, part, "why", 3.0) for part in h.HubPart if part is not h.HubPart.ROWS),
    h.TokenCreated(5.0, "k1", "agent", "a fleet", "build-*", "ann"),
    h.TokenRotated(5.0, "k1", "ann", "2026-11-17T09:00:00.000Z"),
    h.TokenExpiring(5.0, "k1", "agent", "a fleet", "build-*", 3600.0),
    h.TokenNotExpiring(5.0, "k1", True),
    h.RefusalBurst(5.0, 40, ("10.0.0.7",)),
    h.SignedIn(5.0, "5e55", "Olga (1)", "10.0.0.7"),
    h.SessionEnded(5.0, "5e55", "Olga (1)", "Vera (2)"),
    h.TokenRevoked(5.0, "k1", "ann"),
    h.AlertAcknowledged(5.0, "stuck_agent:a", "ann", "I look", "2026-11-15T18:00:07.412Z", 1, "a"),
    h.SilenceMade(5.0, "s-1", "ann", ("build-*",), ("stuck_agent",), ("coder",), "moving", "2026"),
    h.SilenceEnded(5.0, "s-1", "ann"),
    h.HubForgotten(5.0, "hub-2", "ann"),
    h.HubDrained(5.0, "hub-2", "ann"),
    h.HubResumed(5.0, "hub-2", "ann"),
    h.AuditRetired(5.0, 7, 86400.0),
    h.AuditBroken(5.0, "changed"),
    h.AuditAccepted(5.0, 40, ("7 9f3a",), "ann@home", "restored", "changed"),
    h.LockRecovered(
        5.0, "w-1", "task-12", "org/repo#12", ("acme-bot",), 632.0, "https://github.com/org/repo/issues/12#c1"
    ),
    h.HistoryForgotten(5.0, 21, 86400.0),
    h.Gap(5.0, "too old", 7),
]


@pytest.mark.parametrize(
    ("fact", "kind", "says"), FACTS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_fact_has_its_public_name_and_fields(fact: e.Fact, kind: str, says: dict[str, Any]) -> None:
    event = event_of(3, fact)
    assert (event.id, event.at, event.type) == (3, 5.0, kind)
    assert says.items() <= json.loads(event.data).items()


@pytest.mark.parametrize("fact", [fact for fact, _, _ in FACTS] + OF_THE_HUB, ids=repr)
def test_the_fact_comes_back_from_its_event(fact: e.Fact) -> None:
    assert fact_of(event_of(3, fact)) == fact


def test_every_event_is_tried_here() -> None:
    tried = {event_of(1, fact).type for fact in [fact for fact, _, _ in FACTS] + OF_THE_HUB}
    assert tried == set(CATALOGUE) - {AGENT_HEARTBEAT}


def test_every_kind_of_fact_has_an_event() -> None:
    """A new fact without one would end the hub at the worst moment."""
    kinds = {kind.__name__ for kind in (*e.Fact.__subclasses__(), *e.Intervention.__subclasses__())}
    assert {row.fact.__name__ for row in CATALOGUE.values() if row.fact} == kinds


OLD = {
    "NUDGE_SENT": b'{"agent_id":"a","id":"1-1","rung":"nudge","stage":"ordered","attempt":1,"message":"why","by":""}',
    "AGENT_TERMINATED": b'{"agent_id":"a","id":"1-2","rung":"terminate","stage":"done","attempt":1,"reason":"why","by":""}',
    "GROUP_BRAKED": b'{"group":"fleet","on":true,"unwell":5,"members":6}',
    "RECOVERY_FAILED": b'{"agent_id":"a","task_id":"t","stage":"failed","attempts":3,"checkpoint_id":null,"reason":"no"}',
    "TOKEN_CREATED": b'{"id":"k1","role":"viewer","name":"screen","by":"ann"}',
    "HUB_BUS_BACK": b"{}",
    "HEALTH_STATE_CHANGED": b'{"agent_id":"a","from":"healthy","to":"stuck","reason":"r","later":{"than":"us"}}',
}
"""Events as older hubs, and a newer one, have kept them: fields are missing, or unknown."""


@pytest.mark.parametrize("name", OLD)
def test_what_another_version_has_kept_is_read(name: str) -> None:
    fact = fact_of(Event(1, 5.0, name, "a", OLD[name]))
    assert fact is not None
    told, kept = json.loads(event_of(1, fact).data), json.loads(OLD[name])
    assert {key: value for key, value in kept.items() if key in told}.items() <= told.items()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("COFFEE_MADE", b"{}"),
        ("AGENT_HEARTBEAT", b"{}"),
        ("HEALTH_STATE_CHANGED", b"{}"),
        ("HEALTH_STATE_CHANGED", b'{"agent_id":"a","from":"healthy","to":"in love","reason":"r"}'),
        ("NEEDS_HUMAN", b"nonsense"),
        ("NEEDS_HUMAN", b'["no object"]'),
        ("NEEDS_HUMAN", b'{"agent_id":"a","reason":"\xff","text":""}'),
    ],
)
def test_what_cannot_be_read_is_no_fact(name: str, data: bytes) -> None:
    assert fact_of(Event(1, 5.0, name, "a", data)) is None


def test_every_fact_of_a_simulated_day_comes_back() -> None:
    """With every kind of finding and number that the engine makes."""
    facts: list[e.Fact] = []
    world = World(
        SimulationConfig(agents=10, days=size(0.4, 1), failure_every=7200.0, faults=Faults.parse("all"))
    )
    world.witnesses.append(lambda effects: facts.extend(one for one in effects if isinstance(one, e.Fact)))
    world.run()
    assert len({type(fact) for fact in facts}) > 8
    assert [fact_of(event_of(1, fact)) for fact in facts] == facts
