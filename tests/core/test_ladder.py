"""Nudge, escalate, terminate: one rung at a time, each exactly once, none on a healthy agent."""

import pytest

from lifesigns.core import ladder
from lifesigns.core.agent import Case
from lifesigns.core.effects import (
    Ending,
    Escalate,
    Intervention,
    Kind,
    NeedsHuman,
    Order,
    Refusal,
    Respawn,
    Rung,
    SendNudge,
    Stage,
    Terminate,
)
from lifesigns.core.health import Doing, FailureClass, Health
from lifesigns.core.policy import MINUTE, FleetPolicy, Policy
from lifesigns.core.signals import (
    AgentLeft,
    Answer,
    BreakerReported,
    BreakerState,
    CheckpointSaved,
    ClearRequested,
    ConnectionClosed,
    Decision,
    DoingChanged,
    ErrorReported,
    EscalationDecided,
    EscalationRequested,
    ModelFinished,
    NudgeAnswered,
    NudgeDelivered,
    NudgeFailed,
    NudgeRequested,
    NudgeSeen,
    PauseRequested,
    ProcessExited,
    ProgressMade,
    ResumeRequested,
    Signal,
    TerminationDone,
    TerminationFailed,
    TerminationRequested,
    ToolFinished,
)
from tests.core.harness import START, Watch

SICK = ErrorReported(agent_id="a", message="disk full", recoverable=False)
WELL = ToolFinished(agent_id="a", call_id="w", tool="ls")
NUDGED_FOR = 30 * MINUTE
"""Three nudges, ten minutes apart, and ten minutes for the last one."""


def weak(policy: Policy | None = None, fleet: FleetPolicy | None = None) -> Watch:
    """An agent that lives and is failing, on weak evidence."""
    watch = Watch(policy, fleet=fleet)
    watch.beat()
    watch.hear(SICK)
    return watch


def conclusive() -> Watch:
    """An agent that lives and is failing: repeated failures and an open breaker."""
    watch = Watch()
    watch.beat()
    for n in range(4):
        failed = ToolFinished(
            agent_id="a", call_id=f"c{n}", tool="make", args_digest=str(n), ok=False, error="exit status 2"
        )
        watch.hear(failed)
    watch.hear(BreakerReported(agent_id="a", name="tool_execution", state=BreakerState.OPEN))
    return watch


def escalated(watch: Watch) -> Escalate:
    """Let the nudges go unanswered; the escalation that follows."""
    watch.live(START + NUDGED_FOR)
    return watch.orders(Escalate)[-1]


def terminating(watch: Watch) -> Terminate:
    """Let the escalation go unanswered too."""
    escalated(watch)
    watch.live(START + NUDGED_FOR + 15 * MINUTE)
    return watch.orders(Terminate)[-1]


def stages(watch: Watch) -> list[tuple[Rung, Stage, int]]:
    return [(fact.rung, fact.stage, fact.attempt) for fact in watch.facts(Intervention)]


def case(watch: Watch) -> Case:
    found = watch.agent().case
    assert found is not None
    return found


def told(watch: Watch) -> list[str]:
    return [fact.reason for fact in watch.facts(NeedsHuman)]


# --- the way up ------------------------------------------------------------------------------------------


def test_three_nudges_ten_minutes_apart_then_the_orchestrator_is_asked() -> None:
    watch = weak()
    watch.live(START + NUDGED_FOR - 0.01)
    assert [order.at for order in watch.orders(SendNudge)] == [START, START + 600, START + 1200]
    assert not watch.orders(Escalate)
    watch.run_until(START + NUDGED_FOR)
    order = watch.orders(Escalate)[0]
    assert order.at == START + NUDGED_FOR
    assert order.answer_by == order.at + 15 * MINUTE
    assert order.reason == "Reported an error it cannot recover from: disk full"
    assert [finding.text for finding in order.findings] == [order.reason]
    assert "escalation" in told(watch)


def test_conclusive_evidence_and_no_answer_in_fifteen_minutes_end_the_agent() -> None:
    watch = conclusive()
    escalated(watch)
    watch.live(START + NUDGED_FOR + 15 * MINUTE - 0.01)
    assert not watch.orders(Terminate)
    watch.run_until(START + NUDGED_FOR + 15 * MINUTE)
    order = watch.orders(Terminate)[0]
    assert order.save_for == 30.0
    assert order.by == ""
    assert order.seq_seen == watch.agent().seq
    assert order.findings == watch.agent().findings


def test_weak_evidence_is_left_to_a_person() -> None:
    watch = weak()
    escalated(watch)
    watch.live(START + NUDGED_FOR + 24 * 60 * MINUTE, every=10.0)
    assert not watch.orders(Terminate)
    assert len(watch.orders(Escalate)) == 1
    assert told(watch).count("undecided") == 1


def test_two_kinds_of_weak_evidence_and_no_answer_are_enough() -> None:
    watch = Watch()
    watch.beat(task_id="t")
    watch.hear(CheckpointSaved(agent_id="a", checkpoint_id="cp", task_id="t"))
    watch.hear(ToolFinished(agent_id="a", call_id="c", tool="grep"))
    watch.live(START + (15 + 30 + 15) * MINUTE)
    assert [order.at - START for order in watch.orders(Terminate)] == [60 * MINUTE]


