"""Objects with a name: their loop answers for them, or they do themselves."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from lifesigns.agent.monitor import Monitor
from lifesigns.errors import UsageError
from tests.agent.monitor.heard import QUICK, Heard, until


class Emitter:
    """An agent as seed 000 has them."""

    def __init__(self, name: str, *, answers: bool = False) -> None:
        self.name = name
        self.handlers: dict[str, list[Callable[..., Any]]] = defaultdict(list)
        if answers:
            self.on("heartbeat-ping", lambda ping: self.emit(f"heartbeat-response-{ping['id']}"))

    def on(self, event: str, handler: Callable[..., Any]) -> None:
        self.handlers[event].append(handler)

    def emit(self, event: str, *data: Any) -> None:
        for handler in tuple(self.handlers[event]):
            handler(*data)


async def test_an_emitter_that_answers_pings_has_to_go_on_answering() -> None:
    """Whoever can speak for itself has to: its loop's answers count no more. And it may come back."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        agent = Emitter("coder", answers=True)
        monitor.watch(agent)
        await asyncio.sleep(1.3)
        assert heard.of("coder") == ["agent-healthy"]
        answer = agent.handlers.pop("heartbeat-ping")
        event = await heard.comes("agent-disconnected", "coder")
        assert event.type == "event-loop-freeze"
        assert "without an answer" in event.reason
        agent.handlers["heartbeat-ping"] = answer
        assert (await heard.comes("agent-reconnected", "coder")).downtime is not None


async def test_an_answer_is_no_activity_and_a_healthy_emitter_has_missed_nothing() -> None:
    """`last_activity` is what it did by itself, however often it answers; `missed_heartbeats` is 0 while it is well."""
    with Monitor(profile="swift") as monitor:
        agent = Emitter("coder", answers=True)
        monitor.watch(agent)
        missed, metrics = set[int](), monitor.metrics("coder")
        while metrics is None or metrics.total_heartbeats < 6:
            await asyncio.sleep(0.05)
            metrics = monitor.metrics("coder")
            assert metrics is not None
            missed.add(metrics.missed_heartbeats)
        assert missed == {0}
        assert metrics.last_heartbeat - metrics.last_activity > 2.0
        agent.emit("tool_executed", "grep")
        acted = monitor.metrics("coder")
        assert acted is not None
        assert acted.last_activity >= metrics.last_heartbeat


async def test_who_stops_answering_has_missed_some() -> None:
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        agent = Emitter("coder", answers=True)
        monitor.watch(agent)
        await heard.comes("agent-healthy", "coder")
        await asyncio.sleep(0.5)
        agent.handlers.pop("heartbeat-ping")
        await heard.comes("agent-disconnected", "coder")
        metrics = monitor.metrics("coder")
        assert metrics is not None
        assert metrics.missed_heartbeats >= 2


async def test_pings_leave_nothing_behind() -> None:
    """One handler for all answers, whatever the number of pings."""
    with Monitor(policy=QUICK) as monitor:
        agent = Emitter("coder", answers=True)
        monitor.watch(agent)
        await asyncio.sleep(0.2)
        before = sum(map(len, agent.handlers.values()))
        await asyncio.sleep(0.9)
        assert sum(map(len, agent.handlers.values())) == before
        metrics = monitor.metrics("coder")
        assert metrics is not None
        assert metrics.total_heartbeats >= 3


async def test_an_emitter_that_never_answered_lives_by_its_loop() -> None:
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        monitor.watch(Emitter("coder"))
        await asyncio.sleep(1.3)
        assert heard.of("coder") == ["agent-healthy"]


async def test_one_that_says_it_answers_and_never_does_is_found_although_its_loop_lives() -> None:
    """Seed 000's AC1: the handler was taken away before the first ping, so it never answered a single one."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        monitor.watch(Emitter("dumb"), answers=True)
        monitor.watch(Emitter("talks", answers=True), answers=True)
        event = await heard.comes("agent-disconnected", "dumb")
        assert (event.type, event.code) == ("event-loop-freeze", "missed_heartbeats")
        assert event.idle_time is not None
        assert event.idle_time >= 0.9
        assert heard.of("talks") == ["agent-healthy"]


async def test_answers_is_a_word_about_emitters_only() -> None:
    with Monitor(policy=QUICK) as monitor, pytest.raises(UsageError, match="answers is for objects"):
        monitor.watch(asyncio.current_task(), "task", answers=True)


def test_natural_events_are_signs_of_life() -> None:
    """Outside of a loop an agent has to show by itself that it lives; its events do, those that are named as well."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        natural, named, silent = Emitter("natural"), Emitter("named"), Emitter("silent")
        monitor.watch(natural)
        monitor.watch(named, events=["thought"])
        monitor.watch(silent)
        for _ in range(14):
            natural.emit("tool_executed", "grep")
            named.emit("thought")
            threading.Event().wait(0.1)
        assert heard.wait("agent-disconnected", "silent").type == "event-loop-freeze"
        assert heard.of("natural") == heard.of("named") == ["agent-healthy"]
        metrics, before = monitor.metrics("natural"), monitor.metrics("silent")
        assert metrics is not None
        assert before is not None
        assert metrics.last_activity > before.last_activity


async def test_an_emitter_that_is_removed_is_forgotten() -> None:
    """`agent-removed` is its owner's word; nothing is told, and its name is free."""
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        agent = Emitter("coder")
        monitor.watch(agent)
        await heard.comes("agent-healthy", "coder")
        agent.emit("agent-removed")
        await asyncio.to_thread(until, lambda: monitor.health("coder") is None)
        assert heard.of("coder") == ["agent-healthy"]
        monitor.watch(Emitter("coder"))


async def test_an_emitter_that_cannot_be_listened_to_is_not_watched() -> None:
    """What its `on` raises is the caller's to see, and nothing is left behind."""

    class Broken:
        name = "broken"

        def on(self, event: str, handler: object) -> None:
            raise ConnectionError("its socket is closed")

    with Monitor(policy=QUICK) as monitor:
        with pytest.raises(ConnectionError, match="its socket is closed"):
            monitor.watch(Broken())
        assert monitor.all() == {}


async def test_an_answer_that_fails_harms_nobody_else() -> None:
    """Each emitter is asked by itself: what one raises goes to its loop, and the next is asked all the same."""
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, said: complaints.append(str(said["exception"]))
    )
    with Monitor(policy=QUICK) as monitor:
        heard = Heard(monitor)
        bad, good = Emitter("bad", answers=True), Emitter("good", answers=True)
        monitor.watch_all([bad, good])
        await heard.comes("agent-healthy", "good")
        await asyncio.sleep(0.3)
        bad.handlers["heartbeat-ping"] = [lambda ping: 1 / 0]
        assert (await heard.comes("agent-disconnected", "bad")).type == "event-loop-freeze"
        assert heard.of("good") == ["agent-healthy"]
    assert set(complaints) == {"division by zero"}
