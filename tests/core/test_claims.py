"""An agent's hold on a task: a lease that its beats renew, with a token that only grows."""

import pytest

from lifesigns.core.effects import ClaimChanged, ClaimStage, Refusal, ReleaseClaim, SendPing, Terminate
from lifesigns.core.engine import Engine
from lifesigns.core.health import Health
from lifesigns.core.policy import MINUTE, FleetPolicy
from lifesigns.core.signals import (
    ActivitySeen,
    AgentLeft,
    AgentRegistered,
    BeatReceived,
    Signal,
    TaskClaimed,
    TaskDone,
    TaskReleased,
    TerminationDone,
    TerminationRequested,
)
from tests.core.harness import START, Watch

LEASE = 10 * MINUTE


def holding(beats: bool = True) -> Watch:
    """`a` holds `t`; `b` beats along so that `a` is not alone."""
    watch = Watch()
    if beats:
        watch.beat()
    watch.hear(TaskClaimed(agent_id="a", task_id="t"))
    return watch


def claims(watch: Watch) -> list[tuple[str, ClaimStage, int]]:
    return [(fact.agent_id, fact.stage, fact.token) for fact in watch.facts(ClaimChanged)]


def checks(watch: Watch) -> list[float]:
    return [order.at for order in watch.orders(SendPing) if "claim" in order.suspicion]


def test_a_free_task_is_granted_with_a_token() -> None:
    watch = holding()
    assert claims(watch) == [("a", ClaimStage.GRANTED, 1)]
    assert watch.agent().claims == ("t",)


def test_a_held_task_is_refused_to_another_who_learns_who_holds_it() -> None:
    watch = holding()
    watch.hear(TaskClaimed(agent_id="b", task_id="t"), START + 5)
    assert claims(watch)[1:] == [("b", ClaimStage.REFUSED, 1)]
    assert watch.facts(ClaimChanged)[-1].reason == "held by a since 5.0 s"
    assert watch.agent("b").claims == ()


def test_claiming_again_what_one_holds_changes_nothing() -> None:
    watch = holding()
    watch.hear(TaskClaimed(agent_id="a", task_id="t"))
    assert claims(watch) == [("a", ClaimStage.GRANTED, 1)] * 2
    assert watch.agent().claims == ("t",)


def test_tokens_only_ever_grow() -> None:
    watch = holding()
    watch.hear(TaskReleased(agent_id="a", task_id="t", token=1))
    watch.hear(TaskClaimed(agent_id="b", task_id="t"))
    watch.hear(TaskClaimed(agent_id="a", task_id="other"))
    granted = [fact.token for fact in watch.facts(ClaimChanged) if fact.stage is ClaimStage.GRANTED]
    assert granted == [1, 2, 3]


def test_a_task_given_back_is_free() -> None:
    watch = holding()
    watch.hear(TaskReleased(agent_id="a", task_id="t", token=1))
    assert claims(watch)[-1] == ("a", ClaimStage.RELEASED, 1)
    assert not watch.orders(ReleaseClaim)
    watch.run_until(START + 3600)
    assert not checks(watch)


def test_a_wrong_token_gives_nothing_back() -> None:
    watch = holding()
    watch.hear(TaskReleased(agent_id="a", task_id="t", token=2))
    watch.hear(TaskReleased(agent_id="b", task_id="t", token=1))
    assert watch.agent().claims == ("t",)
    assert [fact.agent_id for fact in watch.facts(Refusal)] == ["a", "b"]


def test_beats_renew_the_lease() -> None:
    watch = holding()
    watch.live(START + 6 * 3600)
    assert not checks(watch)
    assert watch.agent().claims == ("t",)


def test_any_sign_of_life_renews_the_lease() -> None:
    watch = holding()
    for n in range(1, 8):
        watch.hear(ActivitySeen(agent_id="a"), START + n * 9 * MINUTE)
    assert not checks(watch)


def test_a_stale_claim_is_double_checked_and_then_released_on_record() -> None:
    watch = holding()
    watch.run_until(START + LEASE - 0.01)
    assert not checks(watch)
    watch.run_until(START + LEASE)
    assert checks(watch) == [START + LEASE]
    watch.run_until(START + LEASE + 30 - 0.01)
    assert watch.agent().claims == ("t",)
    watch.run_until(START + LEASE + 30)
    assert watch.agent().claims == ()
    assert claims(watch)[-1] == ("a", ClaimStage.RELEASED, 1)
    order = watch.orders(ReleaseClaim)[0]
    assert (order.at, order.task_id, order.token) == (START + LEASE + 30, "t", 1)
    assert order.comment == (
        "Released from `a`: a was last heard 10 min ago. The task is back in the queue and free to be claimed."
    )


def test_an_answer_to_the_double_check_keeps_the_claim() -> None:
    watch = holding()
    watch.hear(ActivitySeen(agent_id="a"), START + LEASE + 29)
    watch.run_until(START + LEASE + 29 + LEASE - 0.01)
    assert watch.agent().claims == ("t",)
    assert len(checks(watch)) == 1
    watch.run_until(START + LEASE + 29 + LEASE)
    assert len(checks(watch)) == 2


