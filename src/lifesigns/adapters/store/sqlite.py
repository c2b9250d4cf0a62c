"""SqliteStore: the embedded store, one file. One thread writes, another reads, so that a long read of the past never
delays a commit.

`lifesigns serve` refuses a second hub on the same file. Should one open it all the same, it takes over, as with every
store: SQLite's own lock makes one of two writers wait, and the epoch, checked inside the transaction, stops the older.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import apsw

from lifesigns.adapters.store.rows import Row
from lifesigns.adapters.store.sql_store import BELIEFS_AT_ONCE, Batch, Script, ScriptRun, SqlStore, Statement
from lifesigns.adapters.store.sqlite_file import SqliteFile
from lifesigns.errors import AdapterError
from lifesigns.ports import StoredState

BUSY_FOR: Final = 5.0
"""Seconds to wait for another process that holds the file: a backup, a person with the sqlite3 shell."""

LOOK_AGAIN_AFTER: Final = 60.0
"""Seconds between two full checks of a damaged file: one takes a while if the file is large."""

log: Final = logging.getLogger("lifesigns.hub")

_T = TypeVar("_T")


class SqliteStore(SqlStore):
    """Keeps everything in one SQLite file and the two that SQLite puts beside it."""

    def __init__(self, path: str | Path, *, busy_for: float = BUSY_FOR) -> None:
        self.path = Path(path).absolute()
        super().__init__(f"the database {self.path}", "sqlite")
        self._writing = SqliteFile(self.path, busy_for=busy_for)
        self._reading = SqliteFile(self.path, busy_for=busy_for, reads_only=True)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="lifesigns-store-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="lifesigns-store-reader")
        self._damage = ""
        self._look_again_at = 0.0
        self._made = False

    async def open(self, *, epoch_min: int = 0, beliefs: bool = True) -> StoredState:
        """Create or migrate the file, and take over."""
        self._made = False  # Also if it was there before: a damaged one may have been moved away since.
        return await super().open(epoch_min=epoch_min, beliefs=beliefs)

    @property
    def shared(self) -> bool:
        """A file belongs to one hub."""
        return False

    async def identity(self) -> str:
        """A file belongs to one hub."""
        return ""

    @property
    def damage(self) -> str:
        """Damage that a read found. While there is damage, the reader checks the whole file every minute, beside the
        writer."""
        return self._damage

    async def _disconnect(self) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._reader, self._reading.close)
        await loop.run_in_executor(self._writer, self._writing.close)
        self._reader.shutdown()
        self._writer.shutdown()

    # Between the event loop and the threads.

    async def _write(self, script: Script[_T], *, loads: bool = False) -> _T:
        if self._damage and time.monotonic() >= self._look_again_at and not self._closed:
            self._look_again_at = time.monotonic() + LOOK_AGAIN_AFTER
            self._reader.submit(self._look_again)
        return await self._run(self._writer, partial(self._transact, script))

    async def _write_beside(self, script: Script[_T]) -> _T:
        return await self._write(script)  # A file has one writer.

    async def _read(self, sql: str, values: Row = ()) -> Sequence[Row]:
        return await self._run(self._reader, partial(self._rows, sql, values))

    async def _stream(self, sql: str, values: Row, take: Callable[[Sequence[Row]], Awaitable[None]]) -> None:
        rows = await self._read(sql, values)
        for first in range(0, len(rows), BELIEFS_AT_ONCE):
            await take(rows[first : first + BELIEFS_AT_ONCE])

    async def _run(self, thread: ThreadPoolExecutor, work: Callable[[], _T]) -> _T:
        self._refuse_if_closed()
        loop = asyncio.get_running_loop()
        if not self._made:
            await loop.run_in_executor(self._writer, self._make)
        return await loop.run_in_executor(thread, work)

    # In the writer's thread.

    def _make(self) -> None:
        self._writing.create()
        with self._writing.connection():
            self._made = True

    def _transact(self, script: Script[_T]) -> _T:
        with self._writing.transaction() as connection:
            run = ScriptRun(script)
            while (step := run.step) is not None:
                match step:
                    case Statement(sql, values):
                        run.advance(list(connection.execute(sql, values)))
                    case Batch(sql, many):
                        run.advance(list(connection.executemany(sql, many)))
            return run.result

    # In the reader's thread.

    def _rows(self, sql: str, values: Row) -> list[Row]:
        try:
            with self._reading.connection() as connection:
                return list(connection.execute(sql, values))
        except AdapterError as error:
            if isinstance(error.__cause__, (apsw.CorruptError, apsw.NotADBError)):
                self._notice(str(error))
            raise

    def _notice(self, damage: str) -> None:
        if not self._damage:
            log.error("%s", damage, extra={"action": "store_damaged"})
            self._look_again_at = time.monotonic() + LOOK_AGAIN_AFTER
        self._damage = damage

    def _look_again(self) -> None:
        try:
            with self._reading.connection() as connection:
                whole = connection.execute("PRAGMA quick_check(1)").get == "ok"
        except AdapterError:
            whole = False
        if whole:
            log.warning("%s is whole again", self._name, extra={"action": "store_mended"})
            self._damage = ""
