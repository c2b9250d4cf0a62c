"""What one beat teaches about the next: NFD-E, reckoned by hand."""

from math import inf

import pytest

from lifesigns.core.agent import DECLARED, Agent, Call, Work
from lifesigns.core.detectors import silence
from lifesigns.core.effects import Kind, Severity
from lifesigns.core.health import BUSY_WORD, Doing
from lifesigns.core.policy import SilencePolicy

POLICY = SilencePolicy(timeout=60.0, missed_max=8)
"""Suspect 42.5 s after the last sign of life, by the fixed rule."""


def heard(agent: Agent, at: float, seq: int | None = None) -> None:
    """A beat from which is learned."""
    agent.beats += 1
    agent.heard_at = at
    if seq is not None:
        agent.seq = seq
    silence.learn(agent, seq, at)


def regular(beats: int = 40, every: float = 5.0) -> Agent:
    """An agent that has beaten on the second, the last time at `beats * every`."""
    agent = Agent("a", 1, interval=every)
    for number in range(1, beats + 1):
        heard(agent, number * every, number)
    return agent


# --- a lesson --------------------------------------------------------------------------------------------


def test_the_first_beat_only_says_when_the_next_should_come() -> None:
    agent = Agent("a", 1, interval=5.0, lost=9, lateness2=9.0, refit_at=9, margin=9.0)
    heard(agent, 100.0, 7)
    assert (agent.lessons, agent.lost, agent.lateness2) == (1, 0, 0.0)
    assert (agent.taught_at, agent.taught_seq, agent.taught_beat) == (100.0, 7, 1)
    assert (agent.expected_at, agent.margin, agent.refit_at) == (105.0, inf, 0)


def test_a_late_beat_moves_the_rhythm_and_the_prediction_by_its_weight() -> None:
    """The second of two lessons has half the weight, the third a third."""
    agent = Agent("a", 1, interval=5.0)
    heard(agent, 100.0, 1)
    heard(agent, 106.0, 2)
    assert (agent.interval, agent.expected_at, agent.lateness2) == (5.5, 111.0, 1.0)
    assert (agent.lessons, agent.lost) == (2, 0)
    heard(agent, 112.0, 3)
    assert agent.interval == pytest.approx(5.5 + 0.5 / 3)
    assert agent.expected_at == pytest.approx(112.0 - 2 / 3 + agent.interval)
    assert agent.lateness2 == 2.0


@pytest.mark.parametrize(
    ("after", "slower"), [(4.0, False), (5.0, False), (5.25, False), (5.26, True), (100.0, True)]
)
def test_beats_that_come_more_rarely_than_before_are_looked_at(after: float, slower: bool) -> None:
    """Also when they come so late that a new rhythm is learned."""
    agent = Agent("a", 1, interval=5.0)
    heard(agent, 100.0, 1)
    heard(agent, 100.0 + after, 2)
    assert agent.slowing is slower


def test_a_late_beat_among_many_is_jitter_and_lost_ones_are_no_slower_rhythm() -> None:
    agent = regular(32)
    agent.beats += 15
    heard(agent, 48 * 5.0 + 3.0, 48)
    assert not agent.slowing, "three seconds over sixteen beats"
    heard(agent, 68 * 5.0, 68)
    assert not agent.slowing, "it has sent them all"


@pytest.mark.parametrize(("lessons", "left"), [(0, 0), (1, 1), (40, 1)])
def test_a_rhythm_that_may_change_is_learned_anew(lessons: int, left: int) -> None:
    """Until three more lessons only the fixed rule holds."""
    agent = regular(40)
    agent.lessons, agent.lateness2, agent.margin, agent.refit_at = lessons, 9.0, 4.0, 50
    silence.relearn(agent)
    assert (agent.lessons, agent.lateness2, agent.margin) == (left, 0.0, inf)
    assert agent.refit_at == 40 + 3 * silence.LESSON


def test_a_beat_that_was_lost_is_counted_and_is_no_lateness() -> None:
    agent = Agent("a", 1, interval=5.0)
    heard(agent, 100.0, 1)
    heard(agent, 110.5, 3)
    assert (agent.lost, agent.lateness2) == (1, 0.25)
    assert agent.interval == 5.125
    assert agent.expected_at == 110.5 - 0.25 + 5.125


