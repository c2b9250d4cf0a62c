"""Agents go from one engine to another, and nobody notices: neither the agents that move nor those that stay."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.core.awareness import Awareness
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.changed_keys import ChangedKeys
from lifesigns.core.effects import Rung
from lifesigns.core.engine import Engine
from lifesigns.core.fleet import FleetState
from lifesigns.core.health import Health
from lifesigns.core.pace import Act
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.errors import Bug
from lifesigns.hub import memory
from tests.core.harness import START, Watch
from tests.core.test_engine_properties import IDS, PROFILES, SELDOM, histories, live, tidy
from tests.core.test_second_opinion import SOON, questions, watched

ALONE = replace(SELDOM, canary_every=0, moves_per_minute=0, brake_count=100)
"""What concerns all agents of an engine together is left out: a group whose agents leave is another group."""

FEW = settings(max_examples=30)
"""These histories are long, and each is lived twice."""

OF_THE_HUB = (s.CanaryReturned, s.PathLost, s.PathRestored, s.GroupReleased)


def stored(engine: Engine) -> Beliefs:
    """What the store has of an engine."""
    return memory.recalled([*memory.everything(engine.snapshot())])


def part_of(beliefs: Beliefs, ids: Collection[str]) -> Beliefs:
    """These agents, with what belongs to them, and what the engine believed of itself."""
    return Beliefs(
        beliefs.at,
        {one: agent for one, agent in beliefs.agents.items() if one in ids},
        {one: policy for one, policy in beliefs.own_policies.items() if one in ids},
        {one: lineage for one, lineage in beliefs.lineages.items() if one in ids},
        {one: claim for one, claim in beliefs.claims.items() if claim.agent_id in ids},
        {one: message for one, message in beliefs.messages.items() if message.sender in ids},
        {one: task for one, task in beliefs.tasks.items() if task.agent_id in ids},
        {one: breakers for one, breakers in beliefs.breakers.items() if one in ids},
        {one: orders for one, orders in beliefs.side_orders.items() if one in ids},
        beliefs.awareness,
        beliefs.fleet,
        tokens=beliefs.tokens,
    )


def about_agents(history: Sequence[tuple[float, s.Signal]]) -> list[tuple[float, s.Signal]]:
    return [(wait, signal) for wait, signal in history if not isinstance(signal, OF_THE_HUB)]


def told(effects: Sequence[e.Effect]) -> list[e.Effect]:
    """All but refusals: those are told once a minute by each engine."""
    return [effect for effect in effects if not isinstance(effect, e.Refusal)]


def whole_engine(history: Sequence[tuple[float, s.Signal]], name: str) -> Engine:
    engine = tidy(Engine(PolicyBook(profile(name)), ALONE))
    live(engine, about_agents(history))
    return engine


@FEW
@given(histories, histories, st.sampled_from(PROFILES), st.integers(1, 3))
def test_an_engine_that_is_restored_in_turns_is_the_one_that_is_restored_at_once(
    before: list[tuple[float, s.Signal]], after: list[tuple[float, s.Signal]], name: str, size: int
) -> None:
    """Also when time has passed in between."""
    engine = tidy(Engine(PolicyBook(profile(name)), SELDOM))
    live(engine, before)
    rows = [*memory.everything(engine.snapshot())]
    now = engine.snapshot().at + 7.0
    at_once = tidy(Engine.restore(memory.recalled(rows), now, PolicyBook(profile(name)), SELDOM))
    recall = memory.Recall()
    recall.take(rows)
    itself = recall.itself()
    at = itself.at
    in_turns = tidy(Engine.restore(itself, now, PolicyBook(profile(name)), SELDOM))
    for part in recall.parts(at, size):
        in_turns.recall(part)
    assert live(in_turns, after, start=now) == live(at_once, after, start=now)


@FEW
@given(histories, histories, st.sampled_from(PROFILES))
def test_agents_that_are_handed_over_are_judged_as_before(
    before: list[tuple[float, s.Signal]], after: list[tuple[float, s.Signal]], name: str
) -> None:
    """By an engine that had none, at the moment at which the other one let them go: the same effects, bit for bit."""
    had_them = whole_engine(before, name)
    part = stored(had_them)
    gets_them = tidy(
        Engine(PolicyBook(profile(name)), ALONE, beliefs=Beliefs(numbered=part.numbered), epoch=1)
    )
    gets_them.adopt(part, part.at, handed_over=True)
    heard = [(0.0, s.BeatReceived("z")), *about_agents(after)]
    assert told(live(gets_them, heard, start=part.at)) == told(live(had_them, heard, start=part.at))


@FEW
@given(histories, histories, st.sampled_from(PROFILES), st.sets(st.sampled_from(IDS)))
def test_agents_that_go_and_come_back_change_nothing(
    before: list[tuple[float, s.Signal]],
    after: list[tuple[float, s.Signal]],
    name: str,
    moving: set[str],
) -> None:
    """Neither for them nor for those that stay. Which of two things that fall due at once comes first may differ."""
    stays, moves = whole_engine(before, name), whole_engine(before, name)
    part = part_of(stored(moves), moving)
    moves.release(moving)
    moves.adopt(part, part.at, handed_over=True)
    effects = [told(live(engine, about_agents(after), start=part.at)) for engine in (stays, moves)]
    alike = [
        sorted((effect.at, type(effect).__name__, getattr(effect, "agent_id", "")) for effect in each)
        for each in effects
    ]
    assert alike[0] == alike[1]


@FEW
@given(histories, st.sampled_from(PROFILES), st.sets(st.sampled_from(IDS)))
def test_nothing_is_left_of_agents_that_went(
    before: list[tuple[float, s.Signal]], name: str, going: set[str]
) -> None:
    """The counts are those of the others, and nothing of those that went is stored, least of all that they are gone: their rows
    are another engine's."""
    changes = ChangedKeys()
    engine = tidy(Engine(PolicyBook(profile(name)), SELDOM, changes=changes))
    live(engine, before)
    staying = set(IDS) - going
    expected, theirs = part_of(stored(engine), staying), part_of(stored(engine), going)
    engine.release(going)
    left = engine.snapshot()
    assert left.agents.keys() == expected.agents.keys()
    for table in ("own_policies", "lineages", "claims", "messages", "tasks", "breakers", "side_orders"):
        assert getattr(left, table).keys() == getattr(expected, table).keys(), table
    assert not left.duplicates.keys() & going
    assert not set(left.savers.values()) & going
    assert not {offer.agent_id for offer in left.moves.offers.values()} & going
    counted = memory.recalled(memory.everything(left)).fleet
    assert left.fleet.sources == counted.sources
    assert {
        group: (found.members, found.unwell, found.lost_by)
        for group, found in left.fleet.groups.items()
        if found.members
    } == {
        group: (found.members, found.unwell, found.lost_by)
        for group, found in counted.groups.items()
        if found.members
    }
    rows = {(row.kind, row.key) for row in memory.changed(changes, left)}
    assert not {key for kind, key in rows if kind == memory.AGENT} & going
    assert {key for kind, key in rows if kind == memory.CLAIM} & theirs.claims.keys() == set()
    assert {key for kind, key in rows if kind == memory.TASK} & theirs.tasks.keys() == set()
    assert {key for kind, key in rows if kind == memory.MESSAGE} & theirs.messages.keys() == set()


