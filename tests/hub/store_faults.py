"""Ways in which a store goes away and comes back, of real files and servers."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import apsw
import asyncpg

from lifesigns.adapters.store.postgres import PostgresStore
from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.ports import Store
from tests.servers.postgres import PostgresServer

NOBODY = 65534
REAL = apsw.vfs_names()[0]


@dataclass
class Fault:
    """A store, how to lose it and how to get it back. `make` gives another one at the same place."""

    make: Callable[[], Store]
    lose: Callable[[], Awaitable[None]]
    mend: Callable[[], Awaitable[None]]
    says: str
    """What is said about it."""


@asynccontextmanager
async def locked(server: PostgresServer) -> AsyncIterator[Fault]:
    """Another process holds the file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hub.db"
        code = (
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
            "c.execute('BEGIN EXCLUSIVE'); print('locked', flush=True); sys.stdin.read()"
        )
        holders: list[asyncio.subprocess.Process] = []

        async def lose() -> None:
            pipe = subprocess.PIPE
            holder = await asyncio.create_subprocess_exec(
                sys.executable, "-c", code, str(path), stdin=pipe, stdout=pipe
            )
            holders.append(holder)
            assert holder.stdout is not None
            assert await holder.stdout.readline() == b"locked\n"

        async def mend() -> None:
            for holder in holders:
                await holder.communicate(b"")
            holders.clear()

        try:
            yield Fault(lambda: SqliteStore(path, busy_for=0.1), lose, mend, "locked by another process")
        finally:
            await mend()


class FullDisk(apsw.VFS):
    """A file system without room, when it is told so."""

    def __init__(self) -> None:
        super().__init__("full disk", REAL, makedefault=True)
        self.full = False

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        disk = self

        class File(apsw.VFSFile):
            def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 -- apsw's name
                if disk.full:
                    raise apsw.FullError("no room")
                super().xWrite(data, offset)

        return File(REAL, name, flags)


@asynccontextmanager
async def full(server: PostgresServer) -> AsyncIterator[Fault]:
    """The disk has no room."""
    disk = FullDisk()
    with tempfile.TemporaryDirectory() as folder:

        async def lose() -> None:
            disk.full = True

        async def mend() -> None:
            disk.full = False

        try:
            yield Fault(lambda: SqliteStore(Path(folder) / "hub.db"), lose, mend, "is full")
        finally:
            disk.unregister()


@asynccontextmanager
async def read_only(server: PostgresServer) -> AsyncIterator[Fault]:
    """Somebody took our rights away, and the connection broke. Root stands above rights, so root becomes nobody."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "hub.db"
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        store = SqliteStore(path)

        def set_rights(of_file: int, of_folder: int) -> None:
            path.chmod(of_file)
            folder.chmod(of_folder)

        async def lose() -> None:
            set_rights(0o400, 0o500)
            for file in (store._reading, store._writing):
                file.close()  # Whoever has the file open keeps his rights.

        async def mend() -> None:
            set_rights(0o600, 0o700)

        try:
            yield Fault(lambda: store, lose, mend, "hub.db")
        finally:
            if os.getuid() == 0:
                os.seteuid(0)
            set_rights(0o600, 0o700)


@asynccontextmanager
async def taken_away(server: PostgresServer) -> AsyncIterator[Fault]:
    """The file was moved, and is put back."""
    with tempfile.TemporaryDirectory() as folder:
        path, away = Path(folder) / "hub.db", Path(folder) / "away"

        async def lose() -> None:
            away.mkdir()
            for file in path.parent.glob("hub.db*"):
                shutil.move(file, away)

        async def mend() -> None:
            for file in away.iterdir():
                shutil.move(file, path.parent)

        yield Fault(lambda: SqliteStore(path), lose, mend, "was moved or removed")


async def _emptied(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("DROP SCHEMA IF EXISTS lifesigns CASCADE")
    finally:
        await connection.close()


@asynccontextmanager
async def server_killed(server: PostgresServer) -> AsyncIterator[Fault]:
    """PostgreSQL crashes and is started again."""
    await _emptied(server.url)
    away = False

    async def lose() -> None:
        nonlocal away
        away = True
        await asyncio.to_thread(server.kill)

    async def mend() -> None:
        nonlocal away
        if away:
            away = False
            await asyncio.to_thread(server.start)

    try:
        yield Fault(lambda: PostgresStore(server.url, answer_for=1.0), lose, mend, "postgres://")
    finally:
        await mend()


@asynccontextmanager
async def server_frozen(server: PostgresServer) -> AsyncIterator[Fault]:
    """PostgreSQL stands still and goes on."""
    await _emptied(server.url)

    async def lose() -> None:
        await asyncio.to_thread(server.freeze)

    async def mend() -> None:
        await asyncio.to_thread(server.thaw)

    try:
        yield Fault(lambda: PostgresStore(server.url, answer_for=1.0), lose, mend, "postgres://")
    finally:
        await mend()


FAULTS = (locked, full, read_only, taken_away, server_killed, server_frozen)
