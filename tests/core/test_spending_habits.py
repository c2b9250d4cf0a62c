"""What an agent usually spends, and what is more than that: reckoned by hand."""

import dataclasses
from dataclasses import asdict
from typing import Any

import pytest
from msgspec.structs import replace

from lifesigns.core.agent import Spending
from lifesigns.core.detectors import spending
from lifesigns.core.effects import Kind, Severity
from lifesigns.core.policy import HOUR, MINUTE, SpendingPolicy
from lifesigns.core.signals import ModelFinished, ToolFinished
from tests.core.harness import Watch

START = 1000.0
POLICY = SpendingPolicy()
CALM = SpendingPolicy(spike_min_samples=10**6)
"""Habits are learned, and nothing is judged by them."""


def after_a_minute(
    tokens: int, policy: SpendingPolicy = POLICY, minutes: int = 1, made: int = 0, **before: Any
) -> Spending:
    """These tokens were used in the minute that is over now, and so many tool calls made."""
    spent = Spending(minute_at=START, hour_at=START, minute_tokens=tokens, **before)
    spending.spend(spent, 5, 0.0, policy, START + minutes * MINUTE, made)
    return spent


# --- minutes and hours ---------------------------------------------------------------------------------------


def test_the_first_use_begins_the_minute_and_the_hour() -> None:
    spent = Spending()
    spending.spend(spent, 5, 0.5, POLICY, START, 0)
    spending.spend(spent, 6, 0.5, POLICY, START + MINUTE - 0.1, 0)
    assert (spent.minute_at, spent.hour_at, spent.samples) == (START, START, 0)
    assert (spent.minute_tokens, spent.hour_tokens, spent.task_tokens, spent.tokens) == (11,) * 4
    assert (spent.hour_cost, spent.task_cost, spent.cost) == (1.0,) * 3


def test_a_minute_that_is_over_is_one_sample_and_the_next_begins_empty() -> None:
    spent = after_a_minute(70, minutes=3)
    assert (spent.samples, spent.minute_tokens, spent.minute_at) == (1, 5, START + 3 * MINUTE)


@pytest.mark.parametrize(
    ("minutes", "drift"), [(1, 70.0), (2, 69.0), (3, 68.0), (61, 10.0), (62, 10.0), (200, 10.0)]
)
def test_quiet_minutes_take_off_the_slack_each_up_to_an_hour(minutes: int, drift: float) -> None:
    assert after_a_minute(0, CALM, minutes, drift=70.0).drift == drift
    assert after_a_minute(0, CALM, 9, drift=1.5).drift == 0.0


@pytest.mark.parametrize(("after", "tokens"), [(HOUR - 0.1, 95), (HOUR, 5)])
def test_an_hour_has_its_own_totals(after: float, tokens: int) -> None:
    spent = Spending(minute_at=START, hour_at=START, hour_tokens=90, hour_cost=1.0)
    spending.spend(spent, 5, 0.0, CALM, START + after, 0)
    assert (spent.hour_tokens, spent.hour_cost) == (tokens, 1.0 if tokens == 95 else 0.0)


def test_a_new_task_begins_with_nothing() -> None:
    """Nor with habits: it may be another kind of work."""
    learned = {"samples": 20, "mean": 9.0, "variance": 9.0, "calls_mean": 9.0, "drift": 9.0}
    spent = Spending(tokens=9, cost=9.0, task_tokens=9, task_cost=9.0, calls=9, **learned)  # type: ignore[arg-type]
    spending.new_task(spent)
    assert spent == Spending(tokens=9, cost=9.0, calls=9)


def test_what_was_used_before_we_listened_is_of_no_hour_and_no_habit() -> None:
    spent = Spending(tokens=1, cost=1.0, task_tokens=2, task_cost=2.0)
    spending.take_over(spent, 100, 5.0)
    assert spent == Spending(tokens=101, cost=6.0, task_tokens=102, task_cost=7.0)


# --- habits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("samples", "mean", "variance"),
    [(0, 70.0, 0.0), (3, 25.0, 675.0), (59, 11.0, 59.0), (1000, 11.0, 59.0)],
)
def test_a_habit_is_an_average_that_forgets_over_an_hour(samples: int, mean: float, variance: float) -> None:
    """The first minute is all there is, the fourth weighs a quarter, and none less than a sixtieth."""
    spent = after_a_minute(70, CALM, samples=samples, mean=10.0)
    assert spent.mean == pytest.approx(mean)
    assert spent.variance == pytest.approx(variance)
    assert spent.samples == samples + 1


