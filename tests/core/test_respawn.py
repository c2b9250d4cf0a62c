"""Start an agent anew from its newest checkpoint that holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.effects import (
    Intervention,
    NeedsHuman,
    Recovered,
    Recovery,
    Refusal,
    Respawn,
    Rung,
    Stage,
    StopStranger,
    Terminate,
    VerifyCheckpoint,
)
from lifesigns.core.health import Cause, Health, Phase
from lifesigns.core.policy import HOUR, MINUTE, FleetPolicy, Policy, RespawnPolicy
from lifesigns.core.respawn import Checkpoint, backoff, candidates
from lifesigns.core.signals import (
    AgentLeft,
    CheckpointSaved,
    CheckpointVerified,
    ClearRequested,
    ConnectionClosed,
    ProcessExited,
    RecoveryRequested,
    RespawnFailed,
    RespawnStarted,
    TaskAssigned,
    TerminationDone,
    TerminationRequested,
)
from tests.core.harness import START, Watch

# --- the formulas ------------------------------------------------------------------------------------------


def chain(*links: tuple[str, str | None]) -> list[Checkpoint]:
    return [Checkpoint(id_, parent, "d", float(n), 1) for n, (id_, parent) in enumerate(links)]


@pytest.mark.parametrize(
    ("links", "tried"),
    [
        ([], []),
        ([("1", None)], ["1"]),
        ([("1", None), ("2", "1"), ("3", "2")], ["3", "2", "1"]),
        ([("1", None), ("2", "lost"), ("3", "2")], ["3", "1"]),
        ([("1", None), ("2", "1"), ("3", "lost")], ["2", "1"]),
        ([("7", "6"), ("8", "7")], ["8", "7"]),
        ([("1", None), ("2", "3"), ("3", "1")], ["3", "1"]),
        ([("1", None), ("2", None), ("3", "1")], ["3", "2", "1"]),
    ],
)
def test_checkpoints_are_tried_newest_first_if_their_parent_link_holds(
    links: list[tuple[str, str | None]], tried: list[str]
) -> None:
    assert candidates(chain(*links)) == tried


@pytest.mark.parametrize(
    ("attempt", "wait"), [(1, 0.0), (2, 60.0), (3, 120.0), (4, 240.0), (5, 240.0), (50, 240.0)]
)
def test_the_wait_before_an_attempt_grows_up_to_its_last_step(attempt: int, wait: float) -> None:
    assert backoff(RespawnPolicy(jitter=0.0), attempt, "a") == wait


@given(st.text(max_size=20), st.integers(2, 10), st.floats(0, 0.5))
def test_the_jitter_is_within_its_share_and_always_the_same(key: str, attempt: int, jitter: float) -> None:
    policy = RespawnPolicy(jitter=jitter)
    plain = backoff(RespawnPolicy(jitter=0.0), attempt, key)
    wait = backoff(policy, attempt, key)
    assert plain * (1 - jitter) <= wait <= plain * (1 + jitter)
    assert wait == backoff(policy, attempt, key)


def test_the_jitter_keeps_agents_apart() -> None:
    assert len({backoff(RespawnPolicy(), 2, f"agent-{n}") for n in range(100)}) > 90


# --- from one life to the next -----------------------------------------------------------------------------


class Nursery(Watch):
    """A watch with the few turns of a respawn."""

    def crash(self, incarnation: str | None = None, agent_id: str = "a") -> None:
        self.hear(ProcessExited(agent_id=agent_id, incarnation=incarnation, status=1))

    def save(self, *links: tuple[str, str | None], task_id: str = "t") -> None:
        for checkpoint, parent in links:
            self.hear(
                CheckpointSaved(
                    agent_id="a",
                    checkpoint_id=checkpoint,
                    parent_id=parent,
                    task_id=task_id,
                    digest=f"d-{checkpoint}",
                )
            )

    def verify(self, valid: bool) -> VerifyCheckpoint:
        order = self.orders(VerifyCheckpoint)[-1]
        self.hear(
            CheckpointVerified(
                agent_id="a",
                order_id=order.order_id,
                task_id="t",
                checkpoint_id=order.checkpoint_id,
                valid=valid,
            )
        )
        return order

    def phase(self) -> Phase:
        return self.engine.beliefs.lineages["a"].phase

    def reborn(self) -> str:
        """The life that was ordered last speaks."""
        new = self.orders(Respawn)[-1].new_incarnation
        self.beat(incarnation=new, seq=1)
        return new

    def told(self) -> list[str]:
        return [fact.reason for fact in self.facts(NeedsHuman)]


def living(policy: Policy | None = None) -> Nursery:
    watch = Nursery(policy)
    watch.beat(incarnation="i-1", task_id="t")
    return watch


def test_a_crash_is_followed_by_a_new_life() -> None:
    watch = living()
    watch.crash("i-1")
    assert watch.health() is Health.DISCONNECTED
    assert watch.agent().cause is Cause.CRASH
    order = watch.orders(Respawn)[0]
    assert (order.at, order.task_id, order.incarnation, order.attempt) == (START, "t", "i-1", 1)
    assert order.new_incarnation != "i-1"
    assert watch.reborn() == watch.agent().incarnation
    assert watch.health() is Health.HEALTHY
    life = watch.agent().incarnation
    assert [(fact.stage, fact.old_incarnation, fact.new_incarnation) for fact in watch.facts(Recovery)] == [
        (Recovered.INITIATED, "i-1", order.new_incarnation),
        (Recovered.COMPLETED, "i-1", life),
    ]
    assert watch.phase() is Phase.PROBATION


def test_an_exit_with_status_zero_is_an_end_and_no_crash() -> None:
    watch = living()
    watch.hear(ProcessExited(agent_id="a", incarnation="i-1", status=0))
    watch.run_until(START + HOUR)
    assert watch.health() is Health.TERMINATED
    assert not watch.orders(Respawn)


def test_the_steps_of_a_respawn_are_on_record() -> None:
    watch = living()
    watch.crash("i-1")
    order = watch.orders(Respawn)[0]
    watch.hear(RespawnStarted(agent_id="a", order_id=order.order_id))
    watch.reborn()
    facts = [(f.rung, f.stage, f.id) for f in watch.facts(Intervention)]
    assert facts == [
        (Rung.RESPAWN, Stage.ORDERED, order.order_id),
        (Rung.RESPAWN, Stage.DELIVERED, order.order_id),
        (Rung.RESPAWN, Stage.DONE, order.order_id),
    ]


def test_the_newest_checkpoint_that_holds_is_taken() -> None:
    watch = living()
    watch.save(("1", None), ("2", "1"), ("3", "2"))
    watch.crash("i-1")
    assert watch.verify(False).checkpoint_id == "3"
    assert watch.verify(True).checkpoint_id == "2"
    assert [order.digest for order in watch.orders(VerifyCheckpoint)] == ["d-3", "d-2"]
    order = watch.orders(Respawn)[0]
    assert order.checkpoint_id == "2"
    assert "Done: everything up to checkpoint 2" in order.handoff
    assert not watch.told()


def test_a_broken_link_is_not_even_tried() -> None:
    watch = living()
    watch.save(("1", None), ("2", "lost"))
    watch.crash("i-1")
    assert watch.verify(True).checkpoint_id == "1"


def test_when_no_checkpoint_holds_the_task_begins_anew_and_a_person_is_told() -> None:
    watch = living()
    watch.save(("1", None), ("2", "1"))
    watch.crash("i-1")
    watch.verify(False)
    watch.verify(False)
    assert watch.orders(Respawn)[0].checkpoint_id is None
    assert watch.told() == ["broken chain"]


def test_without_checkpoints_the_task_begins_anew_and_nobody_is_bothered() -> None:
    watch = living()
    watch.crash("i-1")
    assert watch.orders(Respawn)[0].checkpoint_id is None
    assert not watch.told()


def test_a_checkpoint_nobody_can_read_within_a_minute_is_passed_over() -> None:
    watch = living()
    watch.save(("1", None), ("2", "1"))
    watch.crash("i-1")
    watch.run_until(START + 59.99)
    assert len(watch.orders(VerifyCheckpoint)) == 1
    watch.run_until(START + 60)
    assert [order.checkpoint_id for order in watch.orders(VerifyCheckpoint)] == ["2", "1"]


def test_word_of_a_checkpoint_that_was_not_asked_about_changes_nothing() -> None:
    watch = living()
    watch.save(("1", None), ("2", "1"))
    watch.crash("i-1")
    word = CheckpointVerified(agent_id="a", order_id="x", task_id="t", checkpoint_id="1", valid=True)
    watch.hear(word)
    assert not watch.orders(Respawn)


def test_a_new_task_has_its_own_chain() -> None:
    watch = living()
    watch.save(("1", None), ("2", "1"))
    watch.hear(TaskAssigned(agent_id="a", incarnation="i-1", task_id="t-2"))
    watch.crash("i-1")
    assert not watch.orders(VerifyCheckpoint)
    assert watch.orders(Respawn)[0].task_id == "t-2"


def test_the_chain_is_bounded() -> None:
    watch = living()
    watch.save(*[(str(n), str(n - 1) if n else None) for n in range(200)])
    assert len(watch.engine.beliefs.lineages["a"].chain) == 64


def test_the_handoff_says_what_was_done_what_is_open_and_why_it_stopped() -> None:
    watch = living()
    watch.save(("1", None))
    watch.live(START + 120, incarnation="i-1")
    watch.crash("i-1")
    watch.verify(True)
    assert watch.orders(Respawn)[0].handoff.splitlines() == [
        "You continue the work of a previous life of a.",
        "Task: t.",
        "Done: everything up to checkpoint 1, 2 min ago.",
        "Stopped because: The process ended with status 1.",
    ]


# --- once per life -----------------------------------------------------------------------------------------


def test_one_life_is_followed_by_one_respawn_however_often_its_end_is_told() -> None:
    watch = living()
    for at in range(5):
        watch.run_until(START + at)
        watch.crash("i-1")
    watch.run_until(START + 299)
    assert len(watch.orders(Respawn)) == 1
    assert watch.phase() is Phase.STARTING


def test_an_agent_that_comes_back_by_itself_needs_no_respawn() -> None:
    watch = living(Policy().with_changes({"respawn": {"backoff": [60.0], "jitter": 0.0}}))
    watch.crash("i-1")
    watch.reborn()
    watch.live(START + 16 * MINUTE, incarnation=watch.agent().incarnation)
    watch.crash(watch.agent().incarnation)
    watch.run_until(watch.now + 30)
    watch.beat(incarnation="i-9", seq=1)
    assert watch.phase() is Phase.IDLE
    watch.live(watch.now + 10 * MINUTE, incarnation="i-9")
    assert len(watch.orders(Respawn)) == 1


def test_an_agent_without_an_incarnation_is_heard_after_its_respawn() -> None:
    """Its new life was given one and counts from the beginning: neither is a replay."""
    watch = Nursery()
    watch.live(START + 60)
    watch.crash()
    watch.run_until(START + 70)
    watch.reborn()
    assert watch.health() is Health.HEALTHY
    assert watch.phase() is Phase.PROBATION


def test_a_replaced_life_that_still_speaks_is_told_so() -> None:
    watch = living()
    watch.crash("i-1")
    watch.reborn()
    watch.beat(incarnation="i-1", seq=50)
    watch.beat(incarnation="i-1", seq=51)
    assert len(watch.orders(StopStranger)) == 1
    assert [fact.reason for fact in watch.facts(Refusal)] == ["retired incarnation"]
    assert watch.agent().incarnation != "i-1"


def test_who_left_is_not_respawned() -> None:
    watch = living()
    watch.crash("i-1")
    watch.reborn()
    watch.hear(AgentLeft(agent_id="a", incarnation=watch.agent().incarnation))
    watch.run_until(START + HOUR)
    assert len(watch.orders(Respawn)) == 1


def test_a_policy_without_respawn_respawns_nobody() -> None:
    watch = living(Policy().with_changes({"respawn": {"enabled": False}}))
    watch.crash("i-1")
    watch.run_until(START + HOUR)
    assert not watch.orders(Respawn)


# --- limits ------------------------------------------------------------------------------------------------

PLAIN = {"jitter": 0.0, "probation": 10.0}


def die_and_live(watch: Nursery, times: int) -> None:
    """Crash, be respawned, outlive the probation: this often, or until nobody respawns it any more."""
    for _ in range(times):
        respawns = len(watch.orders(Respawn))
        watch.crash(watch.agent().incarnation)
        watch.run_until(watch.now + 241)
        if len(watch.orders(Respawn)) == respawns:
            return
        watch.reborn()
        watch.live(watch.now + 11, incarnation=watch.agent().incarnation)


def test_a_task_is_respawned_three_times_with_growing_waits_and_then_reviewed() -> None:
    watch = living(Policy().with_changes({"respawn": PLAIN}))
    waits = []
    for _ in range(4):
        crashed_at = watch.now
        watch.crash(watch.agent().incarnation)
        watch.run_until(crashed_at + 130)
        if watch.phase() is Phase.REVIEW:
            break
        waits.append(watch.orders(Respawn)[-1].at - crashed_at)
        watch.reborn()
        watch.live(watch.now + 11, incarnation=watch.agent().incarnation)
    assert waits == [0.0, 60.0, 120.0]
    assert watch.phase() is Phase.REVIEW
    assert watch.told() == ["review"]
    assert watch.facts(Recovery)[-1].reason == "respawned 3 times for this task"
    watch.run_until(watch.now + 10 * HOUR)
    assert len(watch.orders(Respawn)) == 3


def test_who_goes_on_by_itself_after_that_and_is_ended_again_is_not_forgotten() -> None:
    """People were called about a life before this one. The simulation found one that was ended, and nobody knew."""
    watch = living(Policy().with_changes({"respawn": {**PLAIN, "per_task_max": 0}}))
    watch.crash("i-1")
    assert watch.phase() is Phase.REVIEW
    watch.live(watch.now + MINUTE, incarnation="by-itself")
    assert watch.phase() is Phase.IDLE, "there is nobody to replace"
    watch.crash("by-itself")
    assert watch.phase() is Phase.REVIEW
    assert watch.told() == ["review", "review"]
    assert not watch.orders(Respawn)


def test_who_is_quarantined_and_ends_again_is_told_once_more() -> None:
    """Only a person lifts a quarantine; but whoever lives in it is not forgotten."""
    watch = living(Policy().with_changes({"respawn": {**PLAIN, "crash_loop_max": 0}}))
    watch.crash("i-1")
    watch.live(watch.now + MINUTE, incarnation="by-itself")
    assert watch.phase() is Phase.QUARANTINED
    watch.crash("by-itself")
    watch.hear(ProcessExited(agent_id="a", incarnation="by-itself", status=1))
    assert watch.told() == ["quarantined", "quarantined"]
    assert not watch.orders(Respawn)


def test_a_new_task_has_its_own_three() -> None:
    watch = living(Policy().with_changes({"respawn": {**PLAIN, "per_task_max": 1}}))
    die_and_live(watch, 1)
    watch.hear(TaskAssigned(agent_id="a", task_id="t-2"))
    die_and_live(watch, 1)
    assert len(watch.orders(Respawn)) == 2
    die_and_live(watch, 1)
    assert len(watch.orders(Respawn)) == 2
    assert watch.phase() is Phase.REVIEW


def test_an_agent_without_a_task_is_not_limited_by_one() -> None:
    """Three crashes in three days are no reason for a review, if each time it lived well in between."""
    watch = Nursery(Policy().with_changes({"respawn": {"jitter": 0.0}}))
    watch.beat(incarnation="i-1")
    for _ in range(5):
        watch.crash(watch.agent().incarnation)
        watch.run_until(watch.now + 241)
        watch.reborn()
        watch.live(watch.now + 2 * HOUR, incarnation=watch.agent().incarnation)
    assert len(watch.orders(Respawn)) == 5
    assert not watch.told()


def test_five_an_hour_are_enough() -> None:
    watch = living(
        Policy().with_changes(
            {"respawn": {**PLAIN, "per_task_max": 100, "crash_loop_max": 100, "backoff": [1.0]}}
        )
    )
    die_and_live(watch, 10)
    assert len(watch.orders(Respawn)) == 5
    assert watch.phase() is Phase.REVIEW
    assert watch.facts(Recovery)[-1].reason == "respawned 5 times within an hour"


def test_a_crash_loop_quarantines_until_a_person_clears_it() -> None:
    policy = {**PLAIN, "per_task_max": 100, "per_hour_max": 100, "backoff": [1.0], "crash_loop_max": 3}
    watch = living(Policy().with_changes({"respawn": policy}))
    die_and_live(watch, 10)
    assert len(watch.orders(Respawn)) == 3
    assert watch.phase() is Phase.QUARANTINED
    assert watch.told() == ["quarantined"]
    watch.run_until(watch.now + 5 * HOUR)
    assert len(watch.orders(Respawn)) == 3
    watch.hear(ClearRequested(agent_id="a", by="eva"))
    assert watch.phase() is Phase.IDLE
    watch.beat(incarnation="i-mended", seq=1)
    watch.crash("i-mended")
    watch.run_until(watch.now + 10)
    assert len(watch.orders(Respawn)) == 4


def test_quarantine_outlives_the_memory_of_the_agent() -> None:
    """Until a person clears it: that a day passed is no person's word."""
    policy = {**PLAIN, "per_task_max": 100, "per_hour_max": 100, "backoff": [1.0], "crash_loop_max": 3}
    watch = living(Policy().with_changes({"respawn": policy}))
    die_and_live(watch, 10)
    assert watch.phase() is Phase.QUARANTINED
    watch.run_until(watch.now + 25 * HOUR)
    watch.beat(incarnation="i-9", seq=1)
    watch.crash("i-9")
    watch.run_until(watch.now + 60)
    assert len(watch.orders(Respawn)) == 3


