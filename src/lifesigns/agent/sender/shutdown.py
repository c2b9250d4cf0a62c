"""Shutdown: how the senders of a process say good-bye when the agent does not close them.

At interpreter exit and on SIGTERM all of them say `left`, within their bound; after an uncaught exception they say
that they crashed, or the hub would think that the agent had finished. In a forked child they fall silent: that life
goes on in the parent, which owns its threads and sockets.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, Protocol, TypeGuard

from lifesigns.agent.sender.calls import CANCELLED


class Shutdown(Protocol):
    """What this module needs of a sender."""

    def leave(self, reason: str, *, crashed: bool = False) -> None:
        """Say good-bye; wait for nothing."""

    def wait_until_gone(self) -> None:
        """Wait until the good-bye has arrived, or its time is over."""

    def fall_silent(self) -> None:
        """In a forked child: calls have no effect any more."""


_living: dict[int, Shutdown] = {}
_of_the_parent: list[object] = []
"""Objects a fork left behind: kept, so that no finaliser closes what the parent still uses."""
_on_fork: list[Callable[[], None]] = []


def register(sender: Shutdown) -> None:
    """A sender has started: take care of its end."""
    _living[id(sender)] = sender
    _watch_for_sigterm()


def unregister(sender: Shutdown) -> None:
    """A sender has said good-bye by itself."""
    _living.pop(id(sender), None)
    if not _living:
        _unwatch_sigterm()


def after_fork(forget: Callable[[], None]) -> None:
    """Call this in every forked child."""
    _on_fork.append(forget)


def keep_for_the_parent(what: object) -> None:
    """In a forked child: never finalise this."""
    _of_the_parent.append(what)


def leave_all(reason: str, *, crashed: bool = False) -> None:
    """All senders say good-bye at once, so that their waits overlap."""
    leaving = list(_living.values())
    for sender in leaving:
        sender.leave(reason, crashed=crashed)
    for sender in leaving:
        sender.wait_until_gone()
        _living.pop(id(sender), None)


def is_main_thread() -> bool:
    """Whether this is the thread that signals reach."""
    return threading.current_thread() is threading.main_thread()


# --- errors ---------------------------------------------------------------------------------------------------


MEANT_TO_END: Final = (None, 0, 128 + signal.SIGINT, 128 + signal.SIGTERM)
"""Exit statuses of an agent that had finished, or was asked to end."""


def is_crash(error: BaseException | None) -> TypeGuard[BaseException]:
    """Whether this end of an agent is a failure. A cancelled or interrupted agent has not failed."""
    if isinstance(error, SystemExit):
        return error.code not in MEANT_TO_END
    return error is not None and not isinstance(error, CANCELLED)


def error_line(error: BaseException) -> str:
    """An error in one line."""
    name, text = type(error).__name__, str(error)
    return f"{name}: {text}" if text else name


# --- SIGTERM --------------------------------------------------------------------------------------------------


def _watch_for_sigterm() -> None:
    """Only where there is no other handler: an agent with one ends its block by itself."""
    if is_main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _on_sigterm)


def _unwatch_sigterm() -> None:
    if is_main_thread() and signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _on_sigterm(number: int, frame: FrameType | None) -> Any:
    """Say good-bye, then end by the same signal, so that the parent process sees it."""
    signal.signal(number, signal.SIG_DFL)
    leave_all("SIGTERM")
    signal.raise_signal(number)


# --- exit and fork --------------------------------------------------------------------------------------------


def _at_exit() -> None:
    error: BaseException | None = getattr(sys, "last_value", None)
    if is_crash(error) and not hasattr(sys, "ps1"):  # At a prompt the user has read it and gone on.
        leave_all(error_line(error), crashed=True)
    else:
        leave_all("exit")


def _in_child() -> None:
    for sender in _living.values():
        sender.fall_silent()
        keep_for_the_parent(sender)
    _living.clear()
    _unwatch_sigterm()
    for forget in _on_fork:
        forget()


atexit.register(_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
