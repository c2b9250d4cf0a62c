"""A stalled task is not yet a failed agent."""

import pytest

from lifesigns.core.effects import AskStatus, FindingOpened, Kind, NeedsHuman, Severity, TaskVerdict
from lifesigns.core.health import Doing, Health
from lifesigns.core.policy import MINUTE
from lifesigns.core.signals import (
    AgentLeft,
    Answer,
    DoingChanged,
    NudgeAnswered,
    PongReceived,
    ProgressMade,
    Signal,
    TaskAssigned,
    TaskDone,
    TaskFailed,
)
from tests.core.harness import START, Watch


def assigned(expected_for: float | None = 20 * MINUTE) -> Watch:
    watch = Watch()
    watch.beat()
    watch.hear(TaskAssigned(agent_id="a", task_id="t", expected_for=expected_for))
    return watch


def asked(watch: Watch) -> list[float]:
    return [(order.at - START) / MINUTE for order in watch.orders(AskStatus)]


def verdicts(watch: Watch) -> list[tuple[float, str]]:
    return [((fact.at - START) / MINUTE, fact.verdict) for fact in watch.facts(TaskVerdict)]


# --- stalled means three things together -------------------------------------------------------------------


def test_a_task_past_its_end_without_progress_or_a_word_is_asked_about() -> None:
    watch = assigned()
    watch.live(START + 30 * MINUTE - 0.01)
    assert asked(watch) == []
    watch.run_until(START + 30 * MINUTE)
    assert asked(watch) == [30]
    order = watch.orders(AskStatus)[0]
    assert order.answer_by == START + 35 * MINUTE
    assert order.text == (
        "Task t has had no progress for 30 min and is past its expected end. A status within 5 min helps."
    )
    assert watch.health() is Health.DEGRADED


def test_a_task_before_its_expected_end_is_not_stalled() -> None:
    watch = assigned(expected_for=60 * MINUTE)
    watch.live(START + 60 * MINUTE - 0.01)
    assert asked(watch) == []
    watch.run_until(START + 60 * MINUTE)
    assert asked(watch) == [60]


def test_a_task_with_progress_is_not_stalled() -> None:
    watch = assigned()
    watch.live(START + 25 * MINUTE)
    watch.hear(ProgressMade(agent_id="a", task_id="t"))
    watch.live(START + 55 * MINUTE - 0.01)
    assert asked(watch) == []
    watch.live(START + 55 * MINUTE + 1)
    assert asked(watch) == [55]


@pytest.mark.parametrize(
    "word",
    [
        DoingChanged(agent_id="a", doing=Doing.WORKING, note="the build takes longer"),
        PongReceived(agent_id="a", status="still compiling"),
    ],
)
def test_a_word_about_the_delay_is_enough(word: Signal) -> None:
    watch = assigned()
    watch.live(START + 29 * MINUTE)
    watch.hear(word)
    watch.live(START + 59 * MINUTE - 0.01)
    assert asked(watch) == []


def test_a_bare_pong_is_no_word() -> None:
    watch = assigned()
    watch.live(START + 29 * MINUTE)
    watch.hear(PongReceived(agent_id="a"))
    watch.live(START + 31 * MINUTE)
    assert asked(watch) == [30]


def test_a_task_without_an_expected_end_cannot_be_past_it() -> None:
    watch = assigned(expected_for=None)
    watch.live(START + 5 * 60 * MINUTE)
    assert asked(watch) == []


# --- the inquiry -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        ProgressMade(agent_id="a", task_id="t"),
        PongReceived(agent_id="a", status="nearly there"),
        NudgeAnswered(agent_id="a", nudge_id="x", answer=Answer.NEED_TIME),
    ],
)
def test_an_answer_makes_the_task_late_and_the_agent_well(answer: Signal) -> None:
    watch = assigned()
    watch.live(START + 34 * MINUTE)
    watch.hear(answer)
    assert verdicts(watch) == [(34, "late")]
    assert watch.agent().finding(Kind.TASK_STALLED) is None
    watch.live(START + 60 * MINUTE)
    assert asked(watch) == [30]


def test_beats_without_an_answer_mean_blocked_and_not_failed() -> None:
    watch = assigned()
    watch.live(START + 35 * MINUTE - 0.01)
    assert verdicts(watch) == []
    watch.run_until(START + 35 * MINUTE)
    assert verdicts(watch) == [(35, "blocked")]
    assert watch.health() is Health.STUCK