def test_a_failure_under_close_watch_is_a_persons_matter() -> None:
    watch = living()
    watch.crash("i-1")
    new = watch.reborn()
    watch.live(START + 15 * MINUTE - 1, incarnation=new)
    watch.crash(new)
    watch.run_until(START + 5 * HOUR)
    assert len(watch.orders(Respawn)) == 1
    assert watch.phase() is Phase.REVIEW
    assert watch.told() == ["review"]


def test_after_the_close_watch_a_failure_is_one_like_any_other() -> None:
    watch = living()
    watch.crash("i-1")
    new = watch.reborn()
    watch.live(START + 15 * MINUTE, incarnation=new)
    watch.crash(new)
    watch.run_until(watch.now + 67)
    assert len(watch.orders(Respawn)) == 2


def test_who_falls_silent_under_close_watch_failed_under_it() -> None:
    """However long it then takes to be sure of it and to end it."""
    watch = living()
    watch.beat("b")
    watch.crash("i-1")
    new = watch.reborn()
    watch.live(START + 5 * MINUTE, "a", incarnation=new)
    watch.live(START + 30 * MINUTE, "b")
    order = watch.orders(Terminate, "a")[0]
    watch.hear(TerminationDone(agent_id="a", order_id=order.order_id))
    watch.live(START + 60 * MINUTE, "b")
    assert len(watch.orders(Respawn)) == 1
    assert watch.phase() is Phase.REVIEW


