"""What agents say about themselves is believed: busy, degraded, totals; and what was said about their task."""

from typing import Any

import pytest

from lifesigns.core import signals as s
from lifesigns.core.effects import (
    Brake,
    Escalate,
    FindingOpened,
    Kind,
    SendNudge,
    SendPing,
    Severity,
    Terminate,
)
from lifesigns.core.health import Doing, Health
from lifesigns.core.policy import HOUR, MINUTE, Policy
from lifesigns.views.builders.agents import agent_health
from tests.core.harness import START, Watch

TIMEOUT = Policy().silence.timeout
BUSY_TIMEOUT = 3 * TIMEOUT


def watched(**first: Any) -> Watch:
    """An agent that has spoken, and another one that goes on: somebody is heard all the time."""
    watch = Watch()
    watch.beat("a", **first)
    watch.beat("other")
    return watch


def lost_after(watch: Watch) -> float:
    """How long after the last word of `a` it is disconnected."""
    heard_at = watch.agent().heard_at
    while watch.health() is not Health.DISCONNECTED:
        watch.live(watch.now + 1, "other", every=0.5)
        assert watch.now < heard_at + 2 * HOUR
    return watch.agent().since - heard_at


# --- busy ---------------------------------------------------------------------------------------------------------


def test_without_a_word_the_plain_timeout_holds() -> None:
    assert lost_after(watched()) <= TIMEOUT


def test_the_status_busy_extends_the_timeout_and_is_no_excuse_for_ever() -> None:
    assert TIMEOUT < lost_after(watched(status="busy")) <= BUSY_TIMEOUT


def test_a_pong_that_says_busy_extends_the_timeout() -> None:
    watch = watched()
    watch.hear(s.PongReceived(agent_id="a", status="busy"))
    assert TIMEOUT < lost_after(watch) <= BUSY_TIMEOUT


def test_busy_until_a_moment_is_believed_until_then() -> None:
    watch = watched(doing=Doing.BUSY, until=START + 60)
    watch.live(START + 59, "other")
    assert watch.health() is Health.HEALTHY
    assert watch.orders(SendPing, "a") == []
    assert 60 < lost_after(watch) <= 60 + TIMEOUT


def test_busy_until_far_away_has_a_bound() -> None:
    watch = watched(doing=Doing.BUSY, until=START + 20 * HOUR)
    assert lost_after(watch) <= 30 * MINUTE + TIMEOUT


def test_an_agent_that_beats_while_it_is_busy_is_missed_when_it_stops() -> None:
    watch = watched(doing=Doing.BUSY, until=START + 20 * MINUTE)
    for number in range(1, 13):
        watch.beat("a", START + 5 * number, doing=Doing.BUSY)
        watch.beat("other")
    assert lost_after(watch) <= BUSY_TIMEOUT


def test_the_next_word_ends_what_busy_grants() -> None:
    watch = watched(status="busy")
    watch.beat("a", status="working")
    assert lost_after(watch) <= TIMEOUT


def test_a_process_seen_dead_is_dead_however_busy_it_was() -> None:
    watch = watched(doing=Doing.BUSY, until=START + 600)
    watch.hear(s.ProcessExited(agent_id="a", status=139))
    assert watch.health() is Health.DISCONNECTED


# --- degraded -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["degraded", "unhealthy"])
def test_an_agent_that_says_it_is_degraded_is_until_it_says_otherwise(word: str) -> None:
    watch = watched(status=word)
    watch.live(START + 60, "a", "other", status=word)
    assert watch.health() is Health.DEGRADED
    assert [f.text for f in watch.agent().findings] == [f"It says itself that it is {word}."]
    assert len(watch.facts(FindingOpened, "a")) == 1
    watch.beat("a", status="healthy")
    assert watch.health() is Health.HEALTHY


def test_a_pong_that_says_degraded_is_a_finding() -> None:
    watch = watched()
    watch.hear(s.PongReceived(agent_id="a", status="degraded"))
    assert [f.kind for f in watch.agent().findings] == [Kind.SELF_REPORTED]


@pytest.mark.parametrize("word", ["idle", "busy", "working", "healthy", "anything"])
def test_no_other_word_is_held_against_it(word: str) -> None:
    watch = watched(status=word)
    watch.live(START + 600, "a", "other", status=word)
    assert watch.health() is Health.HEALTHY
    assert watch.agent().calm


