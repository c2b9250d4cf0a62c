"""What one source may keep here at once. Another's use is no reason to refuse anybody."""

from __future__ import annotations

import pytest

from lifesigns.core.effects import Refusal
from lifesigns.core.engine import Engine
from lifesigns.core.policy import MINUTE, FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.quotas import HasSource, Quota
from lifesigns.core.signals import (
    ActivitySeen,
    AgentLeft,
    MessageSent,
    MessageWithdrawn,
    Priority,
    Signal,
    TaskAssigned,
    TaskClaimed,
    TaskDone,
)
from tests.core.harness import START, Watch

FEW = FleetPolicy(
    canary_every=0, messages_per_source=4, claims_per_source=4, tasks_per_source=4, agents_per_source=4
)


def kept(watch: Watch, quota: Quota, whose: str) -> int:
    beliefs = watch.engine.beliefs
    if quota is Quota.AGENTS:
        return sum(one.source == whose for one in beliefs.agents.values())
    things: dict[Quota, list[HasSource]] = {
        Quota.MESSAGES: [*beliefs.messages.values()],
        Quota.CLAIMS: [*beliefs.claims.values()],
        Quota.TASKS: [*beliefs.tasks.values()],
    }
    return sum(one.source == whose for one in things[quota])


def wish(quota: Quota, source: str, n: int) -> Signal:
    agent_id, thing = f"{source}-{n % 3}", f"{source}-thing-{n}"
    match quota:
        case Quota.AGENTS:
            return ActivitySeen(agent_id=f"{source}-{n}", source=source)
        case Quota.MESSAGES:
            return MessageSent(agent_id=agent_id, message_id=thing, to="b", source=source)
        case Quota.CLAIMS:
            return TaskClaimed(agent_id=agent_id, task_id=thing, source=source)
        case Quota.TASKS:
            return TaskAssigned(agent_id=agent_id, task_id=thing, expected_for=600.0, source=source)


@pytest.mark.parametrize("quota", Quota)
def test_one_source_uses_up_its_own_quota_and_nobody_elses(quota: Quota) -> None:
    watch = Watch(fleet=FEW)
    for n in range(10):
        watch.hear(wish(quota, "greedy", n))
    for n in range(3):
        watch.hear(wish(quota, "modest", n))
    assert kept(watch, quota, "greedy") == 4
    assert kept(watch, quota, "modest") == 3
    assert [fact.reason for fact in watch.facts(Refusal)] == [f"the limit of 4 {quota} per source is reached"]
    assert watch.engine.quota_refusals()[quota] == 6


@pytest.mark.parametrize("quota", [Quota.MESSAGES, Quota.CLAIMS, Quota.TASKS])
def test_what_is_over_makes_room(quota: Quota) -> None:
    watch = Watch(fleet=FEW)
    for n in range(4):
        watch.hear(wish(quota, "s", n))
    if quota is Quota.MESSAGES:
        watch.hear(MessageWithdrawn(agent_id="s-0", message_id="s-thing-0"))
    else:
        watch.hear(TaskDone(agent_id="s-0", task_id="s-thing-0"))
    watch.hear(wish(quota, "s", 4))
    watch.hear(wish(quota, "s", 5))
    assert kept(watch, quota, "s") == 4
    assert watch.engine.quota_refusals()[quota] == 1


@pytest.mark.parametrize("quota", [Quota.MESSAGES, Quota.CLAIMS, Quota.TASKS])
def test_what_a_forgotten_agent_had_makes_room(quota: Quota) -> None:
    watch = Watch(Policy().with_changes({"silence": {"forget_after": 60 * MINUTE}}), fleet=FEW)
    for n in range(4):
        watch.hear(wish(quota, "s", n))
    for n in range(3):
        watch.hear(AgentLeft(agent_id=f"s-{n}"))
    watch.run_until(START + 30 * 60 * MINUTE)
    assert kept(watch, quota, "s") == 0
    for n in range(4):
        watch.hear(wish(quota, "s", 10 + n))
    assert kept(watch, quota, "s") == 4


@pytest.mark.parametrize("quota", Quota)
def test_quotas_are_counted_anew_after_a_restart(quota: Quota) -> None:
    watch = Watch(fleet=FEW)
    for n in range(4):
        watch.hear(wish(quota, "s", n))
    again = Watch(
        engine=Engine.restore(watch.engine.snapshot(), watch.now, PolicyBook(), FEW, epoch=2), at=watch.now
    )
    again.hear(wish(quota, "s", 9))
    assert kept(again, quota, "s") == 4
    assert again.engine.quota_refusals()[quota] == 1


def test_a_sender_whose_source_is_full_still_gets_rid_of_what_is_done_with() -> None:
    watch = Watch(fleet=FEW)
    watch.beat("b")
    for n in range(4):
        watch.hear(
            MessageSent(agent_id="s-0", message_id=f"m-{n}", to="b", priority=Priority.LOW, source="s")
        )
    watch.live(START + 120 * MINUTE, "s-0", "b")
    watch.hear(MessageSent(agent_id="s-0", message_id="new", to="b", source="s"))
    assert list(watch.engine.beliefs.messages) == ["m-1", "m-2", "m-3", "new"]
    assert watch.engine.quota_refusals()[Quota.MESSAGES] == 0
