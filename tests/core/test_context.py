"""A full context window: failing when it stays full, nothing while the agent compacts."""

from __future__ import annotations

import pytest

from lifesigns.core.effects import Kind, Severity
from lifesigns.core.health import Health
from lifesigns.core.signals import ModelFinished, TaskAssigned, TaskDone
from tests.core.harness import START, Watch

WINDOW = 1000


def thought(tokens: int, n: int, window: int = WINDOW) -> ModelFinished:
    return ModelFinished(agent_id="a", call_id=f"m{n}", context_tokens=tokens, context_window=window)


def at_work() -> Watch:
    watch = Watch()
    watch.beat()
    watch.hear(TaskAssigned(agent_id="a", task_id="t"))
    return watch


def test_five_full_calls_in_a_row_are_a_failing_agent_that_is_ended_by_nobody_unasked() -> None:
    watch = at_work()
    for n in range(4):
        watch.hear(thought(980, n), START + n)
    assert watch.health() is Health.HEALTHY
    watch.hear(thought(1200, 4), START + 4)
    finding = watch.agent().finding(Kind.CONTEXT)
    assert finding is not None
    assert (finding.severity, finding.since, finding.conclusive) == (Severity.FAILING, START, False)
    assert finding.text == "Its context window is exhausted: 5 calls in a row used 100% of it or more."
    assert finding.numbers == {"calls": 5.0, "tokens": 1200.0, "window": 1000.0}


@pytest.mark.parametrize("room", [979, 100, 0])
def test_a_call_with_room_ends_it(room: int) -> None:
    watch = at_work()
    for n in range(5):
        watch.hear(thought(1000, n), START + n)
    assert watch.health() is Health.FAILING
    watch.hear(thought(room, 5), START + 5)
    assert watch.health() is Health.HEALTHY
    for n in range(6, 10):
        watch.hear(thought(1000, n), START + n)
    assert watch.health() is Health.HEALTHY


def test_who_does_not_say_its_window_is_not_judged_by_it() -> None:
    watch = at_work()
    for n in range(20):
        watch.hear(thought(10**9, n, window=0), START + n)
    assert watch.agent().finding(Kind.CONTEXT) is None


def test_it_ends_with_its_work() -> None:
    watch = at_work()
    for n in range(5):
        watch.hear(thought(1000, n), START + n)
    watch.hear(TaskDone(agent_id="a", task_id="t"), START + 6)
    assert watch.health() is Health.HEALTHY
