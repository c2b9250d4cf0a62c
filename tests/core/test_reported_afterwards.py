"""Agents that others report on afterwards, as by spans: judged by the times of what they did, never by how late it is told."""

from __future__ import annotations

import pytest

from lifesigns.core.effects import Kind, SendPing, Severity
from lifesigns.core.health import Health
from lifesigns.core.policy import HOUR, MINUTE
from lifesigns.core.profiles import profile
from lifesigns.core.signals import AgentRegistered, ModelFinished, ToolFinished
from tests.core.harness import START, Watch

DAY = 24 * HOUR


def met(task_id: str | None = None) -> Watch:
    watch = Watch(profile("swift"))
    watch.hear(AgentRegistered(agent_id="a", task_id=task_id, beats=False))
    return watch


def call(n: int = 0, *, ok: bool = True, ended_at: float | None = None) -> ToolFinished:
    return ToolFinished(
        agent_id="a",
        call_id=f"c{n}",
        tool="look",
        args_digest="a",
        result_digest="r",
        ok=ok,
        ended_at=ended_at,
    )


@pytest.mark.parametrize("task_id", [None, "t-1"])
def test_its_silence_means_nothing(task_id: str | None) -> None:
    """Neither silence nor a stall: nobody knows whether it works or the batch is late."""
    watch = met(task_id)
    watch.hear(call())
    watch.run_until(START + DAY - 1)
    assert watch.agent().health is Health.HEALTHY
    assert watch.agent().findings == ()
    assert watch.orders(SendPing) == []


def test_it_is_forgotten_when_nothing_more_is_told_for_a_day() -> None:
    watch = met()
    watch.hear(call(), START + 10)
    watch.run_until(START + 10 + DAY - 1)
    assert watch.engine.agent("a") is not None
    watch.run_until(START + 10 + DAY + 1)
    assert watch.engine.agent("a") is None


def test_from_its_first_beat_on_it_is_expected_to_beat() -> None:
    watch = met()
    watch.hear(call())
    watch.beat("a", START + 5)
    watch.run_until(START + 60)
    assert watch.agent().health is Health.DISCONNECTED
    assert watch.agent().finding(Kind.SILENCE) is not None


def test_an_agent_that_beats_is_not_excused_by_reports_about_it() -> None:
    watch = Watch(profile("swift"))
    watch.beat("a")
    watch.hear(AgentRegistered(agent_id="a", beats=False))
    watch.run_until(START + 60)
    assert watch.agent().health is Health.DISCONNECTED


def test_polls_that_are_told_all_at_once_are_judged_by_their_own_times() -> None:
    """Twelve looks a minute apart are a wait, however late they are told; twelve within a second are a loop."""
    waits, loops = met(), met()
    for n in range(12):
        waits.hear(call(n, ended_at=START + n * MINUTE), START + HOUR)
        loops.hear(call(n, ended_at=START + n * 0.1), START + HOUR)
    wait, loop = waits.agent().finding(Kind.LOOPING), loops.agent().finding(Kind.LOOPING)
    assert wait is not None
    assert loop is not None
    assert (wait.severity, wait.conclusive, wait.numbers.get("waiting")) == (Severity.DEGRADED, False, 1)
    assert (loop.severity, loop.conclusive) == (Severity.STUCK, True)


def test_a_model_that_was_at_work_between_equal_calls_makes_no_wait_of_them() -> None:
    watch = met()
    for n in range(12):
        ended_at = START + n * MINUTE
        watch.hear(
            ModelFinished(agent_id="a", call_id=f"m{n}", duration_s=58.0, ended_at=ended_at - 1), START + HOUR
        )
        watch.hear(call(n, ended_at=ended_at), START + HOUR)
    found = watch.agent().finding(Kind.LOOPING)
    assert found is not None
    assert found.conclusive


def test_a_call_does_not_end_in_the_future() -> None:
    """The clock of who tells may be ahead."""
    watch = met()
    watch.hear(call(ended_at=START + DAY), START + 1)
    history = watch.agent().call_history
    assert history is not None
    assert history.times == [START + 1]


def test_tokens_count_for_the_minute_they_were_used_in() -> None:
    """An hour of steady use that is told at once is no spike and no full hour."""
    watch = met()
    for n in range(120):
        used = ModelFinished(agent_id="a", call_id=f"m{n}", tokens_in=1000, ended_at=START + n * MINUTE)
        watch.hear(used, START + 2 * HOUR)
    spent = watch.agent().spending
    assert spent is not None
    assert spent.tokens == 120_000
    assert spent.hour_tokens == 60_000
    assert watch.agent().finding(Kind.SPENDING) is None


def test_a_straggler_opens_no_minute_again() -> None:
    watch = met()
    watch.hear(ModelFinished(agent_id="a", call_id="m1", tokens_in=5, ended_at=START), START + HOUR)
    watch.hear(ModelFinished(agent_id="a", call_id="m0", tokens_in=7, ended_at=START - HOUR), START + HOUR)
    spent = watch.agent().spending
    assert spent is not None
    assert (spent.tokens, spent.minute_tokens, spent.minute_at) == (12, 12, START)