def test_a_blocked_task_stays_blocked_until_there_is_a_word() -> None:
    """Asking again must not make the agent look better, nor forget since when nothing moved."""
    watch = assigned()
    watch.live(START + 120 * MINUTE)
    assert watch.health() is Health.STUCK
    opened = [f.finding for f in watch.facts(FindingOpened) if f.finding.kind is Kind.TASK_STALLED]
    assert [finding.severity for finding in opened] == [Severity.DEGRADED, Severity.STUCK]
    finding = watch.agent().finding(Kind.TASK_STALLED)
    assert finding is not None
    assert finding.since == START
    assert len(asked(watch)) > 1
    watch.hear(ProgressMade(agent_id="a", task_id="t"))
    assert watch.health() is Health.HEALTHY


def test_silence_on_both_is_failure() -> None:
    watch = assigned()
    watch.live(START + 31 * MINUTE)
    watch.run_until(START + 34 * MINUTE)
    assert watch.health() is Health.DISCONNECTED
    watch.run_until(START + 35 * MINUTE)
    assert verdicts(watch) == [(35, "failed")]
    assert watch.facts(TaskVerdict)[0].reason == "neither an answer nor beats"
    watch.run_until(START + 120 * MINUTE)
    assert len(asked(watch)) == 1


def test_a_mere_suspicion_is_not_yet_silence() -> None:
    """A suspicion is a question: the task waits for its answer too."""
    watch = assigned()
    watch.live(START + 35 * MINUTE - 12)
    watch.beat()
    watch.run_until(START + 35 * MINUTE)
    assert watch.agent().suspicion is not None
    assert verdicts(watch) == []
    watch.beat()
    watch.live(START + 41 * MINUTE)
    assert [verdict for _, verdict in verdicts(watch)] == ["blocked"]


def test_the_agents_own_word_is_failure() -> None:
    watch = assigned()
    watch.hear(TaskFailed(agent_id="a", task_id="t", reason="no such branch"), START + 6)
    assert [(fact.verdict, fact.reason) for fact in watch.facts(TaskVerdict)] == [
        ("failed", "no such branch")
    ]
    assert [fact.text for fact in watch.facts(NeedsHuman)] == ["a cannot finish t: no such branch"]
    assert watch.agent().task_id is None
    assert watch.health() is Health.HEALTHY


def test_a_finished_task_is_not_asked_about() -> None:
    watch = assigned()
    watch.hear(TaskDone(agent_id="a", task_id="t"), START + 10)
    watch.live(START + 120 * MINUTE)
    assert asked(watch) == []
    assert verdicts(watch) == []


def test_the_dead_are_not_asked() -> None:
    watch = assigned()
    watch.hear(AgentLeft(agent_id="a"), START + 10)
    watch.run_until(START + 30 * MINUTE)
    assert asked(watch) == []
    assert verdicts(watch) == [(30, "failed")]


def test_a_task_assigned_anew_is_judged_by_its_new_end_only() -> None:
    watch = assigned()
    watch.live(START + 25 * MINUTE)
    watch.hear(TaskAssigned(agent_id="a", task_id="t", expected_for=60 * MINUTE))
    watch.live(START + 85 * MINUTE - 0.01)
    assert asked(watch) == []
    watch.live(START + 85 * MINUTE + 1)
    assert asked(watch) == [85]


def test_nobody_finishes_anothers_task() -> None:
    watch = assigned()
    watch.hear(TaskDone(agent_id="b", task_id="t"), START + 60)
    watch.live(START + 31 * MINUTE, "a", "b")
    assert asked(watch) == [30]


def test_the_time_we_slept_is_not_the_agents() -> None:
    watch = assigned()
    watch.live(START + 10 * MINUTE)
    watch.jump_to(START + 25 * MINUTE)
    watch.live(START + 45 * MINUTE - 0.01)
    assert asked(watch) == []
    watch.live(START + 45 * MINUTE + 1)
    assert asked(watch) == [45]


def test_an_end_that_was_expected_while_we_slept_is_not_the_agents_fault() -> None:
    """It may have said so: what waited for us is heard first."""
    watch = assigned(expected_for=60 * MINUTE)
    watch.live(START + 55 * MINUTE)
    watch.jump_to(START + 65 * MINUTE)
    watch.hear(TaskDone(agent_id="a", task_id="t"), START + 65 * MINUTE + 1)
    watch.live(START + 120 * MINUTE)
    assert (asked(watch), watch.facts(FindingOpened)) == ([], [])
