"""The targets, in small: what `make soak` shows over twenty weeks of a large fleet, and with the larger fleets of `sizes.py`."""

from math import inf

import pytest
from msgspec.structs import replace

from lifesigns.core.health import Doing, Health
from lifesigns.core.policy import MINUTE
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.core.signals import CheckpointSaved, DoingChanged, ModelFinished, ModelStarted
from lifesigns.simulation import Faults, Report, SimulationConfig, World, simulate
from lifesigns.simulation.lives.failing import FAILURES
from lifesigns.simulation.report import of as report_of
from lifesigns.simulation.truth import Illness
from tests.core.harness import START, Watch
from tests.simulation.sizes import size

HOUR = 3600.0


def missed_targets(report: Report) -> list[str]:
    return [f"{target.name}: {target.got}" for target in report.targets if not target.met]


def test_a_day_of_a_fleet_meets_every_target() -> None:
    report = simulate(SimulationConfig(agents=10, days=1, seed=1, failure_every=12 * HOUR, quiet_for=HOUR))
    assert report.violations == ()
    assert missed_targets(report) == []
    assert sum(found.happened for found in report.detections.values()) > 10


def test_over_enough_failures_of_every_kind_somebody_does_something_within_ten_minutes() -> None:
    """From its onset on, a stale checkpoint and a hung call included, which policy gives half an hour each."""
    report = simulate(SimulationConfig(agents=36, days=0.5, seed=7, failure_every=5 * HOUR))
    assert report.interventions > 60
    assert set(report.detections) == {*FAILURES, Illness.CUT}
    assert (report.mean_time_to_intervention_s or inf) < 10 * MINUTE
    assert missed_targets(report) == []


def test_a_run_is_replayed_from_its_seed() -> None:
    config = SimulationConfig(
        agents=size(6, 10), days=size(0.1, 0.2), seed=4, faults=Faults.parse("all"), quiet_for=HOUR
    )
    assert simulate(config).to_json() == simulate(config).to_json()


def test_another_seed_is_another_run() -> None:
    one = simulate(SimulationConfig(agents=5, days=0.05, seed=1, quiet_for=0))
    other = simulate(SimulationConfig(agents=5, days=0.05, seed=2, quiet_for=0))
    assert one.to_json() != other.to_json()


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param("stall=16", id="the monitor stalls for a minute"),
        pytest.param("clock=16", id="the wall clock jumps an hour"),
        pytest.param("blind=12", id="the bus is cut for ten minutes"),
        pytest.param("half=12", id="half of the fleet vanishes at once"),
        pytest.param("host=16", id="hosts vanish"),
        pytest.param("restart=16", id="the monitor is restarted"),
    ],
)
def test_when_our_eyes_fail_no_healthy_agent_is_convicted_and_the_dead_are_still_found(fault: str) -> None:
    """Nobody healthy is even found unwell, nobody is ended, and every real failure among them is found."""
    report = simulate(
        SimulationConfig(
            agents=size(10, 16),
            days=size(0.2, 0.25),
            seed=size(6, 5),
            faults=Faults.parse(fault),
            failure_every=2.5 * HOUR,
            quiet_for=HOUR,
        )
    )
    assert report.violations == ()
    assert report.false_terminations == 0
    assert report.false_finding_texts == ()
    assert {kind: found.missed for kind, found in report.detections.items() if found.missed} == {}


@pytest.mark.parametrize("name", ["swift", "balanced", "fleet"])
def test_a_cut_bus_convicts_nobody_however_short_the_timeout(name: str) -> None:
    """The verdict of a swift profile falls before our canary is late; it waits for the canary all the same."""
    report = simulate(
        SimulationConfig(
            agents=12,
            days=0.15,
            seed=8,
            policies=PolicyBook(profile(name)),
            faults=Faults.parse("blind=12"),
            failure_every=8 * HOUR,
            quiet_for=HOUR,
        )
    )
    assert report.violations == ()
    assert report.false_finding_texts == ()
    assert report.false_terminations == 0


