"""Alerts: what stands comes first, what happened after it; in words, and only what people can do something about."""

import json
from typing import Any

import pytest

from lifesigns.core import effects as e
from lifesigns.core.health import Cause, FailureClass, Health
from lifesigns.core.signals import BreakerState, EscalationRequested, Priority
from lifesigns.events import event_of
from lifesigns.events.hub_facts import HubPart
from lifesigns.ports import Event
from lifesigns.ports import NoticeSeverity as Level
from lifesigns.views.builders.alerts import TYPES, alert_of
from tests.web.hub import RunningHub

PLACE = "/api/v1/alerts"

FACTS: list[tuple[e.Fact, Level | None]] = [
    (e.Flip(1.0, "a", Health.HEALTHY, Health.DISCONNECTED, "silent", Cause.CRASH), Level.ERROR),
    (e.Flip(1.0, "a", Health.HEALTHY, Health.STUCK, "no checkpoint"), Level.WARNING),
    (e.Flip(1.0, "a", Health.HEALTHY, Health.DEGRADED, "slow"), None),
    (e.Flip(1.0, "a", Health.STUCK, Health.HEALTHY, "progress"), Level.INFO),
    (e.Flip(1.0, "a", Health.STARTING, Health.HEALTHY, "spoke"), None),
    (e.FailureClassified(1.0, "a", FailureClass.RECOVERABLE, FailureClass.TERMINAL, "gone"), Level.CRITICAL),
    (e.FailureClassified(1.0, "a", FailureClass.RECOVERABLE, FailureClass.TERMINAL, "gone", True), None),
    (e.FailureClassified(1.0, "a", FailureClass.TRANSIENT, FailureClass.RECOVERABLE, "it lasts"), None),
    (e.NeedsHuman(1.0, "a", "waiting_for_human", "a waits"), Level.WARNING),
    (e.NeedsHuman(1.0, "a", "blocked", "a is blocked"), Level.ERROR),
    (e.NeedsHuman(1.0, "a", "escalation", "stuck"), None),  # The next one tells it.
    (e.Intervention(1.0, "a", "o", e.Rung.ESCALATE, e.Stage.ORDERED, 1, "stuck"), Level.ERROR),
    (e.Ending(1.0, "a", "o", e.Rung.TERMINATE, e.Stage.DONE, 1, "stuck", "ann"), Level.WARNING),
    (e.Recovery(1.0, "a", "t", e.Recovered.INITIATED, 1, "cp"), Level.INFO),
    (e.Recovery(1.0, "a", "t", e.Recovered.COMPLETED, 1), Level.INFO),
    (e.Recovery(1.0, "a", None, e.Recovered.FAILED, 3, None, "no"), Level.CRITICAL),
    (e.BreakerFlip(1.0, "a", "search", BreakerState.CLOSED, BreakerState.OPEN), Level.WARNING),
    (e.BreakerFlip(1.0, "a", "search", BreakerState.OPEN, BreakerState.HALF_OPEN), None),
    (e.BreakerFlip(1.0, "a", "search", BreakerState.HALF_OPEN, BreakerState.CLOSED), Level.INFO),
    (e.MessageOverdue(1.0, "m", "a", "b", Priority.URGENT, 120.0), Level.ERROR),
    (e.MessageOverdue(1.0, "m", "a", "b", Priority.LOW, 120.0), Level.INFO),
    (e.TaskVerdict(1.0, "t", "a", "failed", "it said so"), Level.ERROR),
    (e.TaskVerdict(1.0, "t", "a", "late", "it answered"), None),
    (e.Brake(1.0, "host:ws-1", True, 6, 9), Level.CRITICAL),
    (e.Brake(1.0, "host:ws-1", False, 1, 9), Level.INFO),
    (e.Poisoned(1.0, "a", "KeyError: 'x'"), Level.ERROR),
    (e.HubVisibility(1.0, True, "no canary"), Level.CRITICAL),
    (e.HubVisibility(1.0, False, "canary"), Level.INFO),
]


@pytest.mark.parametrize(("fact", "level"), FACTS)
def test_facts_become_sentences_for_people(fact: e.Fact, level: Level | None) -> None:
    """Over the events as the hub really writes them: a renamed field would be found here."""
    event = event_of(7, fact)
    alert = alert_of(event)
    if level is None:
        assert alert is None
        return
    assert alert is not None
    assert (alert.severity, alert.id, alert.standing) == (level, "7", False)
    assert len(alert.text) > 5
    assert event.agent_id in alert.text