def test_a_start_that_fails_is_tried_again_after_a_wait() -> None:
    watch = living(Policy().with_changes({"respawn": {"jitter": 0.0}}))
    watch.crash("i-1")
    first = watch.orders(Respawn)[0]
    watch.hear(RespawnFailed(agent_id="a", order_id=first.order_id, reason="no image"), START + 5)
    watch.run_until(START + 64.99)
    assert len(watch.orders(Respawn)) == 1
    watch.run_until(START + 65)
    second = watch.orders(Respawn)[1]
    assert second.order_id != first.order_id
    assert (second.attempt, second.new_incarnation == first.new_incarnation) == (2, False)


def test_a_new_life_that_does_not_speak_in_five_minutes_has_failed() -> None:
    watch = living(Policy().with_changes({"respawn": {"jitter": 0.0}}))
    watch.crash("i-1")
    watch.run_until(START + 5 * MINUTE + 59.99)
    assert len(watch.orders(Respawn)) == 1
    watch.run_until(START + 6 * MINUTE)
    assert len(watch.orders(Respawn)) == 2


def test_a_new_life_that_dies_before_its_first_word_is_not_waited_for() -> None:
    """Its process ended: that is known at once, not after the time it had to speak."""
    watch = living(Policy().with_changes({"respawn": {"jitter": 0.0}}))
    watch.crash("i-1")
    order = watch.orders(Respawn)[0]
    watch.hear(RespawnStarted(agent_id="a", order_id=order.order_id))
    watch.hear(ProcessExited(agent_id="a", incarnation=order.new_incarnation, status=1), START + 2)
    watch.run_until(START + 62)
    assert len(watch.orders(Respawn)) == 2


