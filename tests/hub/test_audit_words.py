"""Audited acts as people read them: who did what."""

import pytest
from msgspec.structs import replace

from lifesigns.core import effects as e
from lifesigns.core.health import Health
from lifesigns.events import event_of
from lifesigns.events import hub_facts as h
from lifesigns.hub.audit.records import AUDITED, audit_record
from lifesigns.ports import AuditRecord, Event
from lifesigns.views.builders import audit

DONE: list[tuple[e.Fact, str, str]] = [
    (e.Intervention(1.0, "a", "o", e.Rung.NUDGE, e.Stage.ORDERED, 1, "hello", "ann"), "ann", "nudge ordered"),
    (e.Intervention(1.0, "a", "o", e.Rung.NUDGE, e.Stage.SEEN, 1), "lifesigns", "nudge seen"),
    (
        e.Intervention(1.0, "a", "o", e.Rung.ESCALATE, e.Stage.ORDERED, 1, "?"),
        "lifesigns",
        "escalate ordered",
    ),
    (e.Ending(1.0, "a", "o", e.Rung.TERMINATE, e.Stage.DONE, 1, "!", "bob"), "bob", "terminate done"),
    (e.Recovery(1.0, "a", "t", e.Recovered.INITIATED, 1), "lifesigns", "recovery initiated"),
    (e.Recovery(1.0, "a", "t", e.Recovered.COMPLETED, 1), "lifesigns", "recovery completed"),
    (e.Recovery(1.0, "a", "t", e.Recovered.FAILED, 1, None, "no"), "lifesigns", "recovery failed"),
    (e.ClaimChanged(1.0, "t", "a", e.ClaimStage.RELEASED, 1, "stale"), "lifesigns", "claim released"),
    (e.TaskMove(1.0, "t", "b", e.MoveStage.OFFERED, "a", "a is lost"), "lifesigns", "task offered"),
    (e.Brake(1.0, "fleet", True, 5, 6), "lifesigns", "group braked"),
    (e.Brake(1.0, "fleet", False, 5, 6, "ann"), "ann", "group released"),
    (e.Flip(1.0, "a", Health.HEALTHY, Health.DISCONNECTED, "silent"), "lifesigns", "judged disconnected"),
    (e.Pause(1.0, "a", "ann", 60.0), "ann", "paused"),
    (e.Resumption(1.0, "a", "ann"), "ann", "resumed"),
    (e.Clearance(1.0, "a", "ann"), "ann", "cleared"),
    (e.RecoveryRequest(1.0, "a", "t", "ann", "now"), "ann", "recovery requested"),
    (h.TokenCreated(1.0, "k1", "viewer", "screen", by="ann"), "ann", "token created"),
    (h.TokenRevoked(1.0, "k1", "ann"), "ann", "token revoked"),
    (h.TokenRotated(1.0, "k1", "ann", "2026"), "ann", "token rotated"),
    (h.LockRecovered(1.0, "w-1", "12", "org/repo#12", ("bot",), 900.0), "lifesigns", "lock released"),
    (h.SignedIn(1.0, "5e55", "ann", "10.0.0.7"), "ann", "signed in"),
    (h.SessionEnded(1.0, "5e55", "ann", "bob"), "ann", "session ended"),
    (h.RefusalBurst(1.0, 40, ("10.0.0.7",)), "lifesigns", "refused many"),
    (h.AlertAcknowledged(1.0, "stuck_agent@fleet", "ann", "looking", count=9), "ann", "alert acknowledged"),
    (h.SilenceMade(1.0, "s-1", "ann", ("build-*",), until="2026"), "ann", "silence made"),
    (h.SilenceEnded(1.0, "s-1", "ann"), "ann", "silence ended"),
    (h.HubForgotten(1.0, "hub-2", "ann"), "ann", "hub forgotten"),
    (h.HubDrained(1.0, "hub-2", "ann"), "ann", "hub drained"),
    (h.HubResumed(1.0, "hub-2", "ann"), "ann", "hub resumed"),
    (h.AuditRetired(1.0, 7, 86400.0), "lifesigns", "entries retired"),
    (h.AuditBroken(1.0, "changed"), "lifesigns", "audit log found broken"),
    (h.AuditAccepted(1.0, 40, (), "ann@home", "restored", "changed"), "ann@home", "audit log accepted"),
    (h.HistoryForgotten(1.0, 21, 86400.0), "lifesigns", "history forgotten"),
]


@pytest.mark.parametrize(("fact", "who", "what"), DONE)
def test_deeds_name_who_did_them(fact: e.Fact, who: str, what: str) -> None:
    entry = audit.audit_entry(audit_record(7, event_of(3, fact)))
    assert (entry.n, entry.who, entry.what) == (7, who, what)


def test_every_kind_of_deed_is_tried_here() -> None:
    assert {event_of(1, fact).type for fact, _, _ in DONE} == AUDITED


def test_a_kind_of_deed_without_words_is_shown_by_its_name() -> None:
    entry = audit.audit_entry(audit_record(0, Event(1, 1.0, "COFFEE_MADE", "a", b'{"by":"ann"}')))
    assert (entry.what, entry.who) == ("coffee made", "ann")


def test_what_is_retired_or_damaged_is_shown_as_that() -> None:
    one = audit_record(0, Event(1, 1.0, "AGENT_PAUSED", "a", b'{"by":"ann"}'))
    assert audit.audit_entry(replace(one, entry=None, who="", agent_id="")).what == "retired"
    assert audit.audit_entry(AuditRecord(0, 1, 1.0, "", "", b"", b"nonsense")).what == "unreadable"
