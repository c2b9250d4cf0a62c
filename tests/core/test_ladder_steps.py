"""One step of the ladder at a time: what it orders, what it writes down and how long it waits. `test_ladder.py` climbs it."""

from typing import TypeVar

import pytest
from msgspec.structs import replace

from lifesigns.core import ladder as ladder_module
from lifesigns.core.agent import NEVER, Agent, Case, Past, Work
from lifesigns.core.awareness import Awareness
from lifesigns.core.effects import (
    Effect,
    Ending,
    Escalate,
    Finding,
    Intervention,
    Kind,
    NeedsHuman,
    Order,
    Rung,
    SendNudge,
    Severity,
    Stage,
    Terminate,
)
from lifesigns.core.fleet import WHOLE, Fleet
from lifesigns.core.health import Cause, Doing, Health
from lifesigns.core.ladder import (
    ANSWERED,
    CANNOT_STOP,
    HEARD_AGAIN,
    NO_ANSWER,
    NUDGE_IDS_MAX,
    UNDECIDED,
    WITHDRAWN_TOO_LATE,
    Ladder,
    nudge_text,
)
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import MINUTE, FleetPolicy, LadderPolicy
from lifesigns.core.signals import Answer, Decision, EscalationDecided

NOW = 1000.0
POLICY = LadderPolicy()

AnEffect = TypeVar("AnEffect", bound=Effect)


def found(kind: Kind, severity: Severity, *, since: float = 900.0, conclusive: bool = False) -> Finding:
    return Finding(kind, since, severity, f"{kind} {severity}.", {}, conclusive)


STALLED = found(Kind.NO_CHECKPOINT, Severity.STUCK)
ERRORS = found(Kind.ERRORS, Severity.FAILING)
LOOP = found(Kind.LOOPING, Severity.STUCK, conclusive=True)
SILENCE = found(Kind.SILENCE, Severity.DISCONNECTED, conclusive=True)
NEVER_STARTED = found(Kind.NEVER_STARTED, Severity.DISCONNECTED)
SUSPECT = found(Kind.SILENCE, Severity.DEGRADED)
FREEZE = found(Kind.FREEZE, Severity.DISCONNECTED)
EXIT = found(Kind.EXIT, Severity.DISCONNECTED, conclusive=True)
CAP = found(Kind.SPENDING, Severity.FAILING, conclusive=True)
NEAR_CAP = found(Kind.SPENDING, Severity.DEGRADED)
NOTICE = found(Kind.OVERLOAD, Severity.NOTICE)

WEAK = (STALLED,)
TWO_KINDS = (STALLED, ERRORS)


class Climb:
    """A ladder, one agent, and what was said since one last looked."""

    def __init__(
        self,
        *findings: Finding,
        health: Health = Health.STUCK,
        cause: Cause | None = None,
        doing: Doing = Doing.WORKING,
        policy: LadderPolicy = POLICY,
    ) -> None:
        self.outbox = Outbox(1)
        self.fleet = Fleet(FleetPolicy())
        self.awareness = Awareness()
        self.ladder = Ladder(self.outbox, self.fleet, self.awareness)
        self.agent = Agent("a", 1, health=health, cause=cause, doing=doing, since=880.0, seq=7)
        self.agent.findings = findings
        self.fleet.join(self.agent)
        self.policy = policy
        self.now = NOW

    @property
    def case(self) -> Case:
        assert self.agent.case is not None
        return self.agent.case

    def open(self) -> "Climb":
        self.review()
        assert self.agent.case is not None
        return self

    def review(self) -> None:
        self.ladder.review(self.agent, self.policy, self.now)

    def step(self, *, in_time: bool = True) -> list[Effect]:
        """Wait until the next step is due and take it; what it says."""
        if in_time:
            self.now = max(self.now, self.ladder.due_at(self.agent))
        self.ladder.step(self.agent, self.policy, self.now)
        return list(self.outbox.take())

    def to(self, rung: Rung) -> "Climb":
        """Up to the order of this rung."""
        while not (self.case.rung is rung and self.case.order_id):
            assert self.ladder.due_at(self.agent) < NEVER, f"it stays on {self.case.rung}"
            self.step()
        return self

    def get_well(self) -> None:
        self.agent.findings, self.agent.health = (), Health.HEALTHY

    def brake(self) -> None:
        for n in range(3):
            other = Agent(f"other-{n}", 100 + n, health=Health.HEALTHY)
            self.fleet.join(other)
            other.health = Health.STUCK
            self.fleet.flipped(other, Health.HEALTHY, self.now, Outbox(1))
        assert self.fleet.state.groups[WHOLE].braked

    def said(self) -> list[tuple[Rung, Stage, str]]:
        return [(f.rung, f.stage, f.text) for f in only(self.outbox.take(), Intervention)]


def only(effects: object, kind: type[AnEffect]) -> list[AnEffect]:
    assert isinstance(effects, list | tuple)
    return [effect for effect in effects if isinstance(effect, kind)]


# --- a case opens ----------------------------------------------------------------------------------------


def test_a_case_begins_with_a_nudge_at_once() -> None:
    case = Climb(*WEAK).open().case
    assert case == Case(Rung.NUDGE, STALLED.text, waited_from=NOW, wait=0.0, respawn=True)


@pytest.mark.parametrize("health", [Health.STARTING, Health.HEALTHY, Health.DEGRADED, Health.TERMINATED])
def test_no_case_opens_for_one_that_is_not_unwell(health: Health) -> None:
    climb = Climb(NOTICE, health=health)
    climb.review()
    assert climb.agent.case is None


def test_no_case_opens_for_a_process_that_is_known_to_be_gone() -> None:
    climb = Climb(EXIT, health=Health.DISCONNECTED)
    climb.review()
    assert climb.agent.case is None


def test_no_case_opens_where_the_policy_wants_none() -> None:
    climb = Climb(LOOP, policy=replace(POLICY, enabled=False))
    climb.review()
    assert climb.agent.case is None


@pytest.mark.parametrize("silence", [SILENCE, NEVER_STARTED])
def test_about_one_that_is_lost_people_are_asked_after_a_moment(silence: Finding) -> None:
    case = Climb(silence, health=Health.DISCONNECTED, cause=Cause.UNKNOWN).open().case
    assert (case.rung, case.wait, case.on_silence) == (Rung.ESCALATE, POLICY.hesitate_for, True)


