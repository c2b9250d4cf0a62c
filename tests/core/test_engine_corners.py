"""Corners where two rules meet."""

import pytest

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.core.engine import Engine
from lifesigns.core.health import Doing, Health
from lifesigns.core.policy import HOUR, MINUTE, FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.errors import PolicyError
from tests.core.harness import START, Watch


@pytest.mark.parametrize(
    ("section", "key", "most"),
    [
        ("erring", "rate_window", 1000),
        ("looping", "recent_window", 1000),
        ("looping", "cycle_length_max", 32),
        ("respawn", "chain_max", 1000),
        ("message", "open_max", 100_000),
    ],
)
def test_a_policy_cannot_ask_for_unbounded_memory(section: str, key: str, most: int) -> None:
    """An agent may bring its own policy: a number in it must not be a bomb."""
    Policy().with_changes({section: {key: most}})
    with pytest.raises(PolicyError, match=f"{section}.{key}"):
        Policy().with_changes({section: {key: most + 1}})


def test_an_own_policy_that_a_new_configuration_makes_impossible_does_not_stop_the_hub() -> None:
    watch = Watch(profile("balanced"))
    watch.hear(s.AgentRegistered(agent_id="a", policy={"silence": {"timeout": 9.0}}))
    watch.beat()
    now = watch.now + 10
    engine = Engine.restore(
        watch.engine.snapshot(), now, PolicyBook(profile("fleet")), FleetPolicy(canary_every=0)
    )
    effects = engine.advance(now)
    assert any(isinstance(effect, e.Refusal) and "silence.timeout" in effect.reason for effect in effects)
    agent = engine.agent("a")
    assert agent is not None
    assert engine.policy_of(agent) == PolicyBook(profile("fleet")).default


def test_the_warning_of_an_hourly_cap_ends_with_its_hour() -> None:
    """Also for an agent that spends nothing more."""
    watch = Watch(Policy().with_changes({"spending": {"hour_tokens_max": 1000}}))
    watch.beat()
    watch.hear(s.ModelFinished(agent_id="a", tokens_in=850))
    assert watch.health() is Health.DEGRADED
    watch.live(START + HOUR - 1)
    assert watch.health() is Health.DEGRADED
    watch.live(START + HOUR + 10)
    assert watch.health() is Health.HEALTHY


def test_an_agents_own_despair_does_not_hide_that_its_failures_are_conclusive() -> None:
    watch = Watch()
    watch.beat()
    for n in range(4):
        watch.hear(s.ToolFinished(agent_id="a", call_id=str(n), tool="t", args_digest=str(n), ok=False))
    watch.hear(s.BreakerReported(agent_id="a", name="tool_execution", state=s.BreakerState.OPEN))
    watch.hear(s.ErrorReported(agent_id="a", message="no way", recoverable=False))
    finding = watch.agent().finding(e.Kind.ERRORS)
    assert finding is not None
    assert finding.conclusive


def test_a_beat_that_says_nothing_of_its_load_does_not_end_an_overload() -> None:
    watch = Watch()
    for _ in range(4):
        watch.beat(metrics=s.Metrics(cpu_percent=99.0))
    assert watch.health() is Health.DEGRADED
    watch.beat()
    assert watch.health() is Health.DEGRADED
    watch.beat(metrics=s.Metrics(cpu_percent=5.0))
    assert watch.health() is Health.HEALTHY


def crowd() -> Watch:
    """A host of four on which three die at once, so that it is braked."""
    watch = Watch(fleet=FleetPolicy(canary_every=0, acted_share=1.0))
    for agent in "abcd":
        watch.beat(agent, host="h")
    for agent in "abc":
        watch.hear(s.ProcessExited(agent_id=agent, status=1))
    return watch


def test_a_person_is_not_bound_by_the_brake() -> None:
    watch = crowd()
    watch.live(START + MINUTE, "d")
    before = {order.agent_id for order in watch.orders(e.Respawn)}
    (held,) = {"a", "b", "c"} - before
    watch.hear(s.RecoveryRequested(agent_id=held, task_id="t", by="me"))
    assert held in {order.agent_id for order in watch.orders(e.Respawn)}


