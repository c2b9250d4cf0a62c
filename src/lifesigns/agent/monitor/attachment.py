"""Attachment: how one kind of agent is attached to the monitor: what shows that it lives, and what tells that it ended."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ending:
    """How an agent ended."""

    crashed: bool
    reason: str
    stack: str | None = None
    status: int | None = None
    signal: int | None = None
    forget: bool = False
    """Whether nobody wants to hear of it again, not even that it left."""


Report = Callable[[Ending], None]
"""Tells the monitor that an agent ended. From any thread, at any time, as often as one likes: the first counts."""


class Attachment:
    """What the monitor wants of an agent, whatever it is. This is an event loop, or any object: nothing tells its end."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop | None = None, *, here: bool = False, by_itself: bool = False
    ) -> None:
        self.loop = loop
        """The event loop it lives on: while that answers, so does the agent."""
        self.here = here
        """Whether it can only be in this process: then silence is a freeze, and no network is between us."""
        self.by_itself = by_itself
        """Whether nothing but its own beats can show that it lives."""
        self.watched_fd: int | None = None
        """A file descriptor that becomes readable when it ends."""
        self._report: Report | None = None

    def fasten(self, report: Report) -> None:
        """Begin to see its end. Called by who watches it, in their thread."""
        self._report = report

    def look(self) -> bool:
        """Whether it is alive; its end is reported. Called in the monitor's thread, once a tick."""
        return True

    def thread_id(self) -> int | None:
        """The thread it runs in, if one can tell."""
        return None

    def loosen(self) -> None:
        """See nothing more of it."""
        self._report = None


def crash(what: str, error: BaseException) -> Ending:
    """An agent that ended with an exception."""
    lines = traceback.extract_tb(error.__traceback__)
    where = f" ({lines[-1].filename}:{lines[-1].lineno})" if lines else ""
    said = traceback.format_exception_only(error)[-1].strip()
    return Ending(True, f"The {what} ended with {said}{where}", "".join(traceback.format_exception(error)), 1)