def test_one_that_is_frozen_can_be_nudged() -> None:
    case = Climb(FREEZE, health=Health.DISCONNECTED, cause=Cause.FREEZE).open().case
    assert (case.rung, case.wait, case.on_silence) == (Rung.NUDGE, POLICY.hesitate_for, False)


def test_where_nobody_is_nudged_people_are_asked_at_once() -> None:
    case = Climb(*WEAK, policy=replace(POLICY, nudge_enabled=False)).open().case
    assert (case.rung, case.wait) == (Rung.ESCALATE, 0.0)


def test_a_cap_that_is_reached_is_the_end_and_no_successor_follows() -> None:
    climb = Climb(CAP, health=Health.FAILING).open()
    assert (climb.case.rung, climb.case.respawn) == (Rung.TERMINATE, False)
    order = only(climb.step(), Terminate)[0]
    assert order.reason == CAP.text


def test_a_cap_that_is_near_is_a_nudge() -> None:
    case = Climb(NEAR_CAP, STALLED).open().case
    assert (case.rung, case.respawn) == (Rung.NUDGE, True)


# --- when the next step is due -----------------------------------------------------------------------------


def test_without_a_case_or_with_one_that_waits_for_a_person_nothing_is_due() -> None:
    climb = Climb(*WEAK)
    assert climb.ladder.due_at(climb.agent) == NEVER
    climb.open().case.wait = NEVER
    climb.agent.past = Past(paused_until=NOW + 60)
    assert climb.ladder.due_at(climb.agent) == NEVER
    climb.awareness.slept(NOW - 1, NOW + 50, FleetPolicy())
    assert climb.ladder.due_at(climb.agent) == NEVER


def test_a_pause_holds_our_steps_and_not_a_persons() -> None:
    climb = Climb(*WEAK).open()
    climb.agent.past = Past(paused_until=NOW + 60)
    assert climb.ladder.due_at(climb.agent) == NOW + 60
    climb.ladder.start(climb.agent, Rung.NUDGE, NOW, reason="", by="ann")
    assert climb.ladder.due_at(climb.agent) == NOW


def test_time_in_which_we_did_not_look_is_no_part_of_a_wait() -> None:
    climb = Climb(*WEAK).open()
    climb.step()
    climb.awareness.slept(NOW + 100, NOW + 150, FleetPolicy())
    assert climb.ladder.due_at(climb.agent) == NOW + POLICY.nudge_every + 50


def test_a_step_without_a_case_is_none() -> None:
    assert Climb(*WEAK).step(in_time=False) == []


# --- nudges ------------------------------------------------------------------------------------------------


def test_nudges_are_numbered_and_each_is_waited_for() -> None:
    climb = Climb(*WEAK).open()
    for attempt in (1, 2, 3):
        effects = climb.step()
        nudge = only(effects, SendNudge)[0]
        assert (nudge.attempt, nudge.at) == (attempt, NOW + (attempt - 1) * POLICY.nudge_every)
        assert nudge.text == nudge_text(climb.agent, nudge.at, POLICY.nudge_template)
        assert (climb.case.attempt, climb.case.nudges, climb.agent.past.interventions) == (attempt,) * 3
        assert climb.case.order_id == climb.case.nudge_ids[-1] == nudge.order_id
        told = only(effects, Intervention)
        assert [(f.stage, f.text) for f in told if f.id == nudge.order_id] == [(Stage.ORDERED, nudge.text)]
        assert [(f.stage, f.text) for f in told if f.id != nudge.order_id] == [(Stage.DROPPED, NO_ANSWER)] * (
            attempt > 1
        )
    assert len(climb.case.nudge_ids) == 3
    climb.step()
    assert (climb.case.rung, climb.case.attempt, climb.case.wait) == (Rung.ESCALATE, 0, 0.0)
    assert not climb.case.order_id


def test_only_the_last_nudges_may_still_be_answered() -> None:
    climb = Climb(*WEAK, policy=replace(POLICY, nudge_max=20)).open()
    ids = [only(climb.step(), SendNudge)[0].order_id for _ in range(20)]
    assert climb.case.nudge_ids == tuple(ids[-NUDGE_IDS_MAX:])
    assert NUDGE_IDS_MAX == 16


@pytest.mark.parametrize(
    ("doing", "nudged"),
    [
        (Doing.WAITING_FOR_HUMAN, False),
        (Doing.RATE_LIMITED, False),
        (Doing.BUSY, True),
        (Doing.WORKING, True),
        (Doing.IDLE, True),
    ],
)
def test_one_that_waits_for_something_else_is_not_nudged(doing: Doing, nudged: bool) -> None:
    climb = Climb(*WEAK, doing=doing).open()
    assert bool(only(climb.step(), SendNudge)) is nudged
    assert climb.case.wait == POLICY.nudge_every
    assert climb.case.nudges == nudged


def test_a_person_may_nudge_anybody_in_their_own_words_and_despite_the_brake() -> None:
    climb = Climb(*WEAK, doing=Doing.WAITING_FOR_HUMAN)
    climb.brake()
    climb.ladder.start(climb.agent, Rung.NUDGE, NOW, reason="look here", by="ann")
    effects = climb.step()
    assert [nudge.text for nudge in only(effects, SendNudge)] == ["look here"]
    assert [(f.stage, f.by) for f in only(effects, Intervention)] == [(Stage.ORDERED, "ann")]
    assert not climb.fleet.state.acts


def test_a_persons_nudge_without_words_states_the_facts() -> None:
    climb = Climb(*WEAK)
    climb.ladder.start(climb.agent, Rung.NUDGE, NOW, reason="", by="ann")
    assert only(climb.step(), SendNudge)[0].text.startswith(STALLED.text)


def test_a_persons_nudge_that_is_not_answered_leaves_our_own_ladder_on() -> None:
    climb = Climb(*WEAK)
    climb.ladder.start(climb.agent, Rung.NUDGE, NOW, reason="", by="ann")
    climb.step()
    assert [(f.stage, f.text) for f in only(climb.step(), Intervention)] == [(Stage.DROPPED, NO_ANSWER)]
    assert (climb.case.rung, climb.case.by, climb.case.attempt) == (Rung.NUDGE, "", 0)


def test_a_persons_nudge_to_a_healthy_agent_opens_no_case() -> None:
    climb = Climb(health=Health.HEALTHY)
    climb.ladder.start(climb.agent, Rung.NUDGE, NOW, reason="", by="ann")
    climb.step()
    climb.step()
    assert climb.agent.case is None


# --- taken back ---------------------------------------------------------------------------------------------


