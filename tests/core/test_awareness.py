"""The monitor doubts itself before it doubts an agent: the eight rules of the design."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.awareness import LAPSES_MAX, SCORE_MAX, Awareness, Lapse
from lifesigns.core.effects import (
    Effect,
    Escalate,
    Fact,
    FindingOpened,
    Flip,
    HubVisibility,
    Kind,
    NeedsHuman,
    Order,
    SendCanary,
    SendPing,
    Terminate,
)
from lifesigns.core.engine import Engine
from lifesigns.core.health import Cause, Health
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.signals import (
    AgentRegistered,
    BeatReceived,
    CanaryReturned,
    PongReceived,
    ToolFinished,
    ToolStarted,
)
from tests.core.harness import START, Watch

LIMITS = FleetPolicy()
FIXED = Policy().with_changes({"silence": {"adaptive": False}})


class Bus(Watch):
    """A watch whose canaries come back, until the bus is cut."""

    def __init__(
        self, fleet: FleetPolicy | None = None, engine: Engine | None = None, at: float = START
    ) -> None:
        super().__init__(FIXED, fleet=fleet or FleetPolicy(), engine=engine, at=at)
        self.cut = False

    def keep(self, effects: Sequence[Effect]) -> None:
        super().keep(effects)
        for effect in effects:
            if isinstance(effect, SendCanary) and not self.cut:
                super().keep(self.engine.hear(CanaryReturned(seq=effect.seq), self.now))


def disconnected(watch: Watch) -> list[tuple[str, float]]:
    flips = [flip for flip in watch.facts(Flip) if flip.now is Health.DISCONNECTED]
    return [(flip.agent_id, flip.at - START) for flip in flips]


def pinged(watch: Watch, agent_id: str = "a") -> list[float]:
    return [order.at - START for order in watch.orders(SendPing, agent_id)]


# --- 1. drain, then judge ----------------------------------------------------------------------------------


def test_what_arrived_before_now_is_heard_before_anyone_is_judged() -> None:
    """Signals carry the moment they arrived: heard in a bunch, late, they still tell of a regular agent."""
    watch = Watch(FIXED)
    watch.beat()
    watch.run_until(START + 4)
    for n in range(1, 7):
        watch.effects += watch.engine.hear(BeatReceived("a", seq=1 + n), START + 5 * n)
    watch.jump_to(START + 31)
    assert not watch.orders(Order)


# --- 2. the tick gap ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("gap", "slept"), [(1.0, False), (2.0, False), (2.01, True), (60.0, True)])
def test_a_tick_that_comes_more_than_a_second_late_means_we_slept(gap: float, slept: bool) -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.run_until(START + 3)
    watch.jump_to(START + 3 + gap)
    assert bool(watch.engine.beliefs.awareness.lapses) is slept


def test_the_gap_is_added_to_every_silence() -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.run_until(START + 5)
    watch.jump_to(START + 65)
    watch.run_until(START + 70.99)
    assert pinged(watch) == []
    watch.run_until(START + 71)
    assert pinged(watch) == [71.0]


@pytest.mark.parametrize(
    ("gap", "truce_until"),
    [(3.0, 8.0 + 5.0), (20.0, 25.0 + 20.0), (60.0, 65.0 + 30.0), (300.0, 305.0 + 30.0)],
)
def test_nobody_is_convicted_in_the_truce_after_a_gap(gap: float, truce_until: float) -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.run_until(START + 5)
    watch.jump_to(START + 5 + gap)
    assert watch.engine.beliefs.awareness.truce_until == START + truce_until
    watch.run_until(START + max(truce_until, 30.0) - 0.01)
    if gap >= 20.0:
        assert disconnected(watch) == []
    watch.run_until(START + truce_until + 30)
    assert [agent_id for agent_id, _ in disconnected(watch)] == ["a"]


def test_a_suspicion_that_was_open_while_we_slept_waits_for_the_truce_to_end() -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.run_until(START + 12)
    watch.jump_to(START + 42)
    watch.run_until(START + 71.99)
    assert disconnected(watch) == []
    watch.run_until(START + 72)
    assert disconnected(watch) == [("a", 72.0)]


def test_a_sleep_of_a_minute_convicts_no_healthy_agent_and_the_dead_are_found_afterwards() -> None:
    watch = Watch()
    ids = [f"w-{n}" for n in range(5)]
    for agent_id in [*ids, "dead"]:
        watch.beat(agent_id)
    watch.live(START + 60, *ids, "dead")
    watch.jump_to(START + 120)
    watch.live(START + 600, *ids)
    assert [agent_id for agent_id, _ in disconnected(watch)] == ["dead"]


# --- 3. the score ------------------------------------------------------------------------------------------


def test_a_score_stretches_every_wait_for_an_answer() -> None:
    watch = Watch(FIXED)
    watch.beat("b")
    watch.beat("a")
    watch.live(START + 5, "b")
    watch.engine.beliefs.awareness.score = 3
    watch.engine.beliefs.awareness.score_at = START + 5
    watch.live(START + 30, "b")
    assert pinged(watch) == [11.0, 11.0 + 2 * 4]
    assert disconnected(watch) == [("a", 11.0 + 2 * 4 * 2)]


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), max_size=100))
def test_the_score_stays_between_0_and_8(doubts: list[tuple[float, bool]]) -> None:
    aware, now = Awareness(), START
    for wait, doubt in doubts:
        now += wait
        if doubt:
            aware.doubt(now, LIMITS)
        assert 1 <= aware.factor(now, LIMITS) <= 1 + SCORE_MAX


@pytest.mark.parametrize(
    ("after", "factor"), [(0.0, 4), (29.99, 4), (30.0, 3), (60.0, 2), (90.0, 1), (1e6, 1)]
)
def test_quiet_lowers_the_score_by_one_for_every_calm_spell(after: float, factor: int) -> None:
    aware = Awareness()
    for _ in range(3):
        aware.doubt(START, LIMITS)
    assert aware.factor(START + after, LIMITS) == factor


def test_looking_at_the_score_more_often_does_not_keep_it_up() -> None:
    aware = Awareness()
    for _ in range(3):
        aware.doubt(START, LIMITS)
    for n in range(91):
        aware.factor(START + n, LIMITS)
    assert aware.score == 0


def test_one_refuted_suspicion_is_a_lost_beat_and_two_at_once_are_us() -> None:
    aware = Awareness()
    aware.refute(START, 10, LIMITS)
    assert aware.score == 0
    aware.refute(START + 30, 10, LIMITS)
    assert aware.score == 1


def test_refutations_far_apart_are_lost_beats() -> None:
    aware = Awareness()
    for n in range(20):
        aware.refute(START + 31 * n, 10, LIMITS)
    assert aware.score == 0


def test_in_a_large_fleet_it_takes_a_share_of_it() -> None:
    aware = Awareness()
    for _ in range(19):
        aware.refute(START, 1000, LIMITS)
    assert aware.score == 0
    aware.refute(START, 1000, LIMITS)
    assert aware.score == 1


def test_refuted_suspicions_raise_the_score_through_the_engine() -> None:
    watch = Watch(FIXED)
    for agent_id in "abc":
        watch.beat(agent_id)
    watch.run_until(START + 12)
    for agent_id in "abc":
        watch.hear(PongReceived(agent_id=agent_id))
    assert watch.engine.beliefs.awareness.score == 1


def test_sleeping_raises_the_score() -> None:
    watch = Watch(FIXED)
    watch.beat()
    for n in range(1, 13):
        watch.jump_to(START + 10 * n)
    assert watch.engine.beliefs.awareness.score == SCORE_MAX


# --- 4. the canary -----------------------------------------------------------------------------------------


def test_the_hub_beats_to_itself() -> None:
    bus = Bus()
    bus.run_until(START + 20)
    canaries = [effect for effect in bus.effects if isinstance(effect, SendCanary)]
    assert [(canary.at - START, canary.seq) for canary in canaries] == [
        (0, 1),
        (5, 2),
        (10, 3),
        (15, 4),
        (20, 5),
    ]


def test_three_canaries_missing_in_a_row_are_blindness_and_people_are_told() -> None:
    bus = Bus()
    bus.cut = True
    bus.run_until(START + 14.99)
    assert not bus.facts(HubVisibility)
    bus.run_until(START + 15)
    assert [(fact.at - START, fact.blind) for fact in bus.facts(HubVisibility)] == [(15, True)]
    assert [(fact.agent_id, fact.reason) for fact in bus.facts(NeedsHuman)] == [("hub", "blind")]
    bus.run_until(START + 600)
    assert len(bus.facts(HubVisibility)) == 1


def test_one_lost_canary_does_not_make_us_blind() -> None:
    bus = Bus()
    for n in range(1, 20):
        bus.cut = n % 2 == 0
        bus.run_until(START + 5 * n)
    assert not bus.facts(HubVisibility)


def test_a_lost_canary_now_and_then_does_not_put_off_who_never_starts() -> None:
    """Its grace began anew with each: on a bus that loses one message in twenty nobody was missed for half an hour."""
    bus = Bus()
    bus.hear(AgentRegistered(agent_id="late"))
    for n in range(1, 60):
        bus.cut = n % 10 == 0
        bus.run_until(START + 5 * n)
    found = bus.agent("late").finding(Kind.NEVER_STARTED)
    assert found is not None
    assert bus.facts(FindingOpened, "late")[0].at == START + 120


def test_whose_first_word_may_have_been_lost_with_a_canary_has_time_to_say_it_again() -> None:
    bus = Bus()
    bus.hear(AgentRegistered(agent_id="late", grace=121.0))
    bus.run_until(START + 112)
    bus.cut = True
    bus.run_until(START + 116)
    bus.cut = False
    bus.run_until(START + 134.9)
    assert bus.agent("late").finding(Kind.NEVER_STARTED) is None
    bus.run_until(START + 135)
    assert bus.agent("late").finding(Kind.NEVER_STARTED) is not None


def test_a_canary_we_never_sent_does_not_open_our_eyes() -> None:
    bus = Bus()
    bus.cut = True
    bus.run_until(START + 20)
    bus.hear(CanaryReturned(seq=999))
    assert bus.engine.beliefs.awareness.blind


@pytest.mark.parametrize("agents", [1, 2, 8])
def test_a_bus_that_is_cut_for_ten_minutes_convicts_nobody_and_acts_on_nobody(agents: int) -> None:
    bus = Bus()
    ids = [f"w-{n}" for n in range(agents)]
    for agent_id in ids:
        bus.beat(agent_id)
    bus.live(START + 60, *ids)
    bus.cut = True
    bus.run_until(START + 660)
    bus.cut = False
    bus.live(START + 1200, *ids)
    assert disconnected(bus) == []
    assert not bus.orders(Escalate)
    assert [fact.blind for fact in bus.facts(HubVisibility)] == [True, False]


def test_while_blind_no_suspicion_advances() -> None:
    bus = Bus()
    for agent_id in "ab":
        bus.beat(agent_id)
    bus.live(START + 60, "a", "b")
    bus.cut = True
    bus.run_until(START + 90)
    assert bus.engine.beliefs.awareness.blind
    bus.forget()
    bus.run_until(START + 3600)
    assert not bus.orders(Order)
    assert not bus.facts(Flip)


def test_who_was_just_asked_when_the_bus_is_cut_is_not_convicted() -> None:
    """That somebody was heard after the first question says nothing of the bus after the last one."""
    bus = Bus()
    for agent_id in "ab":
        bus.beat(agent_id)
    bus.live(START + 60, "a", "b")
    bus.live(START + 71, "b", every=1.0)
    assert pinged(bus) == [71]
    bus.beat("b", START + 71.1)
    bus.cut = True
    bus.run_until(START + 3600)
    assert bus.engine.beliefs.awareness.blind
    assert disconnected(bus) == []


def test_after_blindness_silence_starts_from_zero_and_the_dead_are_found() -> None:
    bus = Bus()
    for agent_id in "ab":
        bus.beat(agent_id)
    bus.live(START + 60, "a", "b")
    bus.cut = True
    bus.run_until(START + 90)
    bus.cut = False
    bus.run_until(START + 95)
    sighted_at = bus.facts(HubVisibility)[-1].at - START
    assert [(fact.at - START, fact.blind) for fact in bus.facts(HubVisibility)] == [(80, True), (95, False)]
    bus.forget()
    bus.live(START + 400, "b")
    assert pinged(bus)[0] == sighted_at + 11
    assert [agent_id for agent_id, _ in disconnected(bus)] == ["a"]


def test_a_call_that_hangs_is_found_though_its_bound_was_over_while_we_were_blind() -> None:
    """The first beat may be back before the canary is: who hears it is still blind, and must look again."""
    bus = Bus()
    bus.beat("a", task_id="t")
    bus.live(START + 60, "a")
    bus.hear(ToolStarted(agent_id="a", call_id="c", tool="fetch", bound=120.0))
    bus.cut = True
    bus.run_until(START + 301)
    assert bus.engine.beliefs.awareness.blind
    bus.beat("a")
    assert bus.agent("a").calm
    bus.cut = False
    bus.live(START + 600, "a")
    (found,) = [fact for fact in bus.facts(FindingOpened) if fact.finding.kind is Kind.LONG_CALL]
    seen, blind = (fact.at for fact in reversed(bus.facts(HubVisibility)))
    assert found.at == START + 60 + 120 + (seen - blind)


def test_a_hub_that_slept_is_not_blind() -> None:
    """The canary that was out while we slept did not come late: we did."""
    bus = Bus()
    bus.beat()
    bus.cut = True
    bus.run_until(START + 6)
    bus.jump_to(START + 66)
    bus.cut = False
    bus.hear(CanaryReturned(seq=2))
    bus.run_until(START + 70)
    assert not bus.facts(HubVisibility)


# --- 5. somebody else must be heard ------------------------------------------------------------------------


def test_nobody_is_convicted_while_nobody_else_is_heard() -> None:
    watch = Watch(FIXED)
    for agent_id in "ab":
        watch.beat(agent_id)
    watch.run_until(START + 30)
    assert disconnected(watch) == []


def test_as_soon_as_somebody_else_is_heard_the_silent_one_is_convicted() -> None:
    watch = Watch(FIXED)
    for agent_id in "ab":
        watch.beat(agent_id)
    watch.beat("b", START + 20)
    watch.run_until(START + 25)
    assert [agent_id for agent_id, _ in disconnected(watch)] == ["a"]
    assert watch.agent("a").cause is Cause.UNKNOWN


def test_everybody_silent_for_long_is_a_partition_and_nobody_is_ended_for_it() -> None:
    watch = Watch(FIXED)
    for agent_id in "ab":
        watch.beat(agent_id)
    watch.run_until(START + 3600)
    assert {agent_id for agent_id, _ in disconnected(watch)} == {"a", "b"}
    assert {watch.agent(agent_id).cause for agent_id in "ab"} == {Cause.PARTITION}
    assert not watch.orders(Terminate)


def test_a_lone_agent_has_nobody_to_vouch_for_the_link() -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.run_until(START + 15)
    assert disconnected(watch) == [("a", 15.0)]


# --- 7. restart and takeover -------------------------------------------------------------------------------


@pytest.mark.timeout(20)
def test_our_downtime_is_nobodys_death() -> None:
    bus = Bus()
    for agent_id in "ab":
        bus.beat(agent_id)
    bus.live(START + 60, "a", "b")
    engine = Engine.restore(bus.engine.snapshot(), START + 3660, fleet=FleetPolicy())
    after = Bus(engine=engine, at=START + 3660)
    after.seqs = bus.seqs
    after.run_until(START + 3660 + 10.99)
    assert not after.orders(Order)
    after.live(START + 3660 + 120, "b")
    assert pinged(after)[0] == 3660 + 11
    after.live(START + 2 * 3660 + 120, "b")
    assert [agent_id for agent_id, _ in disconnected(after)] == ["a"]


@pytest.mark.timeout(20)
def test_a_restored_engine_without_a_canary_goes_on() -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.run_until(START + 5)
    engine = Engine.restore(watch.engine.snapshot(), START + 5, fleet=FleetPolicy(canary_every=0))
    after = Watch(engine=engine, at=START + 5)
    after.run_until(START + 30)
    assert disconnected(after) == [("a", 15.0)]


# --- 8. what the decision knew -----------------------------------------------------------------------------


def test_a_termination_says_which_life_and_which_beat_it_was_decided_on() -> None:
    """So that the store can refuse it if it knows more by then."""
    watch = Watch(FIXED)
    watch.beat(incarnation="i-1", seq=42)
    watch.run_until(START + 1000)
    assert [(order.incarnation, order.seq_seen) for order in watch.orders(Terminate)] == [("i-1", 42)]


# --- time --------------------------------------------------------------------------------------------------


def test_time_never_runs_backwards() -> None:
    watch = Watch(FIXED)
    watch.beat()
    watch.run_until(START + 10)
    watch.effects += watch.engine.hear(BeatReceived("a", seq=2), START + 2)
    assert watch.agent().heard_at == START + 10
    watch.effects += watch.engine.advance(START - 500)
    watch.run_until(START + 60)
    times = [effect.at for effect in watch.effects if isinstance(effect, Fact)]
    assert times == sorted(times)
    assert disconnected(watch) == [("a", 25.0)]


# --- the arithmetic of lapses ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("start", "wait", "due"),
    [
        (0.0, 5.0, 5.0),
        (0.0, 10.0, 10.0),
        (0.0, 10.5, 20.5),
        (5.0, 10.0, 25.0),
        (15.0, 3.0, 23.0),
        (20.0, 3.0, 23.0),
        (25.0, 5.0, 30.0),
        (25.0, 6.0, 36.0),
        (0.0, 30.0, 45.0),
    ],
)
def test_a_wait_does_not_count_the_time_in_which_we_did_not_look(
    start: float, wait: float, due: float
) -> None:
    """We did not look from 10 to 20 nor from 30 to 35."""
    aware = Awareness()
    aware.slept(10.0, 20.0, LIMITS)
    aware.slept(30.0, 35.0, LIMITS)
    assert aware.due(start, wait) == due


LAPSES = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), max_size=200)


@given(LAPSES, st.integers(0, 5000), st.integers(1, 5000))
def test_lapses_only_ever_put_things_off_and_are_bounded(
    lapses: list[tuple[int, int]], start: int, wait: int
) -> None:
    aware, now = Awareness(), 0.0
    exact: list[tuple[float, float]] = []
    for awake, asleep in lapses:
        aware.slept(now + awake, now + awake + asleep, LIMITS)
        exact.append((now + awake, now + awake + asleep))
        now += awake + asleep
    assert len(aware.lapses) <= LAPSES_MAX
    due, looked = float(start), 0.0
    for began, ended in [*exact, (float("inf"), float("inf"))]:
        if due >= ended:
            continue
        room = max(0.0, began - due)
        if looked + room >= wait:
            break
        looked, due = looked + room, ended
    due += wait - looked
    assert aware.due(start, wait) >= due
    if len(exact) <= LAPSES_MAX:
        assert aware.due(start, wait) == due


def test_what_a_deadline_costs_does_not_depend_on_how_often_we_slept() -> None:
    """A hub that falls behind has lapses. If each made every deadline dearer, it would fall behind further, for ever."""
    aware, asked = Awareness(), 0

    class Counted(list[Lapse]):
        def __getitem__(self, index: Any) -> Any:
            nonlocal asked
            asked += 1
            return super().__getitem__(index)

        def __iter__(self) -> Iterator[Lapse]:
            raise AssertionError("walked")

    for n in range(LAPSES_MAX):
        aware.slept(10.0 * n, 10.0 * n + 3.0, LIMITS)
    aware.lapses = Counted(aware.lapses)
    assert aware.due(4.0, 100.0) == 4.0 + 100.0 + 3.0 * 14
    assert aware.due(10.0 * LAPSES_MAX, 100.0) == 10.0 * LAPSES_MAX + 100.0
    assert asked < LAPSES_MAX / 2


def test_overlapping_lapses_count_once_also_those_of_an_older_snapshot() -> None:
    aware = Awareness()
    aware.slept(20.0, 30.0, LIMITS)
    aware.resume(10.0, 40.0, LIMITS)
    assert aware.due(0.0, 20.0) == 50.0
    older = Awareness(lapses=[Lapse(20.0, 30.0), Lapse(10.0, 40.0), Lapse(50.0, 60.0)])
    assert [(lapse.began_at, lapse.ended_at) for lapse in older.lapses] == [(10.0, 40.0), (50.0, 60.0)]
    assert older.due(0.0, 25.0) == 65.0


# --- a bus that dies is not its agents' death --------------------------------------------------------------


class TwoWays(Bus):
    """`web` speaks over HTTP, all others over the bus, which the canary takes too."""

    def __init__(self) -> None:
        super().__init__()
        self.engine.canary_comes_by("bus")

    def live(self, until: float, *agent_ids: str, every: float = 5.0, **fields: Any) -> None:
        at = self.now + every
        while at <= until:
            for agent_id in agent_ids:
                self.speak(agent_id, at)
            at += every
        self.run_until(until)

    def speak(self, agent_id: str, at: float | None = None) -> None:
        self.beat(agent_id, at, source="token-1" if agent_id == "web" else "bus")


def on_two_ways() -> TwoWays:
    watch = TwoWays()
    for agent_id in ("web", "a", "b"):
        watch.speak(agent_id)
    watch.live(START + 60, "web", "a", "b")
    return watch


@pytest.mark.parametrize("away_for", [3.0, 8.0, 12.0, 20.0, 600.0])
def test_who_speaks_over_a_bus_that_is_away_is_not_judged_by_its_silence(away_for: float) -> None:
    """Though somebody else is heard all the while; and everybody has time to come back after it."""
    watch = on_two_ways()
    watch.cut = True
    watch.live(START + 60 + away_for, "web", every=1.0)
    watch.cut = False
    watch.live(START + 60 + away_for + 2, "web", every=1.0)
    watch.live(START + 60 + away_for + 120, "web", "a", "b")
    assert disconnected(watch) == []


def test_who_speaks_by_another_way_is_judged_while_the_bus_is_away() -> None:
    watch = on_two_ways()
    watch.speak("web-2", START + 60)
    watch.beat("web-2", START + 61, source="token-1")
    watch.cut = True
    watch.live(START + 200, "web")
    assert [agent_id for agent_id, _ in disconnected(watch)] == ["web-2"]


@pytest.mark.parametrize("alive", [("web", "b"), ("web",), ("b",), ()])
def test_the_dead_of_a_living_bus_are_found_one_or_all(alive: tuple[str, ...]) -> None:
    watch = on_two_ways()
    watch.live(START + 200, *alive)
    assert {agent_id for agent_id, _ in disconnected(watch)} == {"web", "a", "b"} - set(alive)


def test_who_changes_its_way_is_judged_by_the_one_it_speaks_by_now() -> None:
    watch = on_two_ways()
    for n in range(10):
        watch.beat("a", START + 61 + n, source="token-1")
    watch.cut = True
    watch.live(START + 200, "web")
    assert [agent_id for agent_id, _ in disconnected(watch)] == ["a"]


# --- a beat that waits in a socket is not silence ----------------------------------------------------------


def fall_behind(watch: Watch, until: float) -> None:
    """Whoever runs the engine has no idle moment: nothing more is heard, though everybody speaks."""
    while watch.now < until:
        since = watch.now
        watch.run_until(since + 0.4)
        watch.keep(watch.engine.fall_behind(since, watch.now))


@pytest.mark.parametrize("behind_for", [2.0, 12.0, 20.0, 45.0, 600.0])
@pytest.mark.parametrize("two_ways", [False, True])
def test_a_hub_that_is_behind_convicts_nobody_neither_then_nor_after(
    behind_for: float, two_ways: bool
) -> None:
    watch = on_two_ways() if two_ways else Bus()
    watch.live(watch.now + 60, "web", "a", "b")
    fall_behind(watch, watch.now + behind_for)
    watch.keep(watch.engine.catch_up(watch.now))
    watch.run_until(watch.now + 4)
    watch.live(watch.now + 120, "web", "a", "b")
    assert disconnected(watch) == []
    sights = [sight.blind for sight in watch.facts(HubVisibility)]
    assert sights == ([True, False] if behind_for > LIMITS.canary_late_after else [])


@pytest.mark.parametrize("behind_for", [2.0, 20.0, 600.0])
def test_who_died_meanwhile_is_found_after_a_hub_that_was_behind_has_caught_up(behind_for: float) -> None:
    watch = Bus()
    watch.live(START + 60, "web", "a", "b")
    fall_behind(watch, watch.now + behind_for)
    watch.keep(watch.engine.catch_up(watch.now))
    ended = watch.now - START
    watch.live(watch.now + 120, "web", "a")
    [(agent_id, at)] = disconnected(watch)
    assert agent_id == "b"
    assert at - ended < 60


def test_a_moment_of_work_delays_a_verdict_by_no_more_than_itself() -> None:
    calm, busy = Bus(), Bus()
    for watch in (calm, busy):
        watch.live(START + 60, "web", "a")
    fall_behind(busy, busy.now + 0.8)
    busy.keep(busy.engine.catch_up(busy.now))
    for watch in (calm, busy):
        watch.live(START + 180, "web")
    [(_, soon)], [(_, later)] = disconnected(calm), disconnected(busy)
    assert soon <= later <= soon + 1.0


def test_a_canary_that_comes_back_does_not_end_an_overload_and_a_new_hub_does() -> None:
    watch = Bus()
    watch.live(START + 60, "a", "b")
    fall_behind(watch, watch.now + 30)
    assert watch.engine.beliefs.awareness.blind
    again = Bus(
        engine=Engine.restore(watch.engine.snapshot(), watch.now + 1, fleet=FleetPolicy()), at=watch.now
    )
    again.run_until(again.now + 2)
    assert not again.engine.beliefs.awareness.blind
    assert [sight.blind for sight in again.facts(HubVisibility)] == [False]


def test_retries_that_waited_for_a_cut_bus_are_no_loop_though_they_come_before_our_canary() -> None:
    """Ten minutes of them at once, and the canary is a moment behind: a healthy agent was stuck, "for 0 s"."""
    watch = Bus()
    watch.beat(seq=None)
    watch.cut = True
    watch.run_until(START + 10 * 60)
    assert watch.engine.beliefs.awareness.blind
    for number in range(8):
        watch.hear(
            ToolFinished(
                agent_id="a",
                call_id=str(number),
                tool="fetch",
                args_digest="x",
                ok=False,
                error="not ready",
            )
        )
    watch.cut = False
    watch.run_until(watch.now + 30)
    assert watch.agent().finding(Kind.LOOPING) is None
