"""PostgresStore: a server that several hubs can reach. One connection writes, another reads, so that a long read of the
past never delays a commit, and a third one renews the row of this hub, so that neither makes it look dead.

After an interruption the hub writes the commit again; if the server had stored it, it is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from asyncpg import DivisionByZeroError

from lifesigns.adapters.store.ledger import Ledger, check_events, next_ledger
from lifesigns.adapters.store.postgres_commit import commit_statement
from lifesigns.adapters.store.postgres_line import SCHEMA, Connection, PostgresLine, migrate_once
from lifesigns.adapters.store.rows import Row, hub_of
from lifesigns.adapters.store.slot_renewals import SlotRenewals
from lifesigns.adapters.store.sql import migrations
from lifesigns.adapters.store.sql_store import BELIEFS_AT_ONCE, Batch, Script, ScriptRun, SqlStore, Statement
from lifesigns.adapters.store.values import escaped
from lifesigns.errors import AdapterError
from lifesigns.ports import Commit, HubRow, StoredState, StoredToken
from lifesigns.ports.slots import SlotSummary
from lifesigns.ports.store import BeliefMark

ANSWER_FOR: Final = 10.0
"""Seconds for one transaction, with connecting: enough for the largest commit on a busy server."""
BESIDE_FOR: Final = 2.0
"""Seconds to renew the row of this hub: others take over when it has not changed for six."""
LOAD_FOR: Final = 60.0
"""Seconds to migrate and to read all beliefs."""
STREAM_FOR: Final = 600.0
"""Seconds to pass on all beliefs, with the time that whoever takes them needs."""
BLOCKED_FOR: Final = 2.0
"""Seconds that a hub which takes over waits for a transaction of another one. The other one is gone, or has stopped: it
had more than the time of a usual commit to end its transaction."""

_T = TypeVar("_T")


class PostgresStore(SqlStore):
    """Keeps everything in the schema `lifesigns` of a PostgreSQL database."""

    schema = SCHEMA

    def __init__(self, url: str, *, answer_for: float = ANSWER_FOR) -> None:
        self._writing = self._making_on = PostgresLine(url, answer_for=answer_for)
        self._reading = PostgresLine(url, answer_for=answer_for)
        self._copying = self._reading
        """For what a hub reads to take over."""
        self._beside = PostgresLine(url, answer_for=BESIDE_FOR)
        super().__init__(self._writing.name, "postgres")
        self._url = url
        self._copying_slots = PostgresLine(url, answer_for=answer_for)
        self._has_summaries = False
        self.renewals = SlotRenewals(self._sql, slot_schema, self._fetch_beside)
        """Of the stores of slots."""
        self._making = asyncio.Lock()
        self._made = False

    @property
    def shared(self) -> bool:
        """A server can be reached from anywhere."""
        return True

    async def identity(self) -> str:
        """When it was made, to the microsecond."""
        ((made_at,),) = await self._read(self._sql["made_at"])
        return f"{made_at:.6f}"

    @property
    def damage(self) -> str:
        """The server checks its own pages, and reports damage with each read."""
        return ""

    async def open(self, *, epoch_min: int = 0, beliefs: bool = True) -> StoredState:
        """Create or migrate the tables, and take over, also from a hub that was frozen in the middle of a transaction."""
        self._refuse_if_closed()
        await self._make()  # Other hubs may take long to migrate: nobody ends that.
        ending = asyncio.create_task(self._end_blockers())
        try:
            return await super().open(epoch_min=epoch_min, beliefs=beliefs)
        finally:
            ending.cancel()
            await asyncio.wait([ending])

    async def commit(self, commit: Commit) -> None:
        """Store a commit: on disk when this returns, also after a power cut."""
        if commit.events:
            check_events(self._name, commit, commit.events[0].id)
        sql, values = commit_statement(commit, self._epoch)
        try:
            await self._use(
                self._writing, lambda connection: _fetch(connection, sql, values), one_statement=True
            )
        except AdapterError as error:
            if not isinstance(error.__cause__, DivisionByZeroError):
                raise
            ((epoch, number, event),) = await self._read(self._sql["ledger_seen"])
            if next_ledger(self._name, Ledger(epoch, number, event), self._epoch, commit) is not None:
                raise

    async def _end_blockers(self) -> None:
        """End the transactions that this hub waits for. The server would wait for ever for a client that was frozen while
        one of its statements was prepared: to the server, such a session is not idle."""
        while True:
            await asyncio.sleep(BLOCKED_FOR)
            if (pid := self._writing.server_pid) is None:
                continue
            with suppress(AdapterError):  # Perhaps they are not ours to end; then they are waited for.
                await self._write_beside(self._change("end_blockers", (pid,)))

    def of_slot(self, slot: int) -> SlotStore:
        """The store of one slot of agents, which has the tokens of this one. Close it before this one."""
        return SlotStore(self, self._url, slot)

    async def exchange(self, own: Mapping[int, bytes]) -> Sequence[SlotSummary]:
        """What the hubs of the slots say of their parts of the fleet. Implements `lifesigns.ports.slots.SlotSummaries`."""
        if not self._has_summaries:
            await self._write(self._make_summaries())
            self._has_summaries = True
        sql, values = self._sql["keep_slot_summaries"], ([*own], [*own.values()])
        # What waits for longer is older than those who read it take it to be: then it is said anew.
        rows = await self._use(
            self._writing,
            lambda connection: _fetch(connection, sql, values),
            within=BESIDE_FOR,
            one_statement=True,
        )
        return [SlotSummary(*row) for row in rows]

    def _make_summaries(self) -> Script[None]:
        yield Statement(self._sql["lock_migrations"])  # Two hubs that make a table at once fail.
        yield Statement(self._sql["make_slot_summaries"])

    async def _disconnect(self) -> None:
        await self._beside.close()
        await self._copying_slots.close()
        await self._reading.close()
        await self._writing.close()

    def _renewal(self, values: Row) -> Script[tuple[int, list[HubRow]]]:
        rows = yield Statement(self._sql["renew_and_list_hubs"], values)
        return rows[0][0], [hub_of(row) for row in rows]

    # Between us and the server.

    async def _write(self, script: Script[_T], *, loads: bool = False) -> _T:
        return await self._use(self._writing, partial(_run, script), within=LOAD_FOR if loads else None)

    async def _write_beside(self, script: Script[_T]) -> _T:
        return await self._use(self._beside, partial(_run, script), one_statement=True)

    async def _fetch_beside(self, sql: str, values: Row) -> Sequence[Row]:
        self._refuse_if_closed()
        return await self._beside.use(lambda connection: _fetch(connection, sql, values), one_statement=True)

    async def _read(self, sql: str, values: Row = ()) -> Sequence[Row]:
        return await self._use(
            self._reading, lambda connection: _fetch(connection, sql, values), one_statement=True
        )

    async def _stream(self, sql: str, values: Row, take: Callable[[Sequence[Row]], Awaitable[None]]) -> None:
        async def pass_on(connection: Connection) -> None:
            cursor = await connection.cursor(sql, *values)
            while rows := await cursor.fetch(BELIEFS_AT_ONCE):
                await take([tuple(row) for row in rows])

        await self._use(self._copying, pass_on, within=STREAM_FOR)

    async def _use(
        self,
        line: PostgresLine,
        work: Callable[[Connection], Awaitable[_T]],
        *,
        within: float | None = None,
        one_statement: bool = False,
    ) -> _T:
        self._refuse_if_closed()
        await self._make()
        return await line.use(work, within=within, one_statement=one_statement, schema=self.schema)

    async def _make(self) -> None:
        if self._made:
            return
        async with self._making:
            while not self._made:
                self._made = not await self._making_on.use(
                    lambda connection: migrate_once(
                        connection, self._name, migrations("postgres"), self.schema
                    ),
                    within=LOAD_FOR,
                    schema=self.schema,
                )


def slot_schema(slot: int) -> str:
    """The schema of a slot."""
    return f"{SCHEMA}_slot_{slot}"


class SlotStore(PostgresStore):
    """Keeps everything of one slot of agents in a schema of its own, but for the tokens: people and agents have them for
    all slots. It writes by a connection of its own, once it takes over, and reads by that of the whole store: a server has
    connections for some hundred clients, and each hub has all slots."""

    def __init__(self, whole: PostgresStore, url: str, slot: int) -> None:
        super().__init__(url)
        self.schema = slot_schema(slot)
        self._slot = slot
        self._name = f"{self._name} (slot {slot})"
        self._whole = whole
        self._making_on, self._reading, self._beside = whole._writing, whole._reading, whole._beside
        self._copying = whole._copying_slots  # Nobody's long look at the past delays a takeover.

    async def belief_mark(self) -> BeliefMark:
        """The mark of this moment."""
        sql = self._sql["belief_mark"]
        ((server, commit, position, count),) = await self._use(
            self._copying, lambda connection: _fetch(connection, sql, ()), one_statement=True
        )
        return BeliefMark(server, commit, position, count)

    async def renew(
        self, name: str, url: str, version: str, zone: str = "", copied: int = -1
    ) -> Sequence[HubRow]:
        """Raise the beat of this hub, and see the others."""
        self._refuse_if_closed()
        await self._make()
        shared = (escaped(name), escaped(url), version, zone)
        rows = await self._whole.renewals.renew(self._slot, shared, copied)
        self._epoch_seen, self._hub = rows[0][0], name
        return [hub_of(row) for row in rows]

    async def tokens(self) -> Sequence[StoredToken]:
        """Those of the whole store."""
        return await self._whole.tokens()

    async def keep_token(self, token: StoredToken) -> None:
        """In the whole store."""
        await self._whole.keep_token(token)

    async def drop_token(self, token_id: str) -> bool:
        """In the whole store."""
        return await self._whole.drop_token(token_id)

    async def _disconnect(self) -> None:
        await self._writing.close()


async def _run(script: Script[_T], connection: Connection) -> _T:
    run = ScriptRun(script)
    while (step := run.step) is not None:
        match step:
            case Statement(sql, values):
                run.advance(await _fetch(connection, sql, values))
            case Batch(sql, many):
                columns = [list(column) for column in zip(*many, strict=True)]
                run.advance(await _fetch(connection, sql, columns))
    return run.result


async def _fetch(connection: Connection, sql: str, values: Row) -> list[Row]:
    return [tuple(row) for row in await connection.fetch(sql, *values)]