def test_evidence_that_grows_while_a_person_hesitates_is_asked_about_again() -> None:
    """Their silence was about weaker evidence: it is no consent to the new."""
    watch = conclusive()
    watch.hear(BreakerReported(agent_id="a", name="tool_execution", state=BreakerState.HALF_OPEN))
    escalated(watch)
    watch.live(START + NUDGED_FOR + 20 * MINUTE)
    assert case(watch).held == "undecided"
    assert not watch.orders(Terminate)
    watch.hear(BreakerReported(agent_id="a", name="tool_execution", state=BreakerState.OPEN))
    assert len(watch.orders(Escalate)) == 2
    watch.live(START + NUDGED_FOR + 35 * MINUTE - 0.01)
    assert not watch.orders(Terminate)
    watch.live(START + NUDGED_FOR + 35 * MINUTE)
    assert [order.at for order in watch.orders(Terminate)] == [START + NUDGED_FOR + 35 * MINUTE]


def test_every_step_is_on_record_with_its_orders_id() -> None:
    watch = conclusive()
    order = terminating(watch)
    watch.hear(TerminationDone(agent_id="a", order_id=order.order_id))
    assert stages(watch)[:10] == [
        (Rung.NUDGE, Stage.ORDERED, 1),
        (Rung.NUDGE, Stage.DROPPED, 1),
        (Rung.NUDGE, Stage.ORDERED, 2),
        (Rung.NUDGE, Stage.DROPPED, 2),
        (Rung.NUDGE, Stage.ORDERED, 3),
        (Rung.NUDGE, Stage.DROPPED, 3),
        (Rung.ESCALATE, Stage.ORDERED, 1),
        (Rung.ESCALATE, Stage.DROPPED, 1),
        (Rung.TERMINATE, Stage.ORDERED, 1),
        (Rung.TERMINATE, Stage.DONE, 1),
    ]
    ids = [fact.id for fact in watch.facts(Intervention) if fact.stage is Stage.ORDERED][:5]
    assert ids == [order.order_id for order in watch.orders(Order)][:5]
    assert len(set(ids)) == 5


def test_every_step_says_of_what_class_the_failure_was() -> None:
    watch = conclusive()
    watch.live(START + 60)
    nudge = watch.orders(SendNudge)[-1]
    watch.hear(NudgeAnswered(agent_id="a", nudge_id=nudge.order_id, answer=Answer.BLOCKED))
    watch.live(START + 20 * MINUTE)
    watch.hear(TerminationRequested(agent_id="a", by="ann", reason="enough"))
    watch.hear(TerminationDone(agent_id="a", order_id=watch.orders(Terminate)[-1].order_id))
    steps = [fact for fact in watch.facts(Intervention) if fact.rung is not Rung.RESPAWN]
    told = {(fact.rung, fact.stage) for fact in steps}
    assert {
        (Rung.NUDGE, Stage.ANSWERED),
        (Rung.ESCALATE, Stage.ORDERED),
        (Rung.TERMINATE, Stage.DONE),
    } <= told
    assert {fact.failure_class for fact in steps} == {FailureClass.TRANSIENT, FailureClass.RECOVERABLE}


@pytest.mark.parametrize("forced", [False, True])
def test_an_agent_that_had_to_be_killed_is_on_record_as_that(forced: bool) -> None:
    watch = conclusive()
    order = terminating(watch)
    watch.hear(TerminationDone(agent_id="a", order_id=order.order_id, forced=forced))
    (ending,) = watch.facts(Ending)
    assert ending.text == order.reason + (f" ({ladder.BY_FORCE})" if forced else "")


def test_an_agent_that_speaks_up_is_not_asked_about_any_more() -> None:
    """The question is closed on record: nobody is asked to decide what would be refused."""
    watch = weak()
    question = escalated(watch)
    nudge = watch.orders(SendNudge)[0]
    answer = NudgeAnswered(agent_id="a", nudge_id=nudge.order_id, answer=Answer.PROGRESS)
    watch.hear(answer)
    endings = [(fact.id, fact.stage, fact.text) for fact in watch.facts(Intervention)[-2:]]
    assert endings == [
        (nudge.order_id, Stage.ANSWERED, "progress"),
        (question.order_id, Stage.DROPPED, "the agent answered"),
    ]


def test_a_question_is_closed_when_there_is_new_evidence_to_decide_about() -> None:
    watch = conclusive()
    watch.hear(BreakerReported(agent_id="a", name="tool_execution", state=BreakerState.HALF_OPEN))
    first = escalated(watch)
    watch.live(START + NUDGED_FOR + 20 * MINUTE)
    watch.hear(BreakerReported(agent_id="a", name="tool_execution", state=BreakerState.OPEN))
    endings = [(fact.id, fact.stage) for fact in watch.facts(Intervention) if fact.rung is Rung.ESCALATE]
    second = watch.orders(Escalate)[-1]
    assert endings == [
        (first.order_id, Stage.ORDERED),
        (first.order_id, Stage.DROPPED),
        (second.order_id, Stage.ORDERED),
    ]


def test_what_was_decided_or_could_not_be_handed_over_stays_so_on_record() -> None:
    watch = weak()
    nudge = watch.orders(SendNudge)[0]
    watch.hear(NudgeFailed(agent_id="a", order_id=nudge.order_id, reason="no such pane"))
    question = escalated(watch)
    decision = EscalationDecided(agent_id="a", order_id=question.order_id, decision=Decision.IGNORE, by="eva")
    watch.hear(decision)
    watch.hear(WELL)
    last = {fact.id: fact.stage for fact in watch.facts(Intervention)}
    assert (last[nudge.order_id], last[question.order_id]) == (Stage.FAILED, Stage.ANSWERED)


