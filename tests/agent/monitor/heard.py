"""Heard: the events of a monitor, to be waited for with a bound."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

from lifesigns.agent.monitor import Event, Monitor

QUICK = {"silence": {"interval": 0.3, "timeout": 1.0, "ping_wait": 0.15}, "freeze": {"after": 0.4}}
"""A policy for tests that wait for a verdict: everything is found within a second."""

WITHIN = 20.0
"""More than anything here takes, also on a machine that has other things to do."""


def until(holds: Callable[[], bool], within: float = WITHIN) -> None:
    """Return as soon as this holds."""
    by = time.monotonic() + within
    while not holds():
        assert time.monotonic() < by, f"not within {within} s"
        time.sleep(0.01)


class Heard:
    """Listens to everything."""

    def __init__(self, monitor: Monitor) -> None:
        self.events: list[Event] = []
        self._news = threading.Condition()
        monitor.on("*", self._hear)

    def _hear(self, event: Event) -> None:
        with self._news:
            self.events.append(event)
            self._news.notify_all()

    def of(self, agent: str) -> list[str]:
        """The names of an agent's events, in order."""
        with self._news:
            return [event.name for event in self.events if event.agent == agent]

    def find(self, name: str, agent: str) -> Event | None:
        found = [event for event in self.events if event.name == name and event.agent == agent]
        return found[-1] if found else None

    def wait(self, name: str, agent: str, within: float = WITHIN) -> Event:
        """The event, as soon as it is told."""
        until = time.monotonic() + within
        with self._news:
            while (event := self.find(name, agent)) is None:
                if not self._news.wait(max(0.0, until - time.monotonic())):
                    raise AssertionError(f"no {name} of {agent} within {within} s, but {self.events}")
            return event

    async def comes(self, name: str, agent: str, within: float = WITHIN) -> Event:
        """The same, without holding up the loop."""
        return await asyncio.to_thread(self.wait, name, agent, within)
