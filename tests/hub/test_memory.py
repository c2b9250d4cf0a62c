"""What is believed becomes rows and comes back, also when the hub died between a change and its row."""

from __future__ import annotations

from lifesigns.core.agent import UNEVENTFUL, Past
from lifesigns.core.effects import Rung
from lifesigns.core.engine import Engine
from lifesigns.core.fleet import Fleet
from lifesigns.core.late_hosts import LateAgents
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import profile
from lifesigns.core.signals import (
    BeatReceived,
    MessageAcked,
    MessageSent,
    Priority,
    Signal,
    TaskAssigned,
    TaskClaimed,
)
from lifesigns.hub import memory
from tests.core.harness import Watch
from tests.hub.ground import Ground


def beat(agent_id: str, seq: int, host: str | None = None) -> BeatReceived:
    return BeatReceived(agent_id, seq, "one", host=host)


async def test_who_moved_to_another_host_is_counted_where_it_is_remembered() -> None:
    """A beat changes the host and is not kept; the next page of somebody else has the fleet's counts."""
    async with Ground() as ground:
        ground.hub.hear([beat("a", 1, "old")])
        await ground.hub.store_reports([])
        ground.hub.hear([beat("a", 2, "new"), beat("b", 1)])
        await ground.until(lambda: len(ground.events) == 2)
        await ground.restart(cleanly=False)
        groups = ground.hub.engine.beliefs.fleet.groups
        assert {name: group.members for name, group in groups.items()} == {"fleet": 2, "host old": 1}
        ground.hub.hear([beat("a", 3, "new")])
        await ground.until(lambda: not ground.hub.inbox.waiting)
        assert {name: group.members for name, group in groups.items()} == {"fleet": 2, "host new": 1}


async def test_the_brake_of_a_group_outlives_the_hub() -> None:
    async with Ground() as ground:
        ground.hub.hear([beat(f"{n}", 1, "ws-1") for n in range(5)])
        ground.hub.hear([beat("lives", 1)])
        for seq in range(2, 10):
            await ground.pass_time(2.0)
            ground.hub.hear([beat("lives", seq)])
        await ground.until(lambda: ground.told("GROUP_BRAKED"))
        await ground.hub.store_reports([])
        await ground.restart(cleanly=False)
        group = ground.hub.engine.beliefs.fleet.groups["host ws-1"]
        assert (group.braked, group.members, group.unwell) == (True, 5, 5)


async def test_an_acknowledged_message_does_not_count_against_its_sender_after_a_crash() -> None:
    async with Ground() as ground:
        ground.hub.hear([beat("a", 1), beat("b", 1)])
        sent = MessageSent(agent_id="a", message_id="m", to="b", priority=Priority.NORMAL)
        await ground.hub.store_reports([sent])
        await ground.hub.store_reports([MessageAcked(agent_id="b", message_id="m")])
        await ground.restart(cleanly=False)
        agent = ground.hub.engine.agent("a")
        assert agent is not None
        assert (agent.messages, ground.hub.engine.beliefs.messages) == (0, {})


def forgetful() -> Ground:
    """Forgets those who are gone within a minute."""
    return Ground(policy=profile("balanced").with_changes({"silence": {"forget_after": 60.0}}))


async def live(ground: Ground, seconds: int, seq: int) -> None:
    """Time passes, and b beats."""
    for number in range(0, seconds, 2):
        ground.hub.hear([beat("b", seq + number)])
        await ground.pass_time(2.0)