def test_a_persons_nudge_that_is_not_answered_ends_on_record_too() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(NudgeRequested(agent_id="a", by="eva", message="Are you there?"))
    watch.live(START + 11 * MINUTE)
    (nudge,) = watch.orders(SendNudge)
    assert [(fact.id, fact.stage, fact.text) for fact in watch.facts(Intervention)][1:] == [
        (nudge.order_id, Stage.DROPPED, "no answer")
    ]
    assert watch.agent().case is None


def test_a_terminated_agent_is_ended_and_followed_by_another() -> None:
    watch = conclusive()
    order = terminating(watch)
    watch.hear(TerminationDone(agent_id="a", order_id=order.order_id))
    assert watch.health() is Health.TERMINATED
    assert watch.agent().case is None
    assert len(watch.orders(Respawn)) <= 1
    watch.run_until(watch.now + 61)
    assert len(watch.orders(Respawn)) == 1


def test_an_agent_that_answers_no_ping_is_not_nudged() -> None:
    watch = Watch()
    watch.beat()
    watch.run_until(START + 15)
    assert watch.health() is Health.DISCONNECTED
    watch.run_until(START + 25)
    assert not watch.orders(SendNudge)
    assert [order.at for order in watch.orders(Escalate)] == [START + 25]
    watch.run_until(START + 25 + 15 * MINUTE)
    assert len(watch.orders(Terminate)) == 1


def test_an_agent_whose_connection_closed_for_good_is_taken_care_of() -> None:
    """Whatever we believe the cause to be, somebody has to do something."""
    watch = Watch()
    watch.beat()
    watch.hear(ConnectionClosed(agent_id="a"), START + 1)
    watch.run_until(START + 60 * MINUTE)
    assert watch.health() is not Health.HEALTHY
    assert {type(order) for order in watch.orders(Order)} & {Escalate, Respawn, Terminate}


def test_without_nudges_the_orchestrator_is_asked_at_once() -> None:
    watch = weak(Policy().with_changes({"ladder": {"nudge_enabled": False}}))
    assert [order.at for order in watch.orders(Escalate)] == [START]


def test_a_ladder_that_is_switched_off_does_nothing() -> None:
    watch = weak(Policy().with_changes({"ladder": {"enabled": False}}))
    watch.live(START + 2 * 60 * MINUTE)
    assert not watch.orders(Order)
    assert watch.health() is Health.FAILING


def test_looking_late_does_not_nudge_twice() -> None:
    watch = weak()
    watch.jump_to(START + 25 * MINUTE)
    assert len(watch.orders(SendNudge)) <= 1


# --- what a nudge says and how far it comes ----------------------------------------------------------------


def test_a_nudge_states_facts_and_offers_a_way_out() -> None:
    watch = Watch()
    watch.beat(task_id="t")
    watch.hear(CheckpointSaved(agent_id="a", checkpoint_id="cp", task_id="t"))
    watch.live(START + 14 * MINUTE)
    for n in range(3):
        watch.hear(ToolFinished(agent_id="a", call_id=f"c{n}", tool="grep", args_digest=str(n)))
    watch.live(START + 30 * MINUTE)
    assert watch.orders(SendNudge)[-1].text.startswith("No checkpoint for ")
    assert watch.orders(SendNudge)[-1].text.endswith(
        "Last tool call 15 min ago: grep x3. You can report progress, request a handoff or report a blocker."
    )


def test_delivered_and_seen_are_on_record_and_change_nothing() -> None:
    """Only progress or an answer is success."""
    watch = weak()
    nudge = watch.orders(SendNudge)[0]
    watch.hear(NudgeDelivered(agent_id="a", order_id=nudge.order_id))
    watch.hear(NudgeSeen(agent_id="a", nudge_id=nudge.order_id))
    assert stages(watch)[1:] == [(Rung.NUDGE, Stage.DELIVERED, 1), (Rung.NUDGE, Stage.SEEN, 1)]
    watch.live(START + 10 * MINUTE)
    assert len(watch.orders(SendNudge)) == 2


def test_a_nudge_that_could_not_be_delivered_is_on_record() -> None:
    watch = weak()
    nudge = watch.orders(SendNudge)[0]
    watch.hear(NudgeFailed(agent_id="a", order_id=nudge.order_id, reason="no route"))
    assert watch.facts(Intervention)[-1].text == "no route"


def test_word_of_an_order_that_is_not_open_changes_nothing() -> None:
    watch = weak()
    watch.forget()
    watch.hear(NudgeDelivered(agent_id="a", order_id="1-999"))
    watch.hear(TerminationDone(agent_id="a", order_id="1-999"))
    assert not watch.effects
    assert watch.health() is Health.FAILING


# --- answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", [Answer.NEED_TIME, Answer.PROGRESS])
def test_a_word_buys_time_and_then_the_ladder_starts_again(answer: Answer) -> None:
    watch = weak()
    nudge = watch.orders(SendNudge)[0]
    watch.live(START + 60)
    watch.hear(NudgeAnswered(agent_id="a", nudge_id=nudge.order_id, answer=answer, note="soon"))
    watch.live(START + 60 + 30 * MINUTE - 0.01)
    assert len(watch.orders(SendNudge)) == 1
    watch.run_until(START + 60 + 30 * MINUTE)
    assert [order.attempt for order in watch.orders(SendNudge)] == [1, 1]
    assert (Rung.NUDGE, Stage.ANSWERED, 1) in stages(watch)


