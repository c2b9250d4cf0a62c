"""Facts: what a process and all its descendants show from outside.

A process is its pid *and* its start time: a pid alone may belong to another process by now. psutil knows both.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
from msgspec import Struct

MEGABYTE = 1024 * 1024


class ProcessFacts(Struct, frozen=True):
    """One look at a process tree."""

    cpu_percent: float | None
    """Percent of one core, of all of them together, since the last look; None at the first."""
    memory_mb: float
    processes: int
    state: str
    """Of the child itself: running, sleeping, stopped, zombie ..."""


class ProcessObserver:
    """Looks at one process and its descendants, again and again."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._known = {pid: self._root}
        self._looked_at: float | None = None
        self._cpu_s = 0.0

    @property
    def pids(self) -> list[int]:
        """The processes at the last look, the child first."""
        return list(self._known)

    def look(self, now: float) -> ProcessFacts | None:
        """The tree now; None if it is gone, or hidden from us."""
        try:
            state = self._root.status()
            alive = self._tree()
        except psutil.Error:
            return None
        cpu_s = memory = 0.0
        for process in alive:
            try:
                with process.oneshot():
                    cpu_s += sum(process.cpu_times()[:4])  # its own and that of its reaped children
                    memory += process.memory_info().rss
            except psutil.Error:
                continue  # It ended while we looked; its parent has its time now.
        percent = None
        if self._looked_at is not None and now > self._looked_at:
            # Unreaped processes take their CPU time with them, so the difference can be negative: then it is zero.
            percent = max(0.0, cpu_s - self._cpu_s) / (now - self._looked_at) * 100
        self._looked_at, self._cpu_s = now, cpu_s
        return ProcessFacts(percent, memory / MEGABYTE, len(alive), str(state))

    def _tree(self) -> list[psutil.Process]:
        pids = [self._root.pid, *_descendants(self._root)]
        self._known = {pid: found for pid in pids if (found := self._process(pid)) is not None}
        return list(self._known.values())

    def _process(self, pid: int) -> psutil.Process | None:
        known = self._known.get(pid)
        try:
            return known if known is not None and known.is_running() else psutil.Process(pid)
        except psutil.Error:
            return None


def _descendants(root: psutil.Process) -> Iterator[int]:
    """Children, their children, and so on. Linux lists them per thread; elsewhere we search all processes."""
    if not Path(f"/proc/{root.pid}/task/{root.pid}/children").exists():
        yield from (child.pid for child in root.children(recursive=True))
        return
    found, waiting = {root.pid}, [root.pid]
    while waiting:
        for child in _children(waiting.pop()):
            if child not in found:
                found.add(child)
                waiting.append(child)
                yield child


def _children(pid: int) -> list[int]:
    try:
        files = [task / "children" for task in Path(f"/proc/{pid}/task").iterdir()]
        return [int(child) for file in files for child in file.read_bytes().split()]
    except OSError:
        return []  # It ended while we looked.


def catches(pid: int, number: int) -> bool | None:
    """Whether a process has a handler for a signal; None where that cannot be known."""
    return _mask(pid, "SigCgt", number)


def ignores(pid: int, number: int) -> bool | None:
    """Whether a process ignores a signal; None where that cannot be known."""
    return _mask(pid, "SigIgn", number)


def _mask(pid: int, name: str, number: int) -> bool | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = next((line for line in status.splitlines() if line.startswith(f"{name}:")), None)
    return None if found is None else bool(int(found.split()[1], 16) >> (number - 1) & 1)
