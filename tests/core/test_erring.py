"""Too many of an agent's calls fail."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.agent import Outcomes
from lifesigns.core.detectors import erring
from lifesigns.core.effects import BreakerFlip, Finding, Kind, Severity
from lifesigns.core.health import Health
from lifesigns.core.policy import ErringPolicy
from lifesigns.core.signals import (
    BreakerReported,
    BreakerState,
    ErrorReported,
    ModelFinished,
    TaskDone,
    ToolFinished,
)
from tests.core.harness import START, Watch

POLICY = ErringPolicy()


def after(*calls: str | None) -> Finding | None:
    """What is found after these calls: None went well, anything else is the kind of its error."""
    outcomes = Outcomes()
    for now, error_kind in enumerate(calls):
        if error_kind is None:
            erring.succeeded(outcomes, POLICY, START)
        else:
            erring.failed(outcomes, "it broke", error_kind, POLICY, float(now))
    return erring.examine(outcomes, POLICY, float(len(calls)))


@pytest.mark.parametrize(("failures", "found"), [(0, False), (3, False), (4, True), (5, True)])
def test_more_than_three_failures_in_a_row_are_failing(failures: int, found: bool) -> None:
    finding = after(None, *["error"] * failures)
    assert (finding is not None) is found
    if finding is not None:
        assert finding.severity is Severity.FAILING
        assert finding.since == 1.0
        assert finding.numbers["consecutive"] == failures
        assert finding.text == f"{failures} calls in a row failed, the last with: it broke"
        assert not finding.conclusive


def test_a_success_begins_the_row_anew() -> None:
    assert after(*["error"] * 3, *[None] * 12, "error") is None


@pytest.mark.parametrize(
    ("failures", "calls", "found"),
    [(2, 8, False), (3, 8, True), (5, 20, False), (6, 20, True), (3, 7, False)],
)
def test_a_failure_rate_over_a_quarter_is_degraded_once_there_are_enough_calls(
    failures: int, calls: int, found: bool
) -> None:
    """Exactly a quarter is not over it, and fewer than eight calls say nothing."""
    spread = ["error" if n % 2 and n // 2 < failures else None for n in range(calls)]
    assert spread.count("error") == min(failures, calls // 2)
    finding = after(*spread)
    assert (finding is not None) is found
    if finding is not None:
        assert finding.severity is Severity.DEGRADED
        assert finding.numbers["rate"] == round(failures / calls, 3)


def test_the_rate_forgets_what_is_longer_ago_than_its_window() -> None:
    assert after(*["error", None] * 6, *[None] * 20) is None


@pytest.mark.parametrize("kind", ["rate_limit", "429", "503", "timeout", "overloaded"])
def test_the_worlds_errors_degrade_but_are_never_failing(kind: str) -> None:
    finding = after(*[kind] * 20)
    assert finding is not None
    assert finding.severity is Severity.DEGRADED


@pytest.mark.parametrize(("failures", "failing"), [(3, False), (4, True)])
def test_a_world_that_stays_broken_is_failing_after_more_than_three_errors(
    failures: int, failing: bool
) -> None:
    """However long it lasts: three calls in half an hour are too few to say that nothing works."""
    outcomes = Outcomes()
    for n in range(failures):
        erring.failed(outcomes, "it broke", "503", POLICY, 10.0 + n)
    assert erring.examine(outcomes, POLICY, 10.0 + POLICY.infrastructure_for - 0.1) is None
    finding = erring.examine(outcomes, POLICY, 10.0 + POLICY.infrastructure_for)
    assert (finding is not None) is failing
    if finding is not None:
        assert (finding.kind, finding.severity) == (Kind.ERRORS, Severity.FAILING)
        assert (finding.since, finding.conclusive) == (10.0, False)
        assert finding.numbers["world_run"] == failures


def test_the_worlds_errors_do_not_interrupt_a_row() -> None:
    finding = after("error", "503", "error", "503", "error", "503", "error")
    assert finding is not None
    assert finding.severity is Severity.FAILING


@given(st.lists(st.sampled_from([None, "error", "429"]), max_size=200))
def test_the_memory_is_bounded_and_the_count_is_honest(calls: list[str | None]) -> None:
    outcomes = Outcomes()
    for kind in calls:
        if kind is None:
            erring.succeeded(outcomes, POLICY, START)
        else:
            erring.failed(outcomes, "x", kind, POLICY, 0.0)
    recent = calls[-POLICY.rate_window :]
    assert outcomes.count == len(recent)
    assert outcomes.bits.bit_count() == sum(kind is not None for kind in recent)
    assert outcomes.bits < 1 << POLICY.rate_window


# --- through the engine ----------------------------------------------------------------------------------


def tool(ok: bool, n: int = 0) -> ToolFinished:
    error = None if ok else "exit status 1"
    return ToolFinished(agent_id="a", call_id=f"c{n}", tool="make", args_digest=str(n), ok=ok, error=error)


def test_four_failed_tool_calls_make_an_agent_failing_and_one_good_one_mends_it() -> None:
    watch = Watch()
    watch.beat()
    for n in range(3):
        watch.hear(tool(False, n))
    assert watch.health() is Health.HEALTHY
    watch.hear(tool(False, 3))
    assert watch.health() is Health.FAILING
    watch.hear(tool(True, 4))
    assert watch.health() is Health.HEALTHY


def test_an_error_it_cannot_recover_from_is_failing_at_once() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(ErrorReported(agent_id="a", message="disk full", recoverable=False))
    assert watch.health() is Health.FAILING
    finding = watch.agent().finding(Kind.ERRORS)
    assert finding is not None
    assert finding.text == "Reported an error it cannot recover from: disk full"
    assert not finding.conclusive


def test_one_that_gave_up_and_goes_on_all_the_same_is_well_again() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(ErrorReported(agent_id="a", message="disk full", recoverable=False))
    watch.hear(tool(True))
    assert watch.health() is Health.HEALTHY


def test_recoverable_errors_count_like_failed_calls() -> None:
    watch = Watch()
    watch.beat()
    for n in range(4):
        assert watch.health() is Health.HEALTHY
        watch.hear(ErrorReported(agent_id="a", message=f"try {n}"))
    assert watch.health() is Health.FAILING


def test_failed_model_calls_count() -> None:
    watch = Watch()
    watch.beat()
    for _ in range(4):
        watch.hear(ModelFinished(agent_id="a", ok=False, error_kind="refused"))
    assert watch.health() is Health.FAILING


def test_beats_that_count_errors_are_heard() -> None:
    """Each beat with new errors is a failure, each without a success; the first one is where we begin."""
    watch = Watch()
    watch.beat(error_count=7)
    for n in range(1, 4):
        watch.beat(at=START + 5 * n, error_count=7 + n)
    assert watch.health() is Health.HEALTHY
    watch.beat(at=START + 20, error_count=11)
    assert watch.health() is Health.FAILING
    watch.beat(at=START + 25, error_count=11)
    assert watch.health() is Health.HEALTHY


def test_an_open_breaker_makes_repeated_failures_conclusive() -> None:
    watch = Watch()
    watch.beat()
    for n in range(4):
        watch.hear(tool(False, n))
    watch.hear(BreakerReported(agent_id="a", name="tool_execution", state=BreakerState.OPEN))
    finding = watch.agent().finding(Kind.ERRORS)
    assert finding is not None
    assert finding.conclusive
    assert finding.text.endswith(" The breaker is open.")
    watch.hear(BreakerReported(agent_id="a", name="tool_execution", state=BreakerState.HALF_OPEN))
    finding = watch.agent().finding(Kind.ERRORS)
    assert finding is not None
    assert not finding.conclusive


def test_an_open_breaker_does_not_make_the_agents_own_word_conclusive() -> None:
    """Nobody is ended for having said that it cannot go on."""
    watch = Watch()
    watch.beat()
    watch.hear(BreakerReported(agent_id="a", name="tool_execution", state=BreakerState.OPEN))
    watch.hear(ErrorReported(agent_id="a", message="disk full", recoverable=False), START + 7)
    finding = watch.agent().finding(Kind.ERRORS)
    assert finding is not None
    assert not finding.conclusive
    assert "breaker" not in finding.text
    assert finding.since == START + 7
    assert finding.numbers == {"consecutive": 0.0, "rate": 0.0}
    outcomes = watch.agent().outcomes
    assert outcomes is not None
    assert outcomes.errors == 1


def test_a_breaker_that_stays_tripped_while_nothing_succeeds_is_a_failing_agent() -> None:
    """FR-001. Found at the first turn of its breaker or call of its after five minutes, and never conclusive."""
    watch = Watch()
    watch.beat()
    watch.hear(breaker(BreakerState.OPEN))
    watch.live(START + 299)
    watch.hear(breaker(BreakerState.HALF_OPEN), START + 299)
    assert watch.health() is Health.HEALTHY
    watch.hear(breaker(BreakerState.OPEN), START + 300)
    finding = watch.agent().finding(Kind.ERRORS)
    assert finding is not None
    assert (finding.severity, finding.since, finding.conclusive) == (Severity.FAILING, START, False)
    assert finding.text == "A breaker has been tripped for 5 min, and no call has succeeded since."
    watch.hear(breaker(BreakerState.CLOSED), START + 301)
    assert watch.health() is Health.HEALTHY


def test_a_success_elsewhere_shows_that_it_does_without_what_its_breaker_guards() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(breaker(BreakerState.OPEN))
    watch.live(START + 200)
    watch.hear(tool(True, 1), START + 200)
    watch.live(START + 400)
    watch.hear(breaker(BreakerState.HALF_OPEN), START + 400)
    assert watch.health() is Health.HEALTHY
    watch.live(START + 500)
    watch.hear(breaker(BreakerState.OPEN), START + 500)
    assert watch.health() is Health.FAILING


def breaker(state: BreakerState) -> BreakerReported:
    return BreakerReported(agent_id="a", name="search", state=state)


def test_an_open_breaker_alone_is_no_finding() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(BreakerReported(agent_id="a", name="search", state=BreakerState.OPEN))
    watch.hear(BreakerReported(agent_id="a", name="search", state=BreakerState.OPEN))
    assert watch.health() is Health.HEALTHY
    assert [(f.name, f.was, f.now) for f in watch.facts(BreakerFlip)] == [
        ("search", BreakerState.CLOSED, BreakerState.OPEN)
    ]


def test_errors_end_with_the_task_they_were_made_in() -> None:
    watch = Watch()
    watch.beat(task_id="t")
    for n in range(4):
        watch.hear(tool(False, n))
    watch.hear(TaskDone(agent_id="a", task_id="t"))
    assert watch.health() is Health.HEALTHY


def test_an_error_rate_that_goes_on_has_one_beginning() -> None:
    watch = Watch()
    watch.beat()
    for n in range(40):
        watch.hear(tool(n % 2 == 0, n), START + 1 + n)
    finding = watch.agent().finding(Kind.ERRORS)
    assert finding is not None
    assert finding.since == START + 8