def test_a_blocked_agent_brings_a_person_at_once() -> None:
    watch = weak()
    nudge = watch.orders(SendNudge)[0]
    watch.hear(NudgeAnswered(agent_id="a", nudge_id=nudge.order_id, answer=Answer.BLOCKED, note="no key"))
    assert [fact.text for fact in watch.facts(NeedsHuman) if fact.reason == "blocked"] == [
        "a is blocked: no key"
    ]
    assert [order.at for order in watch.orders(Escalate)] == [START]
    watch.live(START + 60 * MINUTE)
    assert not watch.orders(Terminate)


def test_an_agent_that_asks_for_a_handoff_is_followed_by_another() -> None:
    watch = weak()
    nudge = watch.orders(SendNudge)[0]
    watch.hear(NudgeAnswered(agent_id="a", nudge_id=nudge.order_id, answer=Answer.HANDOFF))
    order = watch.orders(Terminate)[0]
    assert (order.by, order.reason) == ("a", "the agent asked for a handoff")
    watch.hear(TerminationDone(agent_id="a", order_id=order.order_id))
    watch.run_until(START + 60)
    assert len(watch.orders(Respawn)) == 1


def test_a_late_answer_to_an_earlier_nudge_counts() -> None:
    """Nudges are queued to a turn boundary: the answer to the first may come after the second was sent."""
    watch = weak()
    first = watch.orders(SendNudge)[0]
    watch.live(START + 11 * MINUTE)
    assert len(watch.orders(SendNudge)) == 2
    watch.hear(NudgeAnswered(agent_id="a", nudge_id=first.order_id, answer=Answer.NEED_TIME))
    watch.live(START + 40 * MINUTE)
    assert len(watch.orders(SendNudge)) == 2


def test_an_answer_after_the_escalation_still_counts() -> None:
    """Unanswered nudges are part of the evidence: one that was answered, however late, is not unanswered."""
    watch = conclusive()
    escalated(watch)
    last = watch.orders(SendNudge)[-1]
    watch.live(watch.now + 60)
    watch.hear(NudgeAnswered(agent_id="a", nudge_id=last.order_id, answer=Answer.NEED_TIME))
    watch.live(START + NUDGED_FOR + 16 * MINUTE)
    assert not watch.orders(Terminate)


# --- decisions ---------------------------------------------------------------------------------------------


def decide(watch: Watch, decision: Decision) -> Escalate:
    order = escalated(watch)
    watch.live(watch.now + 60)
    watch.hear(EscalationDecided(agent_id="a", order_id=order.order_id, decision=decision, by="eva"))
    return order


def test_more_time_asks_again_when_it_is_over() -> None:
    watch = conclusive()
    first = decide(watch, Decision.MORE_TIME)
    watch.live(first.at + 60 + 30 * MINUTE - 0.01)
    assert len(watch.orders(Escalate)) == 1
    watch.run_until(first.at + 60 + 30 * MINUTE)
    assert len(watch.orders(Escalate)) == 2
    assert watch.orders(Escalate)[1].order_id != first.order_id
    assert not watch.orders(Terminate)


@pytest.mark.parametrize("decision", [Decision.TERMINATE, Decision.HANDOFF])
def test_a_decision_to_end_is_carried_out_in_its_makers_name_and_followed_by_a_respawn(
    decision: Decision,
) -> None:
    watch = weak()
    decide(watch, decision)
    order = watch.orders(Terminate)[0]
    assert (order.at, order.by) == (watch.now, "eva")
    watch.hear(TerminationDone(agent_id="a", order_id=order.order_id))
    watch.run_until(watch.now + 60)
    assert len(watch.orders(Respawn)) == 1


def test_an_ignored_agent_is_left_alone() -> None:
    watch = conclusive()
    decide(watch, Decision.IGNORE)
    watch.live(watch.now + 24 * 60 * MINUTE, every=10.0)
    assert not watch.orders(Terminate)
    assert len(watch.orders(Escalate)) == 1


def test_a_decision_that_comes_late_is_still_a_decision() -> None:
    watch = weak()
    order = escalated(watch)
    watch.live(order.at + 60 * MINUTE)
    watch.hear(
        EscalationDecided(agent_id="a", order_id=order.order_id, decision=Decision.TERMINATE, by="eva")
    )
    assert len(watch.orders(Terminate)) == 1


def test_a_second_decision_about_the_same_escalation_is_refused() -> None:
    watch = weak()
    order = escalated(watch)
    for decision in (Decision.IGNORE, Decision.TERMINATE):
        watch.hear(EscalationDecided(agent_id="a", order_id=order.order_id, decision=decision, by="eva"))
    watch.live(order.at + 60 * MINUTE)
    assert not watch.orders(Terminate)
    assert len(watch.facts(Refusal)) == 1


def test_a_decision_about_an_escalation_that_is_over_is_refused() -> None:
    watch = weak()
    order = escalated(watch)
    watch.hear(WELL)
    watch.hear(
        EscalationDecided(agent_id="a", order_id=order.order_id, decision=Decision.TERMINATE, by="eva")
    )
    assert not watch.orders(Terminate)
    assert [fact.reason for fact in watch.facts(Refusal)] == [
        f"escalation {order.order_id} is no longer open"
    ]


# --- well again --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0.0, 15 * MINUTE, NUDGED_FOR, NUDGED_FOR + 14 * MINUTE])
def test_an_agent_that_is_well_again_is_left_alone(after: float) -> None:
    watch = conclusive()
    watch.live(START + after)
    watch.hear(WELL)
    assert watch.agent().case is None
    assert watch.facts(Intervention)[-1].stage is Stage.DROPPED
    watch.forget()
    watch.live(START + after + 120 * MINUTE)
    assert not watch.orders(Order)