def nudging(doing: Doing = Doing.WAITING_FOR_HUMAN) -> Climb:
    """The third nudge is ordered, and has not left the house; the agent says what it does now."""
    climb = Climb(*WEAK).open()
    climb.step()
    climb.step()
    climb.now = climb.ladder.due_at(climb.agent)
    climb.ladder.step(climb.agent, POLICY, climb.now)
    climb.agent.doing = doing
    return climb


@pytest.mark.parametrize("doing", [Doing.WAITING_FOR_HUMAN, Doing.RATE_LIMITED])
def test_a_nudge_of_this_very_moment_is_taken_back_when_the_agent_waits_for_something_else(
    doing: Doing,
) -> None:
    climb = nudging(doing)
    before = climb.case.nudge_ids[:2]
    climb.ladder.left_alone(climb.agent)
    case = climb.case
    assert (case.attempt, case.nudges, case.nudge_ids, case.order_id) == (2, 2, before, "")
    assert climb.agent.past.interventions == 2
    assert not only(climb.outbox.take(), SendNudge)


def test_a_nudge_stands_while_the_agent_works_or_when_it_has_left_or_a_person_wanted_it() -> None:
    working, gone, wanted = nudging(Doing.WORKING), nudging(), nudging()
    gone.outbox.take()
    wanted.case.by = "ann"
    for climb in (working, gone, wanted):
        climb.ladder.left_alone(climb.agent)
        assert (climb.case.attempt, climb.case.nudges, len(climb.case.nudge_ids)) == (3, 3, 3)
        assert climb.case.order_id
        assert climb.agent.past.interventions == 3


def test_a_question_to_people_is_not_taken_back_with_it() -> None:
    climb = Climb(*WEAK, doing=Doing.WAITING_FOR_HUMAN, policy=replace(POLICY, nudge_enabled=False)).open()
    climb.ladder.step(climb.agent, climb.policy, NOW)
    climb.ladder.left_alone(climb.agent)
    assert climb.case.attempt == 1
    assert only(climb.outbox.take(), Escalate)
    nobody = Climb(health=Health.HEALTHY, doing=Doing.WAITING_FOR_HUMAN)
    nobody.ladder.left_alone(nobody.agent)
    assert nobody.agent.case is None


# --- answers ------------------------------------------------------------------------------------------------


def answer(climb: Climb, word: Answer, order_id: str | None = None, note: str = "") -> list[Effect]:
    order_id = climb.case.nudge_ids[-1] if order_id is None else order_id
    climb.ladder.answered(climb.agent, order_id, word, note, POLICY, climb.now)
    return list(climb.outbox.take())


@pytest.mark.parametrize("word", [Answer.NEED_TIME, Answer.PROGRESS])
def test_an_answer_buys_time_and_the_ladder_begins_anew(word: Answer) -> None:
    climb = Climb(*TWO_KINDS).open().to(Rung.ESCALATE)
    nudge, question = climb.case.nudge_ids[-1], climb.case.order_id
    effects = answer(climb, word, note="soon")
    assert [(f.id, f.rung, f.stage, f.text) for f in only(effects, Intervention)] == [
        (nudge, Rung.NUDGE, Stage.ANSWERED, f"{word}: soon"),
        (question, Rung.ESCALATE, Stage.DROPPED, ANSWERED),
    ]
    case = climb.case
    assert (case.rung, case.attempt, case.nudges, case.escalated) == (Rung.NUDGE, 0, 0, False)
    assert (case.waited_from, case.wait) == (climb.now, POLICY.more_time_for)
    assert len(only(climb.step(), SendNudge)) == 1


def test_an_answer_to_the_nudge_that_is_out_ends_it_as_answered() -> None:
    climb = Climb(*WEAK).open().to(Rung.NUDGE)
    assert [(f.stage, f.text) for f in only(answer(climb, Answer.NEED_TIME), Intervention)] == [
        (Stage.ANSWERED, "need_time")
    ]


def test_the_same_answer_again_is_no_news_and_another_is() -> None:
    climb = Climb(*WEAK).open().to(Rung.NUDGE)
    answer(climb, Answer.NEED_TIME, note="soon")
    climb.now += 100
    assert answer(climb, Answer.NEED_TIME, note="soon") == []
    assert climb.case.waited_from == NOW
    assert answer(climb, Answer.NEED_TIME, note="later")
    assert climb.case.waited_from == NOW + 100


def test_nobody_answers_what_was_not_asked_or_an_order_to_end() -> None:
    climb = Climb(LOOP).open().to(Rung.NUDGE)
    assert answer(climb, Answer.NEED_TIME, "1-99") == []
    assert (climb.case.nudges, climb.case.wait) == (1, POLICY.nudge_every)
    climb.to(Rung.TERMINATE)
    assert answer(climb, Answer.NEED_TIME) == []
    assert climb.case.rung is Rung.TERMINATE
    climb.agent.case = None
    climb.ladder.answered(climb.agent, "1-1", Answer.NEED_TIME, "", POLICY, climb.now)
    assert not climb.outbox.take()


def test_a_handoff_is_a_termination_by_the_agents_own_wish() -> None:
    climb = Climb(*WEAK).open().to(Rung.NUDGE)
    answer(climb, Answer.HANDOFF)
    case = climb.case
    assert (case.rung, case.by, case.respawn) == (Rung.TERMINATE, "a", True)
    order = only(climb.step(), Terminate)[0]
    assert (order.reason, order.by) == ("the agent asked for a handoff", "a")


def test_one_that_is_blocked_is_a_question_for_people() -> None:
    climb = Climb(*WEAK).open().to(Rung.NUDGE)
    effects = answer(climb, Answer.BLOCKED, note="no key")
    assert [(f.reason, f.text) for f in only(effects, NeedsHuman)] == [("blocked", "a is blocked: no key")]
    assert (climb.case.rung, climb.case.nudges) == (Rung.ESCALATE, 0)
    climb.to(Rung.ESCALATE)
    asked = climb.case.order_id
    effects = answer(climb, Answer.BLOCKED)
    assert [f.text for f in only(effects, NeedsHuman)] == ["a is blocked: it gave no reason"]
    assert (climb.case.order_id, climb.case.wait) == (asked, POLICY.escalation_timeout)