@pytest.mark.parametrize(("first", "second"), [(None, None), (1, None), (None, 3)])
@pytest.mark.parametrize(("at", "lost"), [(107.4, 0), (107.5, 1), (110.0, 1), (112.4, 1), (112.5, 2)])
def test_without_two_sequences_the_lost_ones_are_guessed_from_the_time(
    first: int | None, second: int | None, at: float, lost: int
) -> None:
    agent = Agent("a", 1, interval=5.0)
    heard(agent, 100.0, first)
    heard(agent, at, second)
    assert agent.lost == lost


def test_more_beats_than_the_time_has_room_for_lose_none() -> None:
    """Beats that came since the last lesson were sent, whatever their sequence or the clock says."""
    agent = Agent("a", 1, interval=5.0)
    heard(agent, 100.0, 5)
    agent.beats += 2
    heard(agent, 110.0, 5)
    assert agent.lost == 0
    assert agent.interval == pytest.approx(5.0 + (10 / 3 - 5.0) / 2)


@pytest.mark.parametrize(("passed", "taught"), [(0.999, False), (1.0, True)])
def test_a_backlog_teaches_nothing(passed: float, taught: bool) -> None:
    """Two beats in less than a tenth of the time they take were waiting somewhere."""
    agent = Agent("a", 1, interval=5.0)
    heard(agent, 100.0, 1)
    heard(agent, 100.0 + passed, 3)
    assert (agent.lessons == 2) is taught
    assert (agent.taught_at == 100.0 + passed) is taught
    assert (agent.lost == 1) is taught


@pytest.mark.parametrize(("at", "outage"), [(125.0, False), (125.1, True)])
def test_more_than_four_intervals_too_late_is_an_outage_or_another_rhythm(at: float, outage: bool) -> None:
    """That is no lateness: its pace is taken up, and the fixed rule holds until it is known."""
    agent = Agent("a", 1, interval=5.0, margin=1.0)
    heard(agent, 100.0, 1)
    agent.margin = 1.0
    heard(agent, at, 2)
    assert (agent.lateness2 == 0.0) is outage
    assert (agent.lessons == 1) is outage
    if outage:
        assert agent.interval == pytest.approx(25.1)
        assert agent.expected_at == pytest.approx(at + 25.1)
        assert (agent.margin, agent.refit_at) == (inf, 2 + silence.MEMORY)
        assert (agent.taught_at, agent.taught_seq, agent.taught_beat) == (at, 2, 2)


def test_an_outage_over_several_beats_is_shared_out_among_them() -> None:
    agent = Agent("a", 1, interval=5.0)
    heard(agent, 100.0, 1)
    heard(agent, 200.0, 5)
    assert (agent.interval, agent.lost) == (25.0, 0)


def test_far_too_early_is_another_rhythm_too() -> None:
    agent = Agent("a", 1, interval=5.0)
    heard(agent, 100.0, 1)
    heard(agent, 106.0, 11)
    assert agent.interval == pytest.approx(0.6)
    assert (agent.lessons, agent.margin) == (1, inf)


def test_no_rhythm_is_faster_than_a_millisecond() -> None:
    agent = Agent("a", 1, interval=0.0012)
    heard(agent, 100.0, 1)
    heard(agent, 100.0 + 0.0004, 2)
    assert agent.interval == silence.INTERVAL_MIN
    agent = Agent("a", 1, interval=0.005)
    heard(agent, 100.0, 1)
    heard(agent, 100.0 + 0.006, 11)
    assert agent.interval == silence.INTERVAL_MIN


def test_an_old_rhythm_loses_its_weight_over_as_many_beats_as_are_remembered() -> None:
    """However long the history: the next beat weighs a thirty-second part."""
    for beats in (32, 100):
        agent = regular(beats)
        agent.lessons = beats
        at = agent.heard_at + 5.0 + 3.2
        heard(agent, at, beats + 1)
        assert agent.interval == pytest.approx(5.0 + 3.2 / 32)
        assert agent.expected_at == pytest.approx(at - 3.2 * 31 / 32 + agent.interval)


