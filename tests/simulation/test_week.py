"""The world itself: what may happen in it, and that a run is what it says it is. The targets: `test_targets.py`."""

from collections.abc import Callable

import pytest

from lifesigns.core import signals as s
from lifesigns.core.health import Doing, Health, Phase
from lifesigns.core.policy import HOUR, MINUTE
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.core.respawn import Lineage
from lifesigns.simulation import Faults, SimulationConfig, World, simulate
from lifesigns.simulation.lives import failing
from lifesigns.simulation.lives.failing import FAILURES
from lifesigns.simulation.report import of as report_of
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.truth import Illness
from tests.simulation.sizes import size

NEVER_FAILS = 1e12


def test_no_law_is_broken_when_everything_goes_wrong() -> None:
    """One seed; `make soak` runs hundreds, and `test_chaos.py` a few of the hardest worlds."""
    report = simulate(
        SimulationConfig(agents=12, days=size(0.5, 1), seed=1, faults=Faults.parse("all"), quiet_for=HOUR)
    )
    assert [str(violation) for violation in report.violations] == []
    assert report.false_terminations == 0


def test_one_agent_more_does_not_change_the_lives_of_the_others() -> None:
    """Chance is drawn per agent: the first calls of agent 3 are the same in a fleet of 4 and of 5."""
    worlds = [World(SimulationConfig(agents=n, days=0.05, seed=9, quiet_for=0)) for n in (4, 5)]
    for world in worlds:
        world.run()
    assert len({world.agents[3].calls for world in worlds}) == 1


def test_nobody_overspends_a_budget_that_the_monitor_was_never_told() -> None:
    """Agent 45 has a budget by its number, and never registers. In a week of soak its successor overspent unseen."""
    world = World(SimulationConfig(agents=50, days=0.02, seed=1, failure_every=NEVER_FAILS, quiet_for=0))
    world.run()
    engine = world.monitor.engine
    known = [engine.agent(agent.id) for agent in world.agents if agent.capped]
    assert len(known) == 9
    assert all(agent and engine.policy_of(agent).spending.task_tokens_max for agent in known)


@pytest.mark.parametrize("phase", [Phase.REVIEW, Phase.STARTING])
def test_the_death_of_a_life_that_nobody_heard_and_people_were_told_of_need_not_be_found(
    phase: Phase,
) -> None:
    """It began while its agent was cut off, its start was tried again, and given up: people know that there is none."""
    world = World(SimulationConfig(agents=1, days=0.02, seed=1, failure_every=NEVER_FAILS, quiet_for=0))
    world.run()
    agent, beliefs = world.agents[0], world.monitor.engine.beliefs
    assert world.scorer.failing(agent, Illness.CRASH).found_at is None
    beliefs.agents[agent.id].health = Health.TERMINATED
    beliefs.lineages[agent.id] = Lineage(agent.id, 0, phase=phase)
    given_up = phase is Phase.REVIEW
    assert (world.scorer.failing(agent, Illness.CRASH).found_at is not None) == given_up
    assert world.scorer.failing(agent, Illness.LOOP).found_at is None


@pytest.mark.parametrize("illness", [Illness.ERRORS, Illness.FREEZE])
def test_who_recovers_by_itself_lives_one_life(illness: Illness, monkeypatch: pytest.MonkeyPatch) -> None:
    """A life that was replaced takes no step more. One that did once restarted its agent and never let it speak."""
    monkeypatch.setattr(failing, "ENDS_BY_ITSELF", 1.0)
    world = World(SimulationConfig(agents=1, seed=3))
    agent = world.agents[0]
    agent.start()
    agent.speak_up()
    agent.take_task()
    life = FAILURES[illness](agent)
    while (wait := next(life, None)) is not None and agent.failure is not None:
        world.now += wait
    assert agent.failure is None
    assert wait == failing.FOREVER


# --- what may happen to the monitor -----------------------------------------------------------------------

