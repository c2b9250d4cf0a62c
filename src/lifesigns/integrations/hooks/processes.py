"""Processes: whether the one that speaks is still there. A pid alone may be somebody else's tomorrow, so its start counts too."""

from __future__ import annotations

import os
from collections.abc import Set
from enum import Enum, auto
from pathlib import Path


class ProcessState(Enum):
    """The state of a process."""

    RUNS = auto()
    HALTED = auto()
    """Stopped by a signal (Ctrl-Z), or by a debugger: it is there, and does nothing."""
    GONE = auto()


def started(pid: int) -> str:
    """When this process started, in ticks since boot; empty if there is none, or the system does not tell."""
    fields = _stat(pid)
    return "" if fields is None or fields[0] in ("Z", "X") else fields[19]


def look(pid: int, since: str) -> ProcessState:
    """How the process with this pid is that started then; `since` is empty where the system does not tell."""
    if not Path("/proc/self/stat").exists():
        return ProcessState.RUNS if _exists(pid) else ProcessState.GONE
    fields = _stat(pid)
    if fields is None or fields[0] in ("Z", "X") or (since and fields[19] != since):
        return ProcessState.GONE
    return ProcessState.HALTED if fields[0] in ("T", "t") else ProcessState.RUNS


def has_argument(pid: int | None, names: Set[str]) -> bool:
    """Whether the process was started with one of these arguments, alone or before a `=`."""
    if pid is None:
        return False
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[1:]
    except OSError:
        return False
    return any(one.partition(b"=")[0].decode(errors="replace") in names for one in arguments)


def _stat(pid: int) -> list[str] | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return fields if len(fields) > 19 else None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
