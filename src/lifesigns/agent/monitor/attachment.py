"""Tie: how one kind of agent is tied to the monitor: what shows that it lives, and what tells that it ended."""

from __future__ import annotations

import asyncio
import sys
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


def stack_of(thread_id: int | None) -> str | None:
    """Where a thread is right now, innermost call last."""
    frame = None if thread_id is None else sys._current_frames().get(thread_id)
    return None if frame is None else "".join(traceback.format_stack(frame))


def place_of(thread_id: int | None) -> str | None:
    """The innermost line of a thread as `file:line in function`."""
    frame = None if thread_id is None else sys._current_frames().get(thread_id)
    if frame is None:
        return None
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def crash(what: str, error: BaseException) -> Ending:
    """An agent that ended with an exception."""
    lines = traceback.extract_tb(error.__traceback__)
    where = f" ({lines[-1].filename}:{lines[-1].lineno})" if lines else ""
    said = traceback.format_exception_only(error)[-1].strip()
    return Ending(True, f"The {what} ended with {said}{where}", "".join(traceback.format_exception(error)), 1)
