"""Whatever is done to the log in the database is found, and named: on real files and a real server, by SQL."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from lifesigns.audit.verifying import FaultKind
from lifesigns.core import merkle
from lifesigns.hub.audit import notes
from tests.hub.audited import AUDITED, Log, new_signer, written_log
from tests.servers.postgres import PostgresServer

TABLES = ("deeds", "seals", "events", "beliefs")
COLUMNS = "event_id, at, agent_id, who, leaf, entry"


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Log:
    """Written once, and copied for every test."""
    folder = tmp_path_factory.mktemp("original")
    return asyncio.run(written_log(str(folder / "lifesigns.db"), folder))


@pytest.fixture(scope="module")
def original_on_server(postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Log:
    """The same on a server; every test gets its rows anew."""

    async def write() -> Log:
        async with connected(postgres_server.url) as connection:
            await connection.execute("DROP SCHEMA IF EXISTS lifesigns, original CASCADE")
            log = await written_log(postgres_server.url, tmp_path_factory.mktemp("original"))
            await connection.execute("CREATE SCHEMA original")
            for table in TABLES:
                await connection.execute(f"CREATE TABLE original.{table} AS SELECT * FROM lifesigns.{table}")
        return log

    return asyncio.run(write())


@pytest.fixture(params=["sqlite", "postgres"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    """A log that nobody has touched yet."""
    if request.param == "sqlite":
        original: Log = request.getfixturevalue("original")
        shutil.copytree(original.state, tmp_path, dirs_exist_ok=True)
        return Log(str(tmp_path / "lifesigns.db"), tmp_path, original.signer)
    log: Log = request.getfixturevalue("original_on_server")
    asyncio.run(restored(log))
    return log


async def restored(log: Log) -> None:
    async with connected(log.url) as connection:
        for table in TABLES:
            await connection.execute(f"DELETE FROM lifesigns.{table}")
            await connection.execute(f"INSERT INTO lifesigns.{table} SELECT * FROM original.{table}")


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def test_a_log_that_nobody_touched_is_verified(log: Log) -> None:
    found = await log.verify()
    assert found.faults == []
    assert (found.entries, found.sealed, found.seals) == (AUDITED, AUDITED, 6)
    assert (await log.verify(state=False)).good


# --- what somebody may do -----------------------------------------------------------------------------


async def nothing(log: Log) -> None:
    pass


async def changed(log: Log) -> None:
    await log.sql("UPDATE deeds SET entry = $1 WHERE n = 7", await forged_entry(log, 7))


async def changed_with_its_hash(log: Log) -> None:
    entry = await forged_entry(log, 7)
    await log.sql("UPDATE deeds SET entry = $1, leaf = $2 WHERE n = 7", entry, merkle.leaf(entry))


async def changed_beside(log: Log) -> None:
    await log.sql("UPDATE deeds SET who = 'eve' WHERE n = 7")


async def changed_in_the_history(log: Log) -> None:
    await log.sql(
        "UPDATE events SET data = $1 WHERE id = (SELECT event_id FROM deeds WHERE n = 7)",
        b'{"by":"eve"}',
    )


async def removed(log: Log) -> None:
    await log.sql("DELETE FROM deeds WHERE n = 7")


async def removed_at_the_beginning(log: Log) -> None:
    await log.sql("DELETE FROM deeds WHERE n < 3")


async def removed_and_closed_up(log: Log) -> None:
    await log.sql("DELETE FROM deeds WHERE n = 7")
    await log.sql_many("UPDATE deeds SET n = $1 WHERE n = $2", [(n - 1, n) for n in range(8, AUDITED)])


async def emptied(log: Log) -> None:
    await log.sql("UPDATE deeds SET entry = NULL WHERE n = 7")


async def swapped(log: Log) -> None:
    rows = await log.sql(f"SELECT {COLUMNS} FROM deeds WHERE n IN (7, 8) ORDER BY n")
    for n, row in zip((8, 7), rows, strict=True):
        values = "event_id = $1, at = $2, agent_id = $3, who = $4, leaf = $5, entry = $6"
        await log.sql(f"UPDATE deeds SET {values} WHERE n = $7", *row, n)


async def truncated(log: Log) -> None:
    await log.sql("DELETE FROM deeds WHERE n >= 30")


async def truncated_with_its_seals(log: Log) -> None:
    await log.sql("DELETE FROM deeds WHERE n >= 30")
    await log.sql("DELETE FROM seals WHERE size > 30")


async def truncated_with_everything(log: Log) -> None:
    await truncated_with_its_seals(log)
    await log.sql("DELETE FROM events WHERE id > (SELECT max(event_id) FROM deeds)")


async def wiped(log: Log) -> None:
    for table in TABLES:
        await log.sql(f"DELETE FROM {table}")


async def replaced(log: Log) -> None:
    """All of it written anew, in itself without a fault."""
    entries = [(n, forged_as(entry)) for n, entry in await log.sql("SELECT n, entry FROM deeds")]
    await log.sql_many(
        "UPDATE deeds SET entry = $1, leaf = $2, who = 'eve' WHERE n = $3",
        [(entry, merkle.leaf(entry), n) for n, entry in entries],
    )
    await log.sql("DELETE FROM seals")
    await log.sql("DELETE FROM events")


async def forged(log: Log) -> None:
    ((note,),) = await log.sql("SELECT note FROM seals WHERE size = 20")
    await log.sql("UPDATE seals SET note = $1 WHERE size = 20", note[:-12] + "AAAAAAAAAA=\n")


async def forged_text(log: Log) -> None:
    ((note,),) = await log.sql("SELECT note FROM seals WHERE size = 20")
    await log.sql("UPDATE seals SET note = $1 WHERE size = 20", note.replace("\n20\n", "\n19\n"))


async def sealed_by_another(log: Log) -> None:
    rows = await log.sql("SELECT size, note FROM seals")
    stranger = new_signer()
    for size, note in rows:
        anew = notes.write(size, notes.read(note).root, stranger)
        await log.sql("UPDATE seals SET note = $1 WHERE size = $2", anew, size)


async def scribbled(log: Log) -> None:
    await log.sql("UPDATE seals SET note = 'hello' WHERE size = 20")


async def forged_entry(log: Log, n: int) -> bytes:
    ((entry,),) = await log.sql("SELECT entry FROM deeds WHERE n = $1", n)
    return forged_as(entry)


def forged_as(entry: bytes) -> bytes:
    return bytes(entry).replace(b"ann (k1)", b"eve")


Deed = Callable[[Log], Coroutine[Any, Any, None]]


@pytest.mark.parametrize(
    ("tamper", "how", "n"),
    [
        (changed, FaultKind.CHANGED, 7),
        (changed_with_its_hash, FaultKind.REWRITTEN, 0),
        (changed_beside, FaultKind.CHANGED, 7),
        (changed_in_the_history, FaultKind.CHANGED, 7),
        (removed, FaultKind.REMOVED, 7),
        (removed_at_the_beginning, FaultKind.REMOVED, 0),
        (removed_and_closed_up, FaultKind.REWRITTEN, 0),
        (emptied, FaultKind.REMOVED, 7),
        (swapped, FaultKind.SWAPPED, 8),
        (truncated, FaultKind.TRUNCATED, 30),
        (truncated_with_its_seals, FaultKind.TRUNCATED, 30),
        (truncated_with_everything, FaultKind.TRUNCATED, 30),
        (wiped, FaultKind.TRUNCATED, 0),
        (replaced, FaultKind.REWRITTEN, 0),
        (forged, FaultKind.FORGED, None),
        (forged_text, FaultKind.FORGED, None),
        (sealed_by_another, FaultKind.WRONG_KEY, None),
        (scribbled, FaultKind.UNREADABLE, None),
    ],
)
async def test_what_was_done_to_the_log_is_found_and_named(
    log: Log, tamper: Deed, how: FaultKind, n: int | None
) -> None:
    await tamper(log)
    found = await log.verify()
    assert not found.good
    assert (how, n) in [(fault.how, fault.n) for fault in found.faults]


@pytest.mark.parametrize("tamper", [changed, changed_beside, emptied, forged, scribbled])
async def test_one_fault_is_told_once(log: Log, tamper: Deed) -> None:
    await tamper(log)
    assert (await log.verify()).faults_total == 1


async def test_a_deed_that_is_cut_off_is_still_known_by_the_history(log: Log) -> None:
    """Where even the state folder and the row of the log are gone; each by its event."""
    await truncated_with_its_seals(log)
    await log.sql("DELETE FROM beliefs WHERE kind = 'audit'")
    found = await log.verify(state=False)
    assert [fault.how for fault in found.faults] == [FaultKind.REMOVED] * 10
    assert "AGENT_PAUSED" in found.faults[0].text


@pytest.mark.parametrize("tamper", [truncated_with_everything, wiped, replaced])
async def test_who_has_kept_a_checkpoint_needs_nothing_else(log: Log, tamper: Deed, tmp_path: Path) -> None:
    ((note,),) = await log.sql("SELECT note FROM seals WHERE size = 40")
    kept = tmp_path / "monday.txt"
    kept.write_text(note)
    await tamper(log)
    (fault, *_) = (await log.verify(kept, state=False)).faults
    assert str(kept) in fault.text
    assert fault.how in (FaultKind.TRUNCATED, FaultKind.REWRITTEN)


async def test_what_was_rewritten_is_bounded_by_the_seals_round_it(log: Log) -> None:
    entry = await forged_entry(log, 27)
    await log.sql(
        "UPDATE deeds SET entry = $1, leaf = $2, who = 'eve' WHERE n = 27", entry, merkle.leaf(entry)
    )
    await log.sql("DELETE FROM events")
    fault, gone = (await log.verify()).faults
    assert (fault.how, fault.n) == (FaultKind.REWRITTEN, 20)
    assert "first 30 entries" in fault.text
    assert "gone from the history" in gone.text


async def test_another_key_vouches_for_nothing(log: Log) -> None:
    found = await log.verify(key=new_signer().public)
    assert {fault.how for fault in found.faults} == {FaultKind.WRONG_KEY, FaultKind.UNSEALED}
    assert found.faults_total == 7
    assert found.sealed == 0


async def test_a_log_without_any_seal_is_not_verified(log: Log) -> None:
    await log.sql("DELETE FROM seals")
    await log.sql("DELETE FROM beliefs WHERE kind = 'audit'")
    (fault,) = (await log.verify(state=False)).faults
    assert fault.how is FaultKind.UNSEALED
