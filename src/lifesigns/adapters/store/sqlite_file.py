"""One connection to an SQLite file: opened when needed, given up when it breaks, and reopened.

Before every use it checks whether the file was moved, removed or replaced: SQLite would go on writing to a file that
nobody can find any more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import apsw

from lifesigns.adapters.store.sql import Migration, migrations, next_migration, queries
from lifesigns.errors import AdapterError

_PRAGMAS: Final = (
    "synchronous = FULL",  # A commit outlives a power cut, not only a crash.
    "fullfsync = ON",  # On macOS a sync without it stops at the disk's own cache.
    "checkpoint_fullfsync = ON",
    # Pages of 4 kB before a checkpoint, four times the default: a thousand beliefs touch nearly as many pages, and
    # otherwise each commit would run one.
    "wal_autocheckpoint = 4000",
    "journal_size_limit = 67108864",
    "cache_size = -16384",  # KiB
    "cell_size_check = ON",  # Finds a damaged page when it is read, not when it is written back.
    "trusted_schema = OFF",
)


class SqliteFile:
    """A database file. All methods block, and one thread at a time uses it."""

    def __init__(self, path: Path, *, busy_for: float, reads_only: bool = False) -> None:
        self.path = path
        self._busy_for = busy_for
        self._reads_only = reads_only
        self._connection: apsw.Connection | None = None
        self._identity: tuple[int, int] | None = None

    def create(self) -> None:
        """Create the folder and the file, readable by us alone, unless they exist."""
        with self._troubles():
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Only a new file: opening and closing one that another connection holds would release its locks.
            with contextlib.suppress(FileExistsError):
                self.path.touch(mode=0o600, exist_ok=False)

    @contextlib.contextmanager
    def connection(self) -> Iterator[apsw.Connection]:
        """The connection. Any failure becomes an `AdapterError`, and gives the connection up if needed."""
        with self._troubles():
            yield self._connected()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[apsw.Connection]:
        """Everything or nothing, and on disk when it ends."""
        with self.connection() as connection, _transaction(connection):
            yield connection

    def close(self) -> None:
        connection, self._connection, self._identity = self._connection, None, None
        if connection is not None:
            connection.close(True)

    def _connected(self) -> apsw.Connection:
        if self._connection is not None and self._identity != _identity(self.path):
            self.close()
            raise AdapterError(f"the database {self.path} was moved or removed while it was in use")
        if self._connection is None:
            self._connection = self._connect()
            self._identity = _identity(self.path)
        return self._connection

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.set_busy_timeout(int(self._busy_for * 1000))
            if self._reads_only:
                connection.execute("PRAGMA query_only = ON").fetchall()
            else:
                self._prepare(connection)
        except BaseException:
            connection.close(True)
            raise
        return connection

    def _prepare(self, connection: apsw.Connection) -> None:
        if connection.execute("PRAGMA journal_mode = WAL").get != "wal":
            raise AdapterError(
                f"the database {self.path} cannot be written ahead (WAL); choose a folder on a local disk",
                transient=False,
            )
        # One call each: of several in a string, apsw runs the second only when its rows are read.
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").fetchall()
        migrate(connection, f"the database {self.path}", migrations("sqlite"))

    @contextlib.contextmanager
    def _troubles(self) -> Iterator[None]:
        try:
            yield
        except apsw.Error as error:
            if not isinstance(error, apsw.BusyError):
                self._give_up()
            raise _translated(error, self.path) from error
        except OSError as error:
            reason = error.strerror or str(error)
            raise AdapterError(f"the database {self.path} cannot be used: {reason}") from error

    def _give_up(self) -> None:
        with contextlib.suppress(apsw.Error):  # It is broken already, and would only say so again.
            self.close()


def migrate(connection: apsw.Connection, store: str, known: Sequence[Migration]) -> None:
    """Bring the database to the newest schema, one migration after the other, each in a transaction."""
    while _migrate_once(connection, store, known):
        pass


def _migrate_once(connection: apsw.Connection, store: str, known: Sequence[Migration]) -> bool:
    sql = queries("sqlite")
    if _is_ours(connection, store) and next_migration(store, _version(connection), known) is None:
        return False  # Nearly always, so this check comes first, without a lock.
    with _transaction(connection):
        if not _is_ours(connection, store):
            connection.execute(sql["make_migrations"])
        migration = next_migration(store, _version(connection), known)
        if migration is None:
            return False
        connection.execute(migration.sql).fetchall()
        connection.execute(sql["record_migration"], (migration.number, migration.name))
    return True


def _version(connection: apsw.Connection) -> int:
    return int(connection.execute(queries("sqlite")["version"]).get)


def _is_ours(connection: apsw.Connection, store: str) -> bool:
    """Whether it has our tables; an empty file is not ours yet."""
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    if tables and "migrations" not in tables:
        raise AdapterError(
            f"{store} belongs to something else (it has a table {tables[0]!r}); choose another file",
            transient=False,
        )
    return bool(tables)


@contextlib.contextmanager
def _transaction(connection: apsw.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite may have rolled it back by itself.
            connection.execute("ROLLBACK")
        raise


def _translated(error: apsw.Error, path: Path) -> AdapterError:
    match error:
        case apsw.CorruptError() | apsw.NotADBError():
            return AdapterError(
                f"the database {path} is damaged ({error}); move it away together with {path.name}-wal, or put "
                "a copy back, and start anew. Nothing was deleted",
                transient=False,
            )
        case apsw.BusyError() | apsw.LockedError():
            return AdapterError(f"the database {path} is locked by another process")
        case apsw.FullError():
            return AdapterError(f"the disk of {path} is full")
        case apsw.ReadOnlyError():
            return AdapterError(f"the database {path} is read-only; make it and its folder writable")
        case apsw.CantOpenError():
            return AdapterError(
                f"the database {path} cannot be opened; is it there, and its folder writable?"
            )
        case _:
            return AdapterError(f"the database {path} failed: {type(error).__name__}: {error}")


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (status.st_dev, status.st_ino)
