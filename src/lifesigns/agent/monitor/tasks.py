"""Tasks: agents that live on an event loop. While it answers they live; the loop reports their end."""

from __future__ import annotations

import asyncio
from typing import Any

from lifesigns.agent.monitor.attachment import Attachment, Ending, Report, crash


class TaskAttachment(Attachment):
    """An asyncio task."""

    def __init__(self, task: asyncio.Future[Any]) -> None:
        super().__init__(task.get_loop(), here=True)
        self._task = task

    def attach(self, report: Report) -> None:
        super().attach(report)
        if self._task.done():
            self._done(self._task)
        elif running_loop() is self.loop:
            self._task.add_done_callback(self._done)
        elif self.loop is not None:
            self.loop.call_soon_threadsafe(self._task.add_done_callback, self._done)

    def look(self) -> bool:
        return not self._task.done()

    def _done(self, task: asyncio.Future[Any]) -> None:
        if self._report is None:
            return
        if task.cancelled():
            self._report(Ending(False, "cancelled"))
            return
        # Not `task.exception()`: that would count as retrieved, and asyncio would no longer complain about an
        # exception that no code looked at.
        error: BaseException | None = getattr(task, "_exception", None)
        self._report(Ending(False, "finished") if error is None else crash("task", error))


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
