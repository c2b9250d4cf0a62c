"""The ladder where others may hear an agent that we do not: only an end for silence waits for them, and is given up for them."""

import pytest

from lifesigns.core.effects import Finding, NeedsHuman, Rung, Stage, Terminate
from lifesigns.core.health import Cause, Health
from lifesigns.core.ladder import TERMINATE_TRIES, UNDECIDED
from tests.core.test_ladder_steps import CAP, LOOP, SILENCE, Climb, only


def ending(*findings: Finding, cause: Cause = Cause.UNKNOWN) -> Climb:
    """Its end was ordered, in this very moment: the order has not left yet."""
    climb = Climb(SILENCE, health=Health.DISCONNECTED, cause=cause).open().to(Rung.ESCALATE)
    while not (climb.case.rung is Rung.TERMINATE and climb.case.order_id):
        climb.outbox.take()
        climb.now = max(climb.now, climb.ladder.due_at(climb.agent))
        climb.ladder.step(climb.agent, climb.policy, climb.now)
    climb.agent.findings = findings or (SILENCE,)
    return climb


def ends_for_silence(climb: Climb) -> bool:
    return climb.ladder.ends_for_silence(climb.agent, climb.policy)


def test_the_next_try_to_end_a_silent_agent_ends_it_for_its_silence_until_the_last() -> None:
    climb = ending()
    climb.case.attempt = TERMINATE_TRIES - 1
    assert ends_for_silence(climb)
    climb.case.attempt = TERMINATE_TRIES
    assert not ends_for_silence(climb)


@pytest.mark.parametrize("findings", [(LOOP,), (SILENCE, CAP)], ids=["a loop", "a limit is reached"])
def test_an_agent_with_another_reason_to_end_does_not_end_for_its_silence(
    findings: tuple[Finding, ...],
) -> None:
    assert not ends_for_silence(ending(*findings))


def test_nobody_is_asked_about_an_end_that_will_not_be_ordered() -> None:
    cut_off, wanted, nobody = ending(), ending(), Climb(health=Health.HEALTHY)
    cut_off.agent.cause = Cause.PARTITION
    wanted.case.by = "ann"
    assert not any(map(ends_for_silence, (cut_off, wanted, nobody)))


def hear_elsewhere(climb: Climb) -> None:
    climb.ladder.heard_elsewhere(climb.agent, "Heard in b.", climb.now)


def test_an_order_that_has_not_left_is_taken_back_without_a_trace_and_people_are_asked() -> None:
    climb = ending()
    hear_elsewhere(climb)
    said = list(climb.outbox.take())
    assert not only(said, Terminate)
    assert only(said, NeedsHuman) == [NeedsHuman(climb.now, "a", UNDECIDED, "Heard in b.")]
    case = climb.case
    assert (case.rung, case.attempt, case.order_id, case.held) == (Rung.ESCALATE, 0, "", UNDECIDED)
    assert climb.agent.past.withdrawn == ""


def test_an_order_that_has_left_is_withdrawn_on_record() -> None:
    climb = ending()
    order_id = climb.case.order_id
    climb.outbox.take()
    hear_elsewhere(climb)
    assert [(rung, stage) for rung, stage, _ in climb.said()] == [(Rung.TERMINATE, Stage.DROPPED)]
    assert climb.agent.past.withdrawn == order_id


def test_an_end_that_does_not_rest_on_silence_stands_whoever_hears_the_agent() -> None:
    wanted, of_a_loop, over_its_limit = ending(), ending(), ending(SILENCE, CAP)
    wanted.case.by = "ann"
    of_a_loop.case.on_silence = False
    for climb in (wanted, of_a_loop, over_its_limit):
        order_id = climb.case.order_id
        hear_elsewhere(climb)
        said = list(climb.outbox.take())
        assert [order.order_id for order in only(said, Terminate)] == [order_id]
        assert not only(said, NeedsHuman)
        assert climb.case.order_id == order_id


def test_a_question_to_people_goes_on_and_where_there_is_no_case_nothing_happens() -> None:
    asked = Climb(SILENCE, health=Health.DISCONNECTED, cause=Cause.UNKNOWN).open().to(Rung.ESCALATE)
    nobody = Climb(health=Health.HEALTHY)
    for climb in (asked, nobody):
        climb.outbox.take()
        hear_elsewhere(climb)
        assert not climb.outbox.take()
    assert asked.case.order_id
