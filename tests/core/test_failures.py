"""Every failure is transient, recoverable or terminal, with a reason, and the class decides who may replace the agent."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lifesigns.core.effects import FailureClassified, Flip, Intervention, Respawn
from lifesigns.core.failures import OFTEN, RECOVERABLE_FOR, TRANSIENT_FOR, classify
from lifesigns.core.health import Cause, FailureClass, Health
from lifesigns.core.policy import HOUR, MINUTE, Policy, RespawnPolicy
from lifesigns.core.signals import AgentLeft, ProcessExited, RecoveryRequested
from tests.core.harness import START, Watch

TRANSIENT, RECOVERABLE, TERMINAL = FailureClass


@pytest.mark.parametrize(
    ("cause", "down_for", "known", "expected"),
    [
        (Cause.UNKNOWN, 0.0, {}, TRANSIENT),
        (Cause.UNKNOWN, 5 * MINUTE - 0.01, {}, TRANSIENT),
        (Cause.UNKNOWN, 5 * MINUTE, {}, RECOVERABLE),
        (Cause.UNKNOWN, 0.0, {"conclusive": True}, TRANSIENT),
        (None, 0.0, {}, TRANSIENT),
        (None, 0.0, {"conclusive": True}, RECOVERABLE),
        (None, 3 * HOUR, {}, RECOVERABLE),
        (Cause.UNKNOWN, 0.0, {"within_hour": OFTEN - 1}, TRANSIENT),
        (Cause.UNKNOWN, 0.0, {"within_hour": OFTEN}, RECOVERABLE),
        (Cause.PARTITION, 60.0, {"failed_recoveries": 2}, TRANSIENT),
        (Cause.PARTITION, 2 * HOUR - 0.01, {}, RECOVERABLE),
        (Cause.UNKNOWN, 2 * HOUR, {}, TERMINAL),
        (Cause.UNKNOWN, 2 * HOUR, {"gone": True}, RECOVERABLE),
        (Cause.CRASH, 0.0, {}, RECOVERABLE),
        (Cause.CRASH, 0.0, {"gone": True, "not_restartable": "no"}, TERMINAL),
        (Cause.UNKNOWN, 0.0, {"not_restartable": "no"}, TRANSIENT),
        (Cause.FREEZE, 3 * HOUR, {"failed_recoveries": 2}, RECOVERABLE),
        (Cause.CRASH, 0.0, {"failed_recoveries": 3}, TERMINAL),
        (Cause.UNKNOWN, 0.0, {"failed_recoveries": 3}, TERMINAL),
        (Cause.UNKNOWN, 0.0, {"failed_recoveries": 3, "recoveries_max": 4}, TRANSIENT),
    ],
)
def test_failures_are_transient_recoverable_or_terminal(
    cause: Cause | None, down_for: float, known: dict[str, Any], expected: FailureClass
) -> None:
    found, reason = classify(cause, down_for, **known)
    assert found is expected
    assert reason


def silent(policy: Policy | None = None) -> Watch:
    """An agent that beat for a while and is silent since `watch.now`; another one goes on all the time."""
    watch = Watch(policy)
    watch.beat("a")
    watch.beat("b")
    watch.live(START + 60, "a", "b")
    return watch


def test_silence_is_transient_then_recoverable_then_terminal_at_its_limits_of_time() -> None:
    """The facts carry the moment they fell due, and the agent its class at any time between."""
    watch = silent()
    heard_at = watch.now
    watch.live(heard_at + TRANSIENT_FOR - 1, "b")
    (flip,) = (flip for flip in watch.facts(Flip, "a") if flip.now is Health.DISCONNECTED)
    assert (flip.failure_class, bool(flip.class_reason)) == (TRANSIENT, True)
    assert watch.agent().failure_class is TRANSIENT
    watch.live(heard_at + RECOVERABLE_FOR - 1, "b", every=25.0)
    assert watch.agent().failure_class is RECOVERABLE
    watch.live(heard_at + RECOVERABLE_FOR + 30, "b", every=25.0)
    changed = [(fact.at - heard_at, fact.was, fact.now) for fact in watch.facts(FailureClassified, "a")]
    assert changed == [(TRANSIENT_FOR, TRANSIENT, RECOVERABLE), (RECOVERABLE_FOR, RECOVERABLE, TERMINAL)]
    watch.beat("a")
    assert (watch.health(), watch.agent().failure) == (Health.HEALTHY, None)


def test_our_own_absence_makes_no_failure_worse() -> None:
    """A hub that slept for hours learns nothing in that time: the limits count the time in which it looked."""
    watch = silent()
    watch.live(watch.now + 60, "b")
    assert watch.agent().failure_class is TRANSIENT
    watch.jump_to(watch.now + 3 * HOUR)
    assert watch.agent().failure_class is TRANSIENT


def test_the_third_failure_within_an_hour_is_not_isolated() -> None:
    watch = silent()
    classes: list[FailureClass | None] = []
    for _ in range(OFTEN):
        watch.live(watch.now + 60, "b")
        assert watch.health() is Health.DISCONNECTED
        classes.append(watch.agent().failure_class)
        watch.beat("a")
        watch.live(watch.now + 60, "a", "b")
    assert classes == [TRANSIENT, TRANSIENT, RECOVERABLE]
    watch.live(watch.now + HOUR, "a", "b", every=25.0)
    watch.live(watch.now + 3 * MINUTE, "b")
    assert watch.agent().failure_class is TRANSIENT


def test_a_crash_is_recoverable_and_terminal_when_nothing_starts_the_agent_anew() -> None:
    watch = silent()
    watch.hear(ProcessExited(agent_id="a", status=1))
    assert watch.agent().failure_class is RECOVERABLE
    watch = silent(replace(Policy(), respawn=RespawnPolicy(enabled=False)))
    watch.hear(ProcessExited(agent_id="a", status=1))
    assert watch.agent().failure_class is TERMINAL
    assert not watch.orders(Respawn)


def test_a_crash_loop_ends_terminal_and_only_a_person_has_it_started_anew() -> None:
    """People are asked about it once, by the failed recovery: the change of class says so."""
    watch = silent(
        replace(Policy(), respawn=RespawnPolicy(per_task_max=1, backoff=(1.0,), start_timeout=10.0))
    )
    watch.hear(ProcessExited(agent_id="a", status=1))
    watch.live(watch.now + 60, "b")
    assert len(watch.orders(Respawn)) == 1
    assert watch.agent().failure_class is TERMINAL
    (changed,) = watch.facts(FailureClassified, "a")
    assert (changed.now, changed.asked) == (TERMINAL, True)
    ordered = [step.failure_class for step in watch.facts(Intervention, "a")]
    assert ordered[0] is RECOVERABLE
    watch.hear(RecoveryRequested(agent_id="a", task_id="", by="ann"))
    watch.live(watch.now + 5, "b", every=1.0)
    assert len(watch.orders(Respawn)) == 2


def test_an_agent_that_leaves_has_no_failure() -> None:
    watch = silent()
    watch.hear(AgentLeft(agent_id="a"))
    assert watch.agent().failure is None
    assert watch.facts(Flip, "a")[-1].failure_class is None


def test_after_three_failed_recoveries_a_person_decides_even_if_the_agent_came_back_by_itself_each_time() -> (
    None
):
    """Found by the law of approval in a simulated day: a new task that begins on probation counts its tries anew, the
    failure of that recovery counts for it, and so three failures came before three tries."""
    watch = silent(replace(Policy(), respawn=RespawnPolicy(jitter=0.0, crash_loop_max=50, per_hour_max=50)))
    watch.beat("a", incarnation="life-0", task_id="before")
    for life in range(1, 4):
        watch.hear(ProcessExited(agent_id="a", status=1))
        watch.live(watch.now + 250, "b")
        watch.beat("a", incarnation=watch.orders(Respawn)[-1].new_incarnation, task_id="t")
        watch.hear(ProcessExited(agent_id="a", status=1))  # On probation: the recovery failed.
        watch.live(watch.now + 60, "b")
        watch.beat("a", incarnation=f"own-{life}", task_id="t")
    respawned = len(watch.orders(Respawn))
    watch.hear(ProcessExited(agent_id="a", status=1))
    watch.live(watch.now + 10 * MINUTE, "b")
    assert watch.agent().failure_class is TERMINAL
    assert len(watch.orders(Respawn)) == respawned