def test_an_answer_to_a_persons_nudge_makes_it_our_case() -> None:
    climb = Climb(*WEAK)
    climb.ladder.start(climb.agent, Rung.NUDGE, NOW, reason="", by="ann")
    climb.step()
    answer(climb, Answer.NEED_TIME)
    assert (climb.case.by, climb.case.respawn) == ("", True)
    capped = Climb(CAP, health=Health.FAILING)
    capped.ladder.start(capped.agent, Rung.NUDGE, NOW, reason="", by="ann")
    capped.step()
    answer(capped, Answer.NEED_TIME)
    assert (capped.case.by, capped.case.respawn) == ("", False)


def test_how_far_a_nudge_has_come_is_written_down_once() -> None:
    climb = Climb(*WEAK).open().to(Rung.NUDGE)
    order_id = climb.case.order_id
    for _ in range(2):
        climb.ladder.reached(climb.agent, order_id, Stage.DELIVERED, climb.now)
    climb.ladder.reached(climb.agent, "1-99", Stage.SEEN, climb.now)
    climb.ladder.reached(climb.agent, order_id, Stage.SEEN, climb.now, "at once")
    assert climb.said() == [(Rung.NUDGE, Stage.DELIVERED, ""), (Rung.NUDGE, Stage.SEEN, "at once")]
    climb.agent.case = None
    climb.ladder.reached(climb.agent, order_id, Stage.DELIVERED, climb.now)
    assert climb.said() == []


def test_a_nudge_that_failed_has_ended_already() -> None:
    climb = Climb(*WEAK).open().to(Rung.NUDGE)
    climb.ladder.reached(climb.agent, climb.case.order_id, Stage.FAILED, climb.now, "no such folder")
    climb.outbox.take()
    assert [f.stage for f in only(climb.step(), Intervention)] == [Stage.ORDERED]


# --- escalation ---------------------------------------------------------------------------------------------


def test_people_are_asked_with_all_that_is_known() -> None:
    climb = Climb(STALLED, LOOP, policy=replace(POLICY, nudge_enabled=False)).open()
    climb.agent.work = Work(since=0.0, checkpoint_id="cp-3")
    effects = climb.step()
    order = only(effects, Escalate)[0]
    assert (order.reason, order.findings, order.checkpoint_id) == (LOOP.text, (STALLED, LOOP), "cp-3")
    assert order.answer_by == NOW + POLICY.escalation_timeout
    assert [(f.reason, f.text) for f in only(effects, NeedsHuman)] == [("escalation", LOOP.text)]
    case = climb.case
    assert (case.attempt, case.wait, case.escalated) == (1, POLICY.escalation_timeout, True)
    assert climb.agent.past.interventions == 1
    assert not climb.fleet.state.acts  # To ask is not to act.


def test_nobody_is_asked_about_one_while_too_many_are_unwell() -> None:
    climb = Climb(*WEAK, policy=replace(POLICY, nudge_enabled=False)).open()
    climb.brake()
    effects = climb.step()
    assert not only(effects, Order)
    assert [(f.stage, f.attempt) for f in only(effects, Intervention)] == [(Stage.HELD, 0)]
    assert (climb.case.wait, climb.case.escalated) == (MINUTE, False)
    assert climb.step() == []  # The reason is the same: that is no news.
    climb.fleet.state.groups[WHOLE].braked = False
    assert only(climb.step(), Escalate)
    assert climb.case.held == ""


def test_what_people_were_asked_about_is_noted_when_they_are_asked() -> None:
    """It was frozen when the case began, and is silent now."""
    climb = Climb(FREEZE, health=Health.DISCONNECTED, cause=Cause.FREEZE).open()
    climb.agent.findings, climb.agent.cause = (SILENCE,), Cause.UNKNOWN
    climb.review()
    assert not climb.case.on_silence
    climb.step()
    assert (climb.case.on_silence, climb.case.grounds) == (True, True)
    weak = Climb(*WEAK, policy=replace(POLICY, nudge_enabled=False)).open()
    weak.step()
    assert (weak.case.on_silence, weak.case.grounds) == (False, False)


def test_weak_evidence_and_no_answer_wait_for_a_person() -> None:
    climb = Climb(*WEAK).open().to(Rung.ESCALATE)
    effects = climb.step()
    assert [f.reason for f in only(effects, NeedsHuman)] == [UNDECIDED] == ["undecided"]
    assert (climb.case.held, climb.case.wait) == (UNDECIDED, NEVER)


def test_evidence_people_were_not_asked_about_is_asked_about_before_it_ends_anybody() -> None:
    climb = Climb(*WEAK).open().to(Rung.ESCALATE)
    climb.agent.findings = (LOOP,)
    effects = climb.step()
    assert not only(effects, Order)
    assert (climb.case.rung, climb.case.grounds, climb.case.escalated) == (Rung.ESCALATE, False, False)
    assert only(climb.step(), Escalate)
    climb.step()
    assert (climb.case.rung, climb.case.grounds, climb.case.escalated) == (Rung.TERMINATE, True, True)


def test_two_kinds_end_an_agent_after_all_its_nudges_and_a_question() -> None:
    climb = Climb(*TWO_KINDS).open().to(Rung.TERMINATE)
    assert climb.case.nudges == 3
    assert climb.case.reason == f"{ERRORS.text} {STALLED.text}"


@pytest.mark.parametrize("nudges", [1, 2])
def test_two_kinds_do_not_after_fewer_nudges(nudges: int) -> None:
    climb = Climb(*TWO_KINDS).open().to(Rung.ESCALATE)
    climb.case.nudges = nudges
    climb.case.grounds = True
    climb.step()
    assert climb.case.held == UNDECIDED


def test_where_nobody_is_nudged_the_question_is_enough() -> None:
    climb = Climb(*TWO_KINDS, policy=replace(POLICY, nudge_enabled=False)).open().to(Rung.ESCALATE)
    assert climb.case.grounds
    assert climb.to(Rung.TERMINATE).case.nudges == 0


@pytest.mark.parametrize("spared", ["partition", "waiting_for_human"])
def test_one_that_is_cut_off_or_waits_for_a_person_is_never_ended_unasked(spared: str) -> None:
    climb = Climb(SILENCE, health=Health.DISCONNECTED, cause=Cause.UNKNOWN).open().to(Rung.ESCALATE)
    if spared == "partition":
        climb.agent.cause = Cause.PARTITION
    else:
        climb.agent.doing = Doing.WAITING_FOR_HUMAN
    climb.step()
    assert (climb.case.rung, climb.case.held) == (Rung.ESCALATE, UNDECIDED)