async def test_what_is_forgotten_without_a_word_leaves_the_store_too() -> None:
    """Agents that are long gone, with their claims, tasks and messages."""
    async with forgetful() as ground:
        reports: list[Signal] = [
            TaskAssigned(agent_id="a", task_id="t", expected_for=600),
            TaskClaimed(agent_id="a", task_id="t"),
            MessageSent(agent_id="a", message_id="m", to="b", priority=Priority.NORMAL),
        ]
        ground.hub.hear([beat("a", 1), beat("b", 1)])
        await ground.hub.store_reports(reports)
        await live(ground, 2000, 2)
        beliefs = ground.hub.engine.beliefs
        assert (list(beliefs.agents), beliefs.claims, beliefs.tasks, beliefs.messages) == (["b"], {}, {}, {})
        ground.hub.sweep()
        assert await kept_rows(ground) == {("agent", "b")}


async def kept_rows(ground: Ground) -> set[tuple[str, str]]:
    """What a new hub would find of agents and their affairs; the old one is replaced by it."""
    await ground.hub.store_reports([])
    rows = (await ground.another_store().open()).beliefs
    await ground.restart(cleanly=False)
    return {(row.kind, row.key) for row in rows if row.key}


async def test_who_was_set_aside_by_a_bug_is_judged_again_by_the_next_hub() -> None:
    async with forgetful() as ground:
        await ground.hub.store_reports([TaskAssigned(agent_id="a", task_id="t")])
        ground.hub.engine.beliefs.agents["a"].past = Past(poisoned=True)
        await ground.restart(cleanly=True)
        ground.hub.hear([beat("a", 2)])
        await ground.pass_time(0.1)
        agent = ground.hub.engine.agent("a")
        assert agent is not None
        assert (agent.past.poisoned, agent.seq) == (False, 2)
        assert agent.past is UNEVENTFUL, "a million restored agents have a million copies of it"


async def test_an_agent_that_was_forgotten_just_before_a_crash_is_forgotten_again() -> None:
    """Its row is still there, the counts of the fleet know nothing of it any more."""
    async with forgetful() as ground:
        ground.hub.hear([beat("a", 1), beat("b", 1)])
        await live(ground, 90, 2)
        assert ground.hub.engine.agent("a") is None
        await ground.hub.store_reports([TaskAssigned(agent_id="b", task_id="t", expected_for=6000)])
        await ground.restart(cleanly=False)
        fleet = ground.hub.engine.beliefs.fleet
        assert ground.hub.engine.agent("a") is None
        assert (fleet.groups["fleet"].members, fleet.sources) == (1, {"": 1})
        assert not ground.told("AGENT_POISONED")


async def test_who_was_late_on_a_host_is_not_stored_with_every_commit() -> None:
    """After a restart every silence starts anew; and a host of thousands would be written again and again."""
    async with Ground() as ground:
        fleet = ground.hub.engine.beliefs.fleet
        ground.hub.hear([beat("a", 1, "h"), beat("b", 1, "h")])
        fleet.late["h"] = LateAgents({"a": (1.0, ""), "b": (2.0, "")}, {"": 2})
        await ground.hub.store_reports([TaskAssigned(agent_id="a", task_id="t")])
        assert fleet.late
        await ground.restart(cleanly=False)
        assert ground.hub.engine.beliefs.fleet.late == {}
        assert "host h" in ground.hub.engine.beliefs.fleet.groups


def test_agents_that_were_lost_under_a_brake_wait_for_a_person_after_a_restart_too() -> None:
    """The brake went off because they stopped counting, not because any of them is back."""
    watch = Watch()
    for name in ("a", "b", "c", "d", "e"):
        watch.beat(name, host="ws-1")
    watch.live(watch.now + 720.0, *"stuvwxyz")
    assert not watch.engine.beliefs.fleet.groups["host ws-1"].braked
    rows = [*memory.everything(watch.engine.snapshot())]
    engine = Engine.restore(memory.recalled(rows), watch.now + 1.0, fleet=FleetPolicy(canary_every=0))
    beliefs = engine.snapshot()
    fleet = Fleet(FleetPolicy(), beliefs.fleet, beliefs.agents)
    held = fleet.hold(beliefs.agents["a"], Rung.TERMINATE, watch.now + 2.0)
    assert held is not None
    assert "a person decides" in held[0]
