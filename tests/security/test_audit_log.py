"""Nobody changes the record of who did what without being found out, and a change that was found is not made good.

Promises:
    1. Without the key: whoever takes seals away, or puts an older one in the place of the newest, is found by `verify`.
    2. Events that are gone from the history are found.
    3. A hub that finds a break seals nothing until a person says so; that is an entry, and holds for that break alone.
    4. A witness elsewhere gets every checkpoint, is never in the hub's way, and finds what the machine itself cannot.
    5. The key may lie apart from the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner

from lifesigns.adapters.witness.file import FileWitness
from lifesigns.adapters.witness.http import HttpWitness
from lifesigns.audit.checkpoints import witnessed
from lifesigns.audit.verifying import FaultKind
from lifesigns.cli import main
from lifesigns.core import merkle
from lifesigns.errors import AdapterError, UsageError
from lifesigns.hub.audit import acceptance, notes, witnesses
from lifesigns.hub.audit import log as audit_log
from lifesigns.hub.audit.seal_file import SealFile
from tests.adapters.executors.ground import until
from tests.hub.audited import Log, act, read, written_log
from tests.journeys.outside import Hub, serving

FORGED = b'{"id":8,"type":"AGENT_PAUSED","at":"2026-01-01T00:00:00Z","agent_id":"a","data":{"by":"bob"}}'


async def rewritten(log: Log, n: int = 7) -> None:
    """An entry is changed together with its hash."""
    await log.sql("UPDATE deeds SET entry = $1, leaf = $2 WHERE n = $3", FORGED, merkle.leaf(FORGED), n)


async def aged(log: Log) -> None:
    """All of it was an hour ago, but for its last moment: the hub wrote on meanwhile."""
    await log.sql("UPDATE deeds SET at = at - 3600 WHERE n >= 10")
    await log.sql("UPDATE events SET at = at - 3000 WHERE id BETWEEN 30 AND 40")


# --- 1. seals that are gone ------------------------------------------------------------------------------------


async def test_who_takes_the_seals_away_is_found_by_verify(tmp_path: Path) -> None:
    """Later seals and `audit.checkpoint` were deleted, an entry was changed, and `verify` said 0."""
    log = await written_log(str(tmp_path / "x.db"), tmp_path)
    await log.sql("DELETE FROM seals WHERE size > 5")
    await log.sql("DELETE FROM events")
    SealFile(tmp_path).path.unlink()
    await rewritten(log)
    found = await log.verify()
    assert not found.good
    assert any("audit.checkpoint is missing" in fault.text for fault in found.faults)


async def test_an_older_seal_in_the_place_of_the_newest_is_found_by_what_it_does_not_seal(
    tmp_path: Path,
) -> None:
    log = await written_log(str(tmp_path / "x.db"), tmp_path)
    (old,) = await log.sql("SELECT note FROM seals WHERE size = 10")
    await log.sql("DELETE FROM seals WHERE size > 10")
    SealFile(tmp_path).path.write_text(old[0])
    await aged(log)
    found = await log.verify()
    assert [fault.how for fault in found.faults if fault.n == 10] == [FaultKind.UNSEALED]
    async with log.hub() as service:
        await read(service)
        assert "entry 10 and those after it are not sealed" in service.hub.audit.trouble
    assert SealFile(tmp_path).read() == old[0]


async def test_what_a_hub_had_no_time_to_seal_is_no_fault(tmp_path: Path) -> None:
    """It was killed, and nobody started another for a day: the next one seals what was left."""
    log = await written_log(str(tmp_path / "x.db"), tmp_path)
    (old,) = await log.sql("SELECT note FROM seals WHERE size = 30")
    await log.sql("DELETE FROM seals WHERE size > 30")
    SealFile(tmp_path).path.write_text(old[0])
    assert (await log.verify()).good
    async with log.hub() as service:
        await read(service)
        assert service.hub.audit.trouble == ""
    found = await log.verify()
    assert (found.faults, found.sealed) == ([], 40)


async def test_a_seal_in_the_store_that_the_hub_would_not_sign_is_none(tmp_path: Path) -> None:
    """Somebody without the key puts the root of a changed log into the store: it does not count as sealed."""
    log = await written_log(str(tmp_path / "x.db"), tmp_path)
    (kept,) = await log.sql("SELECT note FROM seals WHERE size = 40")
    frontier = merkle.Frontier()
    for (leaf,) in await log.sql("SELECT leaf FROM deeds ORDER BY n"):
        frontier.append(leaf)
    lines = kept[0].split("\n")
    lines[-2] = lines[-2][:-8] + "AAAAAAA="
    await log.sql("UPDATE seals SET note = $1 WHERE size = 40", "\n".join(lines))
    async with log.hub() as service:
        await read(service)
        newest = service.hub.audit.newest
        assert newest is None or newest.note != "\n".join(lines)


# --- 2. the history --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["id = 20", "id BETWEEN 15 AND 25", "type = 'HUB_BUS_BACK' AND id > 5"])
async def test_events_that_are_gone_are_found(which: str, tmp_path: Path) -> None:
    """Also those that are no audited acts."""
    log = await written_log(str(tmp_path / "x.db"), tmp_path)
    await log.sql("UPDATE events SET at = at - 100000 WHERE id = 1")
    await log.sql(f"DELETE FROM events WHERE {which}")
    found = await log.verify()
    assert any("gone from the history" in fault.text for fault in found.faults)


async def test_events_that_the_hub_forgot_are_no_fault(tmp_path: Path) -> None:
    """By their moments: some of the oldest were forgotten before others."""
    log = await written_log(str(tmp_path / "x.db"), tmp_path)
    await log.sql("DELETE FROM events WHERE id < 10 OR id IN (12, 14)")
    assert (await log.verify()).good


# --- 3. a person's word ----------------------------------------------------------------------------------------


@pytest.fixture
def heeds_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "HEED_EVERY", 0.01)


@pytest.mark.usefixtures("heeds_at_once")
async def test_a_break_is_sealed_over_only_by_a_persons_word_which_is_on_record(tmp_path: Path) -> None:
    log = await written_log(str(tmp_path / "x.db"), tmp_path)
    monday = tmp_path / "monday.txt"
    monday.write_text(SealFile(tmp_path).read() or "")
    await rewritten(log)
    for _ in range(2):
        async with log.hub() as service:
            await read(service)
            assert "not those that were sealed" in service.hub.audit.trouble
    assert SealFile(tmp_path).read() == monday.read_text()
    said = CliRunner().invoke(
        main, ["audit", "accept", "--state", str(tmp_path), "--reason", "restored on purpose"]
    )
    assert said.exit_code == 0, said.output
    async with log.hub() as service:
        await until(lambda: service.hub.audit.newest)
        assert service.hub.audit.trouble == ""
        (told,) = await service.store.events(types=["AUDIT_ACCEPTED"])
        assert json.loads(told.data)["reason"] == "restored on purpose"
        assert "@" in json.loads(told.data)["by"]
    assert not (tmp_path / acceptance.FILE_NAME).exists()
    found = await log.verify(monday)
    assert [fault.how for fault in found.faults if fault.how is FaultKind.REWRITTEN] == []
    assert "restored on purpose" in found.accepted[0]


@pytest.mark.usefixtures("heeds_at_once")
async def test_what_is_changed_after_it_was_accepted_is_found_again(tmp_path: Path) -> None:
    log = await written_log(str(tmp_path / "x.db"), tmp_path)
    SealFile(tmp_path).path.unlink()
    acceptance.ask(tmp_path, "ann", "lost")
    async with log.hub() as service:
        await until(lambda: service.hub.audit.newest)
        await act(service, *range(50, 60))
    assert (await log.verify()).good
    await rewritten(log, 3)
    found = await log.verify()
    assert FaultKind.REWRITTEN in [fault.how for fault in found.faults]
    async with log.hub() as service:
        await read(service)
        assert service.hub.audit.trouble


@pytest.mark.usefixtures("heeds_at_once")
async def test_a_word_that_was_given_beforehand_is_not_kept_for_later(tmp_path: Path) -> None:
    log = await written_log(str(tmp_path / "x.db"), tmp_path)
    acceptance.ask(tmp_path, "ann", "nothing is wrong yet")
    async with log.hub() as service:
        await read(service)
        await until(lambda: not (tmp_path / acceptance.FILE_NAME).exists())
    await rewritten(log)
    async with log.hub() as service:
        await read(service)
        await asyncio.sleep(0.05)
        assert service.hub.audit.trouble


@pytest.mark.usefixtures("heeds_at_once")
async def test_a_log_with_a_hole_cannot_be_accepted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = await written_log(str(tmp_path / "x.db"), tmp_path)
    await log.sql("DELETE FROM deeds WHERE n = 7")
    async with log.hub() as service:
        await read(service)
        acceptance.ask(tmp_path, "ann", "never mind")
        await until(lambda: not (tmp_path / acceptance.FILE_NAME).exists())
        assert service.hub.audit.trouble
    assert "entry 7 is missing; put a backup back" in caplog.text


# --- 4. witnesses ----------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def bucket(status: int = 200) -> AsyncIterator[tuple[str, list[tuple[str, str]]]]:
    """A server that takes what is put there, or does not."""
    heard: list[tuple[str, str]] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = next(
            int(line.split(":")[1])
            for line in head.lower().split("\r\n")
            if line.startswith("content-length")
        )
        heard.append((head.split("\r\n")[0], (await reader.readexactly(length)).decode()))
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        writer.close()

    server = await asyncio.start_server(hear, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard


async def test_every_witness_gets_every_checkpoint_and_holds_the_hub_to_it(tmp_path: Path) -> None:
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    state.mkdir()
    log = await written_log(str(state / "x.db"), state)
    async with bucket() as (url, heard):
        kept = [
            FileWitness(elsewhere),
            HttpWitness("POST", f"{url}/hook"),
            HttpWitness("PUT", f"{url}/b/{{size}}"),
        ]
        async with log.hub(witnesses=kept) as service:
            await read(service)
            for n in (50, 51):
                await act(service, n)
                await service.hub.audit.seal(service.hub.committer, service.clock())
    assert sorted(line for line, _ in heard) == [
        *("POST /hook HTTP/1.1", "POST /hook HTTP/1.1"),
        *("PUT /b/41 HTTP/1.1", "PUT /b/42 HTTP/1.1"),
    ]
    found = witnessed(f"file:{elsewhere}")
    assert [notes.read(one.note or "").size for one in found] == [41, 42]
    assert {one.note for one in found} == {body for _, body in heard}
    # Who has everything on the machine, the key too, cannot change what is elsewhere.
    await log.sql("DELETE FROM seals")
    await rewritten(log)
    frontier = merkle.Frontier()
    for (leaf,) in await log.sql("SELECT leaf FROM deeds ORDER BY n"):
        frontier.append(leaf)
    SealFile(state).path.write_text(notes.write(42, frontier.root(), log.signer))
    await log.sql("DELETE FROM events")
    assert FaultKind.REWRITTEN not in [fault.how for fault in (await log.verify()).faults]
    (state / "witness.txt").write_text(found[-1].note or "")
    assert FaultKind.REWRITTEN in [fault.how for fault in (await log.verify(state / "witness.txt")).faults]


async def test_a_witness_that_takes_nothing_is_tried_a_few_times_and_is_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(witnesses, "RETRY_AFTER", 0.001)

    class Away:
        name, tried = "away", 0

        async def keep(self, note: str) -> None:
            self.tried += 1
            raise AdapterError("nobody answers")

        async def close(self) -> None: ...

    class Hangs(Away):
        name = "hangs"

        async def keep(self, note: str) -> None:
            self.tried += 1
            await asyncio.Event().wait()

    away, hangs = Away(), Hangs()
    monkeypatch.setattr(witnesses, "LAST_FOR", 0.1)
    log = await written_log(str(tmp_path / "x.db"), tmp_path)
    async with log.hub(witnesses=[away, hangs]) as service:
        await read(service)
        await act(service, 50)
        await service.hub.audit.seal(service.hub.committer, service.clock())
        assert service.hub.audit.newest is not None
        assert service.hub.audit.newest.size == 41
        await until(lambda: "the witness away did not take a checkpoint: nobody answers" in caplog.text)
        assert away.tried == witnesses.TRIES
    assert hangs.tried == 1


def test_a_configured_witness_and_a_key_elsewhere_are_used_by_a_hub(tmp_path: Path) -> None:
    """As a user sets it up: file, key, `verify --witness`, and the attack of whoever has store and folder."""
    key, elsewhere = tmp_path / "vault" / "hub.key", tmp_path / "other-disk.checkpoints"
    config = {"audit": {"key": str(key), "witnesses": [f"file:{elsewhere}"]}}
    with serving(tmp_path, config) as hub:
        hub.post("/api/v1/tokens", {"role": "viewer", "name": "v"})
        hub.until(
            lambda: elsewhere.is_file() and elsewhere.read_text().count("lifesigns/") >= 2, "it is witnessed"
        )
        hub.stop()
        assert key.is_file()
        assert not (hub.state / "audit.key").exists()
        assert verify(hub, "--witness", str(elsewhere)) == (0, "Verified")
        with contextlib.closing(apsw.Connection(str(hub.state / "lifesigns.db"))) as file:
            file.execute("DELETE FROM seals; DELETE FROM deeds; DELETE FROM events").fetchall()
        (hub.state / "audit.checkpoint").unlink()
        assert verify(hub)[0] == 0, "nothing on the machine says that there was a log"
        status, said = verify(hub, "--witness", str(elsewhere))
        assert (status, said) == (1, "The audit log is NOT what was written")


def verify(hub: Hub, *more: str) -> tuple[int, str]:
    done = hub.cli("audit", "verify", "--state", str(hub.state), *more, check=False)
    return done.returncode, done.stdout.partition(":")[0]


def test_a_witness_that_cannot_be_read_is_an_error_and_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        witnessed(str(tmp_path / "nowhere"))
    (tmp_path / "empty").touch()
    with pytest.raises(UsageError, match="has no checkpoint"):
        witnessed(str(tmp_path / "empty"))