def test_respawns_keep_to_the_fleets_limit() -> None:
    watch = Nursery(fleet=FleetPolicy(canary_every=0, respawns_per_minute=2, acted_share=1.0, brake_count=99))
    for n in range(5):
        watch.beat(f"w-{n}", incarnation="i")
    for n in range(5):
        watch.crash("i", f"w-{n}")
    watch.run_until(START + 59.9)
    assert len(watch.orders(Respawn)) == 2
    watch.run_until(START + 61)
    assert len(watch.orders(Respawn)) == 4


# --- people ------------------------------------------------------------------------------------------------


def test_a_person_can_have_a_task_recovered_beyond_the_limits() -> None:
    watch = living(Policy().with_changes({"respawn": {"per_task_max": 0}}))
    watch.crash("i-1")
    assert watch.phase() is Phase.REVIEW
    watch.hear(RecoveryRequested(agent_id="a", by="eva", task_id="t"), START + 60)
    assert not watch.agent().alive
    assert [order.at for order in watch.orders(Respawn)] == [START + 60]


def test_a_living_agent_cannot_be_recovered() -> None:
    watch = living()
    watch.hear(RecoveryRequested(agent_id="a", by="eva", task_id="t"))
    assert not watch.orders(Respawn)
    assert [fact.reason for fact in watch.facts(Refusal)] == [
        "is alive: terminate it before its task is recovered"
    ]