def test_a_brake_ends_when_those_it_was_for_are_forgotten() -> None:
    watch = Watch(Policy().with_changes({"respawn": {"enabled": False}}), fleet=FleetPolicy(canary_every=0))
    watch.beat("other")
    for agent in "abc":
        watch.beat(agent, host="h")
        watch.hear(s.ProcessExited(agent_id=agent, status=1))
    assert watch.facts(e.Brake)[0].on
    watch.live(START + 25 * HOUR, "other", every=60.0)
    assert not [fact for fact in watch.facts(e.Brake) if fact.group == "host h"][-1].on
    assert "host h" not in watch.engine.snapshot().fleet.groups


def test_a_call_whose_end_overtakes_its_beginning_is_over() -> None:
    """On a bus that reorders; else it would seem to run for ever."""
    watch = Watch()
    watch.beat(task_id="t")
    watch.hear(s.ToolFinished(agent_id="a", call_id="c-1", tool="grep"))
    watch.hear(s.ToolStarted(agent_id="a", call_id="c-1", tool="grep"), START + 2)
    assert not watch.agent().busy
    watch.hear(s.ToolStarted(agent_id="a", call_id="c-1", tool="grep"), START + 300)
    assert watch.agent().busy  # so much later it is another one


def test_a_beginning_that_comes_twice_begins_once() -> None:
    watch = Watch()
    watch.beat(task_id="t")
    started = s.ToolStarted(agent_id="a", call_id="c-1", tool="grep")
    watch.hear(started)
    watch.hear(s.ToolFinished(agent_id="a", call_id="c-1", tool="grep"), START + 1)
    watch.hear(started, START + 2)
    assert not watch.agent().busy


def test_calls_without_ids_follow_each_other() -> None:
    """A model call may come without an id: the next one is not a repetition of it."""
    watch = Watch()
    watch.beat(task_id="t")
    for n in range(3):
        watch.hear(s.ModelStarted(agent_id="a"), START + 2 * n)
        assert watch.agent().busy
        watch.hear(s.ModelFinished(agent_id="a"), START + 2 * n + 1)
        assert not watch.agent().busy
    watch.hear(s.ModelStarted(agent_id="a"))
    watch.hear(s.DoingChanged(agent_id="a", doing=Doing.WORKING))
    assert watch.agent().busy


def test_a_call_whose_end_was_lost_is_no_stall_while_other_things_get_done() -> None:
    watch = Watch()
    watch.beat(task_id="t")
    watch.hear(s.ToolStarted(agent_id="a", call_id="lost", tool="grep"))
    for n in range(1, 12):
        watch.live(START + n * 9 * MINUTE)
        watch.hear(s.CheckpointSaved(agent_id="a", checkpoint_id=f"cp-{n}", task_id="t"))
    assert watch.facts(e.FindingOpened) == []
    watch.live(START + 99 * MINUTE + 30 * MINUTE)
    assert e.Kind.LONG_CALL in [fact.finding.kind for fact in watch.facts(e.FindingOpened)]


def test_a_task_the_agent_no_longer_has_is_abandoned_and_not_held_against_it() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(s.TaskAssigned(agent_id="a", task_id="old", expected_for=10 * MINUTE))
    watch.hear(s.TaskAssigned(agent_id="a", task_id="new"))
    watch.live(START + 2 * HOUR)
    assert [fact.verdict for fact in watch.facts(e.TaskVerdict)] == ["abandoned"]
    assert watch.health() is Health.HEALTHY


def test_our_absence_is_no_part_of_a_rate_limit() -> None:
    watch = Watch()
    watch.beat(task_id="t")
    watch.hear(s.DoingChanged(agent_id="a", doing=Doing.RATE_LIMITED, until=START + 600))
    watch.jump_to(START + 3600)
    assert watch.agent().doing is Doing.RATE_LIMITED
    watch.live(watch.now + 610)
    assert watch.agent().doing is Doing.WORKING