def test_who_is_well_again_in_the_moment_of_its_end_is_not_ended() -> None:
    """Facts for every state passed through, orders only for the state we end in."""
    watch = conclusive()
    escalated(watch)
    watch.live(START + NUDGED_FOR + 15 * MINUTE - 0.3)
    watch.effects += watch.engine.hear(WELL, START + NUDGED_FOR + 15 * MINUTE + 0.3)
    assert watch.health() is Health.HEALTHY
    assert not watch.orders(Terminate)


def test_a_termination_that_waits_is_not_carried_out_when_its_evidence_is_gone() -> None:
    """Held by a limit, the agent speaks again; that it is still stuck is weak evidence, and not enough."""
    watch = Watch(fleet=FleetPolicy(canary_every=0, terminations_per_minute=0))
    watch.beat("b")
    watch.beat(task_id="t")
    watch.hear(CheckpointSaved(agent_id="a", checkpoint_id="cp", task_id="t"))
    watch.live(START + 31 * MINUTE, "a", "b")
    watch.live(watch.now + 31 * MINUTE, "b")
    assert case(watch).rung is Rung.TERMINATE
    watch.beat("a")
    assert watch.health() is Health.STUCK
    assert case(watch).rung is not Rung.TERMINATE


# --- left alone --------------------------------------------------------------------------------------------


def test_who_says_in_the_moment_of_a_nudge_that_it_waits_is_not_nudged() -> None:
    watch = weak()
    watch.live(START + 10 * MINUTE - 1)
    says = DoingChanged(agent_id="a", doing=Doing.WAITING_FOR_HUMAN, note="which of the two?")
    watch.effects += watch.engine.hear(says, START + 10 * MINUTE + 0.3)
    assert len(watch.orders(SendNudge)) == 1
    assert stages(watch) == [(Rung.NUDGE, Stage.ORDERED, 1), (Rung.NUDGE, Stage.DROPPED, 1)]
    assert watch.agent().past.interventions == 1
    watch.live(START + 15 * MINUTE)
    watch.hear(DoingChanged(agent_id="a", doing=Doing.WORKING))
    watch.live(START + 31 * MINUTE)
    assert [order.attempt for order in watch.orders(SendNudge)] == [1, 2, 3]


@pytest.mark.parametrize("doing", [Doing.WAITING_FOR_HUMAN, Doing.RATE_LIMITED])
def test_who_waits_is_never_nudged(doing: Doing) -> None:
    watch = Watch()
    watch.beat()
    watch.hear(DoingChanged(agent_id="a", doing=doing, until=START + 3 * 60 * MINUTE))
    watch.hear(SICK)
    watch.live(START + 2 * 60 * MINUTE)
    assert not watch.orders(SendNudge)


def test_waiting_for_a_human_is_told_at_once() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(DoingChanged(agent_id="a", doing=Doing.WAITING_FOR_HUMAN, note="may I delete it?"), START + 1)
    assert [(f.at, f.reason, f.text) for f in watch.facts(NeedsHuman)] == [
        (START + 1, "waiting_for_human", "a waits for a human: may I delete it?")
    ]
    assert watch.health() is Health.HEALTHY


def test_what_it_asks_and_since_when_is_remembered_until_it_does_something_else() -> None:
    watch = Watch()
    watch.beat(incarnation="one")
    watch.hear(DoingChanged(agent_id="a", doing=Doing.WAITING_FOR_HUMAN, note="may I?"), START + 1)
    watch.beat(incarnation="one", doing=Doing.WAITING_FOR_HUMAN, at=START + 3)
    assert (watch.agent().doing_from, watch.agent().doing_note) == (START + 1, "may I?")
    watch.hear(DoingChanged(agent_id="a", doing=Doing.WAITING_FOR_HUMAN, note="may I now?"), START + 4)
    assert (watch.agent().doing_from, watch.agent().doing_note) == (START + 1, "may I now?")
    watch.beat(incarnation="one", doing=Doing.WORKING, at=START + 5)
    assert (watch.agent().doing_from, watch.agent().doing_note) == (START + 5, "")
    watch.hear(DoingChanged(agent_id="a", doing=Doing.WAITING_FOR_HUMAN, note="again?"), START + 6)
    watch.beat(incarnation="two", seq=1, at=START + 7)
    assert (watch.agent().doing, watch.agent().doing_note) == (Doing.UNKNOWN, "")


def test_a_paused_agent_is_left_alone_until_it_is_over() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(PauseRequested(agent_id="a", by="eva", pause_for=600.0))
    watch.hear(SICK)
    watch.live(START + 599.99)
    assert not watch.orders(Order)
    watch.run_until(START + 600)
    assert len(watch.orders(SendNudge)) == 1


def test_a_pause_without_an_end_ends_by_a_persons_word() -> None:
    watch = weak()
    watch.hear(PauseRequested(agent_id="a", by="eva"), START + 1)
    watch.live(START + 5 * 60 * MINUTE)
    assert len(watch.orders(SendNudge)) == 1
    watch.hear(ResumeRequested(agent_id="a", by="eva"))
    assert len(watch.orders(SendNudge)) == 2


# --- a spending cap ------------------------------------------------------------------------------------------