MISHAPS: dict[str, Callable[[World], None]] = {
    "stalled for a minute": lambda world: world.strikes.stall(60.0),
    "restarted": lambda world: world.strikes.restart(),
    "the clock an hour ahead": lambda world: world.strikes.jump_clock(HOUR),
    "the clock an hour back": lambda world: world.strikes.jump_clock(-HOUR),
    "the bus cut for ten minutes": lambda world: world.strikes.blind(600.0),
    "half of the fleet gone": lambda world: world.strikes.lose_half(),
}


@pytest.mark.parametrize("mishap", MISHAPS)
def test_nobody_healthy_is_convicted_and_the_dead_are_found_afterwards(mishap: str) -> None:
    """Whatever happens to us, it is nobody's death; and who really died meanwhile is found when we see again."""
    world = World(
        SimulationConfig(
            agents=size(12, 30),
            days=0.1,
            seed=5,
            faults=Faults.parse("loss=0.001,delay=0.02"),
            failure_every=NEVER_FAILS,
            quiet_for=HOUR,
        )
    )
    world.at(HOUR, lambda _: MISHAPS[mishap](world))
    world.at(HOUR + 20.0, lambda _: _die(world, 3))
    world.run()
    assert [str(violation) for violation in world.invariants.violations] == []
    assert world.counts.false_findings == []
    assert world.counts.false_terminations == 0
    dead = [failure for failure in world.scorer.failures if failure.illness is Illness.CRASH]
    assert len(dead) >= 3
    assert all(failure.found_at is not None for failure in dead)


def _die(world: World, count: int) -> None:
    for agent in [b for b in world.agents if b.speaking and not b.cuts][:count]:
        agent.live(FAILURES[Illness.CRASH](agent))


# --- what looks like a failure and is none ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["balanced", "swarm"])
def test_an_idle_hour_and_a_long_model_call_are_healthy(name: str) -> None:
    world = World(
        SimulationConfig(
            agents=6,
            days=0.15,
            seed=3,
            policies=PolicyBook(profile(name)),
            faults=Faults.parse("none"),
            failure_every=NEVER_FAILS,
            quiet_for=0.0,
        )
    )
    for agent in world.agents:
        life = _idle_for_an_hour if agent.index % 2 else _think_for_twenty_minutes
        world.at(5 * MINUTE, lambda who: who[0].live(who[1](who[0])), (agent, life))
    world.run()
    assert world.counts.false_findings == []
    assert world.counts.nudges == 0
    assert [str(agent.health) for agent in world.monitor.engine.agents()] == ["healthy"] * len(world.agents)


def _idle_for_an_hour(agent: SimulatedAgent) -> Life:
    agent.finish_task()
    agent.do(Doing.IDLE)
    yield 3 * HOUR


def _think_for_twenty_minutes(agent: SimulatedAgent) -> Life:
    while True:
        agent.say(s.ModelStarted(agent_id=agent.id, incarnation=agent.incarnation, call_id="m"))
        yield 20 * MINUTE
        agent.say(s.ModelFinished(agent_id=agent.id, incarnation=agent.incarnation, call_id="m"))
        yield 30.0
        agent.work_a_little()


# --- the report -------------------------------------------------------------------------------------------


def test_the_json_has_the_shape_of_the_contract() -> None:
    report = simulate(
        SimulationConfig(agents=6, days=0.1, seed=2, failure_every=HOUR, quiet_for=HOUR)
    ).to_json()
    promised = (
        "seed agents days healthy_agent_days false_findings false_terminations detections nudges escalations "
        "terminations recoveries recovery_success mean_time_to_intervention_s violations"
    )
    assert set(promised.split()) <= set(report)
    assert report["violations"] == []
    for found in report["detections"].values():
        assert {"happened", "found", "missed", "p50_s", "p99_s"} <= set(found)
        assert found["happened"] == found["found"] + found["missed"] + found["brief"]


def test_a_run_that_was_stopped_says_so() -> None:
    world = World(SimulationConfig(agents=4, days=1, seed=1))
    world.now = 3600.0
    assert not report_of(world).complete


def test_whoever_lives_in_a_fleet_fails_in_ways_that_can_be_lived() -> None:
    """An illness without a life ended the whole run when it struck."""
    assert set(SimulationConfig().ills) <= {*FAILURES, Illness.CUT}
