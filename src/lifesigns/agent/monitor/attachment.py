"""Attachment: how one kind of agent is attached to the monitor: what shows that it lives, and what tells that it ended."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable

from msgspec import Struct


class Ending(Struct, frozen=True):
    """How an agent ended."""

    crashed: bool
    reason: str
    stack: str | None = None
    status: int | None = None
    signal: int | None = None
    forget: bool = False
    """Whether to forget the agent without telling even that it left."""


Report = Callable[[Ending], None]
"""Tells the monitor that an agent ended. Callable from any thread, at any time and repeatedly: the first call counts."""


class Attachment:
    """What the monitor needs of any kind of agent. This base serves an event loop or any object, which report no end."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop | None = None, *, here: bool = False, by_itself: bool = False
    ) -> None:
        self.loop = loop
        """The event loop it lives on: while the loop answers, the agent lives."""
        self.here = here
        """Whether it must be in this process: then silence is a freeze, because no network is between us."""
        self.by_itself = by_itself
        """Whether nothing but its own beats can show that it lives."""
        self.watched_fd: int | None = None
        """A file descriptor that becomes readable when it ends."""
        self._report: Report | None = None

    def attach(self, report: Report) -> None:
        """Start to watch for its end. Called in the thread of the caller of `watch`."""
        self._report = report

    def look(self) -> bool:
        """Whether it is alive; reports its end. Called in the monitor's thread, once a tick."""
        return True

    def thread_id(self) -> int | None:
        """The thread it runs in, if known."""
        return None

    def detach(self) -> None:
        """Stop watching it."""
        self._report = None


def crash(what: str, error: BaseException) -> Ending:
    """An agent that ended with an exception."""
    lines = traceback.extract_tb(error.__traceback__)
    where = f" ({lines[-1].filename}:{lines[-1].lineno})" if lines else ""
    said = traceback.format_exception_only(error)[-1].strip()
    return Ending(True, f"The {what} ended with {said}{where}", "".join(traceback.format_exception(error)), 1)
