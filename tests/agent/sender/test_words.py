"""Words: kept in order, bounded, never waiting, safe from any thread; and what an agent is taken to be doing."""

import asyncio
import logging
import threading
import time
import uuid

import pytest

from lifesigns.agent.sender import evidence
from lifesigns.agent.sender.nudges import Nudges
from lifesigns.assembly.senders import Sender
from lifesigns.core import signals as s
from lifesigns.core.health import Doing
from lifesigns.errors import UsageError
from tests.agent.sender.ear import Ear


def test_every_word_arrives_as_it_was_said(ear: Ear) -> None:
    with Sender("a", ear.url, task="t-1") as life:
        life.progress("half", percent=50)
        life.checkpoint("cp-2", parent="cp-1", digest="abc", size=12)
        life.error("disk full")
        life.doing("rate_limited", until=time.time() + 60, note="429")
        with life.model(bound=30) as model:
            model.tokens(10, 5, 0.5)
        with life.task("t-2", expected_for=60):
            pass
    ear.until_word(s.AgentLeft)
    assert ear.of(s.ProgressMade)[0].percent == 50
    assert ear.of(s.ProgressMade)[0].task_id == "t-1"
    saved = ear.of(s.CheckpointSaved)[0]
    assert (saved.checkpoint_id, saved.parent_id, saved.digest, saved.size) == ("cp-2", "cp-1", "abc", 12)
    assert ear.of(s.ErrorReported)[0].recoverable
    assert ear.of(s.DoingChanged)[0].doing is Doing.RATE_LIMITED
    assert ear.of(s.ModelStarted)[0].bound == 30
    finished = ear.of(s.ModelFinished)[0]
    assert (finished.tokens_in, finished.tokens_out, finished.cost_usd, finished.ok) == (10, 5, 0.5, True)
    assert ear.of(s.TaskAssigned)[0].expected_for == 60
    assert ear.of(s.TaskDone)[0].task_id == "t-2"
    assert {getattr(word, "incarnation", None) for word in ear.words} == {life.incarnation}


def test_a_tool_call_tells_begin_and_end_and_only_digests(ear: Ear) -> None:
    with Sender("a", ear.url) as life:
        with life.tool("grep", {"pattern": "secret"}, bound=5) as call:
            call.result("found the secret")
        with life.tool("grep", {"pattern": "secret"}, retry=True) as call:
            call.result("found the secret")
    ear.until_word(s.AgentLeft)
    started, (first, second) = ear.of(s.ToolStarted), ear.of(s.ToolFinished)
    assert [call.call_id for call in started] == [first.call_id, second.call_id]
    assert started[0].bound == 5
    assert first.args_digest == second.args_digest == started[0].args_digest != ""
    assert first.result_digest == second.result_digest != ""
    assert (first.retry, second.retry) == (False, True)
    assert first.duration_s is not None
    assert not any(b"secret" in payload for payload in ear.payloads)


def test_an_exception_in_a_call_passes_through_and_is_told(ear: Ear) -> None:
    with Sender("a", ear.url) as life:
        with pytest.raises(ConnectionError, match="no route"), life.tool("fetch"):
            raise ConnectionError("no route")
        with pytest.raises(ValueError, match="x"), life.task("t-9"):
            raise ValueError("x")
        with life.tool("fetch") as call:
            call.failed("HTTP 503", kind="503")
    ear.until_word(s.AgentLeft)
    raised, told = ear.of(s.ToolFinished)
    assert (raised.ok, raised.error, raised.error_kind) == (
        False,
        "ConnectionError: no route",
        "ConnectionError",
    )
    assert (told.ok, told.error, told.error_kind) == (False, "HTTP 503", "503")
    assert ear.of(s.TaskFailed)[0].reason == "ValueError: x"


def test_a_status_on_the_exception_is_its_kind(ear: Ear) -> None:
    class RateLimit(Exception):
        status_code = 429

    with Sender("a", ear.url) as life, pytest.raises(RateLimit), life.model():
        raise RateLimit
    ear.until_word(s.AgentLeft)
    assert (ear.of(s.ModelFinished)[0].ok, ear.of(s.ModelFinished)[0].error_kind) == (False, "429")