@FEW
@given(histories, st.floats(10, 1e6))
def test_the_time_of_nobody_counts_for_nobody(before: list[tuple[float, s.Signal]], away_for: float) -> None:
    """A hub died, and another one takes its agents in later: no agent is judged for that."""
    part = stored(whole_engine(before, "swarm"))
    engine = tidy(Engine(PolicyBook(profile("swarm")), ALONE))
    now = part.at + away_for
    engine.advance(now - 1.0)
    engine.adopt(part, now)
    effects = [*engine.advance(now), *engine.advance(now + 0.001)]
    assert not [fact for fact in effects if isinstance(fact, e.Flip)]


# --- one by one ----------------------------------------------------------------------------------------


def silent_at(watch: Watch, agent_id: str, away_for: float, *, handed_over: bool) -> float:
    """When another engine finds an agent silent that it adopts so long after it was heard."""
    part = stored(watch.engine)
    other = Watch(at=watch.now + away_for)
    other.beat("z")
    other.engine.adopt(part, other.now, handed_over=handed_over)
    began_at = other.now
    other.live(other.now + 300.0, "z")
    (flip,) = [
        fact for fact in other.facts(e.Flip) if fact.agent_id == agent_id and fact.now is Health.DISCONNECTED
    ]
    return flip.at - began_at


def test_silence_starts_anew_after_a_takeover_and_goes_on_after_a_handover() -> None:
    watch = Watch()
    watch.live(START + 60.0, "a")
    watch.live(watch.now + 8.0, "b")
    watch.engine.advance(watch.now)
    assert silent_at(watch, "a", 0.5, handed_over=True) < silent_at(watch, "a", 0.5, handed_over=False)