def test_a_young_history_is_an_average() -> None:
    agent = regular(20)
    heard(agent, agent.heard_at + 5.0 + 2.1, 21)
    assert agent.interval == pytest.approx(5.0 + 2.1 / 21)


def test_the_first_beats_teach_each_and_then_every_sixteenth_does() -> None:
    agent = regular(31)
    assert agent.teach_at == 32
    heard(agent, 160.0, 32)
    assert agent.teach_at == 48


# --- what is expected ------------------------------------------------------------------------------------


def test_an_expectation_counts_before_the_agent_shows_its_own() -> None:
    agent = Agent("a", 1, interval=5.0)
    silence.expect(agent, 7.0)
    assert (agent.interval, agent.expected_at) == (7.0, 0.0)
    heard(agent, 100.0, 1)
    silence.expect(agent, 9.0)
    assert (agent.interval, agent.expected_at) == (9.0, 109.0)
    heard(agent, 109.0, 2)
    silence.expect(agent, 60.0)
    assert (agent.interval, agent.expected_at) == (9.0, 118.0)


@pytest.mark.parametrize(
    ("beats_since", "seq_since", "heard_after", "expected"),
    [
        (0, None, 0.0, 205.0),
        (2, 2, 10.0, 215.0),
        (2, 3, 15.0, 220.0),
        (2, 2, 20.0, 215.0),
        (3, 2, 10.0, 220.0),
    ],
)
def test_the_prediction_is_carried_on_over_the_beats_since_the_last_lesson(
    beats_since: int, seq_since: int | None, heard_after: float, expected: float
) -> None:
    agent = regular()
    agent.beats += beats_since
    agent.seq += seq_since or 0
    agent.heard_at += heard_after
    assert silence.expected_at(agent) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("beats_since", "heard_after", "expected"),
    [(1, 12.4, 215.0), (1, 12.5, 220.0), (3, 12.5, 220.0), (0, 30.0, 205.0)],
)
def test_without_a_sequence_it_is_carried_on_over_the_time_that_passed(
    beats_since: int, heard_after: float, expected: float
) -> None:
    agent = regular()
    agent.taught_seq = None
    agent.beats += beats_since
    agent.heard_at += heard_after
    assert silence.expected_at(agent) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("beats_since", "passed", "shown"),
    [(0, 0.0, 5.0), (1, 0.1, 5.0), (10, 4.9, 0.49), (10, 5.0, 5.0), (2, 0.9, 0.45)],
)
def test_beats_far_oftener_than_expected_are_shown_as_they_come(
    beats_since: int, passed: float, shown: float
) -> None:
    agent = regular()
    agent.beats += beats_since
    agent.heard_at += passed
    assert silence.observed_interval(agent) == pytest.approx(shown)


@pytest.mark.parametrize(("after", "missed"), [(-1.0, 0), (4.9, 0), (5.0, 1), (9.9, 1), (50.0, 10)])
def test_missed_beats_are_whole_intervals_since_the_last_sign_of_life(after: float, missed: int) -> None:
    agent = regular()
    assert silence.missed(agent, agent.heard_at + after) == missed


def test_one_without_a_rhythm_misses_nothing() -> None:
    assert silence.missed(Agent("a", 1), 100.0) == 0


def test_the_variance_has_a_floor_and_is_of_the_lessons() -> None:
    assert silence.variance(Agent("a", 1)) == 1e-6
    assert silence.variance(Agent("a", 1, lateness2=3.0)) == 3.0
    assert silence.variance(Agent("a", 1, lateness2=3.0, lessons=12)) == 0.25


def test_phi_is_the_surprise_in_powers_of_ten() -> None:
    """At the expected moment half of all beats are still to come; one without a second beat surprises nobody."""
    agent = Agent("a", 1, interval=5.0)
    heard(agent, 100.0, 1)
    assert silence.phi(agent, 1e6) == 0.0
    heard(agent, 105.0, 2)
    agent.lateness2 = 2.0
    assert silence.phi(agent, 110.0) == pytest.approx(0.30103)
    assert silence.phi(agent, 111.0) == pytest.approx(0.79955, abs=1e-4)  # one standard deviation
    assert silence.phi(agent, 112.0) == pytest.approx(1.64302, abs=1e-4)  # two
    assert silence.phi(agent, 1e6) == 300.0


