"""Reads input: whether a program waits for input, as far as the kernel shows it.

Linux shows the call in which each thread waits. A `read` of the program's own terminal or stdin that does not return
is clear; a wait for several files at once (`poll`, `epoll`) may be for the terminal, or for the network.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

_READS: Final = {"x86_64": frozenset({0, 19}), "aarch64": frozenset({63, 65})}
"""read and readv."""
_POLLS: Final = {
    "x86_64": frozenset({7, 23, 232, 270, 271, 281, 441}),
    "aarch64": frozenset({22, 72, 73, 441}),
}
"""poll, select, epoll_wait and their variants."""


class ReadsInput(StrEnum):
    """Whether some program of a tree waits for input."""

    YES = "yes"
    MAYBE = "maybe"
    """A thread waits for several files at once."""
    NO = "no"
    UNKNOWN = "unknown"
    """The system or its permissions do not show it."""


def reads_input(root: int, pids: Iterable[int]) -> ReadsInput:
    """Whether one of these processes waits for input at the terminal or stdin of `root`."""
    reads, polls = _READS.get(platform.machine()), _POLLS.get(platform.machine())
    stdin = _file(root, 0)
    if reads is None or polls is None or stdin is None:
        return ReadsInput.UNKNOWN
    found = ReadsInput.UNKNOWN
    for pid in pids:
        for number, first in _calls(pid):
            if number in reads and _file(pid, first) in (stdin, "/dev/tty"):
                return ReadsInput.YES
            if number in polls:
                found = ReadsInput.MAYBE
            elif found is ReadsInput.UNKNOWN:
                found = ReadsInput.NO
    return found


def _calls(pid: int) -> Iterator[tuple[int, int]]:
    """The system call each thread of a process waits in, and its first argument."""
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                words = (thread / "syscall").read_text().split()
                if len(words) > 3:  # "running", or "-1 ..." in no call.
                    yield int(words[0]), int(words[1], 16)
                else:
                    yield -1, -1


def _file(pid: int, fd: int) -> str | None:
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/fd/{fd}").readlink())
    return None