def test_an_exit_explains_a_disconnection_that_is_known_already() -> None:
    watch = living()
    watch.hear(ConnectionClosed(agent_id="a", incarnation="i-1"))
    watch.run_until(START + 20)
    assert watch.health() is Health.DISCONNECTED
    watch.crash("i-1")
    assert watch.agent().cause is Cause.CRASH
    watch.run_until(START + 21)
    assert len(watch.orders(Respawn)) == 1


def test_who_leaves_because_it_was_told_to_is_ended_and_followed_by_another() -> None:
    """A child says `left` on its way out, before its supervisor says `stopped`: both are the same end, and it counts once."""
    watch = Watch()
    watch.beat(incarnation="one")
    watch.hear(TerminationRequested(agent_id="a", incarnation="one", by="me", reason="enough", respawn=True))
    (stop,) = watch.orders(Terminate)
    watch.hear(AgentLeft(agent_id="a", incarnation="one", reason="SIGTERM"))
    watch.hear(TerminationDone(agent_id="a", incarnation="one", order_id=stop.order_id))
    done = [fact for fact in watch.facts(Intervention) if fact.stage is Stage.DONE]
    assert [fact.id for fact in done] == [stop.order_id]
    assert len(watch.orders(Respawn)) == 1


SELF_TOLD = ProcessExited(agent_id="a", incarnation="i-1", detail="KeyError: 'x'")