async def test_a_cancelled_call_has_not_failed(ear: Ear) -> None:
    async with Sender("a", ear.url) as life:

        async def work() -> None:
            with life.task("t-1"), life.tool("wait"):
                await asyncio.sleep(60)

        task = asyncio.create_task(work())
        await ear.auntil_word(s.ToolStarted)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await ear.auntil_word(s.ToolFinished)).ok
    assert not ear.of(s.TaskFailed)
    assert not ear.of(s.TaskDone)


def test_words_of_many_threads_all_arrive_each_threads_in_order(ear: Ear) -> None:
    with Sender("a", ear.url, close_for=10) as life:

        def talk(name: str) -> None:
            for number in range(200):
                life.progress(f"{name} {number}")

        threads = [threading.Thread(target=talk, args=(f"t{n}",)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ear.until(lambda: len(ear.of(s.ProgressMade)) == 1600)
    for n in range(8):
        said = [word.note for word in ear.of(s.ProgressMade) if word.note.startswith(f"t{n} ")]
        assert said == [f"t{n} {number}" for number in range(200)]


def test_a_chatty_agent_is_carried_in_few_messages(ear: Ear) -> None:
    """Words of one window go out together."""
    with Sender("a", ear.url) as life:
        ear.until(lambda: ear.beats)
        before = len(ear.payloads)
        until = time.monotonic() + 1.0
        said = 0
        while time.monotonic() < until:
            life.progress(str(said))
            said += 1
            time.sleep(0.001)
        ear.until(lambda: len(ear.of(s.ProgressMade)) == said)
        assert len(ear.payloads) - before <= 10
    assert said > 100


def test_a_full_queue_drops_the_oldest_and_counts_it() -> None:
    nobody = f"nats://127.0.0.1:1/{uuid.uuid4()}"
    life = Sender("a", nobody, words_max=10, close_for=0.05).start()
    try:
        for number in range(100):
            life.progress(str(number))
        assert life.stats.buffered == 10
        assert life.stats.dropped >= 90
    finally:
        life.close()


def test_before_its_start_and_after_its_end_every_call_is_harmless(ear: Ear) -> None:
    life = Sender("a", ear.url)
    for lived in (False, True):
        life.status("x")
        life.progress("y")
        with life.tool("t") as call, life.task("t-1"), life.busy("b"):
            call.result(1)
        assert life.next_nudge(0) is None
        life.close()
        if not lived:
            with life:
                ear.until(lambda: ear.beats)
    assert not ear.of(s.ProgressMade)


def test_a_sender_lives_once(ear: Ear) -> None:
    with Sender("a", ear.url) as life, pytest.raises(UsageError, match="lives once"):
        life.start()


def test_texts_that_are_too_long_or_no_text_at_all_cost_no_beat(ear: Ear) -> None:
    """What the wire would refuse is cut at the door; lone surrogates are replaced."""
    with Sender("a", ear.url, metadata={"k": "ü" * 5000}, interval=0.1) as life:
        life.phase("x" * 100_000)
        life.status("broken \ud800 text")
        life.progress("é" * 100_000)
        life.error("y" * 1_000_000)
        life.load(17.0)
        ear.until(lambda: ear.beats and ear.beats[-1].phase)
        ear.until_word(s.ErrorReported)
    beat = [beat for beat in ear.beats if beat.status != "stopping"][-1]
    assert beat.phase == "x" * 1024
    assert beat.status == "broken ? text"
    assert beat.load == 1.0
    assert beat.metadata is not None
    assert len(beat.metadata["k"].encode()) == 1024


def test_a_word_that_cannot_be_written_does_not_hold_up_the_others(
    ear: Ear, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "lifesigns.sender"), Sender("a", ear.url) as life:
        life._session.say(s.CanaryReturned(seq=1))  # no word an agent sends
        life.progress("after it")
        assert ear.until_word(s.ProgressMade).note == "after it"
    assert "CanaryReturned cannot be written" in caplog.text


# --- doing ----------------------------------------------------------------------------------------------------------


def _doing(life: Sender) -> Doing | None:
    return life._builder.doing


def test_doing_follows_calls_and_tasks_until_the_agent_says_it_itself() -> None:
    life = Sender("a", "memory://x")
    assert _doing(life) is None
    with life.tool("t"):
        assert _doing(life) is Doing.WORKING
    assert _doing(life) is Doing.WORKING  # between two calls it thinks
    with life.task("t-1"):
        with life.task("t-2"):
            pass
        assert _doing(life) is Doing.WORKING
    assert _doing(life) is Doing.IDLE
    life.doing("waiting_for_human")
    with life.tool("t"):
        assert _doing(life) is Doing.WAITING_FOR_HUMAN
    life.doing(None)
    assert _doing(life) is Doing.WORKING


def test_a_status_that_says_what_it_does_is_not_overruled_by_a_guess(ear: Ear) -> None:
    with Sender("a", ear.url, task="t-1", interval=0.1) as life:
        life.status("idle")
        ear.until(lambda: ear.beats and ear.beats[-1].doing is Doing.IDLE)
        life.status("compiling")
        ear.until(lambda: ear.beats[-1].doing is Doing.WORKING)


def test_busy_is_declared_with_its_bound_and_ends(ear: Ear) -> None:
    with Sender("a", ear.url, interval=0.1, task="t-1") as life:
        with life.busy("outer", bound=600):
            with life.busy("inner", bound=60):
                ear.until(lambda: ear.beats and ear.beats[-1].doing is Doing.BUSY)
                until = ear.beats[-1].until or 0.0
                assert until == pytest.approx(time.time() + 600, abs=30)  # the longest counts
            assert _doing(life) is Doing.BUSY
        assert _doing(life) is Doing.WORKING
        ear.until(lambda: ear.beats[-1].doing is Doing.WORKING)
    ear.until_word(s.AgentLeft)
    assert [word.doing for word in ear.of(s.DoingChanged)] == [
        Doing.BUSY,
        Doing.BUSY,
        Doing.BUSY,
        Doing.WORKING,
    ]


# --- evidence -------------------------------------------------------------------------------------------------------


def test_the_same_result_with_other_times_is_the_same_evidence() -> None:
    assert evidence.of_result("took 3 ms at 12:00:01") == evidence.of_result("took 9 ms at 12:07:44")
    assert evidence.of_arguments({"id": 1}) != evidence.of_arguments({"id": 2})
    assert evidence.of_result(None) == ""


def test_long_results_that_differ_anywhere_differ() -> None:
    """Identical results over and over are conclusive: two that differ must never look the same."""
    text = "abcdefgh" * 5000
    for at in (0, 1023, 1024, 20_000, len(text) - 1):
        other = text[:at] + "X" + text[at + 1 :]
        assert evidence.of_result(text) != evidence.of_result(other)
        assert evidence.of_result(text.encode()) != evidence.of_result(other.encode())
        assert evidence.of_result([text]) != evidence.of_result([other])
    assert evidence.of_result([text]) == evidence.of_result([str(text)])


@pytest.mark.parametrize(
    "value", [object(), {1: {2: [object()]}}, float("nan"), b"\xff" * 10, [[[]]], {"a": {1, 2}}]
)
def test_no_value_is_too_strange_to_be_digested(value: object) -> None:
    assert evidence.of_result(value) == evidence.of_result(value) != evidence.of_result("another")
    assert evidence.of_arguments(value) == evidence.of_arguments(value) != evidence.of_arguments("another")


def test_nudges_wait_is_bounded() -> None:
    from lifesigns.agent.sender.nudges import WAITING_MAX, Nudge

    nudges = Nudges(None)
    nudges.began("call")
    for number in range(WAITING_MAX + 5):
        nudges.add(Nudge(str(number), "x", say_seen=lambda _: None, say_answer=lambda *_: None))
    nudges.ended("call")
    first = nudges.next(0)
    assert first is not None
    assert first.id == "5"