# --- when it is suspect ----------------------------------------------------------------------------------


def test_one_that_is_learned_well_is_suspect_a_margin_after_its_expected_beat() -> None:
    agent = regular()
    margin = silence.margin(1e-6, silence.loss_rate(0, 40), 5.0, POLICY.false_suspicion_rate, 42.5)
    assert 5.0 < margin < 40.0
    assert silence.suspect_at(agent, -inf, POLICY) == pytest.approx(205.0 + margin)
    assert agent.margin == pytest.approx(margin)
    assert agent.refit_at == 51


def test_the_margin_is_kept_until_the_sample_has_grown_by_a_quarter() -> None:
    agent = regular()
    silence.suspect_at(agent, -inf, POLICY)
    agent.margin = 6.0
    agent.beats = 50
    silence.suspect_at(agent, -inf, POLICY)
    assert agent.margin == 6.0
    agent.beats = 51
    silence.suspect_at(agent, -inf, POLICY)
    assert agent.margin != 6.0


@pytest.mark.parametrize(("beats", "adaptive"), [(29, False), (30, True)])
def test_thirty_beats_are_enough_to_be_judged_by_its_own_rhythm(beats: int, adaptive: bool) -> None:
    agent = regular(beats)
    assert (silence.suspect_at(agent, -inf, POLICY) < agent.heard_at + 42.5) is adaptive


def test_the_fixed_rule_holds_where_the_policy_says_so() -> None:
    agent = regular()
    fixed = SilencePolicy(timeout=60.0, missed_max=8, adaptive=False)
    assert silence.suspect_at(agent, -inf, fixed) == agent.heard_at + 42.5


@pytest.mark.parametrize(
    ("margin", "at"), [(39.9, 244.9), (40.0, 242.5), (45.0, 242.5), (37.5, 242.5), (37.4, 242.4)]
)
def test_the_own_rhythm_is_never_later_than_the_fixed_rule(margin: float, at: float) -> None:
    agent = regular()
    agent.margin, agent.refit_at = margin, 1000
    assert silence.suspect_at(agent, -inf, POLICY) == pytest.approx(min(at, 242.5))


@pytest.mark.parametrize(("margin", "at"), [(39.9, 240.9), (40.0, 242.5), (41.0, 242.5)])
def test_a_margin_that_wins_less_than_half_an_interval_is_left(margin: float, at: float) -> None:
    agent = regular()
    agent.margin, agent.refit_at, agent.expected_at = margin, 1000, 201.0
    assert silence.suspect_at(agent, -inf, POLICY) == pytest.approx(at)


def test_the_own_rhythm_is_never_sooner_than_an_interval_after_the_last_sign_of_life() -> None:
    agent = regular()
    agent.margin, agent.refit_at = 1.0, 1000
    agent.heard_at += 3.0  # It said something else.
    assert silence.suspect_at(agent, -inf, POLICY) == pytest.approx(208.0)
    agent.heard_at += 2.0  # The moment the next beat was expected: the prediction is of another time.
    assert silence.suspect_at(agent, -inf, POLICY) == pytest.approx(205.0 + 42.5)


@pytest.mark.parametrize(("silence_from", "at"), [(199.9, 207.0), (200.0, 242.5), (230.0, 272.5)])
def test_a_silence_we_slept_through_begins_when_we_woke(silence_from: float, at: float) -> None:
    agent = regular()
    agent.margin, agent.refit_at = 2.0, 1000
    assert silence.suspect_at(agent, silence_from, POLICY) == pytest.approx(at)


# --- busy ------------------------------------------------------------------------------------------------

GRANTED = 42.5 + 2 * 60.0
"""What one that says it is busy is granted: three times the timeout."""


@pytest.mark.parametrize("word", ["status", "doing"])
def test_one_that_says_it_is_busy_is_granted_the_longer_timeout(word: str) -> None:
    agent = regular()
    if word == "status":
        agent.status = BUSY_WORD
    else:
        agent.doing = Doing.BUSY
    assert silence.suspect_at(agent, -inf, POLICY) == 200.0 + GRANTED
    assert silence.suspect_at(agent, 300.0, POLICY) == 300.0 + GRANTED


