"""Whether what lifesigns did in the demo was right. A check that cannot fail would be worth nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lifesigns.core.effects import (
    Ending,
    Fact,
    Finding,
    FindingOpened,
    Flip,
    Intervention,
    Kind,
    NeedsHuman,
    Recovered,
    Recovery,
    Rung,
    Severity,
    Stage,
)
from lifesigns.core.health import Cause, Doing, Health
from lifesigns.demo.fleet import FLEET
from lifesigns.demo.outcome import Outcome, is_right
from lifesigns.events import event_of
from lifesigns.views import AgentHealth
from lifesigns.views.builders.events import event_view

MEMBERS = {member.id: member for member in FLEET}
SILENCE = Finding(Kind.SILENCE, 1.0, Severity.DISCONNECTED, "Nothing heard.")


def outcome(agent_id: str, *facts: Fact) -> Outcome:
    """What is known of an agent after these facts."""
    made = Outcome(MEMBERS[agent_id])
    for fact in facts:
        made.happened(event_view(event_of(1, fact)))
    return made


def looks(health: Health, doing: Doing = Doing.WORKING) -> AgentHealth:
    """An agent as a look would find it."""
    metrics = dict.fromkeys(
        "uptime_seconds token_count cost_usd error_count tool_call_count intervention_count missed_heartbeats "
        "total_heartbeats disconnection_count".split(),
        0,
    )
    nothing: dict[str, Any] = dict.fromkeys(
        "task_id doing_since cause last_heartbeat last_checkpoint since_heartbeat_s role host incarnation load "
        "capacity_available paused_until intervention failure_class".split()
    )
    said = {
        "agent_id": "a",
        "state": health,
        "doing": doing,
        "state_changed_at": "",
        "phi": 0.0,
        "doing_note": "",
        "set_aside": False,
        "paused": False,
        "why": "",
        "class_reason": "",
        "unwell": False,
        "need": 6,
    }
    lists: dict[str, list[Any]] = {"findings": [], "circuit_breakers": []}
    return msgspec.convert({**nothing, **said, **lists, "metrics": metrics}, AgentHealth)


def flip(agent_id: str, now: Health, cause: Cause | None = None, *evidence: Finding) -> Flip:
    return Flip(1.0, agent_id, Health.HEALTHY, now, "because", cause, evidence)


def step(agent_id: str, rung: Rung, processes: Stage = Stage.ORDERED, by: str = "") -> Intervention:
    kind = Ending if (rung, processes) == (Rung.TERMINATE, Stage.DONE) else Intervention
    return kind(1.0, agent_id, "1-1", rung, processes, 1, "", by)


def crash() -> list[Fact]:
    found = Finding(Kind.EXIT, 100.5, Severity.DISCONNECTED, "Signal 9.", {}, conclusive=True)
    return [
        FindingOpened(100.5, "builder", found),
        flip("builder", Health.DISCONNECTED, Cause.CRASH, found),
        Recovery(101.0, "builder", "t", Recovered.INITIATED, 1, "turn-8"),
        Recovery(102.0, "builder", "t", Recovered.COMPLETED, 1, "turn-8"),
        flip("builder", Health.HEALTHY),
    ]


def test_a_crash_that_was_found_named_and_mended_is_right() -> None:
    found = outcome("builder", *crash())
    assert found.missing == []
    assert found.found_after is None
    assert found.printed("runs out of memory and is killed", 100.0)
    assert not found.printed("runs out of memory and is killed", 200.0), "it begins once"
    assert found.found_after == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("left_out", "missing"),
    [
        (0, "not found: exit"),
        (2, "not respawned from its checkpoint"),
        (3, "not respawned"),
        (4, "is disconnected and should be healthy"),
    ],
)
def test_whatever_is_missing_is_named(left_out: int, missing: str) -> None:
    facts = crash()
    del facts[left_out]
    assert outcome("builder", *facts).missing == [missing]


def test_another_name_for_it_is_wrong() -> None:
    """Found and helped is not enough: a crash that is called a silence sends people to the wrong place."""
    silent = flip("builder", Health.DISCONNECTED, Cause.UNKNOWN, SILENCE)
    assert outcome("builder", silent, *crash()).missing == ["wrongly called disconnected (unknown): because"]


def test_the_healthy_must_not_be_touched() -> None:
    well = flip("coder", Health.HEALTHY)
    assert outcome("coder", well).missing == []
    assert outcome("coder", step("coder", Rung.NUDGE), well).missing == ["wrongly nudged"]
    assert outcome("coder", step("coder", Rung.ESCALATE), well).missing == ["wrongly people asked"]
    assert outcome("coder", step("coder", Rung.TERMINATE), well).missing == ["wrongly stopped"]
    cut_off = flip("coder", Health.DISCONNECTED, Cause.UNKNOWN, SILENCE)
    assert outcome("coder", cut_off, well).missing == ["wrongly called disconnected (unknown): because"]


def test_who_waits_for_a_human_is_answered_by_one_and_nudged_by_nobody() -> None:
    asked = NeedsHuman(1.0, "deployer", "waiting_for_human", "May I?")
    answered = step("deployer", Rung.NUDGE, by="admin")
    waiting = outcome("deployer", asked, answered, flip("deployer", Health.HEALTHY))
    waiting.looked(looks(Health.HEALTHY, Doing.WAITING_FOR_HUMAN), 2.0)
    assert waiting.missing == ["is still waiting_for_human"]
    waiting.looked(looks(Health.HEALTHY), 3.0)
    assert waiting.missing == []
    waiting.happened(event_view(event_of(1, step("deployer", Rung.NUDGE))))
    assert waiting.missing == ["wrongly nudged"]


def test_a_rate_limit_is_found_by_looking_and_nothing_is_done() -> None:
    limited = outcome("writer", flip("writer", Health.HEALTHY))
    assert limited.missing == ["not found: rate_limited"]
    limited.looked(looks(Health.HEALTHY, Doing.RATE_LIMITED), 2.0)
    assert limited.missing == ["is still rate_limited"]
    limited.looked(looks(Health.HEALTHY), 3.0)
    assert limited.missing == []


def test_the_steps_of_the_ladder_have_an_order() -> None:
    found = Finding(Kind.FREEZE, 1.0, Severity.DISCONNECTED, "Still.", {}, conclusive=True)
    frozen = [FindingOpened(1.0, "indexer", found), flip("indexer", Health.DISCONNECTED, Cause.FREEZE, found)]
    steps = [
        step("indexer", Rung.NUDGE),
        step("indexer", Rung.ESCALATE),
        step("indexer", Rung.TERMINATE, Stage.DONE),
    ]
    again = [
        Recovery(1.0, "indexer", "t", Recovered.INITIATED, 1, "turn-4"),
        Recovery(1.0, "indexer", "t", Recovered.COMPLETED, 1, "turn-4"),
        flip("indexer", Health.HEALTHY),
    ]
    right = outcome("indexer", *frozen, *steps, *again)
    assert right.missing == []
    assert is_right([right])
    hasty = outcome("indexer", *frozen, *reversed(steps), *again)
    assert hasty.missing == ["not in this order: nudged, people asked, stopped, respawned"]
    assert not is_right([right, hasty])


def test_an_end_that_was_only_ordered_is_not_an_end() -> None:
    """An agent may be gone for another reason, and then nobody knows that the order was carried out."""
    spent = Finding(Kind.SPENDING, 1.0, Severity.FAILING, "Used 1.1 of 1 USD.", {}, conclusive=True)
    facts = [
        FindingOpened(1.0, "researcher", spent),
        flip("researcher", Health.FAILING, None, spent),
        step("researcher", Rung.TERMINATE),
        flip("researcher", Health.TERMINATED),
    ]
    assert outcome("researcher", *facts).missing == ["not stopped"]
    facts.insert(3, step("researcher", Rung.TERMINATE, Stage.DONE))
    assert outcome("researcher", *facts).missing == []
