"""Recovery attempts have a breaker, as calls have: it opens by failures, tries one at a time, and people reset it."""

from lifesigns.core.effects import Intervention, Respawn, Rung, Stage
from lifesigns.core.health import Phase
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.recovery_breaker import NAME, seen_as_breaker
from lifesigns.core.signals import (
    BreakerAct,
    BreakerState,
    BreakerTurnRequested,
    ProcessExited,
    RespawnFailed,
)
from tests.core.harness import Watch

POLICY = Policy().with_changes({"respawn": {"jitter": 0.0, "crash_loop_max": 99}})


def nursery() -> Watch:
    watch = Watch(POLICY, fleet=FleetPolicy(canary_every=0.0, acted_share=1.0, brake_count=99))
    watch.beat(incarnation="one", task_id="t")
    return watch


def state(watch: Watch) -> BreakerState | None:
    lineage = watch.engine.beliefs.lineages.get("a")
    seen = None if lineage is None else seen_as_breaker(lineage)
    return None if seen is None else seen.state


def fail_to_start(watch: Watch) -> None:
    order = watch.orders(Respawn)[-1]
    watch.hear(RespawnFailed(agent_id="a", order_id=order.order_id, reason="no such file"))


def turn(watch: Watch, act: BreakerAct = BreakerAct.RESET) -> list[tuple[Stage, str]]:
    watch.forget()
    watch.hear(BreakerTurnRequested(agent_id="a", by="ada", name=NAME, act=act, reason="the file is back"))
    steps = [one for one in watch.facts(Intervention) if one.rung is Rung.BREAKER]
    assert len({one.id for one in steps}) <= 1
    return [(one.stage, one.text) for one in steps]


def exhausted() -> Watch:
    """Three attempts failed: a person decides."""
    watch = nursery()
    watch.hear(ProcessExited(agent_id="a", incarnation="one", status=1))
    for wait in (0, 70, 130):
        watch.run_until(watch.now + wait)
        fail_to_start(watch)
    return watch


def test_an_agent_that_was_never_recovered_has_no_such_breaker() -> None:
    assert state(nursery()) is None


def test_an_attempt_is_on_trial_a_failed_one_opens_it_for_the_backoff_and_the_last_one_for_good() -> None:
    watch = nursery()
    watch.hear(ProcessExited(agent_id="a", incarnation="one", status=1))
    assert state(watch) is BreakerState.HALF_OPEN
    fail_to_start(watch)
    lineage = watch.engine.beliefs.lineages["a"]
    seen = seen_as_breaker(lineage)
    assert seen is not None
    assert (seen.state, seen.failures, seen.half_open_at) == (BreakerState.OPEN, 1, watch.now + 60.0)
    watch.run_until(watch.now + 59.9)
    assert state(watch) is BreakerState.OPEN
    watch.run_until(watch.now + 0.2)
    assert state(watch) is BreakerState.HALF_OPEN
    fail_to_start(watch)
    watch.run_until(watch.now + 121)
    fail_to_start(watch)
    assert (lineage.phase, state(watch)) == (Phase.REVIEW, BreakerState.FORCED_OPEN)


def test_it_is_closed_when_a_new_life_is_off_probation() -> None:
    watch = nursery()
    watch.hear(ProcessExited(agent_id="a", incarnation="one", status=1))
    life = watch.orders(Respawn)[-1].new_incarnation
    watch.beat(incarnation=life, task_id="t", seq=1)
    assert state(watch) is BreakerState.HALF_OPEN
    watch.live(watch.now + POLICY.respawn.probation + 10, incarnation=life, task_id="t")
    assert state(watch) is BreakerState.CLOSED


def test_a_person_resets_it_and_the_next_attempt_follows_at_once() -> None:
    watch = exhausted()
    text = f"reset breaker {NAME!r}: the file is back"
    assert turn(watch) == [(Stage.ORDERED, text), (Stage.DONE, text)]
    assert len(watch.orders(Respawn)) == 1
    assert watch.engine.beliefs.lineages["a"].failures == 0


def test_during_the_backoff_a_reset_makes_the_attempt_now() -> None:
    watch = nursery()
    watch.hear(ProcessExited(agent_id="a", incarnation="one", status=1))
    fail_to_start(watch)
    assert turn(watch)[-1][0] is Stage.DONE
    assert len(watch.orders(Respawn)) == 1


def test_it_is_not_opened_by_hand() -> None:
    watch = exhausted()
    assert [stage for stage, _ in turn(watch, BreakerAct.OPEN)] == [Stage.ORDERED, Stage.FAILED]
    assert not watch.orders(Respawn)
    assert state(watch) is BreakerState.FORCED_OPEN