def test_our_absence_is_no_part_of_a_polling_budget() -> None:
    watch = Watch()
    watch.beat(task_id="t")
    for n in range(60):
        if n == 20:
            watch.jump_to(watch.now + HOUR)
        watch.live(watch.now + 30)
        watch.hear(
            s.ToolFinished(agent_id="a", call_id=str(n), tool="poll_ci", args_digest="x", result_digest="y")
        )
    assert watch.agent().finding(e.Kind.LOOPING) is None


def test_who_was_expected_while_we_slept_is_not_given_up_during_the_truce() -> None:
    watch = Watch()
    watch.beat("other")
    watch.hear(s.AgentRegistered(agent_id="a", grace=30.0))
    watch.live(START + 20, "other")
    watch.jump_to(START + 80)
    watch.forget()
    watch.live(START + 109, "other")
    assert watch.facts(e.Flip, "a") == []
    watch.live(START + 145, "other")
    assert [fact.now for fact in watch.facts(e.Flip, "a")] == [Health.DISCONNECTED]


def escalated() -> Watch:
    """An agent that hangs in a call (weak evidence), nudged and escalated."""
    watch = Watch()
    watch.beat("b")
    watch.beat(task_id="t")
    watch.hear(s.ToolStarted(agent_id="a", call_id="c", tool="fetch"))
    watch.live(START + 60 * MINUTE + 1, "a", "b")
    assert len(watch.orders(e.Escalate)) == 1
    return watch


def test_time_that_people_granted_is_not_taken_back_by_a_short_silence() -> None:
    watch = escalated()
    order = watch.orders(e.Escalate)[0]
    watch.live(START + 80 * MINUTE, "a", "b")  # nobody decided for a while
    decision = s.EscalationDecided(
        agent_id="a", order_id=order.order_id, decision=s.Decision.MORE_TIME, by="me"
    )
    watch.hear(decision)
    watch.live(watch.now + 5 * MINUTE, "b")
    assert watch.health() is Health.DISCONNECTED
    assert watch.orders(e.Terminate) == []


def test_silence_in_the_last_minute_of_an_escalation_is_a_new_question() -> None:
    """Conclusive as it is, people had no time to answer for it."""
    watch = escalated()
    watch.live(START + 74 * MINUTE, "a", "b")
    watch.live(START + 80 * MINUTE, "b")
    assert watch.health() is Health.DISCONNECTED
    assert len(watch.orders(e.Escalate)) == 2
    assert watch.orders(e.Terminate) == []


def test_an_end_that_failed_is_not_tried_again_when_its_reason_is_gone() -> None:
    watch = escalated()
    watch.live(START + 90 * MINUTE + 20, "b")  # lost, asked about, ended
    order = watch.orders(e.Terminate)[0]
    watch.hear(s.TerminationFailed(agent_id="a", order_id=order.order_id, reason="unreachable"))
    watch.live(watch.now + 10 * MINUTE, "a", "b")
    assert watch.health() is Health.STUCK  # it still hangs, but that is weak evidence
    assert len(watch.orders(e.Terminate)) == 1
    dropped = [fact for fact in watch.facts(e.Intervention) if fact.stage is e.Stage.DROPPED]
    assert [fact.rung for fact in dropped][-3:] == [e.Rung.ESCALATE, e.Rung.ESCALATE, e.Rung.TERMINATE]
    assert dropped[-1].id == order.order_id


def test_a_rate_limit_that_is_over_parks_nobody() -> None:
    """A sender that goes on saying it must not keep its agent excused for ever."""
    watch = Watch()
    watch.beat(task_id="t")
    watch.hear(s.CheckpointSaved(agent_id="a", checkpoint_id="cp", task_id="t"))
    for n in range(1, 361):
        watch.beat("a", START + 5 * n, doing=Doing.RATE_LIMITED, until=START + 60)
    kinds = [(fact.finding.kind, fact.finding.severity) for fact in watch.facts(e.FindingOpened)]
    assert (e.Kind.NO_CHECKPOINT, e.Severity.DEGRADED) in kinds