def test_after_a_crash_that_only_the_agent_told_its_process_has_time_to_go_on() -> None:
    """Who catches the error outside of the block begins a new life in the same process: no second one beside it."""
    watch = living()
    watch.hear(SELF_TOLD)
    watch.run_until(START + 9)
    assert not watch.orders(Respawn)
    watch.beat(incarnation="i-2")
    watch.live(START + HOUR, incarnation="i-2")
    assert not watch.orders(Respawn)
    assert watch.engine.beliefs.lineages["a"].attempts == 0  # It was not we who started it.


def test_a_task_that_begins_meanwhile_does_not_get_one_respawn_more() -> None:
    watch = living()
    watch.hear(SELF_TOLD)
    watch.engine.beliefs.lineages["a"].attempts = 0  # As a new task has it.
    watch.beat(incarnation="i-2", at=START + 2)
    assert watch.engine.beliefs.lineages["a"].attempts == 0


def test_if_its_process_does_not_go_on_it_is_respawned_after_that() -> None:
    watch = living()
    watch.hear(SELF_TOLD)
    watch.run_until(START + 10.5)
    assert len(watch.orders(Respawn)) == 1


def test_a_supervisors_word_ends_the_hesitation_and_nothing_else() -> None:
    """It has seen the process end. A backoff that is due is waited for all the same."""
    watch = living()
    watch.hear(SELF_TOLD)
    watch.hear(ProcessExited(agent_id="a", incarnation="i-1", status=1), START + 1)
    watch.run_until(START + 1.5)
    assert len(watch.orders(Respawn)) == 1
    second = living(Policy().with_changes({"respawn": {"probation": 1.0}}))
    second.crash("i-1")
    second.run_until(START + 1)
    life = second.reborn()
    second.live(START + 30, incarnation=life, task_id="t")
    second.hear(ProcessExited(agent_id="a", incarnation=life, detail="again"))
    second.crash(life)
    second.run_until(START + 60)
    assert len(second.orders(Respawn)) == 1
    second.run_until(START + 120)
    assert len(second.orders(Respawn)) == 2


def test_a_crash_that_the_agent_tells_itself_and_its_supervisor_again_is_one_crash() -> None:
    """An exception leaves the agent's block, then its process ends with status 1: one end, one new life."""
    watch = living()
    watch.hear(ProcessExited(agent_id="a", incarnation="i-1", detail="KeyError: 'x'"))
    assert watch.health() is Health.DISCONNECTED
    assert watch.agent().cause is Cause.CRASH
    assert "It crashed. KeyError: 'x'" in [finding.text for finding in watch.agent().findings]
    watch.crash("i-1")
    watch.run_until(START + 1)
    assert len(watch.orders(Respawn)) == 1
    assert watch.reborn() == watch.agent().incarnation
    watch.crash("i-1")  # said once more, late: of a life that is over
    assert watch.health() is Health.HEALTHY