# --- totals -------------------------------------------------------------------------------------------------------


def used(watch: Watch) -> tuple[int, float]:
    metrics = agent_health(watch.agent(), watch.engine.beliefs, watch.now).metrics
    return metrics.token_count, metrics.cost_usd


@pytest.mark.parametrize("seq", [None, 1, 7])
def test_the_first_total_of_a_life_counts_from_zero(seq: int | None) -> None:
    watch = Watch()
    watch.beat(token_count=5000, cost_usd=5.0, seq=seq)
    assert used(watch) == (5000, 5.0)
    watch.beat(token_count=5600, cost_usd=5.5, seq=None if seq is None else seq + 1)
    assert used(watch) == (5600, 5.5)


def test_the_first_total_may_reach_a_cap() -> None:
    watch = Watch(Policy().with_changes({"spending": {"tokens_max": 4000}}))
    watch.beat(token_count=5000)
    assert watch.health() is Health.FAILING


def test_a_total_of_an_agent_that_lives_already_is_not_that_of_this_hour() -> None:
    watch = Watch(Policy().with_changes({"spending": {"hour_tokens_max": 4000}}))
    watch.beat(token_count=1_000_000, seq=900)
    assert watch.health() is Health.HEALTHY
    assert used(watch)[0] == 1_000_000


def test_what_calls_have_reported_is_in_the_first_total() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(s.ModelFinished(agent_id="a", tokens_in=300, tokens_out=200, cost_usd=1.0))
    watch.beat(token_count=800, cost_usd=1.5)
    assert used(watch) == (800, 1.5)


def test_a_late_total_counts_nothing_and_a_life_without_a_name_begins_again() -> None:
    watch = Watch()
    for total in (1000, 990, 1010, 40, 60):
        watch.beat(token_count=total, seq=None)
    assert used(watch)[0] == 1010 + 60


def test_every_new_life_counts_its_own_total() -> None:
    watch = Watch()
    watch.beat(token_count=500, incarnation="1", seq=1)
    watch.beat(token_count=450, incarnation="2", seq=1)
    assert used(watch)[0] == 950


# --- a task that takes too long -----------------------------------------------------------------------------------


def test_a_task_that_takes_three_times_as_long_as_expected_is_said() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(s.TaskAssigned(agent_id="a", task_id="t", expected_for=5 * MINUTE))
    watch.live(START + 15 * MINUTE - 1)
    assert watch.health() is Health.HEALTHY
    watch.live(START + 16 * MINUTE)
    assert watch.health() is Health.DEGRADED
    assert [(f.kind, f.severity) for f in watch.agent().findings] == [(Kind.TASK_STALLED, Severity.DEGRADED)]
    watch.live(START + 29 * MINUTE)
    assert watch.orders(SendNudge) == []


@pytest.mark.parametrize("every", [2 * MINUTE, 4 * MINUTE])
def test_a_slow_task_whose_agent_tells_of_its_progress_is_not(every: float) -> None:
    watch = Watch()
    watch.beat()
    watch.hear(s.TaskAssigned(agent_id="a", task_id="t", expected_for=5 * MINUTE))
    while watch.now < START + HOUR:
        watch.live(watch.now + every)
        watch.hear(s.ProgressMade(agent_id="a", task_id="t"))
    assert watch.facts(FindingOpened) == []


def test_a_task_that_is_done_or_has_no_expectation_is_never_overdue() -> None:
    for expected, done in ((None, False), (0.0, False), (5 * MINUTE, True)):
        watch = Watch()
        watch.beat()
        watch.hear(s.TaskAssigned(agent_id="a", task_id="t", expected_for=expected))
        watch.live(START + 10 * MINUTE)
        if done:
            watch.hear(s.TaskDone(agent_id="a", task_id="t"))
        watch.live(START + 25 * MINUTE)
        assert watch.facts(FindingOpened) == []


def test_missed_beats_are_counted_beyond_the_verdict() -> None:
    watch = watched()
    lost_after(watch)
    watch.live(watch.now + 60, "other")
    assert agent_health(watch.agent(), watch.engine.beliefs, watch.now).metrics.missed_heartbeats >= 12


# --- the brake ----------------------------------------------------------------------------------------------------


