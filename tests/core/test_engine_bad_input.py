"""Bad input has a defined answer, and good agents are not disturbed by it."""

import math

import pytest

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.core.engine import Engine
from lifesigns.core.health import Health
from lifesigns.core.policy import FleetPolicy
from tests.core.harness import START, Watch


@pytest.fixture
def watch() -> Watch:
    """A good agent that beats, whatever else is heard."""
    watch = Watch()
    watch.beat("good", host="h", incarnation="g")
    watch.forget()
    return watch


def refusals(watch: Watch) -> list[str]:
    return [fact.reason for fact in watch.facts(e.Refusal)]


def assert_good_is_undisturbed(watch: Watch) -> None:
    watch.live(watch.now + 60, "good", host="h", incarnation="g")
    assert watch.health("good") is Health.HEALTHY
    assert [fact for fact in watch.facts(e.Flip) if fact.agent_id == "good"] == []
    assert watch.orders(e.Order, "good") == []


@pytest.mark.parametrize(
    "signal",
    [
        s.TerminationDone(agent_id="ghost", order_id="1-1"),
        s.NudgeDelivered(agent_id="ghost", order_id="1-1"),
        s.EscalationDecided(agent_id="ghost", order_id="1-1", decision=s.Decision.TERMINATE),
        s.ProcessExited(agent_id="ghost", status=1),
        s.TerminationRequested(agent_id="ghost", by="me"),
        s.ClearRequested(agent_id="ghost", by="me"),
        s.AgentLeft(agent_id="ghost"),
        s.OpinionGiven(agent_id="ghost", zone="b", opinion=s.Opinion.HEARD),
    ],
    ids=lambda signal: type(signal).__name__,
)
def test_what_is_said_about_an_unknown_agent_is_refused(watch: Watch, signal: s.Signal) -> None:
    watch.hear(signal)
    assert refusals(watch) == ["unknown agent"]
    assert watch.engine.agent("ghost") is None
    assert_good_is_undisturbed(watch)


def test_an_unknown_voice_introduces_itself(watch: Watch) -> None:
    """An agent needs no registration: whatever it says first makes it known."""
    watch.hear(s.ProgressMade(agent_id="new"))
    assert watch.health("new") is Health.HEALTHY


def test_an_old_incarnation_is_refused_and_keeps_nobody_alive(watch: Watch) -> None:
    watch.beat("a", incarnation="one")
    watch.beat("a", incarnation="two", seq=1)
    watch.forget()
    for _ in range(10):
        watch.live(watch.now + 5, "good", host="h", incarnation="g")
        watch.hear(s.BeatReceived("a", seq=999, incarnation="one"))
    assert set(refusals(watch)) == {"retired incarnation"}
    assert watch.agent("a").incarnation == "two"
    assert watch.health("a") is Health.DISCONNECTED


def test_a_refusal_is_written_down_once_a_minute_however_often_it_happens(watch: Watch) -> None:
    watch.beat("a", incarnation="one")
    watch.beat("a", incarnation="two", seq=1)
    watch.forget()
    for _ in range(1000):
        watch.hear(s.BeatReceived("a", incarnation="one"))
    assert len(refusals(watch)) == 1
    watch.live(watch.now + 61, "good", "a", host="h")
    watch.hear(s.BeatReceived("a", incarnation="one"))
    assert [fact.count for fact in watch.facts(e.Refusal) if fact.reason == "retired incarnation"] == [
        1,
        1000,
    ]


@pytest.mark.parametrize(
    "sent_at", [-1e18, 0.0, START - 7200, START + 7200, 1e18, math.inf, -math.inf, math.nan]
)
def test_an_agents_own_clock_decides_nothing(watch: Watch, sent_at: float) -> None:
    """Skewed by hours or broken: its beats count from when they arrive."""
    watch.live(START + 120, "a", "good", sent_at=sent_at)
    assert watch.health("a") is Health.HEALTHY
    watch.forget()
    watch.live(START + 150, "good")
    assert [fact.now for fact in watch.facts(e.Flip, "a")] == [Health.DISCONNECTED]


def test_a_replayed_or_late_beat_keeps_nobody_alive(watch: Watch) -> None:
    watch.live(START + 50, "a", "good", incarnation="x")
    watch.forget()
    for n in range(6):
        watch.live(watch.now + 5, "good", incarnation="x")
        watch.hear(s.BeatReceived("a", seq=n, incarnation="x"))
    assert watch.health("a") is Health.DISCONNECTED
    assert set(refusals(watch)) == {"replayed, out of order or leaping sequence"}


def test_a_duplicate_changes_nothing(watch: Watch) -> None:
    watch.beat("a", seq=1, incarnation="x")
    beats = watch.agent("a").beats
    watch.hear(s.BeatReceived("a", seq=1, incarnation="x"))
    assert watch.agent("a").beats == beats


def test_a_sequence_that_leaps_beyond_any_outage_is_refused(watch: Watch) -> None:
    """One corrupt number must not make every later beat look like a replay."""
    watch.beat("a", seq=1, incarnation="x")
    watch.hear(s.BeatReceived("a", seq=2**62, incarnation="x"))
    watch.live(START + 60, "a", "good", incarnation="x")
    assert watch.health("a") is Health.HEALTHY