def test_a_reached_cap_ends_the_agent_at_once_and_for_good() -> None:
    """A cap is the user's own word that this is where it ends."""
    watch = Watch(Policy().with_changes({"spending": {"tokens_max": 100}}))
    watch.beat()
    watch.hear(ModelFinished(agent_id="a", tokens_out=100))
    assert [order.at for order in watch.orders(Terminate)] == [START]
    assert not watch.orders(SendNudge)
    watch.hear(TerminationDone(agent_id="a", order_id=watch.orders(Terminate)[0].order_id))
    watch.run_until(START + 60 * MINUTE)
    assert not watch.orders(Respawn)
    assert told(watch) == ["stopped"]


def test_a_cap_reached_on_the_way_up_cuts_it_short() -> None:
    watch = weak(Policy().with_changes({"spending": {"tokens_max": 100}}))
    watch.hear(ModelFinished(agent_id="a", tokens_out=100), START + 60)
    assert [order.at for order in watch.orders(Terminate)] == [START + 60]
    assert not case(watch).respawn


# --- terminations that fail ----------------------------------------------------------------------------------


def test_a_termination_without_word_is_ordered_again_under_the_same_id() -> None:
    watch = conclusive()
    first = terminating(watch)
    watch.live(first.at + 30 + 60 - 0.01)
    assert len(watch.orders(Terminate)) == 1
    watch.live(first.at + 10 * MINUTE)
    assert {order.order_id for order in watch.orders(Terminate)} == {first.order_id}
    assert len(watch.orders(Terminate)) == 3
    assert "cannot stop" in told(watch)


def test_a_failed_termination_is_tried_again_after_a_minute() -> None:
    watch = conclusive()
    first = terminating(watch)
    watch.hear(TerminationFailed(agent_id="a", order_id=first.order_id, reason="busy"), first.at + 10)
    watch.live(first.at + 70 - 0.01)
    assert len(watch.orders(Terminate)) == 1
    watch.live(first.at + 75)
    assert len(watch.orders(Terminate)) == 2


def test_a_process_that_ends_after_we_gave_up_is_known_to_be_gone() -> None:
    watch = conclusive()
    first = terminating(watch)
    watch.live(first.at + 10 * MINUTE)
    assert "cannot stop" in told(watch)
    watch.hear(ProcessExited(agent_id="a", status=1))
    watch.run_until(watch.now + 10 * MINUTE)
    assert watch.agent().case is None
    assert watch.orders(Respawn)


# --- people ----------------------------------------------------------------------------------------------------


def test_a_persons_nudge_is_one_nudge_in_their_words() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(NudgeRequested(agent_id="a", by="eva", message="How is it going?"))
    watch.live(START + 60 * MINUTE)
    assert [order.text for order in watch.orders(SendNudge)] == ["How is it going?"]
    assert [fact.by for fact in watch.facts(Intervention) if fact.stage is Stage.ORDERED] == ["eva"]
    assert not watch.orders(Escalate)


def test_a_persons_escalation_and_termination_are_recorded_in_their_name() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(EscalationRequested(agent_id="a", by="eva", reason="looks odd"))
    assert watch.orders(Escalate)[0].reason == "looks odd"
    watch.hear(TerminationRequested(agent_id="a", by="ada", reason="enough"), START + 5)
    order = watch.orders(Terminate)[0]
    assert (order.by, order.reason) == ("ada", "enough")
    ordered = [(fact.rung, fact.by) for fact in watch.facts(Intervention) if fact.stage is Stage.ORDERED]
    assert ordered == [(Rung.ESCALATE, "eva"), (Rung.TERMINATE, "ada")]


@pytest.mark.parametrize("respawn", [True, False])
def test_a_person_says_whether_the_agent_is_followed_by_another(respawn: bool) -> None:
    watch = Watch()
    watch.beat()
    watch.hear(TerminationRequested(agent_id="a", by="eva", respawn=respawn))
    watch.hear(TerminationDone(agent_id="a", order_id=watch.orders(Terminate)[0].order_id))
    watch.run_until(START + 60)
    assert bool(watch.orders(Respawn)) is respawn


def test_a_person_is_not_bound_by_the_brake_nor_by_limits() -> None:
    watch = Watch(
        fleet=FleetPolicy(canary_every=0, brake_count=1, brake_share=0.1, terminations_per_minute=0)
    )
    watch.beat()
    watch.hear(SICK)
    assert not watch.orders(SendNudge)
    watch.hear(TerminationRequested(agent_id="a", by="eva"), START + 5)
    assert [(order.at, order.by) for order in watch.orders(Terminate)] == [(START + 5, "eva")]


def test_a_persons_order_does_not_wait_for_their_pause() -> None:
    """A pause holds us back, not them."""
    watch = Watch()
    watch.beat()
    watch.hear(PauseRequested(agent_id="a", by="eva"))
    watch.hear(TerminationRequested(agent_id="a", by="eva"))
    assert len(watch.orders(Terminate)) == 1


def test_a_request_repeated_with_the_same_key_is_the_same_act() -> None:
    watch = Watch()
    watch.beat()
    for at in (0.0, 1.0, 2.0):
        watch.hear(TerminationRequested(agent_id="a", by="eva", key="k-1"), START + at)
    assert len(watch.orders(Terminate)) == 1
    watch.hear(TerminationRequested(agent_id="a", by="eva", key="k-2"), START + 3)
    assert len({order.order_id for order in watch.orders(Terminate)}) == 2


