"""Silence: suspicion is a question, unanswered pings are a verdict."""

import random
from math import inf
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lifesigns.core.agent import Agent
from lifesigns.core.detectors import silence
from lifesigns.core.effects import FindingOpened, Flip, Kind, SendPing, Severity
from lifesigns.core.health import Cause, Health
from lifesigns.core.policy import MINUTE, Policy
from lifesigns.core.profiles import PROFILES, PolicyBook, profile
from lifesigns.core.signals import (
    ActivitySeen,
    AgentRegistered,
    ConnectionClosed,
    MessageSent,
    Opinion,
    OpinionGiven,
    PongReceived,
    ProgressMade,
    Signal,
)
from tests.core.harness import START, Watch

FIXED = Policy().with_changes({"silence": {"adaptive": False}})


def pings(watch: Watch) -> list[float]:
    return [order.at for order in watch.orders(SendPing)]


def flips(watch: Watch, agent_id: str = "a") -> list[tuple[float, Health]]:
    return [(flip.at, flip.now) for flip in watch.facts(Flip, agent_id)]


def test_a_policy_that_comes_after_the_first_beat_still_sets_the_rhythm() -> None:
    """Else beats every half second were a backlog of the ten minutes that were expected before, for ever."""
    watch = Watch(profile("long_tasks"))
    watch.beat()
    own = {"interval": 0.5, "timeout": 3.0, "ping_wait": 0.5}
    watch.hear(AgentRegistered(agent_id="a", policy={"silence": own}))
    watch.live(START + 30, every=0.5)
    agent = watch.agent()
    assert agent.interval == pytest.approx(0.5)
    assert silence.phi(agent, START + 40) > 7


def test_a_policy_that_comes_late_does_not_undo_what_was_learned() -> None:
    watch = Watch()
    watch.beat()
    watch.live(START + 60, every=4.0)
    watch.hear(AgentRegistered(agent_id="a", policy={"silence": {"interval": 5.5}}))
    assert watch.agent().interval == pytest.approx(4.0, rel=0.05)


# --- the fixed rule --------------------------------------------------------------------------------------


def test_the_first_beat_makes_an_agent_healthy() -> None:
    watch = Watch()
    watch.beat()
    assert flips(watch) == [(START, Health.HEALTHY)]


def test_a_silent_agent_is_pinged_when_it_becomes_suspect_and_not_before() -> None:
    """Swarm: a beat every 5 s, out after 15 s, two pings of 2 s: suspect after 11 s."""
    watch = Watch(FIXED)
    watch.beat()
    watch.run_until(START + 10.99)
    assert not pings(watch)
    watch.run_until(START + 11)
    assert pings(watch) == [START + 11]


def test_suspicion_is_not_a_verdict() -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.run_until(START + 14.99)
    assert pings(watch) == [START + 11, START + 13]
    assert watch.health() is Health.HEALTHY


def test_unanswered_pings_are_a_disconnection_within_the_timeout() -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.run_until(START + 15)
    assert flips(watch)[-1] == (START + 15, Health.DISCONNECTED)
    finding = watch.agent().finding(Kind.SILENCE)
    assert finding is not None
    assert finding.since == START
    assert finding.severity is Severity.DISCONNECTED
    assert finding.conclusive
    assert finding.numbers["pings"] == 2
    assert finding.text == (
        "Nothing heard for 15 s (a beat is expected every 5.0 s); pinged twice without an answer."
    )


def test_on_a_line_that_loses_beats_more_pings_go_out_in_the_same_time() -> None:
    """Two lost pings were a verdict: at a loss of one in twenty, one healthy agent in fifty was convicted each day."""
    watch = Watch(FIXED)
    silent_from = lossy(watch)
    watch.run_until(silent_from + 14.999)
    assert [at - silent_from for at in pings(watch)] == pytest.approx([11, 11 + 2 / 3, 11 + 4 / 3, 13])
    assert watch.health() is Health.HEALTHY
    watch.run_until(silent_from + 15.001)
    assert watch.health() is Health.DISCONNECTED


