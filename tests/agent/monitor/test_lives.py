"""The monitor's own life, names, and what can be asked of it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
import warnings

import pytest

from lifesigns.agent.monitor import Monitor
from lifesigns.core.profiles import profile
from lifesigns.errors import PolicyError, UsageError
from tests.agent.monitor.heard import QUICK, WITHIN, Heard, until


class Named:
    def __init__(self, name: object) -> None:
        self.name = name


class WithId:
    id = 17


class Registry:
    def __init__(self) -> None:
        self.removed: list[str] = []

    def unregister(self, name: str) -> None:
        self.removed.append(name)


def test_it_starts_with_the_first_watch_and_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    monitor = Monitor()
    assert threading.active_count() == before
    monitor.watch(Named("coder"))
    assert threading.active_count() > before
    monitor.stop()
    monitor.stop()
    assert threading.active_count() == before
    with pytest.raises(UsageError, match="was stopped: make another"):
        monitor.watch(Named("other"))


def test_the_interpreter_ends_without_waiting_for_it() -> None:
    """Also with a callback that never returns: it is left alone after a moment."""
    code = """
import lifesigns.agent.monitor.monitor as m, threading
m.STOPS_WITHIN = 0.5
class Named: name = "coder"
monitor = m.Monitor()
called = threading.Event()
monitor.on("*", lambda event: (called.set(), threading.Event().wait()))
monitor.watch(Named())
assert called.wait(10)
print("end", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"end\n", b"")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_has_a_mute_monitor_and_the_parents_goes_on() -> None:
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        watched = monitor.watch(Named("coder"))
        heard.wait("agent-healthy", "coder")
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # From Python 3.12: it has threads. That is the point.
            child = os.fork()
        if child == 0:
            try:
                watched.beat()
                watched.progress("in the child")
                monitor.watch(Named("of the child".replace(" ", "-")))
                monitor.stop()
                os._exit(0 if threading.active_count() == 1 else 1)
            finally:
                os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert heard.wait("agent-disconnected", "coder").type == "event-loop-freeze"
        assert set(monitor.all()) == {"coder"}


def test_names_come_from_what_has_one() -> None:
    with Monitor() as monitor:
        assert monitor.watch(Named("a")).name == "a"
        assert monitor.watch(WithId()).name == "17"
        assert monitor.watch(Named("b"), "c").name == "c"
        with pytest.raises(UsageError, match="has neither a name nor an id"):
            monitor.watch(object())
        with pytest.raises(UsageError, match="name: is 'two words', but an id is 1 to 128 of"):
            monitor.watch(Named("two words"))
        with pytest.raises(UsageError, match="name: is ''"):
            monitor.watch(Named("x"), "")


def test_a_name_is_one_agents_until_it_is_gone() -> None:
    """The same thing twice is the same; another under a living one's name is a mistake."""
    with Monitor() as monitor:
        agent = Named("coder")
        assert monitor.watch(agent) is monitor.watch(agent)
        with pytest.raises(UsageError, match="'coder' is watched already"):
            monitor.watch(Named("coder"))
        assert monitor.unwatch("coder")
        assert not monitor.unwatch("coder")
        monitor.watch(Named("coder"))


def test_a_policy_that_cannot_work_is_refused_where_it_is_given() -> None:
    with Monitor(policy=profile("swift")) as monitor:
        with pytest.raises(PolicyError, match=r"silence.timeout"):
            monitor.watch(Named("coder"), policy={"silence": {"timeout": 0.5}})
        with pytest.raises(PolicyError, match=r"freeze.afterr"):
            monitor.watch(Named("coder"), policy={"freeze": {"afterr": 1}})
    with pytest.raises(PolicyError, match="'fast' is unknown; known are swift"):
        Monitor("fast")


def test_the_dead_are_removed_from_the_registry() -> None:
    mapping, registry = {"a": object(), "b": object()}, Registry()
    with Monitor(policy=QUICK, registry=mapping) as one, Monitor(policy=QUICK, registry=registry) as other:
        one.watch_all(mapping)
        one.watch(Named("not-in-it")).leave()
        other.watch(Named("c"))
        until(lambda: not mapping and registry.removed == ["c"])
    with pytest.raises(UsageError, match=r"has remove\(name\) or unregister\(name\)"):
        Monitor(registry=["a"])


def test_the_least_loaded_are_found() -> None:
    with Monitor(policy=QUICK) as monitor:
        for name, load in (("a", 0.9), ("b", 0.1), ("c", 0.5)):
            monitor.watch(Named(name)).load(load)
        until(lambda: monitor.least_loaded(2) == ["b", "c"])
        full = monitor.watch(Named("d"))
        full.load(0.0)
        full.capacity(0)
        until(lambda: monitor.health("d") == "healthy" and monitor.least_loaded(9) == ["b", "c", "a"])


async def test_what_is_known_can_be_read_from_anywhere() -> None:
    with Monitor(policy=QUICK) as monitor:
        assert (monitor.health("nobody"), monitor.metrics("nobody"), monitor.last_heartbeat("nobody")) == (
            None,
            None,
            None,
        )
        assert not monitor.is_alive("nobody")
        monitor.watch(Named("coder"))
        until(lambda: monitor.is_alive("coder"))
        seen_at, metrics = monitor.last_heartbeat("coder"), monitor.metrics("coder")
        assert seen_at is not None
        assert metrics is not None
        assert abs(time.time() - seen_at) < WITHIN
        assert metrics.agent_name == "coder"
        assert metrics.status == "healthy"
        assert 0 <= metrics.uptime < WITHIN


def test_many_come_and_go_and_leave_nothing_behind() -> None:
    """Records of the ended are bounded."""
    with Monitor(policy=QUICK) as monitor:
        for n in range(2500):
            monitor.watch(Named(f"agent-{n}")).leave()
        until(lambda: len(monitor.all()) <= 1000)
        assert monitor.health("agent-2499") == "terminated"


async def test_what_was_said_before_the_stop_is_told_before_it_returns() -> None:
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        monitor.watch(Named("coder")).leave("at the last moment")
    assert heard.of("coder")[-1] == "agent-left"


async def test_a_name_that_is_given_anew_at_once_inherits_nothing_of_a_farewell() -> None:
    """Whoever was unwatched is gone without a word; the next one of that name is not told to have left."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        for _ in range(20):
            monitor.watch(Named("coder"))
            await asyncio.sleep(0)
            monitor.unwatch("coder")
        monitor.watch(Named("coder"))
    assert set(heard.of("coder")) == {"agent-healthy"}
    assert monitor.health("coder") == "healthy"