def test_the_blind_do_not_say_who_stands_still() -> None:
    watch = Watch(fleet=FleetPolicy())
    watch.beat(task_id="t")
    watch.hear(s.CheckpointSaved(agent_id="a", checkpoint_id="cp", task_id="t"))
    for _ in range(4):
        watch.hear(
            s.ToolFinished(agent_id="a", call_id="c", tool="grep", ok=False)
        )  # something is open already
    watch.run_until(START + 20 * MINUTE)
    assert watch.facts(e.HubVisibility)[-1].blind
    watch.forget()
    watch.hear(s.ToolFinished(agent_id="a", call_id="c", tool="grep", ok=False))
    assert [fact.finding.kind for fact in watch.facts(e.FindingOpened)] == []


def test_why_it_ended_is_known_until_it_begins_anew() -> None:
    watch = Watch()
    watch.hear(s.AgentRegistered(agent_id="a", incarnation="one"))
    watch.hear(s.AgentLeft(agent_id="a", incarnation="one", reason="done"))
    assert watch.agent().doing_note == "left: done"
    watch.hear(s.AgentRegistered(agent_id="a", incarnation="two"))
    assert watch.agent().doing_note == ""


@pytest.mark.parametrize("doing", [Doing.WORKING, Doing.BUSY, Doing.WAITING_FOR_HUMAN])
def test_an_agent_that_has_ended_does_nothing(doing: Doing) -> None:
    watch = Watch()
    watch.beat(doing=doing)
    watch.hear(s.AgentLeft(agent_id="a", reason="done"))
    assert watch.agent().doing is Doing.UNKNOWN
    assert watch.agent().doing_note == "left: done"


def test_a_batch_that_is_delivered_twice_does_not_raise_the_dead() -> None:
    """Its registration came before its good-bye, and comes again after it. Who then begins anew is heard."""
    watch = Watch()
    registered = s.AgentRegistered(agent_id="a", incarnation="one")
    watch.hear(registered)
    watch.beat(incarnation="one", seq=1)
    watch.hear(s.AgentLeft(agent_id="a", incarnation="one"))
    watch.hear(registered)
    assert watch.health() is Health.TERMINATED
    watch.hear(s.AgentRegistered(agent_id="a", incarnation="two"))
    watch.beat(incarnation="two", seq=1)
    assert watch.health() is Health.HEALTHY


def test_what_a_supervisor_and_its_agent_say_about_one_life_holds_together() -> None:
    """Both register the same life; a new life that announces itself begins with a clean page."""
    watch = Watch()
    watch.hear(s.AgentRegistered(agent_id="a", incarnation="one", policy={"respawn": {"enabled": False}}))
    watch.hear(s.AgentRegistered(agent_id="a", incarnation="one", policy={"silence": {"timeout": 20.0}}))
    agent = watch.agent("a")
    policy = watch.engine.policy_of(agent)
    assert (policy.respawn.enabled, policy.silence.timeout) == (False, 20.0)
    watch.hear(s.AgentRegistered(agent_id="a", incarnation="two"))
    policy = watch.engine.policy_of(agent)
    assert (policy.respawn.enabled, policy.silence.timeout) != (False, 20.0)
    assert policy.respawn.enabled


def test_a_task_for_the_life_after_a_nameless_one_that_was_ended_does_not_name_the_dead() -> None:
    """Its task may overtake its first beat. Taken for the ended life's name, every word of the new one was refused."""
    watch = Watch(Policy().with_changes({"silence": {"timeout": 15.0}}))
    watch.beat(incarnation=None)
    watch.hear(s.ProcessExited(agent_id="a", status=1))
    watch.forget()
    watch.hear(s.TaskAssigned(agent_id="a", incarnation="next", task_id="t"))
    watch.beat(incarnation="next")
    assert watch.health() is Health.HEALTHY
    assert not [effect for effect in watch.effects if isinstance(effect, e.Refusal)]