@pytest.mark.parametrize(("beats", "lost"), [(0, 3), (1, 10**9)])
def test_a_life_of_which_nothing_arrived_yet_is_pinged_as_often_as_can_be(beats: int, lost: int) -> None:
    """A new life knows the losses of the one before, and may not have beaten once."""
    agent = Agent("a", 1)
    agent.beats, agent.lost = beats, lost
    assert silence.pings(agent, Policy().silence) == 3 * Policy().silence.pings


def test_where_three_pings_are_planned_a_fourth_shares_the_time_of_the_first_two() -> None:
    watch = Watch(FIXED.with_changes({"silence": {"pings": 3}}))
    silent_from = lossy(watch)
    watch.run_until(silent_from + 15.001)
    asked = [at - silent_from for at in pings(watch) if at > silent_from]
    assert asked == pytest.approx([9, 9 + 4 / 3, 9 + 8 / 3, 13])


def lossy(watch: Watch) -> float:
    """Every twentieth beat is lost; when the last one was heard."""
    for seq in range(1, 201):
        if seq % 20:
            watch.beat(at=START + 5 * seq, seq=seq)
    return START + 5 * 199


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_keeps_its_timeout(name: str) -> None:
    policy = profile(name).silence
    watch = Watch(profile(name))
    watch.live(START + 40 * policy.interval, every=policy.interval)
    silent_from = watch.now
    watch.run_until(silent_from + policy.timeout + 1e-6)
    assert watch.health() is Health.DISCONNECTED
    assert flips(watch)[-1][0] > silent_from + policy.interval


def test_the_pings_of_one_suspicion_are_counted_and_carry_it() -> None:
    watch = Watch(FIXED)
    watch.beat(incarnation="i-1")
    watch.run_until(START + 14)
    orders = watch.orders(SendPing)
    assert [(order.seq, order.suspicion, order.incarnation) for order in orders] == [
        (1, "nothing heard for 11 s", "i-1"),
        (2, "nothing heard for 11 s", "i-1"),
    ]


def test_a_short_interval_is_suspected_after_two_and_a_half() -> None:
    """`missed_max` beats and half an interval for jitter, where that comes before the timeout's share."""
    watch = Watch(FIXED.with_changes({"silence": {"interval": 2.0}}))
    watch.beat()
    watch.run_until(START + 4.99)
    assert not pings(watch)
    watch.run_until(START + 5)
    assert pings(watch) == [START + 5]


def test_with_slow_beats_a_suspicion_is_shown_as_degraded() -> None:
    watch = Watch(profile("fleet").with_changes({"silence": {"adaptive": False}}))
    watch.beat()
    watch.run_until(START + 9 * MINUTE)
    assert flips(watch)[-1] == (START + 9 * MINUTE, Health.DEGRADED)
    watch.beat()
    assert flips(watch)[-1] == (START + 9 * MINUTE, Health.HEALTHY)


def test_an_agent_heard_again_is_well_again() -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.run_until(START + 60)
    watch.beat()
    assert watch.health() is Health.HEALTHY
    assert watch.agent().past.disconnections == 1
    assert not watch.agent().findings


def test_a_late_beat_does_not_hide_the_silence_before_it() -> None:
    """The agent first grows older up to the moment of the beat, then hears it."""
    watch = Watch(FIXED)
    watch.beat()
    watch.run_until(START + 14.5)
    watch.effects += watch.engine.hear(PongReceived(agent_id="a"), START + 15.2)
    assert flips(watch)[1:] == [(START + 15, Health.DISCONNECTED), (START + 15.2, Health.HEALTHY)]