@pytest.mark.parametrize(
    ("tokens", "mean", "variance", "drift"),
    [
        (300, 100.0, 100.0, 1.0),  # the mean is the least spread: twice as much is nothing yet
        (200, 100.0, 100.0, 0.0),
        (400, 100.0, 40_000.0, 0.5),
        (1000, 100.0, 100.0, 4.0),  # a minute adds no more than four
        (3, 0.0, 0.0, 2.0),  # nor is the spread less than a token
        (125, 100.0, 100.0, 0.0),
        (50, 100.0, 100.0, 0.0),
    ],
)
def test_a_minute_above_the_habit_adds_to_the_drift(
    tokens: int, mean: float, variance: float, drift: float
) -> None:
    spent = after_a_minute(tokens, samples=20, mean=mean, variance=variance, drift_since=7.0)
    assert spent.drift == pytest.approx(drift)
    assert spent.drift_since == (START + MINUTE if drift else 7.0)
    assert after_a_minute(tokens, samples=19, mean=mean, variance=variance).drift == 0.0


@pytest.mark.parametrize(
    ("usual", "made", "drift"),
    [
        (2.0, 20, 0.0),
        (2.0, 8, 4.0),
        (2.0, 16, 1.0),
        (0.1, 5, 0.0),
        (0.1, 4, 1.0),  # who seldom calls a tool: half a one a minute is reckoned with
        (0.0, 0, 4.0),
        (20.0, 2, 4.0),  # fewer calls explain nothing
    ],
)
def test_more_tool_calls_explain_more_tokens(usual: float, made: int, drift: float) -> None:
    """Ten times the tokens: `drift` is what is left of that."""
    spent = after_a_minute(1000, made=100 + made, calls=100, samples=20, mean=100.0, calls_mean=usual)
    assert spent.drift == pytest.approx(drift)
    assert spent.calls == 100 + made
    assert spent.calls_mean == pytest.approx(usual + (made - usual) / 21)


def test_calls_are_of_their_own_minute() -> None:
    spent = after_a_minute(70, CALM, minutes=4, made=20, calls=12)
    assert (spent.calls_mean, spent.calls) == (2.0, 20)
    assert after_a_minute(70, CALM, made=3, calls=12).calls_mean == 0.0  # Another life counts from nought.
    first = Spending()
    spending.spend(first, 5, 0.0, CALM, START, 7)
    assert first.calls == 7


@pytest.mark.parametrize(("lasted", "learned"), [(HOUR - 0.1, False), (HOUR, True)])
def test_what_has_lasted_for_an_hour_is_a_habit(lasted: float, learned: bool) -> None:
    since = START + MINUTE - lasted
    spent = after_a_minute(
        1000, made=3, samples=30, mean=100.0, variance=9.0, calls_mean=1.0, drift=9.0, drift_since=since
    )
    if learned:
        assert (spent.samples, spent.mean, spent.variance, spent.calls_mean) == (1, 1000.0, 0.0, 3.0)
        assert spent.drift == 0.0
    else:
        assert (spent.samples, spent.mean) == (30, 100.0)
        assert spent.drift == pytest.approx(13.0)


def test_a_drift_that_goes_on_has_one_beginning_and_a_bound() -> None:
    spent = after_a_minute(1000, samples=20, mean=100.0, drift=0.5, drift_since=7.0)
    assert (spent.drift, spent.drift_since) == (4.5, 7.0)
    assert after_a_minute(1000, samples=20, mean=100.0, drift=15.0).drift == 16.0


@pytest.mark.parametrize(("drift", "learned"), [(4.0, True), (4.1, False)])
def test_a_runaway_does_not_become_its_own_habit(drift: float, learned: bool) -> None:
    """Just at the limit it is none yet."""
    spent = after_a_minute(1000, samples=20, mean=100.0, drift=drift)
    assert (spent.samples == 21) is learned
    assert (spent.mean == 100.0) is not learned
    assert (spending.examine(spent, POLICY, START) is None) is learned


def test_a_spike_is_weak_evidence_with_its_numbers() -> None:
    spent = Spending(drift=9.0, drift_since=START, mean=12.34)
    finding = spending.examine(spent, POLICY, START + MINUTE)
    assert finding is not None
    assert (finding.kind, finding.severity, finding.since) == (Kind.SPENDING, Severity.DEGRADED, START)
    assert not finding.conclusive
    assert finding.numbers == {"baseline_per_min": 12.3, "drift": 9.0}


# --- caps ------------------------------------------------------------------------------------------------------


def test_a_cap_is_told_with_its_numbers_and_the_first_of_two_warnings_counts() -> None:
    policy = SpendingPolicy(tokens_max=100, hour_tokens_max=1000)
    finding = spending.examine(Spending(tokens=90, hour_tokens=900, drift=9.0), policy, START)
    assert finding is not None
    assert finding.numbers == {"used": 90, "cap": 100, "unit": "tokens"}


CAPS = {
    "tokens_max": "tokens",
    "task_tokens_max": "task_tokens",
    "hour_tokens_max": "hour_tokens",
    "cost_max": "cost",
    "task_cost_max": "task_cost",
    "hour_cost_max": "hour_cost",
}


