"""What holds for all agents together: the mass brake, speed limits, room for all."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.agent import Agent, Past
from lifesigns.core.effects import (
    Brake,
    Escalate,
    Flip,
    Intervention,
    NeedsHuman,
    Order,
    Refusal,
    Respawn,
    SendNudge,
    Stage,
)
from lifesigns.core.fleet import Fleet, groups_of, least_loaded
from lifesigns.core.health import Cause, Doing, Health
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import MINUTE, FleetPolicy
from lifesigns.core.profiles import profile
from lifesigns.core.signals import AgentLeft, ErrorReported, GroupReleased, ProcessExited, ToolFinished
from lifesigns.core.watching import HELD_FOR_MIN
from tests.core.harness import START, Watch


def fleet_of(count: int, *, policy: FleetPolicy | None = None, **fields: Any) -> Watch:
    watch = Watch(fleet=policy or FleetPolicy(canary_every=0, acted_share=1.0))
    for n in range(count):
        watch.beat(f"w-{n}", **fields)
    return watch


def sicken(watch: Watch, *numbers: int) -> None:
    for n in numbers:
        watch.hear(ErrorReported(agent_id=f"w-{n}", message="disk full", recoverable=False))


def heal(watch: Watch, *numbers: int) -> None:
    for n in numbers:
        watch.hear(ToolFinished(agent_id=f"w-{n}", call_id="c", tool="ls"))


def brakes(watch: Watch) -> list[tuple[str, bool]]:
    return [(fact.group, fact.on) for fact in watch.facts(Brake)]


# --- the mass brake ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "sick", "braked"),
    [
        (2, 2, False),
        (3, 2, False),
        (3, 3, True),
        (5, 3, True),
        (6, 3, False),
        (20, 10, False),
        (20, 11, True),
    ],
)
def test_three_and_more_than_half_of_a_group_at_once_brake_it(members: int, sick: int, braked: bool) -> None:
    """At least 3, and at least 55 %."""
    watch = fleet_of(members)
    sicken(watch, *range(sick))
    assert brakes(watch) == ([("fleet", True)] if braked else [])


def test_a_braked_group_is_one_alert_and_no_intervention() -> None:
    watch = fleet_of(5)
    sicken(watch, 0, 1, 2)
    watch.forget()
    sicken(watch, 3, 4)
    ids = [f"w-{n}" for n in range(5)]
    watch.live(START + 60 * MINUTE, *ids)
    assert not watch.orders(Order)
    assert not watch.facts(NeedsHuman)


def test_the_alert_says_what_is_at_stake() -> None:
    watch = fleet_of(4)
    sicken(watch, 0, 1, 2)
    told = [fact for fact in watch.facts(NeedsHuman) if fact.reason == "mass brake"]
    assert [fact.agent_id for fact in told] == ["fleet"]
    assert told[0].text.startswith("3 of 4 agents in fleet are unwell at once.")


def test_a_braked_group_is_not_escalated_one_by_one() -> None:
    """A host that vanished is one problem and one alert, not one for each agent on it."""
    watch = fleet_of(10)
    for n in range(10, 30):
        watch.beat(f"w-{n}", host="h")
    watch.live(START + 50, *[f"w-{n}" for n in range(10)])
    assert ("host h", True) in brakes(watch)
    assert len(watch.orders(Escalate)) <= 3


@pytest.mark.parametrize("fields", [{"host": "h"}, {"metadata": {"provider": "p"}}])
def test_a_host_or_a_provider_is_braked_by_itself(fields: dict[str, Any]) -> None:
    watch = fleet_of(3, **fields)
    for n in range(3, 13):
        watch.beat(f"w-{n}")
    sicken(watch, 0, 1, 2)
    group = "host h" if "host" in fields else "provider p"
    assert brakes(watch) == [(group, True)]
    watch.forget()
    sicken(watch, 5)
    assert [order.agent_id for order in watch.orders(SendNudge)] == ["w-5"]


def test_the_brake_is_off_again_when_enough_are_well() -> None:
    watch = fleet_of(4)
    sicken(watch, 0, 1, 2)
    heal(watch, 0)
    assert brakes(watch) == [("fleet", True), ("fleet", False)]


def test_who_was_held_by_the_brake_is_acted_on_when_it_is_off() -> None:
    watch = fleet_of(4)
    sicken(watch, 0, 1, 2)
    assert "w-2" not in {order.agent_id for order in watch.orders(SendNudge)}
    assert [fact.agent_id for fact in watch.facts(Intervention) if fact.stage is Stage.HELD] == ["w-2"]
    heal(watch, 0)
    watch.live(START + 2 * MINUTE, *[f"w-{n}" for n in range(4)])
    assert "w-2" in {order.agent_id for order in watch.orders(SendNudge)}


def test_a_person_lets_interventions_go_on() -> None:
    watch = fleet_of(4)
    sicken(watch, 0, 1, 2)
    watch.hear(GroupReleased(group="fleet", by="eva"))
    assert brakes(watch)[-1] == ("fleet", False)
    ids = [f"w-{n}" for n in range(4)]
    watch.live(START + 2 * MINUTE, *ids)
    assert "w-2" in {order.agent_id for order in watch.orders(SendNudge)}
    sicken(watch, 3)
    assert brakes(watch)[-1] == ("fleet", False)


def test_a_persons_word_about_the_brake_holds_for_an_hour() -> None:
    fleet, outbox = Fleet(FleetPolicy()), Outbox(1)
    agents = [Agent(str(n), n, health=Health.HEALTHY) for n in range(4)]
    for agent in agents:
        fleet.join(agent)

    def flip(agent: Agent, to: Health, at: float) -> None:
        was, agent.health = agent.health, to
        fleet.flipped(agent, was, at, outbox)

    for agent in agents[:3]:
        flip(agent, Health.STUCK, 0.0)
    fleet.release("fleet", "ann", 10.0, outbox)
    flip(agents[3], Health.STUCK, 10.0 + 60 * MINUTE - 0.01)
    assert not fleet.state.groups["fleet"].braked
    flip(agents[3], Health.HEALTHY, 10.0 + 60 * MINUTE)
    assert fleet.state.groups["fleet"].braked


def test_releasing_a_group_nobody_knows_changes_nothing() -> None:
    watch = fleet_of(4)
    watch.forget()
    watch.hear(GroupReleased(group="host nowhere", by="eva"))
    assert not watch.effects


def test_a_terminated_agent_is_no_member() -> None:
    watch = fleet_of(6)
    sicken(watch, 0, 1, 2)
    assert brakes(watch) == []
    watch.hear(AgentLeft(agent_id="w-5"))
    assert brakes(watch) == [("fleet", True)]


def test_the_counts_follow_an_agent_that_moves() -> None:
    watch = fleet_of(3, host="old")
    for n in range(3):
        watch.beat(f"w-{n}", host="new")
    groups = watch.engine.beliefs.fleet.groups
    assert set(groups) == {"fleet", "host new"}
    assert groups["host new"].members == groups["fleet"].members == 3


def test_an_agent_shares_the_fate_of_its_host_and_provider() -> None:
    assert groups_of(Agent("a", 1)) == ("fleet",)
    assert groups_of(Agent("a", 1, host="h", provider="p")) == ("fleet", "host h", "provider p")


# --- speed limits ------------------------------------------------------------------------------------------


def test_nudges_have_a_speed_limit() -> None:
    policy = FleetPolicy(canary_every=0, acted_share=1.0, brake_count=99, nudges_per_minute=3)
    watch = fleet_of(5, policy=policy)
    sicken(watch, *range(5))
    assert len(watch.orders(SendNudge)) == 3
    ids = [f"w-{n}" for n in range(5)]
    watch.live(START + 59.99, *ids)
    assert len(watch.orders(SendNudge)) == 3
    watch.run_until(START + 60)
    assert len(watch.orders(SendNudge)) == 5


def test_a_limit_of_none_at_all_holds_for_ever() -> None:
    watch = fleet_of(3, policy=FleetPolicy(canary_every=0, acted_share=1.0, nudges_per_minute=0))
    sicken(watch, 0)
    watch.live(START + 30 * MINUTE, "w-0", "w-1", "w-2")
    assert not watch.orders(SendNudge)


@pytest.mark.parametrize(("members", "acted"), [(1, 1), (13, 1), (14, 2), (40, 6)])
def test_no_more_than_a_share_of_the_fleet_is_acted_on_in_a_minute(members: int, acted: int) -> None:
    """15 %, but always one."""
    watch = fleet_of(members, policy=FleetPolicy(canary_every=0, brake_count=999))
    sicken(watch, *range(members))
    watch.live(START + 59.99, *[f"w-{n}" for n in range(members)])
    assert len(watch.orders(SendNudge)) == acted


def test_who_was_acted_on_a_moment_ago_is_still_the_same_part_of_the_fleet() -> None:
    """Agents count, not steps: a fleet of one is nudged and started anew within one minute, and a second agent waits."""
    watch = fleet_of(2, policy=FleetPolicy(canary_every=0, brake_count=999))
    sicken(watch, 0)
    watch.live(START + 5, "w-0", "w-1")
    watch.hear(ProcessExited(agent_id="w-0", status=1))
    watch.hear(ProcessExited(agent_id="w-1", status=1))
    watch.run_until(START + 30)
    assert [len(watch.orders(kind, "w-0")) for kind in (SendNudge, Respawn)] == [1, 1]
    assert watch.orders(Respawn, "w-1") == []
    watch.run_until(START + 2 * MINUTE)
    assert len(watch.orders(Respawn, "w-1")) == 1


def test_a_held_step_is_on_record_once_with_its_reason() -> None:
    watch = fleet_of(2, policy=FleetPolicy(canary_every=0))
    sicken(watch, 0, 1)
    watch.live(START + 50, "w-0", "w-1")
    held = [(fact.agent_id, fact.text) for fact in watch.facts(Intervention) if fact.stage is Stage.HELD]
    assert held == [("w-1", "1 agent a minute is the limit for the fleet")]


# --- room for all ------------------------------------------------------------------------------------------


def test_the_fleet_has_a_size() -> None:
    watch = fleet_of(5, policy=FleetPolicy(canary_every=0, agents_max=3))
    assert len(list(watch.engine.agents())) == 3
    assert [fact.reason for fact in watch.facts(Refusal)] == ["the limit of 3 agents is reached"]


def test_one_source_cannot_push_the_others_out() -> None:
    watch = Watch(fleet=FleetPolicy(canary_every=0, agents_per_source=2))
    for n in range(10):
        watch.beat(f"made-up-{n}", source="token-1")
    watch.beat("real", source="token-2")
    assert {agent.id for agent in watch.engine.agents()} == {"made-up-0", "made-up-1", "real"}
    assert [fact.reason for fact in watch.facts(Refusal)] == ["the limit of 2 agents per source is reached"]


def test_a_forgotten_agent_makes_room() -> None:
    watch = Watch(fleet=FleetPolicy(canary_every=0, agents_per_source=1))
    watch.beat("old", source="s")
    watch.hear(AgentLeft(agent_id="old"))
    watch.run_until(START + 24 * 60 * MINUTE + 1)
    assert watch.engine.agent("old") is None
    watch.beat("new", source="s")
    assert watch.health("new") is Health.HEALTHY
    assert watch.engine.beliefs.fleet.sources == {"s": 1}


def test_forgetting_an_agent_says_nothing_more_about_it() -> None:
    watch = Watch()
    watch.beat("old", task_id="t")
    watch.hear(ToolFinished(agent_id="old", call_id="c", tool="ls"))
    watch.hear(AgentLeft(agent_id="old"))
    watch.forget()
    watch.run_until(START + 24 * 60 * MINUTE + 1)
    assert watch.engine.agent("old") is None
    assert not watch.effects


# --- least loaded ------------------------------------------------------------------------------------------


def agent(id_: str, load: float | None = None, capacity: int | None = None, **fields: object) -> Agent:
    made = Agent(id_, 1, health=Health.HEALTHY, load=load, capacity=capacity)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def best(*agents: Agent) -> list[str]:
    return [a.id for a in least_loaded(agents, 10)]


def test_the_least_loaded_come_first_and_of_equals_those_with_most_room() -> None:
    assert best(agent("c", 0.5, 1), agent("b", 0.5, 3), agent("a", 0.9), agent("d", 0.1)) == [
        "d",
        "b",
        "c",
        "a",
    ]


def test_the_well_come_before_the_degraded() -> None:
    assert best(agent("a", 0.0, health=Health.DEGRADED), agent("b", 0.9)) == ["b", "a"]


@pytest.mark.parametrize("health", [h for h in Health if h not in (Health.HEALTHY, Health.DEGRADED)])
def test_the_unwell_get_no_more_work(health: Health) -> None:
    assert best(agent("a", 0.0, health=health)) == []


@pytest.mark.parametrize("doing", [Doing.DRAINING, Doing.RATE_LIMITED, Doing.WAITING_FOR_HUMAN])
def test_who_cannot_take_work_gets_none(doing: Doing) -> None:
    assert best(agent("a", doing=doing)) == []


def test_who_is_not_judged_any_more_gets_none() -> None:
    assert best(agent("a", 0.0, past=Past(poisoned=True)), agent("b", 0.9)) == ["b"]


def test_who_has_no_room_gets_none() -> None:
    assert best(agent("a", 0.0, 0), agent("b", 0.9, None)) == ["b"]


def test_the_engine_is_asked_for_them() -> None:
    watch = Watch()
    watch.beat("a", load=0.9)
    watch.beat("b", load=0.1)
    assert [a.id for a in watch.engine.least_loaded()] == ["b"]


# --- a host that is late -----------------------------------------------------------------------------------


def on_hosts(*, policy: str = "swift") -> Watch:
    """Five agents on one host, three on another."""
    watch = Watch(profile(policy))
    for agent_id in (*STARVED, *OTHERS):
        watch.beat(agent_id, host=agent_id[:2])
    live_on_hosts(watch, START + 60, *STARVED, *OTHERS)
    return watch


STARVED = tuple(f"h1-{n}" for n in range(5))
OTHERS = tuple(f"h2-{n}" for n in range(3))


def live_on_hosts(watch: Watch, until: float, *agent_ids: str, every: float = 1.0) -> None:
    while watch.now + every <= until:
        watch.run_until(watch.now + every)
        for agent_id in agent_ids:
            watch.beat(agent_id, host=agent_id[:2])
    watch.run_until(until)


def lost(watch: Watch) -> dict[str, float]:
    return {flip.agent_id: flip.at - START for flip in watch.facts(Flip) if flip.now is Health.DISCONNECTED}


def test_nobody_on_a_host_that_is_short_of_cpu_is_convicted() -> None:
    """Each of its agents speaks only every eight seconds instead of every second, one after the other."""
    watch = on_hosts()
    for n in range(300):
        live_on_hosts(watch, watch.now + 2, *OTHERS)
        if n % 4 == 0:
            for agent_id in STARVED:
                watch.beat(agent_id, host="h1")
    assert lost(watch) == {}
    watch = on_hosts()
    for n in range(300):
        live_on_hosts(watch, watch.now + 2, *OTHERS)
        watch.beat(STARVED[n % len(STARVED)], host="h1")
    assert lost(watch) == {}


def test_one_dead_agent_of_a_living_host_is_found_in_its_bound_and_so_are_two() -> None:
    bound = profile("swift").silence.timeout + 1
    for dead in (STARVED[:1], STARVED[:2]):
        watch = on_hosts()
        live_on_hosts(watch, START + 120, *STARVED[len(dead) :], *OTHERS)
        assert set(lost(watch)) == set(dead)
        assert all(at - 60 <= bound for at in lost(watch).values())


def test_a_host_that_died_is_found_a_bounded_time_later_and_it_is_called_a_partition() -> None:
    watch = on_hosts()
    live_on_hosts(watch, START + 180, *OTHERS)
    assert set(lost(watch)) == set(STARVED)
    assert all(at - 60 <= profile("swift").silence.timeout + HELD_FOR_MIN + 1 for at in lost(watch).values())
    assert {watch.agent(agent_id).cause for agent_id in STARVED} == {Cause.PARTITION}
    assert [brake.group for brake in watch.facts(Brake) if brake.on] == ["host h1", "fleet"]


def test_who_died_on_a_host_that_was_short_of_cpu_is_found_and_the_others_are_spared() -> None:
    watch = on_hosts()
    live_on_hosts(watch, START + 66, *OTHERS)
    for agent_id in STARVED[1:]:
        watch.beat(agent_id, host="h1")
    live_on_hosts(watch, START + 180, *STARVED[1:], *OTHERS)
    assert set(lost(watch)) == {STARVED[0]}
    assert lost(watch)[STARVED[0]] - 60 <= profile("swift").silence.timeout + HELD_FOR_MIN + 1


def spread(*agent_ids: str, phases: tuple[float, ...]) -> Watch:
    """Agents of one host that beat every second, each at its own moment of it, for a minute; others are elsewhere."""
    watch = Watch(profile("swift"))
    for agent_id in (*agent_ids, *OTHERS):
        watch.beat(agent_id, host=agent_id[:2])
    beat_spread(watch, START + 60, dict(zip(agent_ids, phases, strict=True)))
    return watch


def beat_spread(watch: Watch, until: float, phases: dict[str, float]) -> None:
    while watch.now + 1.0 <= until:
        second = watch.now
        for agent_id, phase in sorted(phases.items(), key=lambda item: item[1]):
            watch.run_until(second + phase)
            watch.beat(agent_id, host=agent_id[:2])
        watch.run_until(second + 1.0)
        for agent_id in OTHERS:
            watch.beat(agent_id, host=agent_id[:2])
    watch.run_until(until)


PHASES = (0.05, 0.5, 0.95, 0.3, 0.7)


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_the_first_of_a_starved_host_is_not_convicted_before_the_others_are_late(count: int) -> None:
    """They beat at different moments: when the first is judged, the last was silent for two seconds, and nobody suspects it."""
    starved = STARVED[:count]
    watch = spread(*starved, phases=PHASES[:count])
    for _ in range(5):
        live_on_hosts(watch, watch.now + 8, *OTHERS)
        beat_spread(watch, watch.now + 5, dict(zip(starved, PHASES, strict=False)))
    assert lost(watch) == {}


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_one_that_dies_beside_others_is_found_as_soon_as_ever(count: int) -> None:
    there = dict(zip(STARVED[:count], PHASES, strict=False))
    watch = spread(*there, phases=tuple(there.values()))
    del there[STARVED[0]]
    beat_spread(watch, START + 90, there)
    assert set(lost(watch)) == {STARVED[0]}
    assert lost(watch)[STARVED[0]] - 60 <= profile("swift").silence.timeout
    assert watch.agent(STARVED[0]).cause is Cause.UNKNOWN


def test_two_of_one_host_that_die_at_once_are_found_a_bounded_time_later() -> None:
    watch = spread(*STARVED[:2], phases=PHASES[:2])
    live_on_hosts(watch, START + 90, *OTHERS)
    assert set(lost(watch)) == set(STARVED[:2])
    assert all(at - 60 <= profile("swift").silence.timeout + HELD_FOR_MIN for at in lost(watch).values())
    assert watch.agent(STARVED[0]).cause is Cause.PARTITION


def test_two_that_die_beside_a_third_were_not_cut_off_with_their_host() -> None:
    there = dict(zip(STARVED[:3], PHASES, strict=False))
    watch = spread(*there, phases=PHASES[:3])
    beat_spread(watch, START + 90, {STARVED[2]: there[STARVED[2]]})
    assert set(lost(watch)) == set(STARVED[:2])
    assert all(at - 60 <= profile("swift").silence.timeout + HELD_FOR_MIN for at in lost(watch).values())
    assert watch.agent(STARVED[0]).cause is Cause.UNKNOWN


def test_who_is_known_to_be_gone_tells_nothing_of_its_host() -> None:
    watch = spread(*STARVED[:2], phases=PHASES[:2])
    beat_spread(watch, START + 90, {STARVED[1]: PHASES[1]})
    live_on_hosts(watch, START + 120, *OTHERS)
    assert lost(watch)[STARVED[1]] - 90 <= profile("swift").silence.timeout


HOSTS = st.sampled_from([None, "h1", "h2"])


@given(
    st.lists(
        st.builds(
            Agent,
            st.uuids().map(str),
            st.integers(),
            host=HOSTS,
            provider=HOSTS,
            source=st.sampled_from(["", "t1", "t2"]),
            health=st.sampled_from(Health),
            past=st.builds(Past, absent=st.booleans()),
        )
    )
)
def test_all_that_join_at_once_count_as_if_each_had_joined(agents: list[Agent]) -> None:
    """And so do those of an engine that is restored."""
    each, at_once = Fleet(FleetPolicy()), Fleet(FleetPolicy())
    for agent in agents:
        each.join(agent)
    at_once.join_all(agents)
    assert at_once.state == each.state
    restored = Fleet(FleetPolicy(), at_once.state, {agent.id: agent for agent in agents})
    for agent in agents:
        seen = [
            [fleet._seen_by(agent, name) for name in groups_of(agent)] for fleet in (each, at_once, restored)
        ]
        assert seen[0] == seen[1] == seen[2]