def test_a_persons_question_that_nobody_answers_becomes_our_case() -> None:
    climb = Climb(*WEAK)
    climb.ladder.start(climb.agent, Rung.ESCALATE, NOW, reason="odd", by="ann")
    assert only(climb.step(), Escalate)[0].reason == "odd"
    climb.agent.findings = (CAP,)
    climb.step()
    assert (climb.case.by, climb.case.rung, climb.case.respawn) == ("", Rung.TERMINATE, False)


def test_a_persons_question_about_a_healthy_agent_ends_with_their_silence() -> None:
    climb = Climb(health=Health.HEALTHY)
    climb.ladder.start(climb.agent, Rung.ESCALATE, NOW, reason="odd", by="ann")
    climb.step()
    assert [(f.stage, f.text) for f in only(climb.step(), Intervention)] == [(Stage.DROPPED, "well again")]
    assert climb.agent.case is None


# --- decisions ----------------------------------------------------------------------------------------------


def decide(climb: Climb, decision: Decision, order_id: str = "", by: str = "", note: str = "") -> bool:
    order_id = order_id or climb.case.order_id
    answer = EscalationDecided(agent_id="a", order_id=order_id, decision=decision, by=by, note=note)
    return climb.ladder.decided(climb.agent, answer, POLICY, climb.now)


def test_more_time_is_granted_and_then_the_question_is_asked_anew() -> None:
    climb = Climb(LOOP).open().to(Rung.ESCALATE)
    climb.case.held = "something"
    assert decide(climb, Decision.MORE_TIME, by="ann", note="it is slow")
    told = only(climb.outbox.take(), Intervention)
    assert [(f.stage, f.by, f.text) for f in told] == [(Stage.ANSWERED, "ann", "more_time: it is slow")]
    case = climb.case
    assert (case.rung, case.wait, case.escalated, case.held) == (
        Rung.ESCALATE,
        POLICY.more_time_for,
        False,
        "",
    )
    effects = climb.step()
    assert only(effects, Escalate)
    assert not only(effects, Terminate)


def test_one_that_is_to_be_left_alone_is() -> None:
    climb = Climb(LOOP).open().to(Rung.ESCALATE)
    assert decide(climb, Decision.IGNORE)
    assert [f.text for f in only(climb.outbox.take(), Intervention)] == ["ignore"]
    assert climb.ladder.due_at(climb.agent) == NEVER
    climb.review()
    assert (climb.case.rung, climb.case.wait) == (Rung.ESCALATE, NEVER)


def test_what_a_person_wanted_to_know_and_leaves_alone_is_our_case_again() -> None:
    climb = Climb(*WEAK)
    climb.ladder.start(climb.agent, Rung.ESCALATE, NOW, reason="odd", by="ann")
    climb.step()
    assert decide(climb, Decision.IGNORE)
    assert climb.case.by == ""
    climb.get_well()
    climb.review()
    assert climb.agent.case is None


@pytest.mark.parametrize("decision", [Decision.TERMINATE, Decision.HANDOFF])
@pytest.mark.parametrize(("by", "named"), [("ann", "ann"), ("", "orchestrator")])
def test_a_decision_to_end_it_is_carried_out_at_once_in_their_name(
    decision: Decision, by: str, named: str
) -> None:
    climb = Climb(*WEAK).open().to(Rung.ESCALATE)
    climb.case.respawn = False
    climb.brake()
    assert decide(climb, decision, by=by)
    case = climb.case
    assert (case.rung, case.by, case.respawn, case.wait) == (Rung.TERMINATE, named, True, 0.0)
    assert only(climb.step(), Terminate)[0].by == named


def test_a_second_decision_and_one_about_something_else_do_not_count() -> None:
    climb = Climb(LOOP).open().to(Rung.ESCALATE)
    assert not decide(climb, Decision.TERMINATE, "1-99")
    assert decide(climb, Decision.MORE_TIME)
    assert not decide(climb, Decision.TERMINATE)
    assert climb.case.rung is Rung.ESCALATE
    nudged = Climb(LOOP).open().to(Rung.NUDGE)
    assert not decide(nudged, Decision.TERMINATE)
    assert nudged.case.rung is Rung.NUDGE
    ending = Climb(CAP, health=Health.FAILING).open().to(Rung.TERMINATE)
    assert not decide(ending, Decision.IGNORE)
    ending.agent.case = None
    assert not decide(ending, Decision.IGNORE, "1-1")


# --- termination --------------------------------------------------------------------------------------------


def ending(*findings: Finding) -> Climb:
    """An order to end the agent is out."""
    return Climb(*(findings or (LOOP,))).open().to(Rung.TERMINATE)


def test_an_order_to_end_carries_its_evidence() -> None:
    climb = Climb(STALLED, LOOP).open().to(Rung.ESCALATE)
    climb.step()
    order = only(climb.step(), Terminate)[0]
    assert (order.reason, order.findings, order.seq_seen) == (LOOP.text, (STALLED, LOOP), 7)
    assert (order.save_for, order.by, order.on_silence) == (30.0, "", False)
    assert climb.case.wait == 30.0 + 60.0
    assert [(act.rung, act.at) for act in climb.fleet.state.acts] == [(Rung.TERMINATE, climb.now)]


def test_an_order_that_rests_on_silence_says_so_unless_a_person_gave_it() -> None:
    climb = Climb(SILENCE, health=Health.DISCONNECTED, cause=Cause.UNKNOWN).open().to(Rung.ESCALATE)
    climb.case.on_silence = False
    climb.step()
    assert only(climb.step(), Terminate)[0].on_silence
    assert climb.case.on_silence
    by_hand = Climb(SILENCE, health=Health.DISCONNECTED)
    by_hand.ladder.start(by_hand.agent, Rung.TERMINATE, NOW, reason="enough", by="ann")
    order = only(by_hand.step(), Terminate)[0]
    assert (order.on_silence, order.reason, order.by) == (False, "enough", "ann")


def test_an_order_without_an_outcome_is_given_three_times_and_then_given_up() -> None:
    climb = ending()
    order_id = climb.case.order_id
    for attempt in (2, 3):
        effects = climb.step()
        assert [order.order_id for order in only(effects, Terminate)] == [order_id]
        assert [(f.stage, f.attempt) for f in only(effects, Intervention)] == [(Stage.ORDERED, attempt)]
    effects = climb.step()
    assert not only(effects, Order)
    needs = only(effects, NeedsHuman)
    assert [(f.reason, f.text) for f in needs] == [(CANNOT_STOP, "a could not be stopped in 3 tries.")]
    assert [f.stage for f in only(effects, Intervention)] == [Stage.DROPPED]
    case = climb.case
    assert (case.held, case.wait, case.order_id, case.reached) == (CANNOT_STOP, NEVER, "", ())
    assert climb.agent.past.withdrawn == order_id