def test_an_agent_is_not_adopted_twice() -> None:
    watch = Watch()
    watch.beat("a")
    with pytest.raises(Bug, match="a is adopted, and was here already"):
        watch.engine.adopt(stored(watch.engine), watch.now)


def test_orders_have_the_epoch_under_which_agents_were_adopted() -> None:
    """They have heard the other engine's, and refuse a lower one. An epoch never falls."""
    watch = Watch()
    watch.live(START + 60.0, "a")
    other = Watch(at=watch.now)
    other.engine.adopt(stored(watch.engine), watch.now, epoch=7)
    other.beat("z")
    other.engine.adopt(Beliefs(), other.now, epoch=3)
    other.run_until(other.now + 60.0)
    assert {order.epoch for order in other.orders(e.SendPing)} == {7}


def test_fencing_tokens_rise_across_engines() -> None:
    watch = Watch()
    watch.beat("a")
    for task in ("t-1", "t-2", "t-3"):
        watch.hear(s.TaskClaimed(agent_id="a", task_id=task))
    other = Watch(at=watch.now)
    other.engine.adopt(part_of(stored(watch.engine), ()), watch.now)
    other.beat("b")
    other.hear(s.TaskClaimed(agent_id="b", task_id="t-4"))
    assert other.facts(e.ClaimChanged)[-1].token == 4


def unwell(watch: Watch, count: int) -> None:
    for number in range(count):
        watch.beat(f"{number}", host="h")
    watch.beat("z")
    watch.live(watch.now + 120.0, "z")


def test_a_group_is_braked_when_too_many_of_those_that_come_are_unwell() -> None:
    """At the next look, and before anything else is done."""
    watch = Watch()
    unwell(watch, 5)
    other = Watch(at=watch.now)
    other.beat("y")
    for one in ("0", "1", "2", "3", "4"):
        other.engine.adopt(part_of(stored(watch.engine), (one,)), watch.now, handed_over=True)
    other.run_until(watch.now + 2.0)
    brakes = [fact for fact in other.facts(e.Brake) if fact.group == "host h"]
    assert [(brake.on, brake.unwell) for brake in brakes] == [(True, 5)]


def test_agents_that_were_lost_under_a_brake_wait_for_a_person_here_too() -> None:
    """Their group has another count here, and may not be braked: that is no reason to act."""
    watch = Watch()
    unwell(watch, 5)
    watch.live(watch.now + 600.0, "z")
    part = part_of(stored(watch.engine), ("0",))
    assert part.agents["0"].past.lost_with
    other = Watch(at=watch.now)
    other.live(watch.now + 30.0, *"yxwvuts")
    other.engine.adopt(part, other.now, handed_over=True)
    other.live(other.now + 1800.0, *"yxwvuts")
    assert not other.orders(e.Terminate)
    assert not other.orders(e.Respawn)


def test_acts_on_agents_that_come_count_here() -> None:
    """So that no more agents are acted on within a minute than one engine would have."""
    watch = Watch()
    watch.beat("a")
    part = stored(watch.engine)
    ours, theirs = Act(999.5, Rung.NUDGE, "z", ""), Act(999.0, Rung.TERMINATE, "a", "")
    part.fleet.acts += [theirs, Act(999.1, Rung.TERMINATE, "stays there", "")]
    other = Watch(at=watch.now)
    other.beat("z")
    other.engine.beliefs.fleet.acts.append(ours)
    other.engine.adopt(part, other.now)
    assert other.engine.beliefs.fleet.acts == [theirs, ours]


def test_what_another_monitor_did_not_hear_is_held_against_nobody() -> None:
    """Its lapses and truces hold here, in order and merged with our own."""
    ours, theirs = Awareness(), Awareness()
    ours.slept(100.0, 110.0, FleetPolicy())
    ours.slept(300.0, 310.0, FleetPolicy())
    theirs.slept(105.0, 130.0, FleetPolicy())
    theirs.slept(200.0, 220.0, FleetPolicy())
    theirs.put_off("token", 400.0)
    kept = ours.lapses
    ours.take_in(theirs)
    assert [(lapse.began_at, lapse.ended_at) for lapse in ours.lapses] == [
        (100.0, 130.0),
        (200.0, 220.0),
        (300.0, 310.0),
    ]
    assert ours.lapses is kept, "the hub watches this very list"
    assert ours.due(90.0, 20.0) == 140.0
    assert ours.put_off_until == theirs.put_off_until