def test_a_terminated_agent_cannot_be_ended_again() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(TerminationRequested(agent_id="a", by="eva"))
    watch.hear(TerminationDone(agent_id="a", order_id=watch.orders(Terminate)[0].order_id))
    watch.hear(TerminationRequested(agent_id="a", by="eva"))
    assert len(watch.orders(Terminate)) == 1
    assert [fact.reason for fact in watch.facts(Refusal)] == ["is terminated already"]


def test_progress_is_success() -> None:
    """The nudge about a stale checkpoint has worked when there is a new one."""
    watch = Watch()
    watch.beat(task_id="t")
    watch.hear(ProgressMade(agent_id="a", task_id="t"))
    watch.live(START + 31 * MINUTE)
    assert len(watch.orders(SendNudge)) == 1
    watch.hear(ProgressMade(agent_id="a", task_id="t"))
    assert watch.agent().case is None


def test_what_is_told_again_is_no_news() -> None:
    """Who was not answered says it again (a hub that is killed between keeping a word and saying so): one fact each."""
    watch = weak()
    nudge = watch.orders(SendNudge)[-1].order_id
    for word in (
        NudgeDelivered(agent_id="a", order_id=nudge),
        NudgeSeen(agent_id="a", nudge_id=nudge),
        NudgeAnswered(agent_id="a", nudge_id=nudge, answer=Answer.NEED_TIME, note="an hour"),
    ):
        watch.hear(word)
        watch.hear(word)
    watch.hear(NudgeAnswered(agent_id="a", nudge_id=nudge, answer=Answer.PROGRESS))
    assert [fact.stage for fact in watch.facts(Intervention)] == [
        Stage.ORDERED,
        Stage.DELIVERED,
        Stage.SEEN,
        Stage.ANSWERED,
        Stage.ANSWERED,
    ]


def test_an_end_that_failed_is_told_once_and_its_next_try_may_fail_too() -> None:
    watch = weak()
    watch.hear(TerminationRequested(agent_id="a", reason="no use", by="eva"))
    for _ in range(2):
        order = watch.orders(Terminate)[-1]
        for _ in range(2):
            watch.hear(TerminationFailed(agent_id="a", order_id=order.order_id, reason="it is stuck"))
        watch.live(watch.now + 2 * MINUTE)
    ends = [fact.stage for fact in watch.facts(Intervention) if fact.rung is Rung.TERMINATE]
    assert ends[:4] == [Stage.ORDERED, Stage.FAILED, Stage.ORDERED, Stage.FAILED]


# --- a termination that is out ---------------------------------------------------------------------------------


IMPATIENT = Policy().with_changes({"ladder": {"nudge_max": 1, "nudge_every": 1.0, "escalation_timeout": 2.0}})


def same_call(n: int, result: str = "nothing", **fields: object) -> ToolFinished:
    said: dict[str, object] = {"args_digest": "same", "result_digest": result, **fields}
    return ToolFinished(agent_id="a", incarnation="one", call_id=f"c{n}", tool="search", **said)  # type: ignore[arg-type]


def looping_to_its_end() -> Watch:
    """It calls the same thing every 0.2 s, hears a nudge and goes on, until it is to be ended."""
    watch = Watch(IMPATIENT)
    watch.beat(incarnation="one")
    for n in range(60):
        watch.hear(same_call(n), watch.now + 0.2)
        if watch.orders(Terminate):
            return watch
    raise AssertionError("it was not ended")


def silent_to_its_end(policy: Policy = IMPATIENT) -> Watch:
    """It is not heard any more, and nobody decides."""
    watch = Watch(policy)
    watch.beat("b")
    watch.beat(incarnation="one", seq=7)
    watch.live(watch.now + 60, "b")
    assert watch.orders(Terminate)
    return watch


@pytest.mark.parametrize(
    "caused",
    [
        same_call(99, "", ok=False, error="cancelled"),
        CheckpointSaved(agent_id="a", incarnation="one", checkpoint_id="last"),
        ProgressMade(agent_id="a", incarnation="one"),
    ],
)
def test_what_a_stop_causes_is_no_sign_of_health(caused: Signal) -> None:
    """The call it cancels, what it saves: the termination stays, ends by its outcome, and is followed by a new life."""
    watch = looping_to_its_end()
    watch.hear(caused)
    assert Stage.DROPPED not in [f.stage for f in watch.facts(Intervention) if f.rung is Rung.TERMINATE]
    watch.hear(AgentLeft(agent_id="a", incarnation="one", reason="stopped"))
    assert [fact.stage for fact in watch.facts(Ending)] == [Stage.DONE]
    watch.run_until(watch.now + 60)
    assert len(watch.orders(Respawn)) == 1


def test_a_person_may_take_back_a_termination_that_is_out() -> None:
    watch = looping_to_its_end()
    watch.hear(ClearRequested(agent_id="a", by="eva"))
    assert watch.facts(Intervention)[-1].stage is Stage.DROPPED


def test_a_termination_names_the_evidence_that_allows_it() -> None:
    watch = Watch(
        IMPATIENT.with_changes({"stall": {"checkpoint_stuck_after": 1.5, "checkpoint_degraded_after": 1.0}})
    )
    watch.beat(incarnation="one", task_id="t")
    watch.hear(ProgressMade(agent_id="a", incarnation="one", task_id="t"))
    n = 0
    while not watch.orders(Terminate):
        watch.hear(same_call(n := n + 1), watch.now + 0.2)
        assert n < 100
    assert {finding.kind for finding in watch.orders(Terminate)[0].findings} >= {
        Kind.NO_CHECKPOINT,
        Kind.LOOPING,
    }
    assert watch.orders(Terminate)[0].reason.startswith("search was called")


