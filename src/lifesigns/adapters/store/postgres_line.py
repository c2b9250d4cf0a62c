"""One connection to a PostgreSQL server: opened when needed, given up at the first error, and reopened.

Every use is bounded in time, also on a frozen server. Any interruption ends the connection: the server then rolls back
what was not committed, and nothing half done is left for the next use.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

import asyncpg

from lifesigns.adapters.store.sql import Migration, next_migration, queries
from lifesigns.errors import AdapterError, LifesignsError, UsageError

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
_T = TypeVar("_T")

SCHEMA: Final = "lifesigns"
_SETTINGS: Final = {
    "application_name": "lifesigns",
    "search_path": SCHEMA,
    "synchronous_commit": "on",  # Also if the server's own setting is faster and forgets.
    "lock_timeout": "5s",
    "statement_timeout": "60s",
    # A hub that stopped in the middle of a commit must not block the next hub.
    "idle_in_transaction_session_timeout": "10s",
    "jit": "off",  # Compiling these statements takes longer than running them.
}
_TRANSIENT: Final = ("08", "25006", "40", "53", "55P03", "57", "58")
"""Prefixes of the codes that may pass: connection, read-only (a standby), conflict, resources (also the disk), locks,
intervention (also shutdown), system."""
_TROUBLES: Final = (
    TimeoutError,
    OSError,
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # Seen when a connection breaks between two statements.
)


class PostgresLine:
    """A connection for one user at a time."""

    def __init__(self, url: str, *, answer_for: float) -> None:
        self.name = _shown(url)
        self._url = url
        self._answer_for = answer_for
        self._turn = asyncio.Lock()
        self._connection: Connection | None = None
        self._schema = SCHEMA
        """In which its statements find their tables."""

    async def use(
        self,
        work: Callable[[Connection], Awaitable[_T]],
        *,
        within: float | None = None,
        one_statement: bool = False,
        schema: str = SCHEMA,
    ) -> _T:
        """Run this in one transaction; `within` allows it more time than usual. One statement is a transaction by itself:
        the server never waits for this client in the middle of it. Any failure becomes an `AdapterError`."""
        try:
            async with asyncio.timeout(within or self._answer_for), self._turn:
                return await self._run(work if one_statement else partial(self._transaction, work), schema)
        except _TROUBLES as error:
            raise _translated(error, self.name) from error

    @property
    def server_pid(self) -> int | None:
        """The server's process for this connection; None while there is no connection."""
        return None if self._connection is None else self._connection.get_server_pid()

    async def close(self) -> None:
        async with self._turn:
            self._give_up()

    async def _run(self, work: Callable[[Connection], Awaitable[_T]], schema: str) -> _T:
        try:
            if self._connection is None or self._connection.is_closed():
                async with asyncio.timeout(self._answer_for):
                    self._connection = await asyncpg.connect(
                        self._url, server_settings={**_SETTINGS, "search_path": schema}
                    )
                self._schema = schema
            elif schema != self._schema:  # Stores with a schema each share this connection.
                async with asyncio.timeout(self._answer_for):
                    await self._connection.execute(f"SET search_path TO {schema}")
                self._schema = schema
            return await work(self._connection)
        except BaseException:
            self._give_up()
            raise

    async def _transaction(self, work: Callable[[Connection], Awaitable[_T]], connection: Connection) -> _T:
        async with asyncio.timeout(self._answer_for):  # However long the work may take.
            await connection.execute("BEGIN")
        result = await work(connection)
        await connection.execute("COMMIT")
        return result

    def _give_up(self) -> None:
        """Disconnect at once, without telling the server, which may not answer."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.terminate()


async def migrate_once(
    connection: Connection, store: str, known: Sequence[Migration], schema: str = SCHEMA
) -> bool:
    """Run the next migration in the current transaction; False if there is none."""
    sql = queries("postgres")
    await connection.execute(sql["lock_migrations"])
    if not await connection.fetchval(sql["has_schema"].replace(SCHEMA, schema)):
        await connection.execute(sql["make_schema"].replace(SCHEMA, schema))
    if not await connection.fetchval(sql["has_migrations"].replace(SCHEMA, schema)):
        await connection.execute(sql["make_migrations"].replace(SCHEMA, schema))
    migration = next_migration(store, await connection.fetchval(sql["version"]), known)
    if migration is None:
        return False
    await connection.execute(migration.sql)
    await connection.execute(sql["record_migration"], migration.number, migration.name)
    return True


def _translated(error: Exception, name: str) -> LifesignsError:
    match error:
        case TimeoutError():
            return AdapterError(f"{name} did not answer in time")
        case asyncpg.PostgresError():
            code = str(getattr(error, "sqlstate", None) or "")
            return AdapterError(f"{name} refused: {error} ({code})", transient=code.startswith(_TRANSIENT))
        case asyncpg.ClientConfigurationError():
            return UsageError(f"{name} is no address of a PostgreSQL server: {error}")
        case _:
            return AdapterError(f"{name} cannot be reached: {error}")


def _shown(url: str) -> str:
    """The address for people, without secrets."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise UsageError(f"the address of the PostgreSQL server cannot be read: {error}") from None
    if parts.scheme not in ("postgres", "postgresql"):
        raise UsageError(
            f"{parts.scheme}://{host} is no address of a PostgreSQL server; it would be postgres://USER@HOST/DATABASE"
        )
    return f"the database postgres://{host}{f':{port}' if port else ''}{parts.path}"