def test_the_state_of_a_fleet_that_is_not_known_is_no_reason_to_act() -> None:
    """A row that cannot be read: agents that were lost under a brake wait for a person."""
    watch = Watch()
    unwell(watch, 5)
    watch.live(watch.now + 600.0, "z")
    part = part_of(stored(watch.engine), ("0",))
    part.fleet = FleetState()
    other = Watch(at=watch.now)
    other.beat("y")
    other.engine.adopt(part, other.now)
    (group,) = [group for group in other.engine.beliefs.fleet.groups.values() if group.deserted_by]
    assert group.lost_by == {"": 1}


def test_what_went_is_not_stored_as_gone() -> None:
    """An empty row deletes: it would delete what another engine has by now."""
    changes = ChangedKeys()
    watch = Watch(engine=Engine(fleet=FleetPolicy(canary_every=0), changes=changes))
    watch.beat("a")
    watch.hear(s.TaskAssigned(agent_id="a", task_id="t-1", expected_for=1000.0))
    watch.hear(s.TaskClaimed(agent_id="a", task_id="t-1"))
    watch.hear(s.MessageSent(agent_id="a", message_id="m-1", to="b", priority=s.Priority.HIGH))
    assert {row.kind for row in memory.changed(changes, watch.engine.snapshot())} == {
        *(memory.AGENT, memory.TASK, memory.CLAIM, memory.MESSAGE, memory.HUB)
    }
    watch.engine.release({"a"})
    assert memory.changed(changes, watch.engine.snapshot()) == []


def test_open_messages_count_for_their_sender_wherever_it_is() -> None:
    watch = Watch()
    watch.beat("a")
    for number in range(3):
        watch.hear(s.MessageSent(agent_id="a", message_id=f"{number}", to="b", priority=s.Priority.LOW))
    other = Watch(at=watch.now)
    other.engine.adopt(stored(watch.engine), watch.now)
    assert other.agent("a").messages == 3
    other.hear(s.MessageWithdrawn(agent_id="a", message_id="0"))
    assert other.agent("a").messages == 2


def test_agents_that_went_are_no_witnesses_of_their_host() -> None:
    """Nor are they late with it: nothing is known of them here."""
    watch = Watch()
    for name in "abcd":
        watch.beat(name, host="h")
    watch.run_until(watch.now + 12.0)
    assert watch.engine.beliefs.fleet.late["h"].suspected.keys() == set("abcd")
    watch.engine.release(set("bcd"))
    assert watch.engine.beliefs.fleet.late["h"].suspected.keys() == {"a"}
    assert watch.engine.beliefs.fleet.witnesses == {"h": {"": {"a": None}}}
    watch.engine.release({"a"})
    assert (watch.engine.beliefs.fleet.late, watch.engine.beliefs.fleet.witnesses) == ({}, {})
    watch.run_until(watch.now + 600.0)


def test_a_policy_that_only_agents_asked_for_which_went_is_forgotten() -> None:
    """Its place is free for the next one: there is a limit to them."""
    watch = Watch()
    for number in range(50):
        watch.hear(s.AgentRegistered(agent_id="a", policy={"silence": {"timeout": 5.0 + number / 10}}))
        assert len(watch.engine._context.book.policies) <= 3
        watch.engine.release({"a"})


def test_the_zones_are_asked_again_by_the_engine_that_adopts() -> None:
    """The hub that asked is gone, and its answers with it."""
    watch = watched("b")
    watch.run_until(START + 12)
    after = Watch(SOON, at=watch.now + 7.0)
    after.engine.has_zones(["b"])
    after.beat("z")
    after.engine.adopt(stored(watch.engine), after.now)
    after.live(after.now + 60.0, "z")
    (question,) = questions(after)
    assert question.at < after.facts(e.Flip, "a")[-1].at


def test_an_engine_that_adopts_knows_when_the_other_one_slept() -> None:
    """Else an agent would be stuck for the hour in which nobody listened to it."""
    watch = Watch()
    watch.beat("a")
    watch.jump_to(watch.now + 3600.0)
    watch.beat("a")
    other = Watch(at=watch.now)
    other.beat("z")
    other.engine.adopt(stored(watch.engine), other.now, handed_over=True)
    assert other.engine.beliefs.awareness.lapsed(START, other.now) > 3500.0
