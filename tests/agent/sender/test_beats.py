"""Beats: the first at once, then on a fixed schedule, all of a process in one message."""

import asyncio
import os
import threading
import time
from contextlib import ExitStack

import pytest

from lifesigns.agent.sender.relay_loop import SLACK
from lifesigns.assembly.senders import Sender
from lifesigns.core.health import Doing
from lifesigns.core.signals import AgentLeft, AgentRegistered
from tests.agent.sender.ear import Ear


def test_the_first_beat_comes_at_once_and_then_on_schedule(ear: Ear) -> None:
    """No drift: the n-th gap is an interval, however long making a beat takes."""
    with Sender("a", ear.url, interval=0.2):
        ear.until(lambda: len(ear.beats) >= 12)
    sent = [beat.sent_at or 0.0 for beat in ear.beats]
    assert sent[1] - sent[0] <= 0.2 + 0.1
    whole = sent[11] - sent[1]
    assert whole == pytest.approx(10 * 0.2, abs=0.1)


def test_beats_count_and_name_their_life(ear: Ear) -> None:
    with Sender("a", ear.url, interval=0.05) as life:
        ear.until(lambda: len(ear.beats) >= 3)
        assert [beat.seq for beat in ear.beats[:3]] == [1, 2, 3]
        assert {beat.incarnation for beat in ear.beats} == {life.incarnation}


def test_a_beat_carries_what_the_agent_said_and_what_it_costs(ear: Ear) -> None:
    with Sender(
        "a", ear.url, interval=0.1, task="t-1", role="background", host="ws-1", metadata={"v": 2}
    ) as life:
        life.status("compiling")
        life.load(0.4)
        life.capacity(3)
        life.phase("tests")
        life.progress("12/40 files")
        life.checkpoint("cp-1")
        life.tokens(800, 200, 0.25)
        life.metadata(model="m-1")
        with life.tool("grep"):
            pass
        ear.until(lambda: ear.beats and ear.beats[-1].last_tool_call)
        beat = ear.beats[-1]
    assert beat.status == "compiling"
    assert (beat.load, beat.capacity_available, beat.phase) == (0.4, 3, "tests")
    assert (beat.progress, beat.task_id, beat.tasks) == ("12/40 files", "t-1", ("t-1",))
    assert (beat.token_count, beat.cost_usd) == (1000, 0.25)
    assert (beat.host, beat.pid, beat.role) == ("ws-1", os.getpid(), "background")
    assert beat.metadata == {"v": "2", "model": "m-1"}
    assert beat.doing is Doing.WORKING
    assert beat.last_checkpoint is not None
    assert beat.metrics is not None
    assert beat.metrics.memory_mb is not None
    assert 5 < beat.metrics.memory_mb < 5000
    assert beat.metrics.uptime_s is not None


def test_cpu_is_what_was_used_since_the_last_beat(ear: Ear) -> None:
    with Sender("a", ear.url, interval=0.3):
        until = time.monotonic() + 0.9
        while time.monotonic() < until:
            pass
        ear.until(lambda: len(ear.beats) >= 4)
    seen = [
        beat.metrics.cpu_percent
        for beat in ear.beats
        if beat.metrics and beat.metrics.cpu_percent is not None
    ]
    assert max(seen) > 5  # as much as a busy machine gave us; a sleeping agent shows less than 1


def test_who_reports_no_tokens_sends_none(ear: Ear) -> None:
    with Sender("a", ear.url):
        ear.until(lambda: ear.beats)
    assert (ear.beats[0].token_count, ear.beats[0].cost_usd, ear.beats[0].error_count) == (None, None, None)


def test_senders_of_a_process_share_a_thread_a_connection_and_a_message(ear: Ear) -> None:
    before = threading.active_count()
    with ExitStack() as stack:
        for number in range(20):
            stack.enter_context(Sender(f"a-{number}", ear.url, interval=0.2))
        assert threading.active_count() == before + 1
        ear.until(lambda: any(payload.count(b'"seq"') == 20 for payload in ear.payloads))
        at = next(n for n, payload in enumerate(ear.payloads) if payload.count(b'"seq"') == 20)
    assert ear.subjects[at].startswith("heartbeat.relay:")
    assert f":{os.getpid()}:" in ear.subjects[at]


