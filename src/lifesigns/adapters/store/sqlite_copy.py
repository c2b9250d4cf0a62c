"""A copy of an SQLite store at one moment, made beside a running hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import apsw

from lifesigns.adapters.store.sql import migrations, queries
from lifesigns.errors import AdapterError, UsageError

BUSY_MS: Final = 5000


def copy_store(source: Path, to: Path) -> int:
    """Copy the store to a new file, check the copy, and return the number of its last migration.

    One read transaction copies all pages: a hub may write meanwhile, and the copy has nothing of that.
    """
    if not source.is_file():
        raise UsageError(
            f"there is no store {source}; name the hub's state folder with --state, or its store with --store"
        )
    with (
        _failures_named(source),
        closing(_opened(source, apsw.SQLITE_OPEN_READWRITE)) as store,
        closing(_opened(to, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)) as copy,
    ):
        to.chmod(0o600)
        with copy.backup("main", store, "main") as backup:
            backup.step(-1)
    return check_store(to)


def check_store(path: Path) -> int:
    """Check every page of an unused store, and return the number of its last migration."""
    with _failures_named(path), closing(_opened(path, apsw.SQLITE_OPEN_READWRITE)) as store:
        fault = store.execute("PRAGMA integrity_check(1)").get
        if fault != "ok":
            raise AdapterError(f"the store is damaged: {fault}", transient=False)
        return int(store.execute(queries("sqlite")["version"]).get)


def newest_migration() -> int:
    """The number of the last migration that this lifesigns knows."""
    return migrations("sqlite")[-1].number


def _opened(path: Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=flags)
    connection.set_busy_timeout(BUSY_MS)
    return connection


@contextmanager
def _failures_named(path: Path) -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise AdapterError(f"the store {path} cannot be copied: {error}", transient=False) from error
