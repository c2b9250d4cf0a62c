"""Threads: alive while they run, frozen only if they promised to beat."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from lifesigns.agent.monitor import Monitor, WatchedAgent
from lifesigns.errors import UsageError
from tests.agent.monitor.heard import QUICK, WITHIN, Heard


@pytest.fixture
def quiet_hook(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Whoever listens to dying threads before us; pytest's own listener would fail the test."""
    told: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    return told


def test_a_thread_that_raises_has_crashed_and_whoever_listened_before_hears_it_too(
    quiet_hook: list[Any],
) -> None:
    """The hook is chained while a thread is watched, and put back after."""
    before = threading.excepthook
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        go = threading.Event()

        def work() -> None:
            go.wait(WITHIN)
            raise ValueError("thread trouble")

        thread = threading.Thread(target=work, name="worker")
        thread.start()
        monitor.watch(thread)
        heard.wait("agent-healthy", "worker")
        assert threading.excepthook is not before
        go.set()
        event = heard.wait("agent-disconnected", "worker")
        thread.join(WITHIN)
        assert event.type == "process-crash"
        assert "ValueError: thread trouble" in event.reason
        assert event.stack is not None
        assert "in work" in event.stack
    assert threading.excepthook is before
    assert [str(args.exc_value) for args in quiet_hook] == ["thread trouble"]


def test_a_thread_of_two_monitors_dies_for_both(quiet_hook: list[Any]) -> None:
    with Monitor(policy=QUICK) as one, Monitor(policy=QUICK) as other:
        first, second = Heard(one), Heard(other)
        go = threading.Event()

        def work() -> None:
            go.wait(WITHIN)
            raise ValueError("thread trouble")

        thread = threading.Thread(target=work, name="worker")
        thread.start()
        one.watch(thread)
        other.watch(thread, "the-same")
        second.wait("agent-healthy", "the-same")
        go.set()
        for event in (
            first.wait("agent-disconnected", "worker"),
            second.wait("agent-disconnected", "the-same"),
        ):
            assert "ValueError: thread trouble" in event.reason
        thread.join(WITHIN)
    assert len(quiet_hook) == 1


def test_a_thread_that_ends_has_left_and_one_that_is_idle_is_healthy() -> None:
    """Without a promise nothing is expected of it but that it runs."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        go = threading.Event()
        thread = threading.Thread(target=go.wait, args=(WITHIN,), name="worker")
        thread.start()
        monitor.watch(thread)
        threading.Event().wait(1.3)
        assert heard.of("worker") == ["agent-healthy"]
        go.set()
        assert heard.wait("agent-left", "worker").reason == "finished"
        thread.join(WITHIN)


def test_a_thread_that_breaks_its_promise_to_beat_is_frozen_and_its_stack_says_where() -> None:
    """`beats_every` is a promise; kept again, it is back."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        hang, go_on, watched = threading.Event(), threading.Event(), list[WatchedAgent]()
        ready = threading.Event()

        def hangs_here() -> None:
            go_on.wait(WITHIN)

        def work() -> None:
            ready.wait(WITHIN)
            while not hang.wait(0.05):
                watched[0].beat()
            hangs_here()
            while go_on.is_set() and not done.wait(0.05):
                watched[0].beat()

        done = threading.Event()
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        watched.append(monitor.watch(thread, beats_every=0.3))
        ready.set()
        threading.Event().wait(1.3)
        assert heard.of("worker") == ["agent-healthy"]
        hang.set()
        event = heard.wait("agent-disconnected", "worker")
        assert event.type == "event-loop-freeze"
        assert event.stack is not None
        assert "hangs_here" in event.stack
        assert "last sign of life: beat" in event.reason
        go_on.set()
        assert (heard.wait("agent-reconnected", "worker").downtime or 0) > 0.7
        done.set()
        thread.join(WITHIN)


def test_several_threads_that_fall_silent_together_are_frozen_and_no_network_is_blamed() -> None:
    """Nothing is between us and a thread of this process; and our own beat speaks for our eyes."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        go = threading.Event()
        threads = [threading.Thread(target=go.wait, args=(WITHIN,), name=f"worker-{n}") for n in range(4)]
        for thread in threads:
            thread.start()
            monitor.watch(thread, beats_every=0.3)
        for thread in threads:
            assert heard.wait("agent-disconnected", thread.name, 4.0).type == "event-loop-freeze"
        go.set()
        for thread in threads:
            thread.join(WITHIN)


def test_a_thread_may_be_watched_before_its_start() -> None:
    """Not started is not ended."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        go = threading.Event()
        thread = threading.Thread(target=go.wait, args=(WITHIN,), name="worker")
        monitor.watch(thread)
        threading.Event().wait(0.5)
        assert monitor.health("worker") == "starting"
        thread.start()
        heard.wait("agent-healthy", "worker")
        go.set()
        heard.wait("agent-left", "worker")
        thread.join(WITHIN)


def test_a_promise_has_to_be_a_time() -> None:
    with Monitor() as monitor, pytest.raises(UsageError, match="beats_every: 0 is not"):
        monitor.watch(threading.current_thread(), "me", beats_every=0)
