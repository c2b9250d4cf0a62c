"""A second opinion: hubs in other zones are asked before a verdict, and can only make it milder."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.beliefs import Beliefs
from lifesigns.core.effects import (
    AskSecondOpinion,
    FindingOpened,
    Flip,
    Intervention,
    Kind,
    NeedsHuman,
    Respawn,
    SendPing,
    Stage,
    Terminate,
)
from lifesigns.core.engine import Engine
from lifesigns.core.health import Cause, Health
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import BeatReceived, ConnectionClosed, Opinion, OpinionGiven, ProcessExited
from tests.core.harness import START, Watch

SOON = Policy().with_changes(
    {
        "silence": {"adaptive": False},
        "ladder": {"hesitate_for": 1.0, "escalation_timeout": 30.0},
    }
)
"""Suspect after 11 s, two pings of 2 s, a verdict after 15 s; people have half a minute to decide."""

VERDICT = START + 15
FLEET = FleetPolicy(canary_every=0)


def watched(*zones: str) -> Watch:
    watch = Watch(SOON)
    watch.engine.has_zones(zones)
    watch.beat()
    return watch


def opine(watch: Watch, opinion: Opinion, at: float, zone: str = "b") -> None:
    watch.hear(OpinionGiven(agent_id="a", zone=zone, opinion=opinion), at)


def questions(watch: Watch) -> list[AskSecondOpinion]:
    return watch.orders(AskSecondOpinion)


def answering(watch: Watch, opinion: Opinion, until: float) -> None:
    """Go on until then, or until the agent is to be ended; every question is answered like this, a second later."""
    answered = len(questions(watch))
    while watch.now < until and not watch.orders(Terminate):
        watch.run_until(watch.now + 0.25)
        if len(questions(watch)) > answered:
            answered += 1
            opine(watch, opinion, watch.now + 1.0)


# --- who is asked, and when ----------------------------------------------------------------------------


def test_without_zones_nobody_is_asked() -> None:
    watch = watched()
    watch.run_until(VERDICT)
    assert not questions(watch)
    assert watch.agent().cause is Cause.UNKNOWN
    assert watch.agent().findings[0].conclusive


def test_every_other_zone_is_asked_once_and_with_the_first_ping() -> None:
    watch = watched("c", "b")
    watch.run_until(VERDICT)
    (question,) = questions(watch)
    assert question.at == watch.orders(SendPing)[0].at == START + 11
    assert question.zones == ("b", "c")
    assert (question.silent_for, question.answer_within) == (11.0, 4.0)


def test_it_costs_no_time() -> None:
    watch = watched("b")
    opine(watch, Opinion.NOT_HEARD, START + 14)
    watch.run_until(VERDICT)
    assert watch.facts(Flip)[-1].at == VERDICT


def test_zones_that_come_while_a_suspicion_is_open_are_asked_with_one_more_ping() -> None:
    watch = watched()
    watch.run_until(START + 14)
    watch.engine.has_zones(("b",))
    watch.run_until(VERDICT)
    assert [question.at for question in questions(watch)] == [VERDICT]
    assert watch.health() is Health.HEALTHY
    watch.run_until(VERDICT + 2)
    assert watch.health() is Health.DISCONNECTED


# --- what the answers mean -----------------------------------------------------------------------------


@pytest.mark.parametrize("opinion", [Opinion.NOT_HEARD, Opinion.CANNOT_TELL])
def test_an_agent_that_nobody_hears_is_judged_as_without_zones(opinion: Opinion) -> None:
    watch = watched("b")
    opine(watch, opinion, START + 14)
    watch.run_until(VERDICT)
    assert watch.agent().cause is Cause.UNKNOWN
    assert watch.agent().findings[0].conclusive
    answering(watch, opinion, START + 120)
    assert watch.orders(Terminate)


def test_an_agent_that_is_heard_elsewhere_is_cut_off_and_people_are_asked() -> None:
    watch = watched("b")
    opine(watch, Opinion.HEARD, START + 12)
    watch.run_until(VERDICT)
    flip = watch.facts(Flip)[-1]
    assert (flip.now, flip.cause) == (Health.DISCONNECTED, Cause.PARTITION)
    assert flip.reason.endswith("It is heard in zone b: it is cut off from this hub, not dead.")
    assert flip.evidence[0].numbers["heard_in"] == "b"
    watch.run_until(START + 3600)
    assert not watch.orders(Terminate)
    assert not watch.orders(Respawn)
    assert {"escalation", "undecided"} <= {fact.reason for fact in watch.facts(NeedsHuman)}


@pytest.mark.parametrize("answers", [True, False], ids=["refused", "no answer"])
def test_a_zone_that_cannot_be_asked_may_hear_it(answers: bool) -> None:
    watch = watched("b", "c")
    opine(watch, Opinion.NOT_HEARD, START + 12, "c")
    if answers:
        opine(watch, Opinion.CANNOT_BE_ASKED, START + 12)
    watch.run_until(VERDICT)
    assert watch.agent().cause is Cause.PARTITION
    assert "Whether it is heard in zone b could not be asked" in watch.agent().findings[0].text
    watch.run_until(START + 3600)
    assert not watch.orders(Terminate)


def test_a_zone_whose_hub_was_stopped_meanwhile_does_not_count() -> None:
    watch = watched("b")
    watch.run_until(START + 12)
    watch.engine.has_zones(())
    watch.run_until(VERDICT)
    assert watch.agent().cause is Cause.UNKNOWN


def test_who_has_heard_it_once_has_heard_it() -> None:
    watch = watched("b")
    opine(watch, Opinion.HEARD, START + 12)
    opine(watch, Opinion.NOT_HEARD, START + 13)
    watch.run_until(VERDICT)
    assert watch.agent().cause is Cause.PARTITION


def test_an_opinion_is_no_sign_of_life_and_counts_for_one_suspicion_only() -> None:
    watch = watched("b")
    opine(watch, Opinion.HEARD, START + 12)
    watch.beat(at=START + 13)
    watch.run_until(START + 24)
    opine(watch, Opinion.NOT_HEARD, START + 25)
    watch.run_until(START + 28)
    assert (watch.health(), watch.agent().cause) == (Health.DISCONNECTED, Cause.UNKNOWN)


def test_a_process_that_is_known_to_have_ended_is_dead_wherever_it_is_heard() -> None:
    watch = watched("b")
    watch.hear(ProcessExited(agent_id="a", status=1), START + 12)
    opine(watch, Opinion.HEARD, START + 13)
    assert watch.agent().cause is Cause.CRASH


# --- after the verdict ---------------------------------------------------------------------------------


def test_who_is_heard_after_the_verdict_was_only_cut_off() -> None:
    watch = watched("b")
    opine(watch, Opinion.NOT_HEARD, START + 12)
    watch.run_until(VERDICT)
    opine(watch, Opinion.HEARD, VERDICT + 1)
    assert watch.agent().cause is Cause.PARTITION
    corrected = watch.facts(FindingOpened)[-1].finding
    assert not corrected.conclusive
    assert "heard in zone b" in corrected.text
    watch.run_until(START + 3600)
    assert not watch.orders(Terminate)


def test_a_closed_connection_was_no_crash_if_the_agent_is_heard_elsewhere() -> None:
    watch = watched("b")
    watch.hear(ConnectionClosed(agent_id="a"), START + 1)
    opine(watch, Opinion.NOT_HEARD, START + 2)
    watch.run_until(START + 6)
    assert watch.agent().cause is Cause.CRASH
    opine(watch, Opinion.HEARD, START + 7)
    assert watch.agent().cause is Cause.PARTITION


def test_a_termination_is_withdrawn_when_the_agent_is_heard_elsewhere() -> None:
    watch = watched("b")
    answering(watch, Opinion.NOT_HEARD, START + 120)
    order = watch.orders(Terminate)[0]
    opine(watch, Opinion.HEARD, watch.now + 0.5)
    dropped = [f for f in watch.facts(Intervention) if f.id == order.order_id and f.stage is Stage.DROPPED]
    assert len(dropped) == 1
    assert watch.facts(NeedsHuman)[-1].reason == "undecided"
    ordered = len(watch.orders(Terminate))
    watch.run_until(START + 3600)
    assert len(watch.orders(Terminate)) == ordered
    assert not watch.orders(Respawn)


def test_a_termination_of_this_very_moment_never_leaves() -> None:
    alone = watched("b")
    answering(alone, Opinion.NOT_HEARD, START + 120)
    at = alone.orders(Terminate)[0].at
    watch = watched("b")
    answering(watch, Opinion.NOT_HEARD, at - 2)
    watch.run_until(at - 0.01)
    watch.keep(
        watch.engine.hear(OpinionGiven(agent_id="a", zone="b", opinion=Opinion.HEARD), at)
    )  # The deadline and the opinion, in one call.
    assert not watch.orders(Terminate)
    watch.run_until(START + 3600)
    assert not watch.orders(Terminate)


# --- once more, before the end -------------------------------------------------------------------------


def about_to_be_ended() -> Watch:
    """Nobody heard it at the verdict, nobody decided, and the other zone has just been asked once more."""
    watch = watched("b")
    opine(watch, Opinion.NOT_HEARD, START + 12)
    while len(questions(watch)) < 2:
        watch.run_until(watch.now + 0.25)
    assert watch.now > VERDICT + 30
    assert questions(watch)[1].silent_for == SOON.silence.timeout, (
        "what was heard lately counts, not long ago"
    )
    return watch


def test_who_is_heard_elsewhere_when_it_is_to_be_ended_lives() -> None:
    """At the verdict it was cut off from everybody; half an hour later from us alone."""
    watch = about_to_be_ended()
    opine(watch, Opinion.HEARD, watch.now + 1)
    watch.run_until(START + 3600)
    assert not watch.orders(Terminate)
    assert watch.agent().cause is Cause.PARTITION
    assert "heard in zone b" in watch.agent().findings[0].text
    assert watch.facts(NeedsHuman)[-1].reason == "undecided"


def test_who_may_be_heard_by_a_zone_that_does_not_answer_is_not_ended() -> None:
    watch = about_to_be_ended()
    watch.run_until(START + 3600)
    assert not watch.orders(Terminate)
    assert "zone b could not be asked" in watch.agent().findings[0].text


def test_who_is_heard_nowhere_is_ended_as_soon_as_that_is_known() -> None:
    watch = about_to_be_ended()
    asked_at = watch.now
    opine(watch, Opinion.NOT_HEARD, watch.now + 1)
    watch.run_until(asked_at + 5)
    assert [order.on_silence for order in watch.orders(Terminate)] == [True]


def test_a_restored_engine_asks_again_before_it_ends_anybody() -> None:
    watch = about_to_be_ended()
    after = restored(watch, 7.0, "b")
    answering(after, Opinion.HEARD, after.now + 300)
    assert questions(after)
    assert not after.orders(Terminate)


# --- a restored engine ---------------------------------------------------------------------------------


def restored(watch: Watch, away_for: float, *zones: str) -> Watch:
    beliefs = msgspec.msgpack.decode(msgspec.msgpack.encode(watch.engine.snapshot()), type=Beliefs)
    now = watch.now + away_for
    engine = Engine.restore(beliefs, now, PolicyBook(SOON), FLEET, epoch=2)
    engine.has_zones(zones)
    return Watch(engine=engine, at=now)


def test_a_restored_engine_asks_again_before_it_convicts() -> None:
    """The hub that asked is gone, and its answers with it."""
    watch = watched("b")
    watch.run_until(START + 12)
    after = restored(watch, 7.0, "b")
    after.run_until(after.now + 60)
    (question,) = questions(after)
    assert question.at < after.facts(Flip)[-1].at


def test_a_restored_engine_remembers_who_heard_the_agent() -> None:
    watch = watched("b")
    opine(watch, Opinion.HEARD, START + 12)
    after = restored(watch, 7.0)
    after.run_until(after.now + 60)
    assert after.agent().cause is Cause.PARTITION


def test_an_engine_restored_at_the_same_moment_asks_nobody_twice() -> None:
    watch = watched("b")
    watch.run_until(START + 12)
    after = restored(watch, 0.0, "b")
    opine(after, Opinion.NOT_HEARD, START + 13)
    after.run_until(VERDICT)
    assert not questions(after)
    assert after.agent().cause is Cause.UNKNOWN


# --- the law -------------------------------------------------------------------------------------------

opinions = st.builds(
    OpinionGiven,
    agent_id=st.just("a"),
    zone=st.sampled_from(("b", "c")),
    opinion=st.sampled_from(Opinion),
)
silences = st.builds(
    lambda begins, answers, ends: [begins, (11.0, ConnectionClosed(agent_id="a")), *answers, ends],
    st.tuples(st.just(0.0), st.just(BeatReceived("a")) | opinions),
    st.lists(st.tuples(st.sampled_from((0.0, 0.5, 1.0, 3.0, 20.0)), opinions), max_size=4),
    st.tuples(st.sampled_from((0.5, 4.0, 40.0, 100.0)), st.just(BeatReceived("a")) | opinions),
)
"""A beat, the silence after it, opinions before and after the verdict, and perhaps a beat that ends it."""
histories = st.lists(silences, max_size=5).map(lambda some: [step for silence in some for step in silence])


def live(history: Sequence[tuple[float, object]], zones: tuple[str, ...], *, heed: bool) -> Watch:
    watch = watched(*zones)
    at = START
    for wait, signal in history:
        at += wait
        if heed or not isinstance(signal, OpinionGiven):
            watch.hear(signal, at)  # type: ignore[arg-type]
        else:
            watch.run_until(at)
    watch.run_until(at + 1000)
    return watch


@given(histories, st.sets(st.sampled_from(("b", "c")), min_size=1))
def test_an_opinion_never_makes_a_verdict_harsher_or_later(
    history: list[tuple[float, object]], zones: set[str]
) -> None:
    plain, asked = live(history, (), heed=False), live(history, tuple(zones), heed=True)
    verdicts = [(flip.at, flip.now) for flip in plain.facts(Flip)]
    assert [(flip.at, flip.now) for flip in asked.facts(Flip)] == verdicts
    for before, after in zip(plain.facts(Flip), asked.facts(Flip), strict=True):
        assert after.cause in (before.cause, Cause.PARTITION)
    for kind in (Terminate, Respawn):
        ended = [order.at for order in plain.orders(kind)]
        assert [order.at for order in asked.orders(kind) if order.at not in ended] == []


@given(histories)
def test_no_agent_is_ended_for_a_silence_in_which_it_was_heard_elsewhere(
    history: list[tuple[float, object]],
) -> None:
    watch = live(history, ("b", "c"), heed=True)
    found = watch.agent().finding(Kind.SILENCE)
    if found is not None and "heard_in" in found.numbers:
        assert not found.conclusive
        assert not [order for order in watch.orders(Terminate) if order.at > watch.now - 900]