def test_agents_lost_long_ago_do_not_keep_a_fresh_one_from_being_helped() -> None:
    watch = Watch()
    for name in ("x", "y", "z"):
        watch.beat(name)  # Once, and never again.
    watch.beat("a", task_id="t", doing=Doing.WORKING)
    watch.beat("other")
    watch.live(START + 60, "a", "other")
    assert [fact.on for fact in watch.facts(Brake)] == [True]
    watch.live(START + 7 * MINUTE, "a", "other")
    assert [fact.on for fact in watch.facts(Brake)] == [True, False]
    for number in range(14):
        watch.live(watch.now + 20, "a", "other")
        call = f"c{number}"
        watch.hear(
            s.ToolFinished(agent_id="a", call_id=call, tool="grep", args_digest="q", result_digest="r")
        )
    assert watch.orders(SendNudge, "a")


def test_a_host_that_dies_at_once_is_braked_and_its_agents_stay_a_persons_matter() -> None:
    watch = Watch()
    names = [f"n{number}" for number in range(6)]
    for name in names:
        watch.beat(name, host="ws-1")
    for number in range(20):
        watch.beat(f"other{number}")
    others = [f"other{number}" for number in range(20)]
    watch.live(START + 60, *names, *others)
    watch.live(START + 2 * HOUR, *others, every=10)
    assert ("host ws-1", True) in [(fact.group, fact.on) for fact in watch.facts(Brake)]
    for name in names:
        assert not watch.orders(Escalate, name)
        assert not watch.orders(Terminate, name)
    watch.hear(s.GroupReleased(group="host ws-1", by="kim"))
    watch.live(watch.now + 2 * MINUTE, *others)
    assert watch.orders(Escalate)


def test_when_the_host_is_back_the_one_that_is_not_is_asked_about() -> None:
    watch = Watch()
    names, others = [f"n{number}" for number in range(6)], [f"o{number}" for number in range(20)]
    for name in (*names, *others):
        watch.beat(name, host="ws-1" if name in names else None)
    watch.live(START + 60, *names, *others)
    watch.live(START + 10 * MINUTE, *others)
    assert not watch.orders(Escalate)
    watch.live(START + 15 * MINUTE, *others, *names[1:])
    assert {order.agent_id for order in watch.orders(Escalate)} == {"n0"}


def test_who_comes_back_is_a_part_of_the_fleet_again() -> None:
    watch = Watch()
    for name in ("x", "y", "z", "a"):
        watch.beat(name)
    watch.live(START + 10 * MINUTE, "a")
    assert watch.engine.beliefs.fleet.groups["fleet"].members == 1
    for name in ("x", "y", "z"):
        watch.beat(name)
    group = watch.engine.beliefs.fleet.groups["fleet"]
    assert (group.members, group.unwell, group.lost) == (4, 0, 0)


# --- the last tool call, as beats tell of it ------------------------------------------------------------------------


def told(*calls: str, every: float = 60.0) -> Watch:
    """Beats with a task and this last tool call in each of them."""
    watch = Watch()
    for call in calls:
        watch.live(watch.now + every, "a", task_id="t", last_tool_call=call)
    return watch


def test_beats_with_the_same_moment_of_the_last_tool_call_tell_that_none_is_made() -> None:
    watch = told(*["2026-01-01T00:00:00+00:00"] * 20)
    assert [f.text.split(" for ")[0] for f in watch.agent().findings] == ["No tool call"]
    assert watch.health() is Health.STUCK
    watch.beat("a", task_id="t", last_tool_call="2026-01-01T00:20:01+00:00")
    assert watch.health() is Health.HEALTHY


def test_beats_whose_last_tool_call_moves_on_are_calm() -> None:
    watch = told(*(f"2026-01-01T00:{minute:02}:00+00:00" for minute in range(40)))
    assert watch.facts(FindingOpened, "a") == []
    assert watch.agent().calm


def test_the_same_tool_by_its_name_is_no_standstill() -> None:
    assert told(*["bash"] * 60).facts(FindingOpened, "a") == []


def test_a_new_task_with_the_old_last_tool_call_is_not_held_to_have_called() -> None:
    watch = told(*["2026-01-01T00:00:00+00:00"] * 5)
    watch.live(watch.now + HOUR, "a", task_id="another", last_tool_call="2026-01-01T00:00:00+00:00")
    assert Kind.NO_TOOL_CALL not in {f.kind for f in watch.agent().findings}
