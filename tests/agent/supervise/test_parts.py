"""The parts that decide, without any process: time and chance are told."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from lifesigns.agent.supervise.flows import Cursor, Flow, Sink
from lifesigns.agent.supervise.interrupts import Interrupts
from lifesigns.agent.supervise.restarts import Next, Restarts
from lifesigns.agent.supervise.settings import Restart, RestartPolicy, Verbosity
from lifesigns.agent.supervise.status_messages import StatusMessage
from lifesigns.agent.supervise.status_printer import StatusPrinter
from lifesigns.agent.supervise.stopping import Stopping
from lifesigns.agent.supervise.tail import BYTES_MAX, LINES_MAX, Tail

ON_FAILURE = RestartPolicy(when=Restart.ON_FAILURE)


# --- restarts ---------------------------------------------------------------------------------------------


def test_waits_double_up_to_a_bound() -> None:
    restarts = Restarts(RestartPolicy(when=Restart.ON_FAILURE, crash_loop_max=100))
    waits = [restarts.ended(t, failed=True, lived_for=1.0, chance=0.5).wait for t in range(9)]
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_chance_spreads_a_wait_by_a_tenth() -> None:
    early = Restarts(ON_FAILURE).ended(0, failed=True, lived_for=1.0, chance=0.0)
    late = Restarts(ON_FAILURE).ended(0, failed=True, lived_for=1.0, chance=1.0)
    assert [early.wait, late.wait] == pytest.approx([0.9, 1.1])


@pytest.mark.parametrize(("lived_for", "wait"), [(59.9, 2.0), (60.0, 1.0)])
def test_a_long_life_forgives_the_ones_before(lived_for: float, wait: float) -> None:
    restarts = Restarts(ON_FAILURE)
    restarts.ended(0, failed=True, lived_for=1.0, chance=0.5)
    assert restarts.ended(100, failed=True, lived_for=lived_for, chance=0.5).wait == wait


def test_after_a_long_wait_a_life_must_be_longer_to_forgive() -> None:
    restarts = Restarts(RestartPolicy(when=Restart.ON_FAILURE, crash_loop_max=100))
    for t in range(7):
        restarts.ended(t, failed=True, lived_for=1.0, chance=0.5)
    assert restarts.ended(1000, failed=True, lived_for=599.0, chance=0.5).wait == 60
    assert restarts.ended(2000, failed=True, lived_for=600.0, chance=0.5).wait == 1


def test_the_sixth_failure_in_a_quarter_of_an_hour_is_a_crash_loop() -> None:
    restarts = Restarts(ON_FAILURE)
    plans = [restarts.ended(t * 100.0, failed=True, lived_for=100.0, chance=0.5) for t in range(6)]
    assert [plan.next for plan in plans] == [Next.RESTART] * 5 + [Next.QUARANTINE]
    assert [plan.attempt for plan in plans] == [1, 2, 3, 4, 5, 5]


def test_failures_far_apart_are_no_crash_loop() -> None:
    restarts = Restarts(ON_FAILURE)
    plans = [restarts.ended(t * 200.0, failed=True, lived_for=199.0, chance=0.5) for t in range(20)]
    assert {plan.next for plan in plans} == {Next.RESTART}


@pytest.mark.parametrize(
    ("when", "failed", "next_"),
    [
        (Restart.NEVER, True, Next.NOTHING),
        (Restart.NEVER, False, Next.NOTHING),
        (Restart.ON_FAILURE, False, Next.NOTHING),
        (Restart.ON_FAILURE, True, Next.RESTART),
        (Restart.ALWAYS, False, Next.RESTART),
        (Restart.ALWAYS, True, Next.RESTART),
    ],
)
def test_who_is_started_again(when: Restart, failed: bool, next_: Next) -> None:
    plan = Restarts(RestartPolicy(when=when)).ended(0, failed=failed, lived_for=1.0, chance=0.5)
    assert plan.next is next_


def test_good_ends_never_make_a_crash_loop() -> None:
    restarts = Restarts(RestartPolicy(when=Restart.ALWAYS))
    plans = [restarts.ended(float(t), failed=False, lived_for=1.0, chance=0.5) for t in range(50)]
    assert {(plan.next, plan.wait) for plan in plans} == {(Next.RESTART, 1.0)}


# --- interrupts -------------------------------------------------------------------------------------------


def test_one_interrupt_is_the_childs_business() -> None:
    interrupts = Interrupts()
    assert interrupts.pressed(0.0, answered=False) is None
    assert interrupts.pressed(2.1, answered=False) is None
    assert interrupts.pressed(4.2, answered=False) is None


def test_interrupts_in_a_row_that_nobody_answers_become_more() -> None:
    interrupts = Interrupts()
    sent = [interrupts.pressed(t, answered=False) for t in (0.0, 2.0, 4.0, 6.0)]
    assert sent == [None, signal.SIGTERM, signal.SIGKILL, signal.SIGKILL]


def test_who_answers_is_only_ended_by_the_third() -> None:
    interrupts = Interrupts()
    sent = [interrupts.pressed(t, answered=True) for t in (0.0, 1.0, 2.0, 3.0)]
    assert sent == [None, None, signal.SIGTERM, signal.SIGKILL]


# --- stopping ---------------------------------------------------------------------------------------------


def test_a_stop_asks_once_and_forces_once() -> None:
    stopping = Stopping("why", 10.0, 30.0)
    assert stopping.wake_at() == 10.0
    assert stopping.due(10.0) is signal.SIGTERM
    assert stopping.wake_at() == 40.0
    assert [stopping.due(t) for t in (39.9, 40.0, 1000.0)] == [None, signal.SIGKILL, None]
    assert stopping.forced


def test_a_stop_that_even_force_does_not_bring_about_is_overdue_once() -> None:
    stopping = Stopping("why", 10.0, 30.0)
    assert not stopping.overdue(1000.0), "nothing was tried yet"
    stopping.due(40.0)
    assert stopping.wake_at() == 50.0
    assert [stopping.overdue(t) for t in (49.9, 50.0, 51.0)] == [False, True, False]


def test_a_stop_of_who_speaks_for_itself_asks_later() -> None:
    stopping = Stopping("why", 10.0, 30.0, ask_at=40.0)
    assert [stopping.due(t) for t in (10.0, 40.0, 69.0, 70.0)] == [None, signal.SIGTERM, None, signal.SIGKILL]


def test_impatience_forces_at_once() -> None:
    stopping = Stopping("why", 10.0, 30.0)
    stopping.due(10.0)
    stopping.hurry(11.0)
    assert stopping.due(11.0) is signal.SIGKILL


# --- tail -------------------------------------------------------------------------------------------------


def test_the_last_hundred_lines_are_kept() -> None:
    tail = Tail()
    for number in range(1000):
        tail.add(b"line %d\n" % number)
    assert tail.lines == 1000
    assert tail.last() == [f"line {number}" for number in range(1000 - LINES_MAX, 1000)]
    assert tail.last(2) == ["line 998", "line 999"]


def test_the_tail_has_its_bound_whatever_comes() -> None:
    tail = Tail()
    for _ in range(100):
        tail.add(os.urandom(50_000))
    assert sum(len(line.encode()) for line in tail.last()) <= BYTES_MAX
    assert tail.bytes == 5_000_000
    tail.add(b"\n" + b"x" * 10_000_000)
    assert sum(len(line) for line in tail.last()) <= BYTES_MAX


def test_a_tail_is_text_without_what_only_a_screen_understands() -> None:
    tail = Tail()
    tail.add(b"\x1b[1;31mred\x1b[0m\x1b]0;title\x07\r\n10%\r50%\r100%\nbad \xff byte\x00\n\n\n")
    assert tail.last() == ["red", "100%", "bad \N{REPLACEMENT CHARACTER} byte"]


# --- speaking and flows -----------------------------------------------------------------------------------


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    os.set_blocking(read, False)
    yield read, write
    os.close(read)
    os.close(write)


def heard(fd: int) -> str:
    try:
        return os.read(fd, 1_000_000).decode()
    except BlockingIOError:
        return ""


def test_we_wait_for_the_end_of_a_line_for_a_second(pipe: tuple[int, int]) -> None:
    read, write = pipe
    sink = Sink(write)
    speaker = StatusPrinter(sink, "a", Verbosity.NORMAL, is_raw=lambda: False)
    sink.put(b"half")
    speaker.say(StatusMessage("T", "a word."), 10.0)
    assert heard(read) == "half"
    assert speaker.wake_at() == 11.0
    speaker.flush(10.9)
    assert heard(read) == ""
    speaker.flush(11.0)
    assert heard(read) == "\nlifesigns: a word.\n"


def test_a_full_screen_is_not_spoken_into(pipe: tuple[int, int]) -> None:
    """An editor has it; there is no line to stand on. We speak when it is given back."""
    read, write = pipe
    sink = Sink(write)
    speaker = StatusPrinter(sink, "a", Verbosity.NORMAL, is_raw=lambda: True)
    sink.put(b"\x1b[?1049hediting\n")
    speaker.say(StatusMessage("T", "a word."), 10.0)
    speaker.flush(99.0)
    assert "a word" not in heard(read)
    sink.put(b"\x1b[?1049l")
    speaker.flush(100.0)
    assert heard(read).endswith("\r\nlifesigns: a word.\r\n")


def test_a_sink_that_is_full_does_not_block_and_loses_nothing(pipe: tuple[int, int]) -> None:
    read, write = pipe
    sink = Sink(write, Cursor())
    data = os.urandom(1_000_000)
    sink.put(data)
    assert sink.pending
    got = bytearray()
    while len(got) < len(data):
        got += os.read(read, 100_000)
        sink.push()
    assert bytes(got) == data
    assert not sink.pending


def test_a_source_is_not_read_while_its_sink_is_full(pipe: tuple[int, int]) -> None:
    _, write = pipe
    source, feed = os.pipe()
    sink = Sink(write)
    flow = Flow(source, sink, lambda _data: None)
    sink.put(b"x" * 200_000)
    os.write(feed, b"more")
    assert not flow.pump()
    os.close(source)
    os.close(feed)