def test_the_reason_of_an_order_stays_that_of_its_first_try() -> None:
    climb = ending()
    climb.agent.findings = (CAP,)
    assert only(climb.step(), Terminate)[0].reason == LOOP.text


def test_what_a_person_ordered_stays_in_force() -> None:
    climb = Climb(health=Health.HEALTHY)
    climb.ladder.start(climb.agent, Rung.TERMINATE, NOW, reason="enough", by="ann")
    for _ in range(3):
        climb.step()
    order_id = climb.case.order_id
    effects = climb.step()
    assert [f.text for f in only(effects, NeedsHuman)] == [
        "a could not be stopped in 3 tries. It will be when it is reached, unless you clear it."
    ]
    assert not only(effects, Intervention)
    assert (climb.case.order_id, climb.case.wait, climb.agent.past.withdrawn) == (order_id, NEVER, "")
    assert not climb.ladder.is_ending(climb.agent)


def test_what_could_not_be_stopped_and_is_well_is_let_go() -> None:
    climb = ending()
    climb.step()
    climb.step()
    climb.get_well()
    effects = climb.step()
    assert not only(effects, NeedsHuman)
    assert [(f.stage, f.text) for f in only(effects, Intervention)] == [(Stage.DROPPED, "well again")]
    assert climb.agent.case is None


def test_evidence_that_is_gone_before_the_order_ends_nobody() -> None:
    climb = Climb(LOOP).open().to(Rung.ESCALATE)
    climb.step()
    climb.agent.findings = WEAK
    effects = climb.step()
    assert not only(effects, Order)
    case = climb.case
    assert (case.rung, case.attempt, case.order_id, case.held, case.wait) == (
        Rung.ESCALATE,
        0,
        "",
        UNDECIDED,
        NEVER,
    )


def test_an_order_that_is_out_is_repeated_though_the_stop_itself_changed_the_evidence() -> None:
    climb = ending()
    climb.agent.findings = WEAK
    assert only(climb.step(), Terminate)


def test_an_order_that_failed_is_not_repeated_without_evidence() -> None:
    climb = ending()
    order_id = climb.case.order_id
    climb.ladder.termination_failed(climb.agent, order_id, "no such process", climb.policy, climb.now)
    climb.agent.findings = WEAK
    effects = climb.step()
    assert not only(effects, Order)
    assert [f.text for f in only(effects, Intervention)][-1:] == ["the evidence is gone"]
    assert climb.agent.past.withdrawn == order_id
    assert climb.case.rung is Rung.ESCALATE


def test_an_order_that_failed_is_repeated_after_a_minute_with_evidence() -> None:
    climb = ending()
    order_id, ordered_at = climb.case.order_id, climb.now
    climb.now += 5
    for _ in range(2):
        climb.ladder.termination_failed(climb.agent, order_id, "no such process", climb.policy, climb.now)
        assert (climb.case.waited_from, climb.case.wait) == (ordered_at + 5, 60.0)
        climb.now += 5
    assert climb.said() == [(Rung.TERMINATE, Stage.FAILED, "no such process")]
    assert [order.order_id for order in only(climb.step(), Terminate)] == [order_id]
    assert climb.now == ordered_at + 65


def test_a_failure_of_another_order_or_rung_is_none_of_this_one() -> None:
    climb = ending()
    climb.ladder.termination_failed(climb.agent, "1-99", "?", climb.policy, climb.now + 5)
    assert (climb.case.reached, climb.case.wait) == ((), 90.0)
    nudged = Climb(LOOP).open().to(Rung.NUDGE)
    nudged.ladder.termination_failed(nudged.agent, nudged.case.order_id, "?", nudged.policy, nudged.now)
    assert (nudged.case.reached, nudged.case.wait) == ((), POLICY.nudge_every)
    nudged.agent.case = None
    nudged.outbox.take()
    nudged.ladder.termination_failed(nudged.agent, "1-1", "?", nudged.policy, nudged.now)
    assert not nudged.outbox.take()


def test_no_more_are_ended_than_the_limit_allows() -> None:
    climb = Climb(LOOP).open().to(Rung.ESCALATE)
    climb.step()
    climb.brake()
    effects = climb.step()
    assert not only(effects, Order)
    assert climb.case.attempt == 0
    assert climb.case.wait == MINUTE


def test_a_hold_is_asked_about_again_after_a_second_at_the_earliest() -> None:
    climb = Climb(*WEAK).open()
    climb.fleet = Fleet(FleetPolicy(nudges_per_minute=1))
    climb.ladder = Ladder(climb.outbox, climb.fleet, climb.awareness)
    climb.fleet.acted(climb.agent, Rung.NUDGE, NOW - 59.5)
    climb.step()
    assert (climb.case.held, climb.case.wait) == ("1 a minute is the limit for nudge", 1.0)
    climb.fleet.state.acts[0].at = NOW - 30.0
    climb.step(in_time=False)
    assert climb.case.wait == 30.0


@pytest.mark.parametrize(
    ("rung", "order_id", "wait", "is_ending"),
    [
        (Rung.TERMINATE, "1-1", 90.0, True),
        (Rung.TERMINATE, "", 0.0, False),
        (Rung.TERMINATE, "1-1", NEVER, False),
        (Rung.ESCALATE, "1-1", 90.0, False),
        (Rung.RESPAWN, "1-1", 90.0, False),
    ],
)
def test_an_agent_is_ending_while_an_order_to_end_it_is_out(
    rung: Rung, order_id: str, wait: float, is_ending: bool
) -> None:
    climb = Climb(LOOP)
    assert not climb.ladder.is_ending(climb.agent)
    climb.agent.case = Case(rung, "", order_id=order_id, wait=wait)
    assert climb.ladder.is_ending(climb.agent) is is_ending


def test_a_termination_that_is_done_closes_its_case() -> None:
    climb = ending()
    case = climb.case
    assert climb.ladder.terminated(climb.agent, "1-99", climb.now) is None
    assert climb.ladder.terminated(climb.agent, case.order_id, climb.now, "cp-9") is case
    assert only(climb.outbox.take(), Ending) == [
        Ending(climb.now, "a", case.order_id, Rung.TERMINATE, Stage.DONE, 1, LOOP.text, checkpoint_id="cp-9")
    ]
    assert climb.agent.case is None
    assert climb.ladder.terminated(climb.agent, case.order_id, climb.now) is None
    asked = Climb(LOOP).open().to(Rung.ESCALATE)
    assert asked.ladder.terminated(asked.agent, asked.case.order_id, asked.now) is None
    assert asked.case.rung is Rung.ESCALATE


