"""Who needs a person, for what and how urgently: the hub says so once, and whoever shows it only shows it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from lifesigns.core.agent import Agent, Case, Past
from lifesigns.core.effects import Finding, Kind, Rung, Severity
from lifesigns.core.health import Cause, Doing, Health, Phase
from lifesigns.core.respawn import Lineage
from lifesigns.core.signals import Decision, EscalationDecided, EscalationRequested
from lifesigns.events.hub_facts import HubPart, HubTroubleBegan
from lifesigns.views.alerts import Need, NeedKind
from lifesigns.views.builders.agents import agent_health
from lifesigns.web.fleet_snapshot import FleetSnapshot
from tests.hub.alerting.test_notifier import Ear
from tests.web.hub import RunningHub
from tests.web.test_acks import alerting_hub


@pytest.fixture
async def hub() -> AsyncIterator[RunningHub]:
    async with alerting_hub(Ear()) as running:
        yield running


def needs(hub: RunningHub) -> list[Need]:
    """Looked at anew, instead of as it was up to a second ago."""
    return [alert.need for alert in FleetSnapshot(hub.service).fleet().needs if alert.need is not None]


def kinds(hub: RunningHub) -> list[tuple[NeedKind, str]]:
    return [(need.kind, need.title) for need in needs(hub)]


async def waits(hub: RunningHub, agent: str, **more: Any) -> None:
    await hub.post(
        "/api/v1/signals", {"type": "doing", "agent_id": agent, "doing": "waiting_for_human", **more}
    )


async def escalate(hub: RunningHub, agent: str, reason: str = "It burns money.") -> None:
    await hub.post("/api/v1/beats", {"agent_id": agent})
    await hub.service.http_receiver.store_reports(
        [EscalationRequested(agent_id=agent, reason=reason, by="ann")]
    )


async def test_the_hub_itself_comes_first_then_groups_decisions_quarantined_and_who_waits(
    hub: RunningHub,
) -> None:
    await waits(hub, "asks", note="May I?")
    await escalate(hub, "costly")
    beliefs, now = hub.service.engine.beliefs, hub.service.clock()
    hub.service.troubles._now[HubPart.STORE] = HubTroubleBegan(now, HubPart.STORE, "disk full")
    beliefs.awareness.blind_since = now + 1
    beliefs.fleet.groups["fleet"].braked = True
    beliefs.lineages["crashes"] = Lineage("crashes", 9, phase=Phase.QUARANTINED, why="five times")
    assert kinds(hub) == [
        (NeedKind.HUB, "The store is away"),
        (NeedKind.HUB, "The hub is blind"),
        (NeedKind.BRAKED, "fleet"),
        (NeedKind.ESCALATED, "costly"),
        (NeedKind.QUARANTINED, "crashes"),
        (NeedKind.WAITING, "asks"),
    ]
    texts = [need.text for need in needs(hub)]
    assert texts[0] == "disk full"
    assert "nothing is done there" in texts[2]
    assert texts[4] == "crashes is quarantined until a person says so: five times"
    assert texts[5] == "May I?"
    assert hub.service.engine.beliefs.agents["asks"].doing is Doing.WAITING_FOR_HUMAN


async def test_it_is_served_with_the_alert_it_is_about(hub: RunningHub) -> None:
    await escalate(hub, "costly")
    (found,) = (await hub.get("/api/v1/fleet")).json()["needs"]
    assert (found["key"], found["severity"], found["standing"]) == ("escalation:costly", "error", True)
    assert found["text"] == "costly: somebody has to decide. It burns money."
    assert found["what"] == ": somebody has to decide. It burns money."
    need = found["need"]
    assert (need["kind"], need["text"]) == ("escalated", "It burns money.")
    assert need["until"] > found["at"]
    decided = await hub.post(
        f"/api/v1/escalations/{need['intervention_id']}/decision", {"decision": "ignore"}
    )
    assert decided.status_code == 202, decided.text


async def test_who_has_waited_longest_comes_first(hub: RunningHub) -> None:
    for agent in ("b", "a"):
        await waits(hub, agent)
    for agent, since in (("a", 10.0), ("b", 20.0)):
        hub.service.engine.beliefs.agents[agent].doing_from = since
    assert [need.title for need in needs(hub)] == ["a", "b"]


async def test_who_was_given_more_time_needs_no_decision_though_it_stands_on_the_same_rung(
    hub: RunningHub,
) -> None:
    await escalate(hub, "costly")
    (need,) = needs(hub)
    answer = EscalationDecided(agent_id="costly", order_id=need.intervention_id, decision=Decision.MORE_TIME)
    await hub.service.http_receiver.store_reports([answer])
    assert needs(hub) == []
    case = hub.service.engine.beliefs.agents["costly"].case
    assert case is not None
    assert case.rung is Rung.ESCALATE


async def test_an_agent_that_has_ended_waits_for_nobody(hub: RunningHub) -> None:
    await waits(hub, "a")
    await escalate(hub, "b")
    for agent in ("a", "b"):
        hub.service.engine.beliefs.agents[agent].health = Health.TERMINATED
    assert needs(hub) == []
    assert [one["kind"] for one in (await hub.get("/api/v1/alerts")).json()["alerts"] if one["need"]] == []


async def test_a_question_that_was_answered_says_so_until_the_agent_takes_it_up(hub: RunningHub) -> None:
    await waits(hub, "a")
    (need,) = needs(hub)
    assert (need.answered, need.text) == (False, "It waits for a human and does not say for what.")
    await hub.post("/api/v1/agents/a/nudge", {"message": "Yes."})
    (need,) = needs(hub)
    assert need.answered
    await hub.post("/api/v1/signals", {"type": "doing", "agent_id": "a", "doing": "working"})
    assert needs(hub) == []


async def test_what_else_asks_for_a_person_stands_there_until_somebody_has_taken_it_on(
    hub: RunningHub,
) -> None:
    task = {"type": "task_failed", "agent_id": "a", "task_id": "t", "reason": "no such repository"}
    await hub.post("/api/v1/signals", task)
    (found,) = FleetSnapshot(hub.service).fleet().needs
    assert found.need == Need(NeedKind.LOOK, "a", "task_failed: a cannot finish t: no such repository")
    assert (await hub.post(f"/api/v1/alerts/{found.key}/ack")).status_code == 200
    assert needs(hub) == []


async def test_what_stands_says_the_same_as_what_happened_and_is_as_urgent(hub: RunningHub) -> None:
    """Both are what the catalogue of events says; how loudly people are told is another thing."""
    task = {"type": "task_failed", "agent_id": "a", "task_id": "t", "reason": "no such repository"}
    breaker = {"type": "breaker", "agent_id": "a", "name": "model-api", "state": "open"}
    await hub.post("/api/v1/signals", [task, breaker])
    told = (await hub.get("/api/v1/alerts")).json()["alerts"]
    said = {
        standing: sorted(
            (one["type"], one["severity"], one["text"]) for one in told if one["standing"] is standing
        )
        for standing in (True, False)
    }
    assert said[True] == said[False]
    assert [severity for _, severity, _ in said[True]] == ["warning", "error"]


async def test_an_agent_about_which_there_is_a_decision_to_make_is_not_there_a_second_time(
    hub: RunningHub,
) -> None:
    task = {"type": "task_failed", "agent_id": "a", "task_id": "t", "reason": "no such repository"}
    await hub.post("/api/v1/signals", task)
    await escalate(hub, "a")
    assert kinds(hub) == [(NeedKind.ESCALATED, "a")]


# --- one agent ----------------------------------------------------------------------------------------

LOAD = Finding(Kind.OVERLOAD, 1.0, Severity.DEGRADED, "high load", {})
GONE = Finding(Kind.SILENCE, 1.0, Severity.DISCONNECTED, "process gone", {})


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, ""),
        ({"findings": [LOAD, GONE]}, "process gone"),
        ({"findings": [LOAD], "doing": Doing.WAITING_FOR_HUMAN, "doing_note": "May I?"}, "high load"),
        ({"health": Health.DISCONNECTED, "cause": Cause.CRASH}, "Lost: crash."),
        ({"health": Health.DISCONNECTED, "cause": Cause.UNKNOWN}, "Lost."),
        ({"doing": Doing.WAITING_FOR_HUMAN, "doing_note": "May I?"}, "May I?"),
        ({"health": Health.TERMINATED, "doing_note": "left: done"}, "Left: done."),
        ({"case": Case(Rung.NUDGE, "Go on.")}, "Nudge: Go on."),
        (
            {"past": Past(poisoned=True), "findings": [GONE]},
            "Not judged any more, by a bug of lifesigns, until it is cleared.",
        ),
    ],
)
async def test_what_is_wrong_is_the_worst_finding_else_what_is_asked_or_done(
    hub: RunningHub, more: dict[str, Any], why: str
) -> None:
    agent = Agent("a", 0)
    agent.health = Health.HEALTHY
    for name, value in more.items():
        setattr(agent, name, value)
    assert agent_health(agent, hub.service.engine.beliefs, 5.0).why == why


async def test_somebody_should_look_at_an_agent_that_is_unwell_or_not_judged(hub: RunningHub) -> None:
    agent, beliefs = Agent("a", 0), hub.service.engine.beliefs
    unwell = {}
    for health in Health:
        agent.health = health
        unwell[health] = agent_health(agent, beliefs, 5.0).unwell
    assert {health for health, is_unwell in unwell.items() if is_unwell} == {
        *(Health.STUCK, Health.FAILING, Health.DISCONNECTED)
    }
    agent.health, agent.past = Health.HEALTHY, Past(poisoned=True)
    seen = agent_health(agent, beliefs, 5.0)
    assert (seen.unwell, seen.need) == (True, -1)


async def test_an_escalation_began_when_people_were_asked_wherever_it_is_shown(hub: RunningHub) -> None:
    """Not when the nudges before it began: the list, the agent's page and `lifesigns show` say the same."""
    await hub.post("/api/v1/beats", {"agent_id": "costly"})
    await hub.post("/api/v1/agents/costly/nudge", {"reason": "Go on."})
    await escalate(hub, "costly")
    agent = hub.service.engine.agent("costly")
    assert agent is not None
    shown = agent_health(agent, hub.service.engine.beliefs, hub.service.clock()).intervention
    (asked,) = FleetSnapshot(hub.service).fleet().needs
    assert shown is not None
    assert (shown.rung, shown.since) == (Rung.ESCALATE, asked.at)