@pytest.mark.parametrize("word", [BeatReceived("a"), ActivitySeen(agent_id="a")], ids=["beat", "report"])
def test_the_first_word_after_a_claim_ends_the_grace(word: Signal) -> None:
    """The claim was armed for grace and lease together: who claims, speaks once and dies holds its task no longer than others."""
    watch = holding(beats=False)
    watch.live(START + 5, "b")
    watch.hear(word, START + 5)
    watch.live(START + 5 + LEASE - 1, "b")
    assert not checks(watch)
    watch.live(START + 5 + LEASE + 1, "b")
    assert checks(watch) == [START + 5 + LEASE]


def test_a_shorter_lease_counts_for_what_is_held() -> None:
    watch = holding()
    watch.hear(AgentRegistered(agent_id="a", policy={"claim": {"lease": 60.0}}))
    watch.live(START + 61, "b")
    assert checks(watch) == [START + 60]


def test_a_claim_without_any_beat_yet_has_a_grace() -> None:
    watch = holding(beats=False)
    watch.run_until(START + LEASE + 5 * MINUTE - 0.01)
    assert not checks(watch)
    watch.run_until(START + LEASE + 5 * MINUTE + 30)
    assert checks(watch) == [START + LEASE + 5 * MINUTE]
    assert watch.agent().claims == ()


def test_a_released_task_can_be_claimed_by_another_with_a_higher_token() -> None:
    watch = holding()
    watch.run_until(START + LEASE + 30)
    watch.hear(TaskClaimed(agent_id="b", task_id="t"))
    assert claims(watch)[-1] == ("b", ClaimStage.GRANTED, 2)


def test_who_leaves_leaves_nothing_held() -> None:
    watch = holding()
    watch.hear(AgentLeft(agent_id="a", reason="done for today"))
    assert watch.agent().claims == ()
    assert [order.task_id for order in watch.orders(ReleaseClaim)] == ["t"]
    assert "left: done for today" in watch.orders(ReleaseClaim)[0].comment


def test_a_terminated_agent_holds_nothing() -> None:
    watch = holding()
    watch.hear(TerminationRequested(agent_id="a", by="eva"))
    assert watch.agent().claims == ("t",)
    watch.hear(TerminationDone(agent_id="a", order_id=watch.orders(Terminate)[0].order_id))
    assert watch.health() is Health.TERMINATED
    assert watch.agent().claims == ()
    assert len(watch.orders(ReleaseClaim)) == 1


def test_a_new_life_does_not_inherit_claims() -> None:
    watch = Watch()
    watch.beat(incarnation="i-1")
    watch.hear(TaskClaimed(agent_id="a", incarnation="i-1", task_id="t"))
    watch.beat(incarnation="i-2")
    assert watch.agent().claims == ()
    watch.hear(TaskClaimed(agent_id="a", incarnation="i-2", task_id="t"))
    assert claims(watch)[-1] == ("a", ClaimStage.GRANTED, 2)


def test_a_finished_task_is_no_longer_held() -> None:
    watch = holding()
    watch.hear(TaskDone(agent_id="a", task_id="t"))
    assert claims(watch)[-1] == ("a", ClaimStage.RELEASED, 1)
    assert not watch.orders(ReleaseClaim)


def test_a_claim_is_not_released_for_the_time_we_slept() -> None:
    watch = holding()
    watch.run_until(START + 60)
    watch.jump_to(START + 60 + LEASE)
    watch.run_until(START + LEASE + LEASE - 0.01)
    assert not checks(watch)


def test_a_claim_that_was_just_double_checked_is_not_released_at_a_restart() -> None:
    """The answer went to nobody: the holder gets the rest of the time to give it."""
    watch = Watch()
    watch.hear(TaskClaimed(task_id="t", agent_id="a"))
    policy = watch.engine.policy_of(watch.agent("a")).claim
    asked_at = START + policy.grace + policy.lease
    watch.run_until(asked_at + policy.check_wait / 2)
    assert not watch.facts(ClaimChanged)[1:]
    restored = Engine.restore(watch.engine.snapshot(), asked_at + 100, fleet=FleetPolicy(canary_every=0))
    again = Watch(engine=restored, at=asked_at + 100)
    again.run_until(asked_at + 100 + policy.check_wait / 2 - 1)
    assert not again.orders(ReleaseClaim)
    again.run_until(asked_at + 100 + policy.check_wait)
    assert len(again.orders(ReleaseClaim)) == 1


def test_nobody_holds_without_bound() -> None:
    watch = Watch()
    watch.beat()
    for n in range(300):
        watch.hear(TaskClaimed(agent_id="a", task_id=f"t-{n}"))
    assert len(watch.agent().claims) == 256
    assert [fact.reason for fact in watch.facts(Refusal)] == ["more than 256 claims"]
