"""An agent reports in the same way to a hub, by its `Sender`, and to a `Monitor` of its own process."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import asdict

from lifesigns import Monitor, Sender
from lifesigns.agent.monitor import WatchedAgent
from lifesigns.agent.monitor.monitor_thread import MonitorThread
from lifesigns.agent.reporting import Reporting
from lifesigns.core import signals as s
from lifesigns.core.agent import Agent
from lifesigns.core.health import Doing
from lifesigns.errors import UsageError
from tests.agent.monitor.heard import QUICK, Heard, until
from tests.agent.sender.ear import Ear

REPORTS = sorted(name for name in vars(Reporting) if not name.startswith("_"))


class Named:
    def __init__(self, name: str) -> None:
        self.name = name


@pytest.fixture
def heard_by_monitor(monkeypatch: pytest.MonkeyPatch) -> list[s.Report]:
    reports: list[s.Report] = []
    submit = MonitorThread.submit

    def note(self: MonitorThread, report: s.Report) -> None:
        reports.append(report)
        submit(self, report)

    monkeypatch.setattr(MonitorThread, "submit", note)
    return reports


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    with Monitor(policy=QUICK) as one:
        yield one


def _work(life: Reporting) -> None:
    """A bit of everything."""
    life.status("compiling")
    life.load(0.4)
    life.capacity(3)
    life.phase("tests")
    life.metadata(provider="acme")
    with life.task("t-19", expected_for=60):
        life.progress("half", 50)
        life.checkpoint("cp-2", parent="cp-1", digest="abc", size=12)
        life.checkpoint("cp-3")
        with life.tool("grep", {"pattern": "x"}, bound=5, retry=True) as call:
            call.result("nothing found")
        with pytest.raises(OSError, match="refused"), life.tool("fetch"):
            raise OSError("refused")
        with life.model(bound=30) as model:
            model.tokens(10, 5, cost=0.5)
        with life.busy("compiling", bound=600):
            pass
    with pytest.raises(ValueError, match="never"), life.task("t-20"):
        raise ValueError("never")
    life.doing("rate_limited", note="429")
    life.doing(None)
    life.error("disk full")
    life.error("no disk", recoverable=False)


def _comparable(report: Any) -> tuple[str, dict[str, Any]]:
    said = asdict(report)
    for own in ("agent_id", "incarnation", "duration_s", "until", "source"):
        said.pop(own, None)
    return type(report).__name__, said


def test_the_same_calls_make_the_same_reports(monitor: Monitor, heard_by_monitor: list[s.Report]) -> None:
    """Only what a monitor need not be told (the registration, breakers of this process, the good-bye) goes to a hub alone."""
    with Ear() as ear:
        with Sender("a", ear.url) as life:
            _work(life)
        ear.until_word(s.AgentLeft)
        to_a_hub_alone = (s.AgentRegistered, s.BreakerReported, s.AgentLeft)
        heard_by_hub = [word for word in ear.words if not isinstance(word, to_a_hub_alone)]
    _work(monitor.watch(Named("a")))
    assert [_comparable(report) for report in heard_by_monitor] == [
        _comparable(report) for report in heard_by_hub
    ]
    assert {type(report).__name__ for report in heard_by_monitor} >= {
        "ToolFinished",
        "TaskDone",
        "TaskFailed",
    }


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_has_the_same_parameters_in_both(name: str) -> None:
    sender, watched = (inspect.signature(getattr(kind, name)) for kind in (Sender, WatchedAgent))
    assert sender.parameters == watched.parameters


@pytest.mark.parametrize(
    ("call", "names"),
    [
        (lambda life: life.load("full"), "load"),
        (lambda life: life.load(-0.1), "load is -0.1"),
        (lambda life: life.load(float("nan")), "load is nan"),
        (lambda life: life.capacity(1.5), "capacity"),
        (lambda life: life.tokens(-1), "tokens_in"),
        (lambda life: life.tokens(1, 2, -0.5), "cost"),
        (lambda life: life.doing("sleeping"), "sleeping.*working"),
        (lambda life: life.tool("x", bound=-1), "bound"),
        (lambda life: life.metadata(**{f"k{n}": 1 for n in range(65)}), "64"),
    ],
)
def test_a_value_that_makes_no_sense_is_the_callers_mistake(
    call: Callable[[Reporting], object], names: str, monitor: Monitor
) -> None:
    for life in (Sender("a", "memory://x"), monitor.watch(Named("a"))):
        with pytest.raises(UsageError, match=names):
            call(life)


def _known(monitor: Monitor, name: str = "a") -> Agent:
    agent = monitor._rounds.engine.agent(name)
    assert agent is not None
    return agent


def _answers(monitor: Monitor) -> int:
    counted = monitor.metrics("a")
    return 0 if counted is None else counted.total_heartbeats


def _does(monitor: Monitor, doing: Doing) -> None:
    """Wait until the engine, which meets an agent in a thread of its own, takes it to do this."""
    engine = monitor._rounds.engine
    until(lambda: (agent := engine.agent("a")) is not None and agent.doing is doing)


def test_until_is_a_moment_of_the_wall_clock(monitor: Monitor) -> None:
    """The monitor judges by another clock, and translates."""
    watched = monitor.watch(Named("a"))
    until(lambda: monitor.is_alive("a"))
    watched.doing("rate_limited", until=time.time() + 30)
    _does(monitor, Doing.RATE_LIMITED)
    assert _known(monitor).doing_until == pytest.approx(time.monotonic() + 30, abs=10)


async def test_a_status_says_how_it_is_and_what_it_does(monitor: Monitor) -> None:
    heard, watched = Heard(monitor), monitor.watch(Named("a"))
    watched.status("waiting_for_human")
    await asyncio.to_thread(_does, monitor, Doing.WAITING_FOR_HUMAN)
    watched.status("degraded")
    await heard.comes("agent-degraded", "a")
    watched.status(None)


@pytest.mark.parametrize(
    "say",
    [
        lambda life: life.status("compiling"),
        lambda life: life.load(0.4),
        lambda life: life.capacity(3),
        lambda life: life.phase("tests"),
        lambda life: life.metadata(provider="acme"),
    ],
    ids=["status", "load", "capacity", "phase", "metadata"],
)
def test_what_a_watched_agent_says_about_itself_does_not_wait_for_its_next_beat(
    say: Callable[[Reporting], None], monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sender puts it into the beat it sends next; here nobody sends one."""
    heard: list[WatchedAgent] = []
    monkeypatch.setattr(MonitorThread, "beat", lambda _, watched: heard.append(watched))
    watched = monitor.watch(Named("a"))
    say(watched)
    assert heard == [watched]