def test_a_sender_without_incarnation_may_restart_and_count_from_the_beginning(watch: Watch) -> None:
    watch.live(START + 100, "a", "good")
    watch.seqs["a"] = 0
    watch.live(START + 200, "a", "good")
    assert watch.health("a") is Health.HEALTHY
    assert [fact for fact in watch.facts(e.Flip, "a") if fact.now is Health.DISCONNECTED] == []


def test_a_stranger_under_a_known_id_is_a_new_life_and_the_old_one_is_refused(watch: Watch) -> None:
    """Two that claim one id cannot both be believed: the newer is, the older is told off, on record."""
    watch.beat("a", incarnation="real")
    watch.beat("a", incarnation="spoofed", seq=1)
    watch.beat("a", incarnation="real", seq=2)
    assert watch.agent("a").incarnation == "spoofed"
    assert refusals(watch) == ["retired incarnation"]
    assert watch.orders(e.StopStranger) == []  # we did not replace it: nobody is stopped on a stranger's word
    assert_good_is_undisturbed(watch)


@pytest.mark.parametrize("load", [math.nan, math.inf, -math.inf, -5.0, 1e300])
def test_a_senseless_load_is_harmless(watch: Watch, load: float) -> None:
    watch.beat("a", load=load, loop_lag_ms=math.nan, metrics=s.Metrics(cpu_percent=load, memory_mb=math.nan))
    assert watch.engine.least_loaded(5)
    assert_good_is_undisturbed(watch)


def test_countless_invented_ids_from_one_source_push_nobody_out() -> None:
    """They stop at the source's limit; a good agent from elsewhere is still taken in, and judged in time."""
    watch = Watch(fleet=FleetPolicy(canary_every=0, agents_per_source=1000))
    watch.beat("good", source="ours")
    for n in range(100_000):
        watch.engine.hear(s.BeatReceived(f"fake-{n}", source="theirs"), START)
    watch.beat("late", source="ours")
    assert len(list(watch.engine.agents())) == 1002
    assert watch.engine.agent("late") is not None
    beliefs = watch.engine.snapshot()
    assert len(beliefs.complaints) <= 2


def test_huge_metadata_is_not_kept(watch: Watch) -> None:
    """The door limits it to 64 KiB; the engine keeps none of it at all."""
    watch.beat("a", metadata={"x": "y" * 10_000_000})
    assert "y" * 100 not in repr(watch.agent("a"))


def test_an_impossible_policy_of_its_own_is_refused_and_the_agent_is_watched_all_the_same(
    watch: Watch,
) -> None:
    watch.hear(s.AgentRegistered(agent_id="a", policy={"silence": {"timeout": 1.0}}))
    assert refusals(watch) == ["policy silence.timeout: 1.0 s is not longer than the interval of 5.0 s"]
    watch.live(START + 60, "a", "good")
    assert watch.health("a") is Health.HEALTHY


def test_time_that_runs_backwards_stands_still(watch: Watch) -> None:
    watch.live(START + 60, "a", "good")
    watch.forget()
    effects = [
        *watch.engine.advance(START - 3600),
        *watch.engine.hear(s.BeatReceived("a", seq=50), START - 3600),
    ]
    assert effects == []
    assert watch.agent("a").heard_at == START + 60


def test_a_bug_of_ours_sets_one_agent_aside_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch()
    watch.may_poison = True
    watch.live(START + 60, "a", "b")
    real = watch.engine._watching.silence_at

    def breaks(agent: object, policy: object) -> float:
        if getattr(agent, "id", "") == "a":
            raise ZeroDivisionError("our bug")
        return real(agent, policy)  # type: ignore[arg-type]

    monkeypatch.setattr(watch.engine._watching, "silence_at", breaks)
    watch.hear(s.ProgressMade(agent_id="a"))
    watch.run_until(START + 120)
    assert [fact.agent_id for fact in watch.facts(e.Poisoned)] == ["a"]
    assert watch.health("b") is Health.DISCONNECTED
    monkeypatch.undo()
    watch.hear(s.ClearRequested(agent_id="a", by="me"))
    watch.beat("a")
    assert not watch.agent("a").past.poisoned


def test_a_bug_on_the_short_way_of_a_beat_is_one_agents_too(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = Watch()
    watch.may_poison = True
    watch.live(START + 60, "a", "b")

    def breaks(agent: object, seq: object, now: object) -> None:
        if getattr(agent, "id", "") == "a":
            raise ZeroDivisionError("our bug")

    monkeypatch.setattr("lifesigns.core.detectors.silence.learn", breaks)
    watch.live(START + 120, "a", "b")
    assert [fact.agent_id for fact in watch.facts(e.Poisoned)] == ["a"]
    assert watch.health("b") is Health.HEALTHY


def test_a_fresh_engine_answers_whatever_time_it_is() -> None:
    for now in (-1e9, 0.0, 1.8e9):
        engine = Engine()
        assert any(isinstance(effect, e.Flip) for effect in engine.hear(s.BeatReceived("a"), now))
        assert engine.wake_at() >= now