def test_the_balanced_profile_finds_as_fast_as_it_promises() -> None:
    """Seen crashes within 2 s, unseen ones within 5 s, frozen loops within 4 s."""
    report = simulate(
        SimulationConfig(
            agents=size(10, 16),
            days=0.2,
            seed=6,
            policies=PolicyBook(profile("balanced")),
            faults=Faults.parse("none"),
            ills=(Illness.CRASH_SEEN, Illness.CRASH, Illness.FREEZE),
            failure_every=HOUR,
            quiet_for=HOUR,
        )
    )
    slowest = {kind: found.p99_s for kind, found in report.detections.items()}
    assert report.violations == ()
    assert all(found.missed == found.late == 0 for found in report.detections.values())
    assert (slowest["crash_seen"] or 99) <= 2.0
    assert (slowest["crash"] or 99) <= 5.0
    assert (slowest["freeze"] or 99) <= 4.0


def test_an_agent_that_idles_for_an_hour_is_healthy() -> None:
    watch = Watch(profile("balanced"))
    watch.beat(task_id="t")
    watch.hear(CheckpointSaved(agent_id="a", checkpoint_id="cp", task_id="t"))
    watch.hear(DoingChanged(agent_id="a", doing=Doing.IDLE))
    watch.forget()
    watch.live(START + 60 * MINUTE, every=2.0)
    assert watch.health() is Health.HEALTHY
    assert watch.effects == []


def test_an_agent_in_a_declared_model_call_of_twenty_minutes_is_healthy() -> None:
    watch = Watch(profile("balanced"))
    watch.beat(task_id="t")
    watch.hear(CheckpointSaved(agent_id="a", checkpoint_id="cp", task_id="t"))
    watch.hear(ModelStarted(agent_id="a", call_id="m"))
    watch.forget()
    watch.live(START + 20 * MINUTE, every=2.0)
    watch.hear(ModelFinished(agent_id="a", call_id="m", tokens_out=100))
    watch.live(START + 25 * MINUTE, every=2.0)
    assert watch.health() is Health.HEALTHY
    assert watch.effects == []


@pytest.mark.parametrize("seed", size([1], [1, 2]))
def test_a_third_of_all_beats_lost_and_an_impatient_ladder_end_nobody_who_is_well(seed: int) -> None:
    """Nobody answers an escalation, and each is waited for two seconds."""
    swift = profile("swift")
    ladder = replace(
        swift.ladder, hesitate_for=0.5, nudge_max=1, nudge_every=1.0, escalation_timeout=2.0, save_for=2.0
    )
    report = simulate(
        SimulationConfig(
            agents=12,
            days=0.1,
            seed=seed,
            policies=PolicyBook(replace(swift, ladder=ladder)),
            faults=Faults.parse("loss=0.3"),
            answered=False,
            failure_every=24 * HOUR,
            quiet_for=10 * MINUTE,
        )
    )
    assert report.violations == ()
    assert report.false_terminations == 0


@pytest.mark.parametrize("faults", ["loss=0.001", "loss=0.1"])
def test_intervals_that_the_hub_tells_convict_nobody_healthy(faults: str) -> None:
    """A third of the senders is too old to follow, and orders are lost as often as beats."""
    telling = profile("swarm").with_changes({"silence": {"tell_interval": True, "calm_after": 5 * MINUTE}})
    world = World(
        SimulationConfig(
            agents=size(12, 20),
            days=size(0.2, 0.25),
            seed=3,
            policies=PolicyBook(telling),
            faults=Faults.parse(faults),
            failure_every=12 * HOUR,
            quiet_for=HOUR,
        )
    )
    world.run()
    report = report_of(world)
    assert report.violations == ()
    assert missed_targets(report) == []
    known = [world.monitor.engine.agent(agent.id) for agent in world.agents]
    assert size(3, 5) < sum(bool(agent and agent.told_interval) for agent in known) < len(known)
