"""Attachment: how one kind of agent is attached to the monitor: what shows that it lives, and what tells that it ended."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol


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


class Attachment(Protocol):
    """What the monitor wants of an agent, whatever it is."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop it lives on: while that answers, so does the agent."""

    @property
    def by_itself(self) -> bool:
        """Whether nothing but its own beats can show that it lives."""

    @property
    def here(self) -> bool:
        """Whether it can only be in this process: then silence is a freeze, and no network is between us."""

    @property
    def watched_fd(self) -> int | None:
        """A file descriptor that becomes readable when it ends."""

    def fasten(self, report: Report) -> None:
        """Begin to see its end. Called by who watches it, in their thread."""

    def look(self) -> bool:
        """Whether it is alive; its end is reported. Called in the monitor's thread, once a tick."""

    def thread_id(self) -> int | None:
        """The thread it runs in, if one can tell."""

    def loosen(self) -> None:
        """See nothing more of it."""


def crash(what: str, error: BaseException) -> Ending:
    """An agent that ended with an exception."""
    lines = traceback.extract_tb(error.__traceback__)
    where = f" ({lines[-1].filename}:{lines[-1].lineno})" if lines else ""
    said = traceback.format_exception_only(error)[-1].strip()
    return Ending(True, f"The {what} ended with {said}{where}", "".join(traceback.format_exception(error)), 1)