def busy_until(agent: Agent, seconds: float, started_at: float, *, said: bool = True) -> None:
    agent.doing = Doing.BUSY
    agent.work = Work(since=0.0)
    agent.work.calls[DECLARED] = Call("busy", started_at, seconds, said=said)


@pytest.mark.parametrize(
    ("seconds", "at"), [(60.0, 200.0 + GRANTED), (600.0, 800.0 + 42.5), (7200.0, 200.0 + 1800.0 + 42.5)]
)
def test_one_that_says_until_when_is_expected_back_then_within_a_bound(seconds: float, at: float) -> None:
    agent = regular()
    busy_until(agent, seconds, 200.0)
    assert silence.suspect_at(agent, -inf, POLICY) == at


@pytest.mark.parametrize(("heard_at", "excused"), [(205.0, True), (205.1, False)])
def test_one_that_beats_while_it_is_busy_has_only_the_longer_timeout(heard_at: float, excused: bool) -> None:
    """The beat that was on its way does not count."""
    agent = regular()
    busy_until(agent, 600.0, 200.0)
    agent.heard_at = heard_at
    expected = 842.5 if excused else heard_at + GRANTED
    assert silence.suspect_at(agent, -inf, POLICY) == pytest.approx(expected)


def test_a_bound_it_did_not_say_is_not_believed_as_one() -> None:
    agent = regular()
    busy_until(agent, 600.0, 200.0, said=False)
    assert silence.suspect_at(agent, -inf, POLICY) == 200.0 + GRANTED


# --- how often one is asked ------------------------------------------------------------------------------

ASKING = SilencePolicy(ping_wait=2.0, pings=2)


@pytest.mark.parametrize(
    ("beats", "lost", "asked"),
    [
        (1000, 0, 2),
        (20, 2, 2),
        (20, 3, 6),
        (1000, 5, 2),  # one ping in a hundred is not answered, two in ten thousand
        (1000, 6, 3),
        (1000, 53, 4),
        (
            700,
            300,
            6,
        ),  # fourteen would be needed, and three times as many as usual are enough of a good thing
        (1, 1000, 6),
    ],
)
def test_the_more_its_line_loses_the_oftener_an_agent_is_asked(beats: int, lost: int, asked: int) -> None:
    agent = Agent("a", 1, interval=5.0, beats=beats, lost=lost)
    assert silence.pings(agent, ASKING) == asked


@pytest.mark.parametrize("lost", [0, 10, 300])
def test_however_often_it_is_asked_the_last_ping_has_its_wait_and_all_have_the_same_time(lost: int) -> None:
    agent = Agent("a", 1, interval=5.0, beats=700, lost=lost)
    asked = silence.pings(agent, ASKING)
    waits = [silence.ping_wait(agent, number, ASKING) for number in range(1, asked + 1)]
    assert sum(waits) == pytest.approx(4.0)
    assert waits[-1] == 2.0
    assert waits[:-1] == pytest.approx([2.0 / (asked - 1)] * (asked - 1))


def test_a_policy_of_one_ping_is_one_ping() -> None:
    agent = Agent("a", 1, interval=5.0, beats=70, lost=30)
    once = SilencePolicy(ping_wait=2.0, pings=1)
    assert (silence.pings(agent, once), silence.ping_wait(agent, 1, once)) == (1, 2.0)


# --- in words --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("over", [True, False])
def test_only_a_silence_with_all_pings_unanswered_is_a_verdict(over: bool) -> None:
    found = silence.finding(regular(), 2, 261.0, over=over)
    assert found.severity is (Severity.DISCONNECTED if over else Severity.DEGRADED)
    assert found.conclusive is over
    assert (found.kind, found.since) == (Kind.SILENCE, 200.0)
    assert found.numbers == {"silent_for": 61.0, "interval": 5.0, "missed": 12, "pings": 2}


def test_one_that_never_came_is_no_verdict() -> None:
    found = silence.never_started(100.0, 120.0)
    assert (found.kind, found.since, found.severity) == (Kind.NEVER_STARTED, 100.0, Severity.DISCONNECTED)
    assert found.numbers == {"grace": 120.0}
    assert not found.conclusive
