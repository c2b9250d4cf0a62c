"""What an agent says about its work: progress by counts, breakers around tools, a full context window."""

from __future__ import annotations

import pytest

from lifesigns.agent.guard.breakers import Registry
from lifesigns.agent.guard.guard import Breaker
from lifesigns.agent.reporting import Reporting
from lifesigns.agent.sender.beat_builder import BeatBuilder
from lifesigns.agent.sender.calls import CallScope
from lifesigns.core.policy import BreakerPolicy
from lifesigns.core.signals import (
    BreakerState,
    ModelFinished,
    ProgressMade,
    Report,
    ToolFinished,
    ToolStarted,
)
from lifesigns.errors import BreakerOpen, UsageError


class Agent(Reporting):
    __slots__ = ("said",)

    def __init__(self) -> None:
        self.said: list[Report] = []
        builder = BeatBuilder()
        super().__init__(builder, CallScope("coder-7", "i-1", builder, self.said.append))

    def notes(self) -> list[str]:
        return [report.note for report in self.said if isinstance(report, ProgressMade)]


def test_the_same_counts_of_files_and_tests_are_no_progress() -> None:
    """FR-002: output is analysed by file changes and test results; a report that repeats itself shows none."""
    agent = Agent()
    agent.progress(files=3, tests=12)
    agent.progress(files=3, tests=12)
    agent.progress(files=3, tests=13)
    agent.progress(files=3)
    agent.progress()
    assert agent.notes() == [
        "3 files changed, 12 tests pass",
        "3 files changed, 13 tests pass",
        "3 files changed",
    ]
    agent.progress("a note of its own counts", files=3)
    assert agent.notes()[-1] == "a note of its own counts"
    with pytest.raises(UsageError, match="files is -1"):
        agent.progress(files=-1)


def test_a_breaker_around_a_tool_opens_by_its_failures_and_then_no_call_begins() -> None:
    agent, registry = Agent(), Registry()
    breaker = Breaker("search-api", BreakerPolicy(failure_threshold=3), registry=registry)
    for n in range(2):
        with pytest.raises(OSError, match="refused"), agent.tool("search", n, breaker=breaker):
            raise OSError("refused")
    with agent.tool("search", 2, breaker=breaker) as call:
        call.failed("no answer", "503")  # Without raising: it counts as well.
    assert breaker.state is BreakerState.OPEN
    before = len(agent.said)
    with pytest.raises(BreakerOpen), agent.tool("search", 3, breaker=breaker):
        raise AssertionError("no call may begin")
    assert len(agent.said) == before
    assert sum(isinstance(report, ToolStarted) for report in agent.said) == 3
    assert [r.ok for r in agent.said if isinstance(r, ToolFinished)] == [False, False, False]


def test_a_success_keeps_the_breaker_closed_and_a_name_is_enough() -> None:
    agent = Agent()
    with agent.tool("search", breaker="test-reporting-work") as call:
        call.result("found")
    with agent.tool("search", breaker="test-reporting-work"):
        pass
    assert [r.ok for r in agent.said if isinstance(r, ToolFinished)] == [True, True]


def test_a_model_call_says_how_full_its_window_is() -> None:
    agent = Agent()
    with agent.model() as call:
        call.tokens(1200, 80)
        call.context(used=198_000, window=200_000)
    finished = agent.said[-1]
    assert isinstance(finished, ModelFinished)
    assert (finished.context_tokens, finished.context_window) == (198_000, 200_000)
