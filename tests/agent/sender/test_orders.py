"""Orders: obeyed once, by the life they are for, never from a hub that was deposed; and nudges at turn boundaries."""

import asyncio
import itertools
import threading
import time

import pytest

from lifesigns.agent.sender.nudges import Nudge
from lifesigns.assembly.senders import Sender
from lifesigns.core import signals as s
from lifesigns.core.effects import AskStatus, Order, SendNudge, SendPing
from lifesigns.errors import UsageError
from tests.agent.sender.ear import Ear


def ping(order_id: str = "1-1", epoch: int = 1, life: str | None = None, seq: int = 1) -> Order:
    return SendPing(time.time(), order_id, epoch, "a", life, seq, "silence")


def nudge(order_id: str = "1-9", text: str = "No checkpoint for 32 min.") -> Order:
    return SendNudge(time.time(), order_id, 1, "a", None, 2, text)


def test_a_ping_is_answered_at_once_and_makes_the_agent_beat_faster(ear: Ear) -> None:
    with Sender("a", ear.url, interval=0.4):
        ear.until(lambda: len(ear.beats) >= 2)
        asked_at = time.monotonic()
        ear.order(ping(seq=7))
        pong = ear.until_word(s.PongReceived)
        assert time.monotonic() - asked_at < 2
        assert pong.seq == 7
        assert pong.status is None  # that would count as the agent's own word about its task
        first = len(ear.beats)
        ear.until(lambda: len(ear.beats) >= first + 6)
    sent = [beat.sent_at or 0.0 for beat in ear.beats[first + 1 :]]
    gaps = [later - earlier for earlier, later in itertools.pairwise(sent)]
    assert sum(gaps) / len(gaps) == pytest.approx(0.2, abs=0.08)


def test_a_ping_is_answered_with_a_beat_too_however_slow_the_rhythm(ear: Ear) -> None:
    """The answer may wait behind a report that is under way, or be lost; beats have a way of their own."""
    with Sender("a", ear.url, interval=600.0):
        ear.until_word(s.AgentRegistered)
        ear.until(lambda: ear.beats)
        heard = len(ear.beats)
        ear.order(ping())
        ear.until(lambda: len(ear.beats) > heard)


def test_an_agent_that_reports_an_error_beats_faster_too(ear: Ear) -> None:
    with Sender("a", ear.url, interval=0.4) as life:
        ear.until(lambda: len(ear.beats) >= 2)
        life.error("disk full")
        first = len(ear.beats)
        ear.until(lambda: len(ear.beats) >= first + 6)
    sent = [beat.sent_at or 0.0 for beat in ear.beats[first + 1 :]]
    assert (sent[-1] - sent[0]) / (len(sent) - 1) == pytest.approx(0.2, abs=0.08)


def test_a_hub_that_asks_is_told_again_who_we_are(ear: Ear) -> None:
    """It may have missed our rhythm; then it would ask for ever."""
    with Sender("a", ear.url, interval=60.0):
        ear.until_word(s.AgentRegistered)
        ear.order(ping())
        ear.until(lambda: len(ear.of(s.AgentRegistered)) == 2)


def test_an_order_is_obeyed_once(ear: Ear) -> None:
    with Sender("a", ear.url):
        ear.until(lambda: ear.beats)
        for _ in range(3):
            ear.order(ping("1-1", seq=1))
        ear.order(ping("1-2", seq=2))
        ear.until(lambda: any(pong.seq == 2 for pong in ear.of(s.PongReceived)))
    assert [pong.seq for pong in ear.of(s.PongReceived)] == [1, 2]


def test_a_deposed_hub_is_refused_and_counted(ear: Ear) -> None:
    with Sender("a", ear.url) as life:
        ear.until(lambda: ear.beats)
        for order_id, epoch, seq in (
            ("5-1", 5, 1),
            ("4-1", 4, 2),
            ("5-2", 5, 3),
            ("6-1", 6, 4),
            ("5-3", 5, 5),
        ):
            ear.order(ping(order_id, epoch, seq=seq))
        ear.until(lambda: any(pong.seq == 4 for pong in ear.of(s.PongReceived)))
        ear.until(lambda: life.stats.refused_orders == 2)
    assert [pong.seq for pong in ear.of(s.PongReceived)] == [1, 3, 4]


def test_an_order_for_another_life_is_not_ours(ear: Ear) -> None:
    with Sender("a", ear.url) as life:
        ear.until(lambda: ear.beats)
        ear.order(ping("1-1", life="01OTHER", seq=1))
        ear.order(ping("1-2", life=life.incarnation, seq=2))
        ear.until_word(s.PongReceived)
    assert [pong.seq for pong in ear.of(s.PongReceived)] == [2]


def test_garbage_on_the_order_subject_is_logged_and_nothing_else(
    ear: Ear, caplog: pytest.LogCaptureFixture
) -> None:
    with Sender("a", ear.url):
        ear.until(lambda: ear.beats)
        asyncio.run_coroutine_threadsafe(ear._bus.publish("lifesigns.order.a", b"\xff{"), ear._loop).result(5)
        ear.order(ping())
        ear.until_word(s.PongReceived)
    assert "cannot be read" in caplog.text


# --- nudges ---------------------------------------------------------------------------------------------------------