# --- refutation ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sign",
    [
        PongReceived(agent_id="a", seq=1),
        ActivitySeen(agent_id="a"),
        ProgressMade(agent_id="a"),
        MessageSent(agent_id="a", message_id="m", to="b"),
    ],
)
@pytest.mark.parametrize("after", [11.0, 12.9, 13.0, 14.999])
def test_any_sign_of_life_refutes_a_suspicion(sign: Signal, after: float) -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.hear(sign, START + after)
    assert watch.agent().suspicion is None
    watch.run_until(START + after + 10.99)
    assert flips(watch) == [(START, Health.HEALTHY)]


def test_a_beat_refutes_a_suspicion() -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.beat(at=START + 14.9)
    watch.run_until(START + 25.8)
    assert flips(watch) == [(START, Health.HEALTHY)]


def test_activity_alone_keeps_an_agent_alive() -> None:
    watch = Watch()
    watch.beat()
    for n in range(1, 20):
        watch.hear(ActivitySeen(agent_id="a"), START + 8 * n)
    assert not pings(watch)


def test_what_others_say_about_an_agent_is_no_sign_of_life() -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.hear(OpinionGiven(agent_id="a", zone="b", opinion=Opinion.HEARD), START + 12)
    watch.run_until(START + 15)
    assert watch.health() is Health.DISCONNECTED


# --- never heard -----------------------------------------------------------------------------------------


def test_a_registered_agent_has_its_grace_to_speak() -> None:
    watch = Watch()
    watch.hear(AgentRegistered(agent_id="a"))
    watch.run_until(START + 119.99)
    assert watch.health() is Health.STARTING
    watch.run_until(START + 120)
    assert flips(watch) == [(START + 120, Health.DISCONNECTED)]
    assert [fact.finding.kind for fact in watch.facts(FindingOpened)] == [Kind.NEVER_STARTED]
    assert not pings(watch)


def test_never_heard_is_not_conclusive() -> None:
    watch = Watch()
    watch.hear(AgentRegistered(agent_id="a"))
    watch.run_until(START + 130)
    assert not any(finding.conclusive for finding in watch.agent().findings)


def test_an_agent_may_ask_for_another_grace() -> None:
    watch = Watch()
    watch.hear(AgentRegistered(agent_id="a", grace=300.0))
    watch.run_until(START + 299.99)
    assert watch.health() is Health.STARTING
    watch.run_until(START + 300)
    assert watch.health() is Health.DISCONNECTED


def test_who_speaks_late_was_only_slow_to_start() -> None:
    watch = Watch()
    watch.hear(AgentRegistered(agent_id="a"))
    watch.beat(at=START + 200)
    assert watch.health() is Health.HEALTHY


# --- causes ----------------------------------------------------------------------------------------------


def test_a_silence_without_further_evidence_has_an_unknown_cause() -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.run_until(START + 15)
    assert watch.agent().cause is Cause.UNKNOWN


def test_a_closed_connection_is_asked_about_at_once() -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.hear(ConnectionClosed(agent_id="a"), START + 1)
    assert pings(watch) == [START + 1]
    assert watch.health() is Health.HEALTHY
    watch.run_until(START + 5)
    assert flips(watch)[-1] == (START + 5, Health.DISCONNECTED)
    assert watch.agent().cause is Cause.CRASH


def test_an_agent_that_another_monitor_hears_is_cut_off_and_not_dead() -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.hear(OpinionGiven(agent_id="a", zone="b", opinion=Opinion.HEARD), START + 12)
    watch.run_until(START + 15)
    assert watch.agent().cause is Cause.PARTITION


# --- NFD-E: the formulas ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lost", "heard", "expected"),
    [
        (0, 0, 1 - 0.5 * 0.0),
        (0, 30, 1 - (1 - 0.5 / 31) * (1 - 1 / 31)),
        (0, 1000, 1 - (1 - 0.5 / 1001) * (1 - 1 / 1001)),
        (10, 90, 1 - (1 - 10.5 / 101) * (1 - 1 / 101)),
    ],
)
def test_the_loss_rate_is_jeffreys_with_the_chance_of_later_than_all_seen(
    lost: int, heard: int, expected: float
) -> None:
    assert silence.loss_rate(lost, heard) == pytest.approx(expected)


