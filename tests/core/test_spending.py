"""Caps that really stop, and a spike against the agent's own habits."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.agent import Spending
from lifesigns.core.detectors import spending
from lifesigns.core.effects import (
    Escalate,
    Finding,
    Kind,
    NeedsHuman,
    Refusal,
    Respawn,
    Severity,
    Terminate,
)
from lifesigns.core.health import Health
from lifesigns.core.policy import HOUR, MINUTE, FleetPolicy, Policy, SpendingPolicy
from lifesigns.core.signals import (
    AgentLeft,
    Decision,
    EscalationDecided,
    ModelFinished,
    ProcessExited,
    TaskAssigned,
    TerminationDone,
)
from tests.core.harness import START, Watch

CAPS = [
    ("tokens_max", "this agent", "tokens"),
    ("task_tokens_max", "this task", "tokens"),
    ("hour_tokens_max", "this hour", "tokens"),
    ("cost_max", "this agent", "USD"),
    ("task_cost_max", "this task", "USD"),
    ("hour_cost_max", "this hour", "USD"),
]


@pytest.mark.parametrize(("cap", "name", "unit"), CAPS)
@pytest.mark.parametrize(
    ("used", "severity"),
    [
        (79, None),
        (80, Severity.DEGRADED),
        (99, Severity.DEGRADED),
        (100, Severity.FAILING),
        (101, Severity.FAILING),
    ],
)
def test_the_soft_part_of_a_cap_warns_and_reaching_it_is_conclusive(
    cap: str, name: str, unit: str, used: int, severity: Severity | None
) -> None:
    limits: dict[str, Any] = {cap: 100}
    policy, spent = SpendingPolicy(**limits), Spending()
    spending.spend(spent, used if unit == "tokens" else 0, used if unit == "USD" else 0.0, policy, START, 0)
    finding = spending.examine(spent, policy, START)
    assert (finding.severity if finding else None) is severity
    if finding is not None:
        assert finding.conclusive is (severity is Severity.FAILING)
        assert finding.text == f"Used {used} of the 100 {unit} allowed for {name}."


def test_a_reached_cap_outweighs_a_warning_about_another() -> None:
    policy, spent = SpendingPolicy(tokens_max=100, hour_cost_max=1.0), Spending()
    spending.spend(spent, 90, 1.0, policy, START, 0)
    finding = spending.examine(spent, policy, START)
    assert finding is not None
    assert finding.conclusive


def test_a_new_task_has_its_own_budget() -> None:
    policy, spent = SpendingPolicy(task_tokens_max=100, tokens_max=1000), Spending()
    spending.spend(spent, 100, 0.0, policy, START, 0)
    spending.new_task(spent)
    assert spending.examine(spent, policy, START) is None
    assert spent.tokens == 100


def test_the_hour_turns_over() -> None:
    policy, spent = SpendingPolicy(hour_tokens_max=100), Spending()
    spending.spend(spent, 60, 0.0, policy, START, 0)
    spending.spend(spent, 39, 0.0, policy, START + HOUR - 0.01, 0)
    finding = spending.examine(spent, policy, START)
    assert finding is not None
    assert not finding.conclusive
    spending.spend(spent, 60, 0.0, policy, START + HOUR, 0)
    assert spending.examine(spent, policy, START) is None


# --- the spike -------------------------------------------------------------------------------------------


def minutes(*tokens: int, policy: SpendingPolicy | None = None) -> tuple[Spending, list[Finding | None]]:
    """What is found after each of these minutes."""
    policy, spent, found = policy or SpendingPolicy(), Spending(), []
    for number, used in enumerate(tokens):
        at = START + number * MINUTE
        spending.spend(spent, used, 0.0, policy, at, 0)
        found.append(spending.examine(spent, policy, at))
    return spent, found


def test_a_lasting_spike_is_found() -> None:
    _, found = minutes(*[1000] * 60, *[5000] * 6)
    assert not any(found[:60])
    assert found[-1] is not None
    assert found[-1].severity is Severity.DEGRADED
    assert not found[-1].conclusive
    assert found[-1].text.startswith("Uses far more tokens than it used to (1")
    assert 1000 <= float(found[-1].numbers["baseline_per_min"]) < 1500


def test_a_spike_is_since_it_began() -> None:
    _, found = minutes(*[1000] * 60, *[5000] * 6)
    assert found[-1] is not None
    assert START + 60 * MINUTE <= found[-1].since <= START + 61 * MINUTE


@pytest.mark.parametrize("burst", [5_000, 1_000_000])
def test_a_single_burst_is_forgotten(burst: int) -> None:
    spent, found = minutes(*[1000] * 60, burst, *[1000] * 30)
    assert not any(found)
    assert spent.drift < 1.0


def test_a_steady_agent_is_not_a_nervous_one() -> None:
    """A quarter more than always is no spike, however steady it was."""
    _, found = minutes(*[1000] * 100, *[1250] * 100)
    assert not any(found)


def test_before_enough_is_known_nothing_is_a_spike() -> None:
    _, found = minutes(*[10] * 10, *[100_000] * 9)
    assert not any(found)


def test_a_runaway_does_not_become_its_own_baseline() -> None:
    spent, found = minutes(*[1000] * 60, *[50_000] * 59)
    assert all(found[-50:])
    assert spent.mean < 20_000


def test_a_pace_that_has_lasted_for_an_hour_is_a_habit() -> None:
    """A warning for ever is none: it was there for an hour, and another change is found again."""
    spent, found = minutes(*[1000] * 60, *[50_000] * 90, *[1_000_000] * 6)
    assert not any(found[-31:-6])
    assert spent.mean > 50_000
    assert found[-1] is not None


def test_a_runaway_that_calms_down_is_well_again() -> None:
    _, found = minutes(*[1000] * 60, *[50_000] * 30, *[1000] * 30)
    assert found[80] is not None
    assert found[-1] is None


def test_a_quiet_time_forgets_a_beginning_spike() -> None:
    policy, spent = SpendingPolicy(), minutes(*[1000] * 60, *[5000] * 3)[0]
    assert spent.drift > 0
    spending.spend(spent, 1000, 0.0, policy, START + 63 * MINUTE + HOUR, 0)
    assert spent.drift == 0.0


@given(st.lists(st.integers(0, 10**12), max_size=100), st.floats(0, 1e7))
def test_whatever_is_spent_the_sums_stay_finite_and_bounded(tokens: list[int], gap: float) -> None:
    policy, spent = SpendingPolicy(), Spending()
    for number, used in enumerate(tokens):
        spending.spend(spent, used, 0.0, policy, START + number * gap, 0)
        assert 0.0 <= spent.drift <= 2 * policy.spike_limit
    assert spent.tokens == sum(tokens)


# --- through the engine ----------------------------------------------------------------------------------


def capped(**caps: Any) -> Watch:
    watch = Watch(Policy().with_changes({"spending": caps}))
    watch.beat()
    return watch


def test_a_model_call_that_reaches_the_cap_makes_the_agent_failing() -> None:
    watch = capped(tokens_max=1000)
    watch.hear(ModelFinished(agent_id="a", tokens_in=500, tokens_out=299))
    assert watch.health() is Health.HEALTHY
    watch.hear(ModelFinished(agent_id="a", tokens_out=1))
    assert watch.health() is Health.DEGRADED
    watch.hear(ModelFinished(agent_id="a", tokens_out=200))
    assert watch.health() is Health.FAILING
    assert len(watch.orders(Terminate)) == 1


def test_the_totals_of_beats_count_by_their_difference() -> None:
    watch = capped(tokens_max=1000)
    watch.beat(at=START + 1, token_count=500)
    watch.beat(at=START + 2, token_count=999)
    assert watch.health() is Health.DEGRADED
    watch.beat(at=START + 3, token_count=1000)
    assert watch.health() is Health.FAILING


def test_the_cost_of_beats_counts_too() -> None:
    watch = capped(cost_max=1.0)
    watch.beat(at=START + 1, cost_usd=0.0)
    watch.beat(at=START + 2, cost_usd=1.0)
    assert watch.health() is Health.FAILING


def test_a_total_that_starts_again_is_not_counted_backwards() -> None:
    watch = capped(tokens_max=1000)
    for at, total in enumerate([0, 500, 100, 200]):
        watch.beat(at=START + 1 + at, token_count=total)
    spent = watch.agent().spending
    assert spent is not None
    assert spent.tokens == 500 + 200


def test_tokens_that_calls_report_and_beats_total_are_counted_once() -> None:
    """An agent that reports both must not reach its cap at half of it."""
    watch = capped(tokens_max=1000)
    for n in range(1, 8):
        watch.hear(ModelFinished(agent_id="a", tokens_out=100), START + 5 * n)
        watch.beat(token_count=100 * n)
    spent = watch.agent().spending
    assert spent is not None
    assert spent.tokens <= 700
    assert watch.health() is Health.HEALTHY


def test_a_new_task_is_allowed_its_own_tokens() -> None:
    watch = capped(task_tokens_max=1000)
    watch.hear(TaskAssigned(agent_id="a", task_id="t-1"))
    watch.hear(ModelFinished(agent_id="a", tokens_out=900))
    assert watch.health() is Health.DEGRADED
    watch.hear(TaskAssigned(agent_id="a", task_id="t-2"))
    watch.hear(ModelFinished(agent_id="a", tokens_out=100))
    assert watch.health() is Health.HEALTHY


def test_a_new_life_is_not_held_to_the_cap_of_the_task_before_though_its_first_words_change_places() -> None:
    watch = capped(task_tokens_max=1000)
    watch.beat(incarnation="i-1", task_id="t-1")
    watch.hear(ModelFinished(agent_id="a", incarnation="i-1", tokens_out=999))
    watch.hear(TaskAssigned(agent_id="a", incarnation="i-2", task_id="t-2"))
    assert watch.agent().incarnation == "i-1", "who lives is not replaced by what somebody else says of it"
    watch.forget()
    watch.hear(AgentLeft(agent_id="a", incarnation="i-1"))
    watch.hear(TaskAssigned(agent_id="a", incarnation="i-2", task_id="t-2"))
    watch.beat(incarnation="i-2")
    watch.hear(ModelFinished(agent_id="a", incarnation="i-2", tokens_out=100))
    assert (watch.agent().task_id, watch.health()) == ("t-2", Health.HEALTHY)
    assert not watch.facts(Refusal)
    watch.hear(TaskAssigned(agent_id="a", incarnation="i-1", task_id="t-1"))
    assert watch.agent().task_id == "t-2"
    assert [fact.reason for fact in watch.facts(Refusal)] == ["retired incarnation"]


def test_a_cap_that_stays_reached_has_one_beginning() -> None:
    watch = capped(tokens_max=1000)
    watch.hear(ModelFinished(agent_id="a", tokens_out=850), START + 10)
    watch.hear(ModelFinished(agent_id="a", tokens_out=50), START + 20)
    finding = watch.agent().finding(Kind.SPENDING)
    assert finding is not None
    assert finding.since == START + 10


def test_an_hour_over_its_soft_part_is_well_again_when_it_turns_over() -> None:
    watch = capped(hour_tokens_max=1000)
    watch.hear(ModelFinished(agent_id="a", tokens_out=900))
    assert watch.health() is Health.DEGRADED
    watch.live(START + HOUR + 5)
    watch.hear(ModelFinished(agent_id="a", tokens_out=1))
    assert watch.health() is Health.HEALTHY


# --- over a limit, and ended for something else -------------------------------------------------------


def over_the_limit_of_its_task() -> Watch:
    """Cut off, it spent more than it may; it tells so when it is back, and a person has decided to end it for its silence."""
    watch = capped(task_tokens_max=1000)
    watch.hear(TaskAssigned(agent_id="a", task_id="t-1"))
    watch.run_until(START + 5 * MINUTE)
    (asked,) = watch.orders(Escalate)
    watch.hear(
        EscalationDecided(agent_id="a", order_id=asked.order_id, decision=Decision.TERMINATE, by="eva")
    )
    watch.hear(ModelFinished(agent_id="a", tokens_out=5000))
    return watch


def test_whoever_was_over_its_limit_when_a_person_ended_it_is_not_replaced_unasked() -> None:
    """Its successor would begin over the limit of its task, and be ended with its first word."""
    watch = over_the_limit_of_its_task()
    ended = watch.orders(Terminate)[-1]
    watch.hear(TerminationDone(agent_id="a", order_id=ended.order_id))
    watch.run_until(watch.now + HOUR)
    assert not watch.orders(Respawn)
    text = watch.facts(NeedsHuman)[-1].text
    assert "It is not replaced unasked: Used 5000 of the 1000 tokens allowed for this task." in text


def test_whoever_crashed_over_its_limit_is_not_replaced_unasked() -> None:
    """Before it could be ended for that: too many are ended at once."""
    policy = Policy(spending=SpendingPolicy(task_tokens_max=1000))
    watch = Watch(policy, fleet=FleetPolicy(canary_every=0, terminations_per_minute=0))
    watch.beat()
    watch.hear(TaskAssigned(agent_id="a", task_id="t-1"))
    watch.hear(ModelFinished(agent_id="a", tokens_out=5000))
    assert not watch.orders(Terminate)
    watch.hear(ProcessExited(agent_id="a", signal=9))
    watch.run_until(watch.now + HOUR)
    assert not watch.orders(Respawn)


def test_whoever_crashed_under_its_limit_is_replaced() -> None:
    watch = capped(task_tokens_max=1000)
    watch.hear(TaskAssigned(agent_id="a", task_id="t-1"))
    watch.hear(ModelFinished(agent_id="a", tokens_out=900))
    watch.hear(ProcessExited(agent_id="a", signal=9))
    watch.run_until(watch.now + HOUR)
    assert watch.orders(Respawn)