def test_a_minute_of_waiting_is_judged_and_is_no_part_of_a_habit() -> None:
    habit: dict[str, Any] = {"samples": 30, "mean": 100.0, "variance": 400.0, "calls_mean": 1.0}
    spent = Spending(minute_at=START, hour_at=START, minute_tokens=900, **habit)
    spending.spend(spent, 5, 0.0, POLICY, START + MINUTE, 1, waits=True)
    assert spent.drift == spending.STEP_MAX
    assert {name: asdict(spent)[name] for name in habit} == habit
    assert (spent.minute_tokens, spent.minute_at) == (5, START + MINUTE)


def worked(*calls: ToolFinished, minutes: int) -> Spending:
    """The same calls every minute, each after a model call."""
    watch = Watch()
    watch.beat()
    for n in range(minutes):
        watch.live(watch.now + MINUTE)
        watch.hear(ModelFinished(agent_id="a", tokens_out=100))
        watch.hear(calls[n % len(calls)])
    spent = watch.agent().spending
    assert spent is not None
    return spent


def finished(tool: str, args: str, result: str) -> ToolFinished:
    return ToolFinished(agent_id="a", call_id="c", tool=tool, args_digest=args, result_digest=result)


@pytest.mark.parametrize(
    ("calls", "learned"),
    [
        ([finished("gh_run", "77", "in progress")], 1),
        ([finished("gh_run", str(n), str(n)) for n in range(20)], 19),
        ([finished("gh_run", "77", str(n)) for n in range(20)], 19),
        ([finished("edit", str(n), "ok") for n in range(20)], 19),
        ([finished("check_ci", "77", "pending")], 0),
    ],
    ids=["the same again", "other calls", "other results", "other arguments", "a declared poll"],
)
def test_who_only_looks_whether_a_job_is_done_shows_no_pace_of_work(
    calls: list[ToolFinished], learned: int
) -> None:
    """The first of some equal calls is one like any other; the last minute is not over."""
    assert worked(*calls, minutes=20).samples == learned


@pytest.mark.parametrize(("cap", "total"), CAPS.items())
@pytest.mark.parametrize(("used", "unnoticed"), [(74, True), (75, False), (90, False)])
def test_what_comes_near_a_cap_is_noticed(cap: str, total: str, used: int, unnoticed: bool) -> None:
    policy = replace(POLICY, **{cap: 100})
    spent = Spending(minute_at=START, hour_at=START, **{total: used})  # type: ignore[arg-type]
    before = asdict(spent)
    assert spending.spend_unnoticed(spent, 5, 5.0, policy, START + 1) is unnoticed
    assert (asdict(spent) == before) is not unnoticed


@pytest.mark.parametrize("what", ["tokens", "cost"])
@pytest.mark.parametrize("caps", [("", "task_"), ("", "task_", "hour_")])
def test_equal_caps_are_caps(what: str, caps: tuple[str, ...]) -> None:
    policy = replace(POLICY, **dict.fromkeys((f"{name}{what}_max" for name in caps), 100))
    spent = Spending(minute_at=START, hour_at=START, tokens=90, cost=90.0)
    assert not spending.spend_unnoticed(spent, 5, 5.0, policy, START + 1)


@pytest.mark.parametrize(
    ("minute_at", "hour_at", "unnoticed"),
    [
        (START, START, True),
        (START - 59.9, START, True),
        (START - 60.0, START, False),
        (START, START - HOUR + 0.1, True),
        (START, START - HOUR, False),
        (0.0, 0.0, False),
        (0.0, START, False),
    ],
)
def test_a_minute_or_an_hour_that_is_over_is_noticed(
    minute_at: float, hour_at: float, unnoticed: bool
) -> None:
    spent = Spending(minute_at=minute_at, hour_at=hour_at)
    assert spending.spend_unnoticed(spent, 5, 5.0, POLICY, START) is unnoticed
    assert (spent.tokens, spent.cost) == ((5, 5.0) if unnoticed else (0, 0.0))


def test_a_first_minute_at_the_beginning_of_time_is_noticed() -> None:
    assert not spending.spend_unnoticed(Spending(), 5, 5.0, POLICY, 1.0)


@pytest.mark.parametrize(("tokens", "cost"), [(5, 0.0), (0, 0.5), (5, 0.5)])
def test_what_is_unnoticed_counts_all_the_same(tokens: int, cost: float) -> None:
    quick = Spending(minute_at=START, hour_at=START, tokens=3, cost=0.25)
    slow = dataclasses.replace(quick)
    assert spending.spend_unnoticed(quick, tokens, cost, POLICY, START + 1)
    spending.spend(slow, tokens, cost, POLICY, START + 1, 0)
    assert quick == slow