def test_an_order_carried_out_after_it_was_withdrawn_is_on_record_once() -> None:
    climb = ending()
    assert not climb.ladder.carried_out_anyway(climb.agent, "", climb.now)
    order_id = climb.case.order_id
    climb.ladder.drop(climb.agent, climb.now, "cleared")
    climb.outbox.take()
    assert not climb.ladder.carried_out_anyway(climb.agent, "1-99", climb.now)
    assert climb.ladder.carried_out_anyway(climb.agent, order_id, climb.now, "cp-9")
    assert only(climb.outbox.take(), Ending) == [
        Ending(
            climb.now, "a", order_id, Rung.TERMINATE, Stage.DONE, 1, WITHDRAWN_TOO_LATE, checkpoint_id="cp-9"
        )
    ]
    assert not climb.ladder.carried_out_anyway(climb.agent, order_id, climb.now)


# --- the evidence changes -------------------------------------------------------------------------------------


def test_a_case_is_dropped_when_the_agent_is_well_again() -> None:
    climb = Climb(*WEAK).open().to(Rung.NUDGE)
    climb.get_well()
    climb.review()
    assert climb.said() == [(Rung.NUDGE, Stage.DROPPED, "well again")]
    assert (climb.agent.case, climb.agent.past.withdrawn) == (None, "")


@pytest.mark.parametrize(("health", "why"), [(Health.DISCONNECTED, "gone"), (Health.TERMINATED, "gone")])
def test_a_case_is_dropped_when_the_agent_is_gone(health: Health, why: str) -> None:
    climb = Climb(*WEAK).open().to(Rung.NUDGE)
    climb.agent.findings, climb.agent.health = (EXIT,), health
    climb.review()
    assert climb.said() == [(Rung.NUDGE, Stage.DROPPED, why)]
    assert climb.agent.case is None


def test_an_order_of_this_very_moment_is_taken_back_without_a_trace() -> None:
    climb = Climb(CAP, health=Health.FAILING).open()
    climb.ladder.step(climb.agent, POLICY, NOW)
    climb.get_well()
    climb.review()
    assert not climb.outbox.take()
    assert (climb.agent.case, climb.agent.past.withdrawn) == (None, "")


def test_an_order_to_end_that_is_out_is_not_refuted_by_what_the_stop_causes() -> None:
    climb = ending()
    climb.get_well()
    climb.review()
    assert climb.ladder.is_ending(climb.agent)
    assert climb.said() == []


def test_an_order_to_end_that_failed_is_refuted_by_health() -> None:
    climb = ending()
    climb.ladder.termination_failed(climb.agent, climb.case.order_id, "?", climb.policy, climb.now)
    climb.outbox.take()
    climb.get_well()
    climb.review()
    assert climb.said() == [(Rung.TERMINATE, Stage.DROPPED, "well again")]
    assert climb.agent.case is None


def test_an_order_to_end_that_failed_is_kept_while_the_agent_is_unwell() -> None:
    climb = ending()
    order_id = climb.case.order_id
    climb.ladder.termination_failed(climb.agent, order_id, "?", climb.policy, climb.now)
    climb.outbox.take()
    climb.agent.findings = WEAK
    climb.review()
    assert climb.said() == []
    assert climb.case.order_id == order_id


@pytest.mark.parametrize("after", [(), (SUSPECT,)])
def test_a_sign_of_life_withdraws_what_rests_on_silence(after: tuple[Finding, ...]) -> None:
    climb = Climb(SILENCE, health=Health.DISCONNECTED, cause=Cause.UNKNOWN).open().to(Rung.TERMINATE)
    order_id = climb.case.order_id
    climb.get_well()
    climb.agent.findings = after
    climb.review()
    assert climb.said() == [(Rung.TERMINATE, Stage.DROPPED, HEARD_AGAIN)]
    assert (climb.agent.case, climb.agent.past.withdrawn) == (None, order_id)


def test_one_that_is_heard_again_and_is_stuck_begins_with_a_nudge() -> None:
    climb = Climb(SILENCE, STALLED, health=Health.DISCONNECTED, cause=Cause.UNKNOWN).open().to(Rung.TERMINATE)
    climb.agent.findings, climb.agent.health = (STALLED,), Health.STUCK
    climb.review()
    assert (climb.case.rung, climb.case.attempt, climb.case.on_silence) == (Rung.NUDGE, 0, False)


def test_silence_that_goes_on_is_not_refuted_by_other_findings() -> None:
    climb = Climb(SILENCE, health=Health.DISCONNECTED, cause=Cause.UNKNOWN).open().to(Rung.TERMINATE)
    climb.agent.findings = (SILENCE, STALLED)
    climb.review()
    assert climb.ladder.is_ending(climb.agent)


def test_what_a_person_started_is_not_dropped_by_the_agents_health() -> None:
    climb = Climb(*WEAK)
    climb.ladder.start(climb.agent, Rung.TERMINATE, NOW, reason="enough", by="ann")
    climb.get_well()
    climb.review()
    assert climb.case.by == "ann"


def test_a_person_replaces_what_was_going_on() -> None:
    climb = Climb(LOOP).open().to(Rung.NUDGE)
    case = climb.ladder.start(climb.agent, Rung.ESCALATE, climb.now, reason="odd", by="")
    assert climb.said() == [(Rung.NUDGE, Stage.DROPPED, "replaced by a person")]
    assert case is climb.agent.case
    assert case == Case(Rung.ESCALATE, "odd", waited_from=climb.now, respawn=False)
    case = climb.ladder.start(
        climb.agent, Rung.TERMINATE, climb.now + 1, reason="odd", by="ann", respawn=True
    )
    assert (case.respawn, case.by, case.waited_from) == (True, "ann", climb.now + 1)


def test_a_cap_reached_on_the_way_is_the_end() -> None:
    climb = Climb(*WEAK).open().to(Rung.NUDGE)
    climb.agent.findings, climb.agent.health = (*WEAK, CAP), Health.FAILING
    climb.review()
    assert climb.said() == [(Rung.NUDGE, Stage.DROPPED, "a limit is reached")]
    case = climb.case
    assert (case.rung, case.reason, case.respawn, case.wait) == (Rung.TERMINATE, CAP.text, False, 0.0)


