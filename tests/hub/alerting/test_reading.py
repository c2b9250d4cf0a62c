"""Which events open an alert, and which close it. Facts go the way they go in the hub: encoded as events."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core import effects as e
from lifesigns.core.effects import Recovered, Rung, Stage
from lifesigns.core.health import Cause, Health
from lifesigns.core.signals import BreakerState, Priority
from lifesigns.events import CATALOGUE, event_of
from lifesigns.events.alert_kinds import EVENTS, KINDS, kind_of
from lifesigns.hub.alerting.reading import AlertClosing, AlertOpening, Change, changes
from lifesigns.ports import Event

AT = 1_800_000_000.0


def read(fact: e.Fact) -> list[Change]:
    return list(changes(event_of(1, fact)))


def opened(fact: e.Fact) -> AlertOpening:
    (change,) = read(fact)
    assert isinstance(change, AlertOpening)
    assert change.at == AT
    assert change.kind in KINDS
    return change


def closed(fact: e.Fact) -> set[str]:
    (change,) = read(fact)
    assert isinstance(change, AlertClosing)
    return set(change.keys)


def flip(now: Health, was: Health = Health.HEALTHY, cause: Cause | None = None) -> e.Flip:
    finding = e.Finding(e.Kind.SILENCE, AT, e.Severity.DISCONNECTED, "No beat for 15 s.")
    return e.Flip(AT, "a", was, now, "It is gone.", cause, (finding,))


@pytest.mark.parametrize(
    ("state", "rank"), [(Health.STUCK, 1), (Health.FAILING, 2), (Health.DISCONNECTED, 3)]
)
def test_who_is_unwell_is_an_alert_with_its_evidence(state: Health, rank: int) -> None:
    alert = opened(flip(state, cause=Cause.CRASH))
    assert (alert.key, alert.rank) == ("stuck_agent:a", rank)
    assert alert.text == "It is gone.\nNo beat for 15 s."
    assert alert.details["cause"] == "crash"


@pytest.mark.parametrize("state", [Health.HEALTHY, Health.DEGRADED, Health.TERMINATED])
def test_who_is_not_unwell_any_more_closes_it(state: Health) -> None:
    assert "stuck_agent:a" in closed(flip(state, Health.STUCK))


def test_a_new_life_has_still_to_show_itself() -> None:
    assert read(flip(Health.STARTING, Health.DISCONNECTED)) == []


def test_an_end_does_not_recover_anybody() -> None:
    assert "recovery_failed:a" not in closed(flip(Health.TERMINATED, Health.STUCK))
    assert "recovery_failed:a" in closed(flip(Health.HEALTHY, Health.STARTING))


def test_a_wait_for_a_human_is_not_over_because_the_agent_is_well() -> None:
    alert = opened(e.NeedsHuman(AT, "a", "waiting_for_human", "may I?"))
    assert alert.key not in closed(flip(Health.HEALTHY, Health.STUCK))


@pytest.mark.parametrize("reason", ["blocked", "undecided", "cannot stop", "looping"])
def test_what_a_human_was_needed_for_is_over_when_the_agent_is_well_or_gone(reason: str) -> None:
    alert = opened(e.NeedsHuman(AT, "a", reason, "look"))
    assert alert.key in closed(flip(Health.HEALTHY, Health.STUCK))
    assert alert.key in closed(flip(Health.TERMINATED, Health.STUCK))


@pytest.mark.parametrize("reason", ["mass brake", "blind", "escalation", "review", "quarantined"])
def test_what_has_a_fact_of_its_own_is_not_an_alert_twice(reason: str) -> None:
    assert read(e.NeedsHuman(AT, "a", reason, "look")) == []


def test_an_escalation_is_over_when_somebody_decides_or_it_is_dropped() -> None:
    alert = opened(e.Intervention(AT, "a", "i-1", Rung.ESCALATE, Stage.ORDERED, 1, "stuck for 1 h"))
    assert (alert.kind, alert.text, alert.details["intervention"]) == ("escalation", "stuck for 1 h", "i-1")
    for stage in (Stage.ANSWERED, Stage.DROPPED):
        assert alert.key in closed(e.Intervention(AT, "a", "i-1", Rung.ESCALATE, stage, 1, "", "ada"))
    assert read(e.Intervention(AT, "a", "i-1", Rung.ESCALATE, Stage.DELIVERED, 1)) == []
    assert read(e.Intervention(AT, "a", "i-1", Rung.NUDGE, Stage.ANSWERED, 1)) == []


def test_a_breaker_is_an_alert_while_it_is_open() -> None:
    alert = opened(e.BreakerFlip(AT, "a", "api", BreakerState.CLOSED, BreakerState.OPEN))
    assert read(e.BreakerFlip(AT, "a", "api", BreakerState.OPEN, BreakerState.HALF_OPEN)) == []
    assert closed(e.BreakerFlip(AT, "a", "api", BreakerState.HALF_OPEN, BreakerState.CLOSED)) == {alert.key}
    assert closed(e.BreakerFlip(AT, "a", "other", BreakerState.OPEN, BreakerState.CLOSED)) != {alert.key}


def test_a_recovery_that_failed_is_an_alert_until_one_succeeds() -> None:
    alert = opened(e.Recovery(AT, "a", "t-1", Recovered.FAILED, 3, None, "respawned 3 times"))
    assert alert.details == {"attempts": 3.0, "task_id": "t-1"}
    assert closed(e.Recovery(AT, "a", "t-1", Recovered.COMPLETED, 1)) == {alert.key}
    assert read(e.Recovery(AT, "a", "t-1", Recovered.INITIATED, 1)) == []


@pytest.mark.parametrize(
    ("priority", "severity"), [("urgent", "error"), ("high", "warning"), ("normal", "info"), ("low", "info")]
)
def test_an_overdue_message_is_as_loud_as_it_is_urgent(priority: str, severity: str) -> None:
    alert = opened(e.MessageOverdue(AT, "m-1", "ada", "a", Priority(priority), 120.0))
    assert alert.severity == severity
    assert "m-1" in alert.text


def test_most_facts_are_no_alert() -> None:
    assert read(e.ClaimChanged(AT, "t", "a", e.ClaimStage.GRANTED, 1)) == []
    assert read(e.Refusal(AT, "a", "old incarnation")) == []


def test_what_an_agent_says_can_neither_break_a_line_nor_steer_a_terminal() -> None:
    alert = opened(e.NeedsHuman(AT, "a", "looping", "see\r\nhere \x1b[31mred\u202e " + "x" * 5000))
    assert "\x1b" not in alert.text
    assert "\u202e" not in alert.text
    assert len(alert.text) <= 2000


@given(
    st.sampled_from([*(name for kind in KINDS.values() for name in kind.events), "INTERVENTION"]),
    st.one_of(
        st.binary(max_size=40),
        st.dictionaries(
            st.sampled_from(["to", "from", "reason", "rung", "stage", "name", "group", "on", "evidence"]),
            st.one_of(st.none(), st.text(max_size=5), st.integers(), st.lists(st.integers(), max_size=2)),
        ).map(msgspec.json.encode),
    ),
)
def test_whatever_an_event_holds_nothing_is_raised(kind: str, data: bytes) -> None:
    for change in changes(Event(1, AT, kind, "a", data)):
        assert isinstance(change, AlertOpening | AlertClosing)


def test_every_kind_but_that_of_channels_has_its_events() -> None:
    assert [name for name, kind in KINDS.items() if not kind.events] == ["channel_down"]
    assert {name for kind in KINDS.values() for name in kind.events} == set(EVENTS)
    assert KINDS["hub_blind"].events == ("HUB_BLIND", "NEEDS_HUMAN")


def test_every_alert_of_the_catalogue_is_of_a_known_kind() -> None:
    keys = {key for row in CATALOGUE.values() for key in (row.alert, row.ends) if key}
    assert {kind_of(key) for key in keys} | {"channel_down"} == set(KINDS)