@given(st.integers(0, 10**6), st.integers(1, 10**6))
def test_the_loss_rate_is_a_chance_that_falls_with_what_was_heard_and_grows_with_what_was_lost(
    lost: int, heard: int
) -> None:
    rate = silence.loss_rate(lost, heard)
    assert 0 < rate < 1
    assert silence.loss_rate(lost, heard + 1) < rate
    if lost:
        assert silence.loss_rate(lost - 1, heard) < rate


@pytest.mark.parametrize(
    ("alpha", "variance", "loss", "interval", "expected"),
    [
        (0.0, 1.0, 0.1, 5.0, 1.0),
        (2.0, 1.0, 0.1, 5.0, (1 + 0.1 * 4) / (1 + 4)),
        (5.0, 1.0, 0.1, 5.0, (1 + 0.1 * 25) / (1 + 25)),
        (7.0, 1.0, 0.1, 5.0, (1 + 0.1 * 49) / (1 + 49) * (1 + 0.1 * 4) / (1 + 4)),
        (3.0, 0.25, 0.0, 5.0, 0.25 / (0.25 + 9)),
    ],
)
def test_the_chance_of_a_false_suspicion_is_the_product_over_the_beats_that_could_refute_it(
    alpha: float, variance: float, loss: float, interval: float, expected: float
) -> None:
    assert silence.false_suspicion(alpha, variance, loss, interval) == pytest.approx(expected)


CHANCES = st.floats(1e-6, 0.5)
VARIANCES = st.floats(1e-6, 100.0)
INTERVALS = st.floats(0.5, 100.0)


@given(st.floats(0, 1000), st.floats(0, 1000), VARIANCES, CHANCES, INTERVALS)
def test_a_longer_wait_never_makes_a_false_suspicion_likelier(
    one: float, other: float, variance: float, loss: float, interval: float
) -> None:
    short, long = sorted((one, other))
    chances = [silence.false_suspicion(alpha, variance, loss, interval) for alpha in (short, long)]
    assert chances[1] <= chances[0] * (1 + 1e-9)


@given(VARIANCES, CHANCES, INTERVALS, st.floats(1e-9, 0.1), st.floats(1.0, 20.0))
def test_the_margin_is_the_smallest_that_is_safe_enough(
    variance: float, loss: float, interval: float, rate: float, intervals: float
) -> None:
    limit = intervals * interval
    margin = silence.margin(variance, loss, interval, rate, limit)
    assert 0 < margin <= limit
    if margin < limit:
        assert silence.false_suspicion(margin, variance, loss, interval) <= rate
        assert silence.false_suspicion(margin - limit / 2**20, variance, loss, interval) > rate


@given(VARIANCES, CHANCES, INTERVALS, st.floats(1.01, 10.0), st.sampled_from(["variance", "loss"]))
def test_the_margin_grows_with_jitter_and_with_loss(
    variance: float, loss: float, interval: float, factor: float, what: str
) -> None:
    worse = {"variance": variance, "loss": loss}
    worse[what] *= factor
    assume(worse["loss"] < 1)
    limit = 50 * interval
    calm = silence.margin(variance, loss, interval, 1e-7, limit)
    assert calm <= silence.margin(worse["variance"], worse["loss"], interval, 1e-7, limit) + limit / 2**20


# --- NFD-E: the engine -----------------------------------------------------------------------------------


def beats(watch: Watch, gaps: list[float], **fields: Any) -> None:
    """The times are those of a schedule with errors: lateness does not add up."""
    start = watch.now
    for number, late in enumerate(gaps, start=1):
        watch.beat(at=max(watch.now, start + 5.0 * number + late), **fields)


