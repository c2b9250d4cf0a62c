"""Threads: alive while they run. We can find a frozen one only if it promised to beat.

A thread that ends by an exception calls `threading.excepthook`, so we hook in there while we watch any thread, and
pass everything on to the previous hook.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Final

from lifesigns.agent.monitor.attachment import Attachment, Ending, Report, crash

_lock = threading.Lock()
_heirs: Final[list[ThreadAttachment]] = []
"""The attachments to tell how a thread died; a thread may have several, one per monitor."""
_before: Callable[[Any], Any] | None = None
"""The previous hook; None while ours is not installed."""


class ThreadAttachment(Attachment):
    """A thread of this process."""

    def __init__(self, thread: threading.Thread) -> None:
        super().__init__(here=True)
        self.thread = thread

    def attach(self, report: Report) -> None:
        super().attach(report)
        _listen(self)

    def died(self, error: BaseException) -> None:
        """It ended with this exception."""
        if self._report is not None:
            self._report(crash("thread", error))

    def look(self) -> bool:
        if self.thread.is_alive():
            return True
        if self.thread.ident is not None and self._report is not None:
            self._report(Ending(False, "finished"))
        return False

    def thread_id(self) -> int | None:
        return self.thread.ident

    def detach(self) -> None:
        super().detach()
        _stop_listening(self)


def _listen(heir: ThreadAttachment) -> None:
    global _before
    with _lock:
        _heirs.append(heir)
        if _before is None:
            _before, threading.excepthook = threading.excepthook, _hook


def _stop_listening(heir: ThreadAttachment) -> None:
    """Remove the hook with the last thread, unless another hook lies over it: then ours stays and passes calls on."""
    global _before
    with _lock:
        if heir in _heirs:
            _heirs.remove(heir)
        if not _heirs and _before is not None and threading.excepthook is _hook:
            threading.excepthook, _before = _before, None


def _hook(args: Any) -> None:
    before = _before  # Now, for an heir may be the last one, and take us down.
    for heir in tuple(_heirs):
        if heir.thread is args.thread and args.exc_value is not None:
            heir.died(args.exc_value)
    if before is not None:
        before(args)


def _fresh_lock() -> None:
    """In a forked child: the thread that held the lock does not exist here."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_lock)
