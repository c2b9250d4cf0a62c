"""What people do is a fact: who did it, to whom, and when, also where it changes nobody's health."""

from __future__ import annotations

import pytest

from lifesigns.core.effects import (
    Brake,
    Clearance,
    Escalate,
    Fact,
    Intervention,
    Pause,
    Recovery,
    RecoveryRequest,
    Refusal,
    Resumption,
    Stage,
)
from lifesigns.core.signals import (
    ClearRequested,
    Decision,
    ErrorReported,
    EscalationDecided,
    EscalationRequested,
    GroupReleased,
    PauseRequested,
    ProcessExited,
    RecoveryRequested,
    ResumeRequested,
    Signal,
)
from tests.core.harness import START, Watch


@pytest.mark.parametrize(
    ("act", "fact"),
    [
        (PauseRequested(agent_id="a", by="eva", pause_for=60.0), Pause(START + 1, "a", "eva", 60.0)),
        (PauseRequested(agent_id="a", by="eva"), Pause(START + 1, "a", "eva", None)),
        (ResumeRequested(agent_id="a", by="eva"), Resumption(START + 1, "a", "eva")),
        (ClearRequested(agent_id="a", by="eva"), Clearance(START + 1, "a", "eva")),
    ],
)
def test_an_act_is_a_fact_that_names_who_did_it(act: Signal, fact: Fact) -> None:
    watch = Watch()
    watch.beat()
    watch.hear(act, START + 1)
    assert watch.facts(type(fact)) == [fact]


def test_the_same_act_again_is_another_fact() -> None:
    """Two people who pause the same agent are both on record."""
    watch = Watch()
    watch.beat()
    watch.hear(PauseRequested(agent_id="a", by="eva"))
    watch.hear(PauseRequested(agent_id="a", by="bob"))
    assert [fact.by for fact in watch.facts(Pause)] == ["eva", "bob"]


def test_who_gives_no_name_is_a_person_all_the_same() -> None:
    """An empty name on record means the hub, by its policy: no act of a person may look like that."""
    watch = Watch()
    watch.beat()
    watch.hear(PauseRequested(agent_id="a"))
    assert [fact.by for fact in watch.facts(Pause)] == ["a person"]


def test_what_is_asked_of_nobody_is_no_fact() -> None:
    watch = Watch()
    watch.hear(PauseRequested(agent_id="ghost", by="eva"))
    assert not watch.facts(Pause)
    assert len(watch.facts(Refusal)) == 1


def test_a_recovery_says_who_wanted_it_and_before_it_begins() -> None:
    watch = Watch()
    watch.beat(task_id="t", incarnation="i-1")
    watch.hear(RecoveryRequested(agent_id="a", task_id="t", by="eva"))
    assert not watch.facts(RecoveryRequest), "it is alive, so nothing was begun"
    watch.hear(ProcessExited(agent_id="a", status=0), START + 5)
    watch.forget()
    watch.hear(RecoveryRequested(agent_id="a", task_id="t", by="eva"), START + 6)
    (asked,) = watch.facts(RecoveryRequest)
    assert asked == RecoveryRequest(START + 6, "a", "t", "eva")
    (begun,) = watch.facts(Recovery)
    assert watch.effects.index(asked) < watch.effects.index(begun)


def test_who_releases_a_group_is_in_the_fact_and_nobody_is_if_it_got_well() -> None:
    watch = Watch()
    for n in range(4):
        watch.beat(f"w-{n}")
    for n in range(4):
        watch.hear(ErrorReported(agent_id=f"w-{n}", message="disk full", recoverable=False))
    watch.hear(GroupReleased(group="fleet", by="eva"))
    assert [(fact.on, fact.by) for fact in watch.facts(Brake)] == [(True, ""), (False, "eva")]


def test_who_decides_says_why_on_the_record() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(EscalationRequested(agent_id="a", by="bob", reason="odd"))
    (asked,) = watch.orders(Escalate)
    decided = EscalationDecided(
        agent_id="a", order_id=asked.order_id, decision=Decision.MORE_TIME, by="eva", note="it builds"
    )
    watch.hear(decided)
    answered = watch.facts(Intervention)[-1]
    assert (answered.stage, answered.text, answered.by) == (Stage.ANSWERED, "more_time: it builds", "eva")