def test_one_that_falls_silent_on_the_way_cannot_be_nudged_any_more() -> None:
    climb = Climb(*WEAK).open().to(Rung.NUDGE)
    climb.agent.findings, climb.agent.health = (*WEAK, SILENCE), Health.DISCONNECTED
    climb.review()
    assert climb.said() == [(Rung.NUDGE, Stage.DROPPED, "it answers no ping any more")]
    assert (climb.case.rung, climb.case.wait) == (Rung.ESCALATE, 0.0)


def test_a_nudge_goes_on_while_the_evidence_stays_weak() -> None:
    climb = Climb(*WEAK).open().to(Rung.NUDGE)
    climb.agent.findings, climb.agent.health = TWO_KINDS, Health.FAILING
    climb.review()
    assert (climb.case.rung, climb.case.wait) == (Rung.NUDGE, POLICY.nudge_every)
    assert climb.said() == []


def test_people_are_not_asked_twice_about_a_silence_that_goes_on() -> None:
    climb = Climb(SILENCE, health=Health.DISCONNECTED, cause=Cause.UNKNOWN).open().to(Rung.ESCALATE)
    asked = climb.case.order_id
    climb.agent.findings = (SILENCE, STALLED)
    climb.review()
    assert (climb.case.order_id, climb.case.wait) == (asked, POLICY.escalation_timeout)


def test_people_are_asked_about_what_is_wrong_now_and_not_when_the_case_began() -> None:
    climb = Climb(*WEAK).open().to(Rung.NUDGE)
    climb.agent.findings = (LOOP,)
    climb.to(Rung.ESCALATE)
    climb.outbox.take()
    assert (climb.case.reason, climb.case.grounds) == (STALLED.text, True)
    climb.case.escalated = False
    assert only(climb.step(), Escalate)[0].reason == LOOP.text


def test_new_evidence_changes_nothing_while_people_are_being_asked() -> None:
    climb = Climb(*WEAK).open().to(Rung.ESCALATE)
    asked = climb.case.order_id
    climb.agent.findings = (LOOP,)
    climb.review()
    assert (climb.case.order_id, climb.case.wait) == (asked, POLICY.escalation_timeout)
    assert climb.said() == []


def test_new_evidence_after_nobody_decided_is_a_new_question() -> None:
    climb = Climb(*WEAK).open().to(Rung.ESCALATE)
    climb.step()
    climb.review()
    assert climb.case.wait == NEVER
    climb.agent.findings = (LOOP,)
    climb.review()
    assert climb.said() == [(Rung.ESCALATE, Stage.DROPPED, "there is new evidence to decide about")]
    assert (climb.case.escalated, climb.case.wait, climb.case.held) == (False, 0.0, "")
    assert only(climb.step(), Escalate)


def test_evidence_that_goes_between_the_decision_and_the_order_ends_nobody() -> None:
    climb = Climb(LOOP).open().to(Rung.ESCALATE)
    climb.step()
    assert climb.case.rung is Rung.TERMINATE
    climb.review()
    assert climb.case.rung is Rung.TERMINATE
    climb.agent.findings = WEAK
    climb.review()
    assert (climb.case.rung, climb.case.held, climb.case.wait) == (Rung.ESCALATE, UNDECIDED, NEVER)


# --- in words -----------------------------------------------------------------------------------------------


def test_without_a_finding_the_reason_is_the_health() -> None:
    climb = Climb().open()
    assert climb.case.reason == "stuck"
    assert only(climb.step(), SendNudge)


def test_the_grounds_of_weak_evidence_are_all_of_it_the_worst_first_and_no_notice() -> None:
    older = found(Kind.TASK_STALLED, Severity.STUCK, since=800.0)
    climb = Climb(NOTICE, STALLED, older, ERRORS).open().to(Rung.TERMINATE)
    assert climb.case.reason == f"{ERRORS.text} {older.text} {STALLED.text}"


def test_a_nudge_tells_the_findings_and_the_last_call() -> None:
    agent = Agent("a", 1, since=880.0)
    agent.findings = (STALLED, ERRORS)
    template = "{agent_id}|{facts}|{last_tool}|{since}"
    facts = f"{STALLED.text} {ERRORS.text}"
    assert nudge_text(agent, NOW, template) == f"a|{facts}|none|2 min"
    agent.work = Work(since=0.0, tool_at=940.0, last_tool="grep", repeats=1)
    facts += " Last tool call 1 min ago: {}."
    assert nudge_text(agent, NOW, template) == f"a|{facts.format('grep')}|grep|2 min"
    agent.work.repeats = 2
    assert nudge_text(agent, NOW, f" {template} ") == f"a|{facts.format('grep x2')}|grep x2|2 min"
    agent.work.last_tool = ""
    assert nudge_text(agent, NOW, template).endswith("|none|2 min")
    agent.work.last_tool, agent.work.tool_at = "grep", None
    assert nudge_text(agent, NOW, template).endswith("|none|2 min")


def test_how_long_an_end_may_take_to_be_confirmed_is_policy() -> None:
    """Of each try, and of one that somebody reports to have failed."""
    policy = replace(POLICY, save_for=2.0, confirm_for=3.0)
    climb = Climb(SILENCE, health=Health.DISCONNECTED, cause=Cause.UNKNOWN, policy=policy).open()
    climb.to(Rung.TERMINATE)
    ordered_at = climb.now
    assert climb.case.wait == 5.0
    climb.ladder.termination_failed(climb.agent, climb.case.order_id, "?", climb.policy, ordered_at + 1.0)
    assert climb.case.wait == 3.0
    climb.case.reached = ()
    while climb.case.held != CANNOT_STOP:
        climb.step()
    assert climb.now == ordered_at + 4.0 + 2 * 5.0


def test_an_end_is_ordered_three_times_and_may_take_a_minute_to_be_confirmed() -> None:
    assert (POLICY.confirm_for, ladder_module.TERMINATE_TRIES) == (60.0, 3)


def test_a_case_knows_what_was_decided_about_its_escalation() -> None:
    climb = Climb(LOOP).open().to(Rung.ESCALATE)
    order_id = climb.case.order_id
    answer = EscalationDecided(
        agent_id="a", order_id=order_id, decision=Decision.IGNORE, by="ann", note="known"
    )
    assert climb.ladder.decided(climb.agent, answer, climb.policy, climb.now)
    assert climb.case.said == f"{order_id} ignore: known"