async def test_a_watched_agent_without_a_task_is_not_taken_to_work(monitor: Monitor) -> None:
    """It may wait for work as long as it likes, also after a call and a declared long operation."""
    heard, watched = Heard(monitor), monitor.watch(Named("a"), policy={"stall": {"tool_call_after": 0.3}})
    with watched.tool("grep"), watched.busy("compiling", bound=60):
        pass
    watched.doing(None)
    await heard.comes("agent-healthy", "a")
    await asyncio.to_thread(until, lambda: _answers(monitor) >= 6)
    assert heard.of("a") == ["agent-healthy"]


async def test_a_cancelled_task_leaves_a_watched_agent_idle(monitor: Monitor) -> None:
    watched = monitor.watch(Named("a"))

    async def work() -> None:
        with watched.task("t-1"):
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await asyncio.to_thread(until, lambda: monitor.is_alive("a") and _known(monitor).task_id == "t-1")
    task.cancel()
    await asyncio.to_thread(_does, monitor, Doing.IDLE)
    with watched.task("t-2"):
        watched.progress("on with another")
        await asyncio.to_thread(until, lambda: _known(monitor).task_id == "t-2")


def test_what_is_said_to_a_monitor_of_a_state_is_its_digest(
    monitor: Monitor, heard_by_monitor: list[s.Report]
) -> None:
    monitor.watch(Named("a")).checkpoint("cp-1", state={"step": 3})
    (saved,) = heard_by_monitor
    assert isinstance(saved, s.CheckpointSaved)
    assert (saved.digest[:7], saved.size) == ("sha256:", len('{"step":3}'))