def suspected_after(watch: Watch) -> float:
    """How long after the last beat the agent is suspected."""
    heard_at = watch.agent().heard_at
    watch.forget()
    watch.run_until(heard_at + 70)
    return pings(watch)[0] - heard_at


def test_a_jittery_but_regular_sender_is_not_suspected() -> None:
    rng = random.Random(7)
    watch = Watch()
    beats(watch, [rng.uniform(0.0, 2.0) for _ in range(5000)])
    assert not pings(watch)


def test_a_regular_sender_with_a_long_history_is_suspected_sooner_than_by_the_fixed_rule() -> None:
    watch = Watch()
    beats(watch, [0.0] * 6000)
    assert 10.0 < suspected_after(watch) < 11.0


def test_before_enough_was_heard_the_fixed_rule_holds_alone() -> None:
    watch = Watch()
    beats(watch, [0.0] * 28)
    assert watch.agent().beats == 28
    assert suspected_after(watch) == 11.0


def test_the_margin_shrinks_as_the_sample_grows() -> None:
    """The more regular beats were heard, the surer we are of the next one."""
    waits = []
    for count in (300, 1200, 5000):
        watch = Watch(Policy().with_changes({"silence": {"timeout": 60.0, "missed_max": 8}}))
        beats(watch, [0.0] * count)
        waits.append(suspected_after(watch))
    assert waits[0] > waits[1] > waits[2] > 5.0


@given(st.lists(st.floats(0.0, 4.0), min_size=35, max_size=80))
def test_the_adaptive_rule_is_never_later_than_the_fixed_one_nor_earlier_than_an_interval(
    late: list[float],
) -> None:
    watch = Watch()
    beats(watch, late)
    agent = watch.agent()
    at = silence.suspect_at(agent, -inf, watch.engine.policy_of(agent).silence)
    assert agent.heard_at + agent.interval <= at <= agent.heard_at + 11.0


def test_a_lost_beat_does_not_bring_the_next_suspicion_forward() -> None:
    """The prediction is carried on over beats that were sent, not only over those that arrived."""
    waits = []
    for missing in (5998, 0):
        watch = Watch(Policy().with_changes({"silence": {"timeout": 60.0, "missed_max": 8}}))
        for number in range(1, 6000):
            if number != missing:
                watch.beat(at=START + 5.0 * number - (0.2 if number == 5999 else 0.0), seq=number)
        waits.append(suspected_after(watch))
    assert waits[0] >= waits[1] - 0.01
    assert waits[1] > 10.0


def test_a_lossy_link_is_given_more_time_than_a_good_one() -> None:
    policy = Policy().with_changes({"silence": {"timeout": 60.0, "missed_max": 8}})
    good, lossy = Watch(policy), Watch(policy)
    beats(good, [0.0] * 800)
    for number in range(1, 1001):
        if number % 5:
            lossy.beat(at=START + 5.0 * number, seq=number)
    assert suspected_after(lossy) > suspected_after(good) + 5.0


def test_an_outage_does_not_pollute_the_variance() -> None:
    watch = Watch()
    beats(watch, [0.0] * 400)
    before = silence.variance(watch.agent())
    watch.run_until(watch.now + 600)
    beats(watch, [0.0] * 400)
    assert silence.variance(watch.agent()) <= before * 1.01


def test_after_an_outage_the_next_beats_are_expected_from_where_it_ended() -> None:
    watch = Watch()
    beats(watch, [0.0] * 400)
    watch.run_until(watch.now + 602.5)
    watch.beat()
    watch.forget()
    beats(watch, [0.0] * 100)
    assert not pings(watch)


def test_a_sender_without_a_sequence_is_learned_too() -> None:
    watch = Watch()
    beats(watch, [0.0] * 6000, seq=None)
    assert 10.0 < suspected_after(watch) < 11.0


