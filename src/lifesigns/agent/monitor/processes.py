"""Processes: alive until they end. We see the end at once by a pidfd, or once a tick where there are none.

We reap nothing: we read a child's status without taking it from the code that waits for it. A process is its pid
*and* its start time, so we do not confuse it with a later process of the same pid.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from lifesigns.agent.monitor.attachment import Attachment, Ending
from lifesigns.errors import UsageError

LOOKS_MAX: Final = 20
"""How often we look for the status of a child that another thread is just reaping."""


class ProcessAttachment(Attachment):
    """A process: a `Popen`, a `multiprocessing` or asyncio process, or a bare pid."""

    def __init__(self, process: Any) -> None:
        super().__init__()
        self._process = None if isinstance(process, int) else process
        self.pid: int = process if isinstance(process, int) else process.pid
        if self.pid is None:
            raise UsageError(f"{process!r} has no pid: watch it after its start")
        self._started = _start_time(self.pid)
        if self._process is None and (self.pid <= 0 or (self._started is None and not _exists(self.pid))):
            raise UsageError(f"there is no process with pid {self.pid}")
        self.watched_fd = _pidfd(self.pid) if self._code() is None else None
        self._looks = 0

    def look(self) -> bool:
        if self._is_alive():
            return True
        outcome = self._outcome()
        self._looks += 1
        if self._report is not None and (outcome is not None or self._looks >= LOOKS_MAX):
            self._report(_ending(outcome))
        return False

    def detach(self) -> None:
        super().detach()
        if self.watched_fd is not None:
            os.close(self.watched_fd)
            self.watched_fd = None

    def _is_alive(self) -> bool:
        if self.watched_fd is not None:
            return not _pidfd_ended(self.watched_fd)
        if self._code() is not None:
            return False
        return _start_time(self.pid) == self._started if self._started is not None else _exists(self.pid)

    def _outcome(self) -> int | None:
        """Its exit status, negative for a signal, as in `subprocess`; None if unknown (yet)."""
        how = os.WEXITED | os.WNOWAIT | os.WNOHANG if hasattr(os, "waitid") else 0
        try:
            gone = (
                os.waitid(os.P_PIDFD, self.watched_fd, how)
                if self.watched_fd is not None
                else os.waitid(os.P_PID, self.pid, how)
            )
        except (ChildProcessError, AttributeError):
            if self._process is None:
                self._looks = LOOKS_MAX  # Not our child: the system does not tell us.
            return self._code()
        if gone is None:
            return self._code()
        return gone.si_status if gone.si_code == os.CLD_EXITED else -gone.si_status

    def _code(self) -> int | None:
        """What its owner knows of its end. We ask a `multiprocessing` process without reaping it for others."""
        process = self._process
        if process is None:
            return None
        if not isinstance(process, subprocess.Popen | asyncio.subprocess.Process):
            process = getattr(process, "_popen", None)
        code: int | None = getattr(process, "returncode", None)
        return code


def is_process(what: object) -> bool:
    """Whether this is a process, without importing `multiprocessing` for it."""
    if isinstance(what, bool):
        return False
    if isinstance(what, int | subprocess.Popen | asyncio.subprocess.Process):
        return True
    module = sys.modules.get("multiprocessing.process")
    return module is not None and isinstance(what, module.BaseProcess)


def _ending(outcome: int | None) -> Ending:
    if outcome is None:
        return Ending(True, "The process ended; its exit status is not known")
    if outcome == 0:
        return Ending(False, "exited with status 0", status=0)
    if outcome > 0:
        return Ending(True, f"The process ended with status {outcome}", status=outcome)
    try:
        name = signal.Signals(-outcome).name
    except ValueError:
        name = f"signal {-outcome}"
    return Ending(True, f"The process was ended by {name}", signal=-outcome)


def _pidfd(pid: int) -> int | None:
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None  # An old kernel, or it is already gone: then we check it once a tick.


def _pidfd_ended(fd: int) -> bool:
    import select  # Only where there are pidfds, and those have poll.

    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _start_time(pid: int) -> str | None:
    """A process's start, in ticks since boot; None where that cannot be read, or for a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if fields[0] in ("Z", "X") else fields[19]