async def test_a_nudge_is_delivered_seen_and_answered(ear: Ear) -> None:
    async with Sender("a", ear.url) as life:
        await ear.auntil(lambda: ear.beats)
        await asyncio.to_thread(ear.order, nudge())
        assert (await ear.auntil_word(s.NudgeDelivered)).order_id == "1-9"
        assert not ear.of(s.NudgeSeen)  # delivered is not read
        async for one in life.nudges():
            assert (one.id, one.attempt, one.text) == ("1-9", 2, "No checkpoint for 32 min.")
            assert (await ear.auntil_word(s.NudgeSeen)).nudge_id == "1-9"
            one.answer("need_time", "big file")
            break
        answered = await ear.auntil_word(s.NudgeAnswered)
    assert (answered.nudge_id, answered.answer, answered.note) == ("1-9", s.Answer.NEED_TIME, "big file")


async def test_the_nudges_end_with_the_sender(ear: Ear) -> None:
    async def listen(life: Sender) -> int:
        return len([one async for one in life.nudges()])

    async with Sender("a", ear.url) as life:
        listeners = [asyncio.create_task(listen(life)) for _ in range(3)]
        await asyncio.sleep(0)
    assert await asyncio.wait_for(asyncio.gather(*listeners), 5) == [0, 0, 0]


def test_a_thread_takes_its_nudges_with_a_bound(ear: Ear) -> None:
    with Sender("a", ear.url) as life:
        assert life.next_nudge(timeout=0.01) is None
        ear.until(lambda: ear.beats)
        ear.order(nudge())
        taken = life.next_nudge(timeout=5)
        assert taken is not None
        assert taken.id == "1-9"
        ear.until_word(s.NudgeSeen)


def test_a_waiting_thread_is_released_when_the_sender_ends(ear: Ear) -> None:
    released: list[Nudge | None] = []
    with Sender("a", ear.url) as life:
        thread = threading.Thread(target=lambda: released.append(life.next_nudge()))
        thread.start()
    thread.join(5)
    assert released == [None]


def test_nudges_is_for_coroutines_and_says_so() -> None:
    async def listen() -> None:
        async for _ in Sender("a", "memory://x").nudges():
            pass

    with pytest.raises(UsageError, match="next_nudge"):
        asyncio.run(listen())


def test_a_nudge_waits_for_the_end_of_the_running_call(ear: Ear) -> None:
    with Sender("a", ear.url) as life:
        ear.until(lambda: ear.beats)
        with life.task("t-1"):
            with life.tool("edit"):
                with life.model():
                    ear.order(nudge())
                    ear.until_word(s.NudgeDelivered)
                    assert life.next_nudge(0.05) is None
                assert life.next_nudge(0.05) is None
            assert life.next_nudge(5) is not None  # a task is no call: between its calls is a boundary


def test_a_plain_callback_gets_the_nudge_in_a_thread_of_its_own(ear: Ear) -> None:
    got: list[tuple[str, str]] = []

    def on_nudge(one: Nudge) -> None:
        got.append((one.id, threading.current_thread().name))
        one.answer("progress")

    with Sender("a", ear.url, on_nudge=on_nudge) as life:
        ear.until(lambda: ear.beats)
        with life.busy("compiling"):
            ear.order(nudge())
            ear.until_word(s.NudgeDelivered)
            assert not got
        ear.until_word(s.NudgeAnswered)
    assert got == [("1-9", "lifesigns-run_plain")]
    assert [type(word) for word in ear.words if isinstance(word, s.NudgeSeen | s.NudgeAnswered)] == [
        s.NudgeSeen,
        s.NudgeAnswered,
    ]


async def test_a_coroutine_callback_runs_on_the_agents_loop(ear: Ear) -> None:
    got: asyncio.Future[object] = asyncio.get_running_loop().create_future()

    async def on_nudge(one: Nudge) -> None:
        got.set_result(asyncio.get_running_loop())

    async with Sender("a", ear.url, on_nudge=on_nudge):
        await ear.auntil(lambda: ear.beats)
        await asyncio.to_thread(ear.order, nudge())
        assert await asyncio.wait_for(got, 5) is asyncio.get_running_loop()


def test_a_callback_that_raises_is_logged_and_disturbs_nobody(
    ear: Ear, caplog: pytest.LogCaptureFixture
) -> None:
    def on_nudge(one: Nudge) -> None:
        raise RuntimeError("mine")

    with Sender("a", ear.url, on_nudge=on_nudge):
        ear.until(lambda: ear.beats)
        ear.order(nudge())
        ear.until_word(s.NudgeSeen)
        ear.order(ping())
        ear.until_word(s.PongReceived)
    assert "a callback of the agent failed" in caplog.text


def test_a_question_about_a_task_is_a_nudge_whose_answer_counts_for_it(ear: Ear) -> None:
    with Sender("a", ear.url, task="t-1") as life:
        ear.until(lambda: ear.beats)
        ear.order(AskStatus(time.time(), "1-4", 1, "a", None, "t-1", "How is t-1?", time.time() + 300))
        asked = life.next_nudge(5)
        assert asked is not None
        assert (asked.task_id, asked.text) == ("t-1", "How is t-1?")
        asked.answer("blocked", "no access")
        assert ear.until_word(s.NudgeAnswered).nudge_id == "1-4"


def test_an_unknown_answer_is_refused_with_the_known_ones() -> None:
    one = Nudge("1", "x", say_seen=lambda _: None, say_answer=lambda *_: None)
    with pytest.raises(UsageError, match="progress, need_time, handoff, blocked"):
        one.answer("fine")