def test_without_a_sequence_lost_beats_are_guessed_from_the_time_that_passed() -> None:
    watch = Watch()
    for number in range(1, 41):
        if number % 4:
            watch.beat(at=START + 5.0 * number, seq=None)
    assert watch.agent().lost == 9
    assert watch.agent().interval == pytest.approx(5.0)


@pytest.mark.parametrize("seq", [True, False])
@pytest.mark.parametrize("every", [4.0, 5.5, 6.5])
def test_a_drifting_sender_is_followed(every: float, seq: bool) -> None:
    watch = Watch()
    for number in range(1, 500):
        watch.beat(at=START + every * number, seq=number if seq else None)
    assert not pings(watch)
    assert watch.agent().interval == pytest.approx(every, rel=0.05)
    assert every < suspected_after(watch) <= 11.0


def test_a_sender_that_slows_down_within_its_policy_is_not_suspected() -> None:
    """From every 5 s to every 9 s: suspected at most until the new rhythm is learned, then no more."""
    watch = Watch()
    beats(watch, [0.0] * 400)
    watch.live(watch.now + 1800, every=9.0)
    watch.forget()
    watch.live(watch.now + 1800, every=9.0)
    assert not pings(watch)


def test_a_sender_much_slower_than_its_policys_interval_is_judged_by_the_fixed_rule() -> None:
    """What cannot be learned must not be mistaken for perfect regularity."""
    watch = Watch(Policy().with_changes({"silence": {"timeout": 200.0, "missed_max": 30}}))
    watch.live(START + 40 * 50, every=50.0)
    assert not pings(watch)


def test_a_new_rhythm_is_judged_by_the_fixed_rule_until_it_is_known() -> None:
    """The old one's regularity says nothing about the new one's jitter."""
    rng = random.Random(7)
    watch = Watch(Policy().with_changes({"silence": {"timeout": 300.0, "missed_max": 40}}))
    beats(watch, [0.0] * 5000)
    agent, policy = watch.agent(), watch.engine.policy_of(watch.agent()).silence
    for _ in range(40):
        watch.beat(at=watch.now + 60.0 + rng.uniform(-25.0, 25.0))
        if agent.beats > 5000 + silence.LESSON:
            assert silence.suspect_at(agent, -inf, policy) == agent.heard_at + policy.suspect_after
    assert agent.interval == pytest.approx(60.0, rel=0.2)


def test_an_agent_that_asks_for_a_slower_policy_is_watched_by_it() -> None:
    watch = Watch()
    policy = {"silence": {"interval": 60.0, "timeout": 180.0}}
    watch.hear(AgentRegistered(agent_id="a", policy=policy))
    watch.live(START + 60 * 100, every=60.0)
    assert not pings(watch)
    assert watch.agent().interval == pytest.approx(60.0)


def test_an_agent_that_changes_to_a_slower_role_is_watched_by_it() -> None:
    watch = Watch(book=PolicyBook())
    watch.live(START + 500, every=5.0)
    watch.live(watch.now + 15 * MINUTE * 100, every=15 * MINUTE, role="standby")
    watch.forget()
    watch.live(watch.now + 15 * MINUTE * 100, every=15 * MINUTE, role="standby")
    assert not pings(watch)


# --- phi, for display ------------------------------------------------------------------------------------


def test_phi_grows_with_the_silence_and_never_ends() -> None:
    agent = Agent("a", 1, interval=5.0)
    assert silence.phi(agent, 1e9) == 0.0
    watch = Watch()
    beats(watch, [0.0, 0.3] * 20)
    agent = watch.agent()
    phis = [silence.phi(agent, agent.heard_at + after) for after in (0.0, 4.5, 5.2, 6.0, 9.0, 1e6)]
    assert phis == sorted(phis)
    assert f"{phis[0]:.1f}" == "0.0", "and never as -0.0"
    assert phis[-1] == 300.0
