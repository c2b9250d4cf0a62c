"""Objects: anything with a name. On an event loop the loop answers for it; elsewhere it has to beat.

An object with `.on(event, handler)` is an event emitter: its natural events are activity, at the price of an
attribute write. We send it a `heartbeat-ping` once, with an id; if it ever answers `heartbeat-response-<id>`, its own
answers count from then on instead of its loop's. `watch(answers=True)` says that it does answer: then its answers count
from the start, and one that never answers is found although its loop lives. With `answers=False` we never ping it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final

from lifesigns.agent.monitor.attachment import Attachment, Ending, Report

NATURAL: Final = ("response_generated", "tool_executed", "config_updated", "personality_updated")
"""What the agents of seed 000 emit while they work."""
REMOVED: Final = "agent-removed"


class EmitterAttachment(Attachment):
    """An object with `.on(event, handler)`, and perhaps `.emit(event, data)`."""

    def __init__(self, what: Any, loop: asyncio.AbstractEventLoop | None, events: Iterable[str]) -> None:
        super().__init__(loop, by_itself=loop is None)
        self._what = what
        self._events = tuple(dict.fromkeys(events))
        self.ping_id = f"lifesigns-{id(self):x}"
        """Always the same id: the emitter would keep a handler for each ping for ever."""
        self.pings = True
        """Whether it is asked at all."""
        self.answers: Callable[[], None] | None = None
        """Called with each answer."""
        self.acts: Callable[[str], None] | None = None
        """Called with each natural event."""

    def attach(self, report: Report) -> None:
        super().attach(report)
        for event in self._events:
            self._what.on(event, self._active(event))
        self._what.on(f"heartbeat-response-{self.ping_id}", self._answered)
        self._what.on(REMOVED, self._removed)

    def ping(self) -> None:
        """Ping it on its own loop, because its handlers may do anything."""
        emit = getattr(self._what, "emit", None)
        if self.pings and emit is not None and self._report is not None:
            emit("heartbeat-ping", {"id": self.ping_id})

    def detach(self) -> None:
        self._report = self.answers = self.acts = None

    def _active(self, event: str) -> Callable[..., None]:
        def note(*_: object, **__: object) -> None:
            if self.acts is not None:
                self.acts(event)

        return note

    def _answered(self, *_: object, **__: object) -> None:
        if self.answers is not None:
            self.answers()

    def _removed(self, *_: object, **__: object) -> None:
        if self._report is not None:
            self._report(Ending(False, "removed", forget=True))