def test_every_kind_of_alert_is_tried_here() -> None:
    hub_only = {"HUB_STORE_LOST", "HUB_BUS_LOST", "HUB_STORE_BACK", "HUB_BUS_BACK", "AUDIT_BROKEN"}
    hub_only |= {"HUB_TOKENS_REFUSED", "HUB_TOKENS_ACCEPTED", "HUB_CONNECTIONS_FULL", "HUB_CONNECTIONS_FREE"}
    hub_only |= {
        "TOKEN_EXPIRING",
        "HUB_TRUCE_LONG",
        "HUB_TRUCE_OVER",
        "HUB_ROWS_UNREADABLE",
        "HUB_MESSAGES_FORGED",
        "HUB_MESSAGES_GENUINE",
        "HUB_TOKENS_FORGED",
    }
    hub_only |= {"HUB_WITNESS_LOST", "HUB_WITNESS_BACK", "AUDIT_ACCEPTED"}
    hub_only |= {"HUB_TRACKER_LOST", "HUB_TRACKER_BACK", "HUB_LOST", "HUB_BACK"}
    hub_only |= {"HUB_BUS_SHARED", "HUB_BUS_UNSHARED"}
    hub_only |= {"HUB_DEAD_MAN_SWITCH_LOST", "HUB_DEAD_MAN_SWITCH_BACK"}
    hub_only |= {"HUB_MESSENGER_LOST", "HUB_MESSENGER_BACK", "HUB_MEMORY_LOST", "HUB_MEMORY_BACK"}
    assert {event_of(1, fact).type for fact, _ in FACTS} | hub_only == set(TYPES)
    back = Event(1, 1.0, "HUB_STORE_BACK", "", b'{"reason":"disk full","away_for_s":3}')
    told = alert_of(back)
    assert told is not None
    assert "disk full" in told.text


async def needs(hub: RunningHub, agent_id: str, **more: Any) -> None:
    await hub.post(
        "/api/v1/signals", {"type": "doing", "agent_id": agent_id, "doing": "waiting_for_human", **more}
    )


async def test_what_stands_comes_first_and_goes_when_it_is_over(hub: RunningHub) -> None:
    await needs(hub, "a", note="may I delete it?")
    told = (await hub.get(PLACE)).json()["alerts"]
    assert [(one["standing"], one["type"], one["agent_id"]) for one in told] == [
        (True, "NEEDS_HUMAN", "a"),
        (False, "NEEDS_HUMAN", "a"),
    ]
    assert all("may I delete it?" in one["text"] for one in told)
    await hub.post("/api/v1/signals", {"type": "doing", "agent_id": "a", "doing": "working"})
    assert [one["standing"] for one in (await hub.get(PLACE)).json()["alerts"]] == [False]


async def test_the_hub_itself_is_told_of_first(hub: RunningHub) -> None:
    await needs(hub, "a")
    beliefs = hub.service.engine.beliefs
    hub.service.troubles.note(HubPart.STORE, "disk full", hub.service.clock())
    beliefs.awareness.blind_since = hub.service.clock()
    beliefs.fleet.groups["fleet"].braked = True
    told = (await hub.get(PLACE)).json()["alerts"]
    assert [one["type"] for one in told if one["standing"]] == [
        *("HUB_STORE_LOST", "HUB_BLIND", "GROUP_BRAKED", "NEEDS_HUMAN"),
    ]
    assert told[0]["severity"] == "critical"
    assert "disk full" in told[0]["text"]


async def test_an_open_escalation_stands_until_it_is_decided(hub: RunningHub) -> None:
    await hub.post("/api/v1/beats", {"agent_id": "a"})
    await hub.service.http_receiver.store_reports(
        [EscalationRequested(agent_id="a", reason="it burns money", by="ann")]
    )
    (standing,) = (one for one in (await hub.get(PLACE)).json()["alerts"] if one["standing"])
    assert (standing["type"], standing["agent_id"]) == ("ESCALATION_TRIGGERED", "a")
    assert "it burns money" in standing["text"]
    happened = [one for one in (await hub.get(PLACE)).json()["alerts"] if not one["standing"]]
    assert [one["type"] for one in happened] == ["ESCALATION_TRIGGERED"]


async def test_pages_go_back_in_time_without_a_gap(hub: RunningHub) -> None:
    for n in range(7):
        await needs(hub, f"a-{n}")
        await hub.post("/api/v1/signals", {"type": "doing", "agent_id": f"a-{n}", "doing": "working"})
    seen: list[str] = []
    before: int | None = None
    while True:
        query = {"limit": 3} | ({} if before is None else {"before": before})
        page = (await hub.get(PLACE, **query)).json()
        seen += [one["agent_id"] for one in page["alerts"]]
        before = page["before"]
        if before is None:
            break
    assert seen == [f"a-{n}" for n in reversed(range(7))]


async def test_severity_is_a_least_one(hub: RunningHub) -> None:
    await needs(hub, "a")
    assert (await hub.get(PLACE, severity="warning")).json()["alerts"]
    assert (await hub.get(PLACE, severity="error")).json()["alerts"] == []
    answer = await hub.get(PLACE, severity="loud")
    assert (answer.status_code, answer.json()["field"]) == (400, "severity")


async def test_many_events_that_are_no_alerts_do_not_hide_one(hub: RunningHub) -> None:
    """Looking goes on from page to page; each answer looks at so many and no more."""
    await needs(hub, "a")
    data = json.dumps({"from": "healthy", "to": "degraded", "reason": "", "cause": None}).encode()
    await hub.service.hub.committer.wait_until_stored()
    first = (await hub.service.store.events(types=("NEEDS_HUMAN",)))[-1].id + 1
    await hub.keep(*(Event(first + n, 1.0, "HEALTH_STATE_CHANGED", "b", data) for n in range(6000)))
    page = (await hub.get(PLACE)).json()
    assert [one["standing"] for one in page["alerts"]] == [True]
    page = (await hub.get(PLACE, before=page["before"])).json()
    assert [one["agent_id"] for one in page["alerts"]] == ["a"]
