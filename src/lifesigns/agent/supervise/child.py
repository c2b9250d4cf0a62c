"""Child: the process, in a session of its own, from its start to its end.

The law: its pid stays taken until its session is empty. We learn of its end without reaping it, end the processes it
leaves behind, and reap it last; so our signals can never reach another process with the same pid.

We start it by `posix_spawn`, which is safe beside other threads and reports the errors of `exec`.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import psutil
from msgspec import Struct

from lifesigns.errors import LifesignsError

PYTHON_IGNORES: Final = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these signals; a child must get them with their defaults, like every other program."""


class End(Struct, frozen=True):
    """How a process ended: with a status, or by a signal."""

    status: int | None = None
    signal: int | None = None

    @property
    def failed(self) -> bool:
        return self.status != 0

    def __str__(self) -> str:
        return (
            f"status {self.status}" if self.signal is None else f"signal {self.signal} ({_name(self.signal)})"
        )


class CannotStart(LifesignsError):
    """The command cannot be started."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Child:
    """A process that leads a session of its own."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    @classmethod
    def start(
        cls, command: tuple[str, ...], environ: Mapping[str, str], file_actions: Sequence[tuple[Any, ...]]
    ) -> Child:
        """Start it, or raise the reason with the exit status a shell would give."""
        try:
            pid = os.posix_spawnp(
                command[0], command, environ, file_actions=file_actions, setsid=True, setsigdef=PYTHON_IGNORES
            )
        except (FileNotFoundError, NotADirectoryError):
            raise CannotStart(f"{command[0]}: command not found", 127) from None
        except OSError as error:
            if _is_nowhere(command[0], environ):
                raise CannotStart(f"{command[0]}: command not found", 127) from None
            raise CannotStart(f"{command[0]}: cannot be run: {error.strerror}", 126) from error
        return cls(pid)

    def end(self) -> End | None:
        """How it ended; None while it lives. Does not reap it."""
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        if found.si_code == os.CLD_EXITED:
            return End(status=found.si_status)
        return End(signal=found.si_status)

    def stop_changed(self) -> bool | None:
        """True if it was stopped since the last call, False if it continues again, None if neither."""
        try:
            found = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WCONTINUED | os.WNOHANG)
        except ChildProcessError:
            return None  # It has ended.
        return None if found is None else found.si_code == os.CLD_STOPPED

    def send(self, number: int) -> None:
        """Send a signal to its group; to stop, continue or end it, also to the rest of its session."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
        if number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT, signal.SIGTERM):
            for pid in self.others():
                with suppress(ProcessLookupError, PermissionError):
                    if os.getpgid(pid) != self.pid:
                        os.kill(pid, number)

    def others(self) -> list[int]:
        """The other processes of its session: its descendants, unless they made a session of their own."""
        return [pid for pid in _session(self.pid) if pid != self.pid and not _is_zombie(pid)]

    def reap(self) -> None:
        """It ended and its session is empty: release its pid."""
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _session(leader: int) -> Iterator[int]:
    for pid in psutil.pids():
        with suppress(OSError):
            if os.getsid(pid) == leader:
                yield pid


def _is_zombie(pid: int) -> bool:
    """A zombie counts as gone; its parent reaps it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"


def reap_orphans(known: set[int]) -> None:
    """As the first process of a container we inherit all orphans, and nothing else would reap them."""
    for process in psutil.Process().children():
        if process.pid not in known and _is_zombie(process.pid):
            with suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)


def die_of(number: int) -> None:
    """End this process by a signal, so that our parent sees what happened to the child."""
    import resource

    with suppress(ValueError, OSError):
        resource.setrlimit(
            resource.RLIMIT_CORE, (0, 0)
        )  # The child left a core dump if one was wanted; ours would tell nothing.
    with suppress(OSError, ValueError):
        signal.signal(number, signal.SIG_DFL)  # SIGKILL has no handler to reset.
    with suppress(ValueError):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)


def _is_nowhere(name: str, environ: Mapping[str, str]) -> bool:
    """Whether there is no such command. The system reports a folder in `PATH` that we may not read; a shell does not."""
    return "/" not in name and shutil.which(name, os.F_OK, environ.get("PATH")) is None