def test_the_first_sign_of_life_withdraws_a_termination_for_silence() -> None:
    watch = silent_to_its_end()
    order = watch.orders(Terminate)[0]
    assert (order.on_silence, order.seq_seen, order.incarnation) == (True, 7, "one")
    watch.beat(incarnation="one", seq=8)
    assert (watch.agent().case, watch.health()) == (None, Health.HEALTHY)
    last = watch.facts(Intervention)[-1]
    assert (last.id, last.stage, last.text) == (order.order_id, Stage.DROPPED, ladder.HEARD_AGAIN)


def test_who_returns_from_silence_with_another_illness_is_nudged_and_not_ended() -> None:
    """A process that stood still says so in its first beat: a loop that did not answer for an hour."""
    watch = silent_to_its_end()
    watch.forget()
    watch.beat(incarnation="one", seq=8, loop_lag_ms=3_600_000.0)
    assert watch.health() is Health.DISCONNECTED
    assert [fact.stage for fact in watch.facts(Intervention)][:1] == [Stage.DROPPED]
    assert case(watch).rung is Rung.NUDGE
    assert not watch.orders(Terminate)


def test_a_termination_nobody_could_carry_out_does_not_lie_in_wait() -> None:
    watch = silent_to_its_end()
    watch.live(watch.now + 10 * MINUTE, "b")
    assert "cannot stop" in told(watch)
    assert case(watch).order_id == ""
    assert [f for f in watch.facts(Intervention) if f.rung is Rung.TERMINATE][-1].stage is Stage.DROPPED


def test_a_persons_own_termination_waits_for_who_returns() -> None:
    watch = silent_to_its_end()
    watch.hear(TerminationRequested(agent_id="a", by="eva", reason="enough"))
    order = watch.orders(Terminate)[-1]
    assert (order.by, order.on_silence) == ("eva", False)
    watch.live(watch.now + 10 * MINUTE, "b")
    watch.beat(incarnation="one", seq=8)
    assert case(watch).order_id == order.order_id


def test_a_good_bye_that_was_held_up_is_a_good_end() -> None:
    watch = silent_to_its_end()
    watch.hear(AgentLeft(agent_id="a", incarnation="one", reason="done"))
    assert watch.health() is Health.TERMINATED
    assert not watch.facts(Ending)
    watch.live(watch.now + 10 * MINUTE, "b")
    assert not watch.orders(Respawn)


def test_a_silent_agent_whose_process_is_seen_to_have_ended_is_ended_on_record() -> None:
    watch = silent_to_its_end()
    watch.hear(ProcessExited(agent_id="a", incarnation="one", signal=9))
    assert [fact.stage for fact in watch.facts(Ending)] == [Stage.DONE]


def test_an_end_that_was_withdrawn_too_late_is_told_and_followed_by_another_life() -> None:
    watch = silent_to_its_end()
    order = watch.orders(Terminate)[0]
    watch.beat(incarnation="one", seq=8)
    watch.hear(TerminationDone(agent_id="a", incarnation="one", order_id=order.order_id))
    assert watch.health() is Health.TERMINATED
    assert [fact.id for fact in watch.facts(Ending)] == [order.order_id]
    assert "stopped" in told(watch)
    watch.live(watch.now + 5 * MINUTE, "b")
    assert len(watch.orders(Respawn)) == 1


def test_who_was_ended_by_an_order_that_another_replaced_has_the_successor_the_last_one_wants() -> None:
    watch = Watch()
    watch.beat(incarnation="one")
    for respawn in (True, False):
        watch.hear(TerminationRequested(agent_id="a", by="eva", respawn=respawn), watch.now + 1)
    first, second = watch.orders(Terminate)
    watch.hear(TerminationDone(agent_id="a", incarnation="one", order_id=first.order_id))
    assert [fact.id for fact in watch.facts(Ending)] == [second.order_id]
    watch.run_until(watch.now + 60)
    assert not watch.orders(Respawn)


def test_a_persons_nudge_does_not_switch_the_ladder_off() -> None:
    watch = Watch()
    watch.beat("b")
    watch.beat(incarnation="one")
    watch.live(START + 60, "b")
    assert len(watch.orders(Escalate)) == 1
    watch.hear(NudgeRequested(agent_id="a", by="eva", message="Are you there?"))
    watch.live(START + 13 * MINUTE, "b")
    assert len(watch.orders(Escalate)) == 2
    watch.live(START + 30 * MINUTE, "b")
    assert [order.by for order in watch.orders(Terminate)][:1] == [""]


def test_a_persons_question_that_nobody_answers_is_not_their_order_to_end() -> None:
    """Eva asked others about a healthy agent. It is not ended in her name, and not forgotten when it falls ill."""
    watch = Watch()
    watch.beat(incarnation="one")
    watch.hear(EscalationRequested(agent_id="a", by="eva", reason="looks odd"))
    watch.live(START + 20 * MINUTE, incarnation="one")
    assert watch.agent().case is None
    assert not watch.orders(Terminate)
    watch.hear(SICK)
    assert watch.orders(SendNudge)


def test_an_answer_to_a_persons_nudge_is_the_end_of_it() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(NudgeRequested(agent_id="a", by="eva", message="How is it going?"))
    nudge = watch.orders(SendNudge)[0]
    watch.hear(NudgeAnswered(agent_id="a", nudge_id=nudge.order_id, answer=Answer.PROGRESS))
    watch.live(START + 60 * MINUTE)
    assert len(watch.orders(SendNudge)) == 1
