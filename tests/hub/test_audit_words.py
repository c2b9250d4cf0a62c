"""Audited acts as people read them: who did what."""

from dataclasses import replace
from typing import Any

import pytest

from lifesigns.core import effects as e
from lifesigns.core.health import Health
from lifesigns.hub import telling
from lifesigns.hub.audit.records import AUDITED, FLIP, audit_record
from lifesigns.ports import AuditRecord, Event
from lifesigns.views import audit

DONE: list[tuple[e.Fact, str, str]] = [
    (e.Intervention(1.0, "a", "o", e.Rung.NUDGE, e.Stage.ORDERED, 1, "hello", "ann"), "ann", "nudge ordered"),
    (e.Intervention(1.0, "a", "o", e.Rung.NUDGE, e.Stage.SEEN, 1), "lifesigns", "nudge seen"),
    (
        e.Intervention(1.0, "a", "o", e.Rung.ESCALATE, e.Stage.ORDERED, 1, "?"),
        "lifesigns",
        "escalate ordered",
    ),
    (e.Intervention(1.0, "a", "o", e.Rung.TERMINATE, e.Stage.DONE, 1, "!", "bob"), "bob", "terminate done"),
    (e.Recovery(1.0, "a", "t", e.Recovered.INITIATED, 1), "lifesigns", "recovery initiated"),
    (e.Recovery(1.0, "a", "t", e.Recovered.COMPLETED, 1), "lifesigns", "recovery completed"),
    (e.Recovery(1.0, "a", "t", e.Recovered.FAILED, 1, None, "no"), "lifesigns", "recovery failed"),
    (e.ClaimChanged(1.0, "t", "a", e.ClaimStage.RELEASED, 1, "stale"), "lifesigns", "claim released"),
    (e.Brake(1.0, "fleet", True, 5, 6), "lifesigns", "group braked"),
    (e.Brake(1.0, "fleet", False, 5, 6, "ann"), "ann", "group released"),
    (e.Flip(1.0, "a", Health.HEALTHY, Health.DISCONNECTED, "silent"), "lifesigns", "judged disconnected"),
    (e.Pause(1.0, "a", "ann", 60.0), "ann", "paused"),
    (e.Resumption(1.0, "a", "ann"), "ann", "resumed"),
    (e.Clearance(1.0, "a", "ann"), "ann", "cleared"),
    (e.RecoveryRequest(1.0, "a", "t", "ann", "now"), "ann", "recovery requested"),
]
ANNOUNCED: dict[str, dict[str, Any]] = {
    "TOKEN_CREATED": {"by": "ann", "id": "k1", "role": "viewer", "name": "screen"},
    "TOKEN_REVOKED": {"by": "ann", "id": "k1"},
    "ALERT_ACKNOWLEDGED": {"by": "ann", "key": "stuck_agent@fleet", "count": 9, "reason": "looking"},
    "SILENCE_MADE": {"by": "ann", "id": "s-1", "agents": ["build-*"], "reason": "moving", "until": "2026"},
    "SILENCE_ENDED": {"by": "ann", "id": "s-1"},
    "AUDIT_RETIRED": {"before": 7, "keep_for_s": 86400.0},
    "AUDIT_BROKEN": {"reason": "changed"},
}


@pytest.mark.parametrize(("fact", "who", "what"), DONE)
def test_deeds_name_who_did_them(fact: e.Fact, who: str, what: str) -> None:
    entry = audit.audit_entry(audit_record(7, telling.event(3, fact)))
    assert (entry.n, entry.who, entry.what) == (7, who, what)


def test_every_kind_of_deed_is_tried_here_and_has_words() -> None:
    told = {telling.event(1, fact).type for fact, _, _ in DONE}
    assert told | set(ANNOUNCED) == AUDITED | {FLIP} == set(audit.AUDITED)
    for kind, data in ANNOUNCED.items():
        entry = audit.audit_entry(audit_record(0, Event(1, 1.0, kind, "", telling._encode(data))))
        assert entry.who == data.get("by", "lifesigns")
        assert entry.what


def test_a_kind_of_deed_without_words_is_shown_by_its_name() -> None:
    entry = audit.audit_entry(audit_record(0, Event(1, 1.0, "COFFEE_MADE", "a", b'{"by":"ann"}')))
    assert (entry.what, entry.who) == ("coffee made", "ann")


def test_what_is_retired_or_damaged_is_shown_as_that() -> None:
    one = audit_record(0, Event(1, 1.0, "AGENT_PAUSED", "a", b'{"by":"ann"}'))
    assert audit.audit_entry(replace(one, entry=None, who="", agent_id="")).what == "retired"
    assert audit.audit_entry(AuditRecord(0, 1, 1.0, "", "", b"", b"nonsense")).what == "unreadable"