def test_one_sender_alone_beats_under_its_own_name(ear: Ear) -> None:
    with Sender("org/coder-7", ear.url):
        ear.until(lambda: ear.beats)
    ear.until_word(AgentLeft)
    assert "heartbeat.org/coder-7" in ear.subjects
    assert all(subject.endswith(".org/coder-7") for subject in ear.subjects)
    assert any(subject.startswith("lifesigns.report.relay:") for subject in ear.subjects)


def test_processes_are_spread_over_the_interval() -> None:
    """A thousand agents started by one script must not beat in the same millisecond."""
    from lifesigns.agent.sender.relay import Relay

    phases = [Relay(lambda: None).phase for _ in range(100)]  # type: ignore[arg-type, return-value]
    assert max(phases) - min(phases) > 0.5


def test_who_starts_is_registered_with_the_rhythm_it_asked_for(ear: Ear) -> None:
    with Sender("a", ear.url, profile="tolerant", role="standby", task="t-1"):
        registered = ear.until_word(AgentRegistered)
    assert (registered.role, registered.task_id) == ("standby", "t-1")
    assert registered.policy is not None
    assert registered.policy["silence"] == {
        "interval": 3.0,
        "timeout": 10.0,
        "missed_max": 3,
        "ping_wait": 1.0,
    }


def test_a_clean_end_says_so_and_nothing_follows_it(ear: Ear) -> None:
    with Sender("a", ear.url, interval=0.02):
        ear.until(lambda: len(ear.beats) > 3)
    heard = len(ear.beats)
    assert ear.until_word(AgentLeft).reason == "done"
    with Sender("b", ear.url, interval=0.02):
        ear.until(lambda: sum(beat.agent_id == "b" for beat in ear.beats) > 5)
    assert sum(beat.agent_id == "a" for beat in ear.beats) == heard


async def test_an_async_sender_tells_how_late_its_loop_is_while_it_is_frozen(ear: Ear) -> None:
    """Beats go on, with a growing lag: the process lives, its loop does not."""
    async with Sender("a", ear.url, interval=0.1):
        await ear.auntil(lambda: len(ear.beats) >= 3)
        assert (ear.beats[-1].loop_lag_ms or 0.0) < 500
        first = len(ear.beats)
        time.sleep(0.8)  # noqa: ASYNC251 -- the freeze itself
        frozen = [beat.loop_lag_ms or 0.0 for beat in ear.beats[first:]]
        await ear.auntil(lambda: (ear.beats[-1].loop_lag_ms or 0.0) < 100)
    growing = [lag for lag in frozen if lag > 50]
    assert len(growing) >= 3
    assert growing == sorted(growing)
    assert growing[-1] > 400


async def test_agents_on_one_loop_share_one_question_per_tick(ear: Ear) -> None:
    loop = asyncio.get_running_loop()
    asked = 0
    real = loop.call_soon_threadsafe

    def count(callback: object, *args: object, **options: object) -> object:
        nonlocal asked
        asked += getattr(callback, "__name__", "") == "_answer"
        return real(callback, *args, **options)  # type: ignore[arg-type]

    loop.call_soon_threadsafe = count  # type: ignore[method-assign, assignment]
    async with Sender("a", ear.url, interval=0.1), Sender("b", ear.url, interval=0.1):
        await ear.auntil(lambda: len(ear.beats) >= 22)
    assert 8 <= asked <= 14


def test_a_sender_without_a_loop_says_nothing_of_one(ear: Ear) -> None:
    with Sender("a", ear.url):
        ear.until(lambda: ear.beats)
    assert ear.beats[0].loop_lag_ms is None


def test_the_slack_is_less_than_any_rhythm() -> None:
    from lifesigns.agent.sender.rhythm import INTERVAL_MIN

    assert SLACK < INTERVAL_MIN / 2
