"""Traffic: whether bytes come and go behind a program that shows nothing new: over TCP, or to and from the disk.

Linux counts the bytes of each TCP connection and gives them to whoever asks (`sock_diag`); a program's open files say
which connections are its own. A machine that does not tell counts as one without traffic.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

MOVED_MIN: Final = 1024
"""Fewer bytes between two looks are keep-alives."""

_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_REQUEST, _DUMP, _DONE, _ERROR = 1, 0x300, 3, 2
_INFO: Final = 2
"""The attribute with the counts of a connection."""
_ESTABLISHED: Final = 1 << 1
_HEADER: Final = struct.Struct("=IHHII")
_INODE_AT: Final = 68
_ATTRIBUTES_AT: Final = 72
_COUNTS: Final = struct.Struct("=QQ")
_COUNTS_AT: Final = 120
"""`tcpi_bytes_acked` and `tcpi_bytes_received` in `struct tcp_info`."""


class Traffic:
    """Compares the counts of a process tree from look to look."""

    def __init__(self) -> None:
        self._before: dict[str, int] | None = None

    def moved(self, pids: Iterable[int]) -> bool:
        """Whether bytes moved since the last call. At the first call we cannot tell, and say yes."""
        now = _counts(pids)
        before, self._before = self._before, now
        if before is None:
            return True
        return sum(max(0, count - before.get(name, 0)) for name, count in now.items()) >= MOVED_MIN


def _counts(pids: Iterable[int]) -> dict[str, int]:
    counts: dict[str, int] = {}
    inodes: set[int] = set()
    for pid in pids:
        with suppress(psutil.Error, AttributeError):  # macOS does not count them.
            disk = psutil.Process(pid).io_counters()
            counts[f"disk {pid}"] = disk.read_bytes + disk.write_bytes
        inodes.update(_sockets(pid))
    if inodes:
        with suppress(OSError, struct.error):
            counts |= {f"tcp {inode}": count for inode, count in _connections() if inode in inodes}
    return counts


def _sockets(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                name = str(file.readlink())
                if name.startswith("socket:["):
                    yield int(name[8:-1])


def _connections() -> Iterator[tuple[int, int]]:
    """The inode of each established TCP connection of this machine, and the bytes that it carried."""
    if not hasattr(socket, "AF_NETLINK"):
        return
    for family in (socket.AF_INET, socket.AF_INET6):
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG) as line:
            line.settimeout(1.0)
            wanted = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, 1 << (_INFO - 1), 0, _ESTABLISHED)
            header = _HEADER.pack(_HEADER.size + len(wanted), _BY_FAMILY, _REQUEST | _DUMP, 1, 0)
            line.send(header + wanted)
            yield from _answers(line)


def _answers(line: socket.socket) -> Iterator[tuple[int, int]]:
    while True:
        data = line.recv(256 * 1024)
        at = 0
        while at + _HEADER.size <= len(data):
            length, kind, *_ = _HEADER.unpack_from(data, at)
            if kind in (_DONE, _ERROR) or length < _HEADER.size:
                return
            yield from _read(data[at + _HEADER.size : at + length])
            at += length + 3 & ~3


def _read(message: bytes) -> Iterator[tuple[int, int]]:
    (inode,) = struct.unpack_from("=I", message, _INODE_AT)
    at = _ATTRIBUTES_AT
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if length < 4:
            return
        if kind == _INFO and length - 4 >= _COUNTS_AT + _COUNTS.size:
            yield inode, sum(_COUNTS.unpack_from(message, at + 4 + _COUNTS_AT))
        at += length + 3 & ~3
