"""Nobody changes the record of who did what without being found out, and a change that was found is not made good.

Promises:
    1. Without the key: whoever takes seals away, puts an older one in the place of the newest, or writes entries that no hub
       has sealed, is found by `verify`, and by the next hub.
    2. Events that are gone from the history are found; the hub forgets none that somebody else removed.
    3. A hub that finds a break seals nothing until a person says so; that is an entry, and holds for that break alone.
    4. A witness elsewhere gets every checkpoint, is never in the hub's way, gets what it missed, and finds what the machine
       itself cannot.
    5. The key may lie apart from the store.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from base64 import b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner

from lifesigns.adapters.witness.file import FileWitness
from lifesigns.adapters.witness.http import HttpWitness
from lifesigns.audit.checkpoints import witnessed
from lifesigns.audit.keys import signer_in
from lifesigns.audit.verifying import Fault, FaultKind
from lifesigns.cli import main
from lifesigns.core import merkle
from lifesigns.errors import UsageError
from lifesigns.hub.audit import acceptance, notes, witnesses
from lifesigns.hub.audit import log as audit_log
from lifesigns.hub.audit.seal_file import SealFile
from lifesigns.hub.audit.state import AuditState, decode_state, encode_state
from lifesigns.hub.service import Service
from tests.adapters.executors.ground import until
from tests.hub.audited import Log, act, new_signer, read, written_log
from tests.journeys.outside import Hub, serving

DAY = 86400.0

FORGED = b'{"id":8,"type":"AGENT_PAUSED","at":"2026-01-01T00:00:00Z","agent_id":"a","data":{"by":"bob"}}'


async def rewritten(log: Log, n: int = 7) -> None:
    """An entry is changed together with its hash: somebody else did it."""
    ((entry,),) = await log.sql("SELECT entry FROM deeds WHERE n = $1", n)
    other = entry.replace(b"ann (k1)", b"eve (k9)")
    assert other != entry
    await log.sql(
        "UPDATE deeds SET entry = $1, leaf = $2, who = 'eve (k9)' WHERE n = $3", other, merkle.leaf(other), n
    )


def b64(value: bytes) -> str:
    return b64encode(value).decode()


async def row(log: Log) -> AuditState:
    ((value,),) = await log.sql("SELECT value FROM beliefs WHERE kind = 'audit'")
    return decode_state(value)


async def put_row(log: Log, state: AuditState) -> None:
    await log.sql("UPDATE beliefs SET value = $1 WHERE kind = 'audit'", encode_state(state))


async def frontier(log: Log) -> merkle.Frontier:
    found = merkle.Frontier()
    for (leaf,) in await log.sql("SELECT leaf FROM deeds ORDER BY n"):
        found.append(leaf)
    return found


async def set_back_to(log: Log, size: int) -> str:
    """Every checkpoint of more entries is gone, an older one stands wherever a hub puts the newest."""
    ((note,),) = await log.sql("SELECT note FROM seals WHERE size = $1", size)
    await log.sql("DELETE FROM seals WHERE size > $1", size)
    SealFile(log.state).path.write_text(note)
    state = await row(log)
    state.note = note
    await put_row(log, state)
    return str(note)


async def trouble(log: Log) -> str:
    """What the next hub says."""
    async with log.hub() as service:
        await read(service)
        return service.hub.audit.trouble


def texts(faults: list[Fault]) -> str:
    return "\n".join(fault.text for fault in faults)


@pytest.fixture(params=["sqlite", "postgres"])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    """A log of forty deeds, in each kind of store."""
    if request.param == "sqlite":
        return await written_log(str(tmp_path / "x.db"), tmp_path)
    url = request.getfixturevalue("postgres_server").url
    await Log(url, tmp_path, new_signer()).sql("DROP SCHEMA IF EXISTS lifesigns CASCADE")
    return await written_log(url, tmp_path)


# --- 1. seals that are gone ------------------------------------------------------------------------------------


async def test_who_takes_the_seals_away_is_found_by_verify_and_by_the_next_hub(log: Log) -> None:
    """Later seals and `audit.checkpoint` were deleted, an entry was changed, and `verify` said 0; the next hub sealed it."""
    await log.sql("DELETE FROM seals WHERE size > 10")
    SealFile(log.state).path.unlink()
    await rewritten(log, 27)
    await log.sql("DELETE FROM events")
    found = await log.verify()
    assert not found.good
    assert "audit.checkpoint is missing" in texts(found.faults)
    assert "not those that were sealed" in texts(found.faults)
    assert "audit.checkpoint, is missing" in await trouble(log)
    assert SealFile(log.state).read() is None
    assert await log.sql("SELECT size FROM seals WHERE size > 10") == []
    assert not (await log.verify()).good


async def test_a_checkpoint_that_is_missing_is_a_fault_even_if_nothing_else_was_done(log: Log) -> None:
    SealFile(log.state).path.unlink()
    assert [fault.how for fault in (await log.verify()).faults] == [FaultKind.UNSEALED]


async def test_an_older_seal_in_the_place_of_the_newest_is_found_by_what_it_does_not_seal(log: Log) -> None:
    """All that somebody without the key can do about seals: every place has an older one."""
    note = await set_back_to(log, 10)
    await rewritten(log, 27)
    await log.sql("DELETE FROM events")
    found = await log.verify()
    assert [fault.n for fault in found.faults if fault.how is FaultKind.UNSEALED] == [10]
    assert "entry 10 and those after it are not sealed" in await trouble(log)
    assert "entry 10 and those after it are not sealed" in await trouble(log)
    assert SealFile(log.state).read() == note


async def test_an_entry_that_no_hub_wrote_is_found_at_once(log: Log) -> None:
    await log.sql(
        "INSERT INTO deeds (n, event_id, at, agent_id, who, leaf, entry) VALUES (40, 1000, 1.0, 'a', 'bob', $1, $2)",
        merkle.leaf(FORGED),
        FORGED,
    )
    found = await log.verify()
    assert [fault.n for fault in found.faults if fault.how is FaultKind.UNSEALED] == [40]
    assert "entry 40 and those after it are not sealed" in await trouble(log)


async def test_what_a_killed_hub_has_written_is_sealed(log: Log) -> None:
    """Every entry is sealed in the commit that keeps it. So a crash leaves nothing that somebody else could have written."""
    store = log.store()
    service = Service(store, state=log.state, signer=log.signer)
    await service.start()
    await read(service)
    await act(service, 50, 51)
    for task in service._tasks:
        task.cancel()
    await store.close()  # It is killed: there is no last page, and no last checkpoint.
    found = await log.verify()
    assert (found.faults, found.entries, found.sealed) == ([], 42, 42)
    assert notes.read(SealFile(log.state).read() or "").size == 40
    assert await trouble(log) == ""
    await service.stop()


async def test_a_row_that_somebody_changed_is_not_sealed_on(log: Log) -> None:
    """An entry is changed with its hash, and the row of the log, so that the next hub goes on from there: it signs nothing."""
    await rewritten(log, 27)
    state = await row(log)
    state.frontier = await frontier(log)
    await put_row(log, state)
    async with log.hub() as service:
        await act(service, 50)
        await read(service)
        assert "not those that were sealed" in service.hub.audit.trouble
        await act(service, 51)
    assert (await row(log)).note == state.note
    assert not (await log.verify()).good


async def test_a_seal_that_the_hub_would_not_sign_is_none(log: Log) -> None:
    """Somebody without the key changes an entry and writes the new root wherever a seal is."""
    await rewritten(log)
    true = notes.read(SealFile(log.state).read() or "")
    text = SealFile(log.state).path.read_text()
    state, changed = await row(log), await frontier(log)
    note = text.replace(b64(true.root), b64(changed.root()))
    state.frontier, state.note = changed, note
    await put_row(log, state)
    await log.sql("DELETE FROM seals")
    await log.sql("INSERT INTO seals (size, at, note) VALUES (40, 1.0, $1)", note)
    SealFile(log.state).path.write_text(note)
    assert FaultKind.FORGED in [fault.how for fault in (await log.verify()).faults]
    assert "is not signed with the key of this hub" in await trouble(log)


async def test_a_second_hub_with_the_same_key_finds_nothing_wrong(log: Log, tmp_path: Path) -> None:
    """Its folder is new and has no checkpoint of the log in the store: none was taken away."""
    (log.state / "audit.key").unlink(missing_ok=True)
    (log.state / "audit.pub").unlink(missing_ok=True)
    first = signer_in(log.state)
    other = tmp_path / "other"
    other.mkdir()
    (other / "audit.key").write_bytes((log.state / "audit.key").read_bytes())
    assert signer_in(other).public == first.public
    assert notes.read(SealFile(other).read() or "").size == 0


# --- 2. the history --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "which",
    ["id = 20", "id BETWEEN 15 AND 25", "type = 'HUB_BUS_BACK' AND id < 30", "id < 10", "id > 30", "id > 0"],
)
async def test_events_that_are_gone_are_found(which: str, log: Log) -> None:
    """At the beginning, in the middle, at the end; also those that are no audited acts."""
    await log.sql(f"DELETE FROM events WHERE {which}")
    found = await log.verify()
    assert "gone from the history" in texts(found.faults)


async def aged_by(log: Log, days: float, last_id: int) -> None:
    """Everything up to this event happened so many days ago. Whoever can do that has the key: the log is sealed anew."""
    await log.sql("UPDATE events SET at = at - $1 WHERE id <= $2", days * DAY, last_id)


async def test_events_that_the_hub_forgot_are_no_fault_and_the_log_says_so(log: Log) -> None:
    await aged_by(log, 40, 20)
    await aged_by(log, 40, 5)  # Moments are not in the order of ids.
    async with log.hub() as service:
        await read(service)
        await service.housekeeping.every_hour(service.clock())
        ((first,),) = await log.sql("SELECT min(id) FROM events")
        assert first == 21
        (told,) = await service.store.events(types=["HISTORY_FORGOTTEN"])
        assert json.loads(told.data)["first_event"] == 21
        await service.housekeeping.every_hour(service.clock())
        assert len(await service.store.events(types=["HISTORY_FORGOTTEN"])) == 1
    found = await log.verify()
    assert not [fault for fault in found.faults if "gone from the history" in fault.text]
    await log.sql("DELETE FROM events WHERE id < 23")
    assert "events 21 to 22 are gone from the history" in texts((await log.verify()).faults)


async def test_an_event_in_the_future_does_not_stop_the_forgetting(log: Log) -> None:
    await aged_by(log, 40, 30)
    await log.sql("UPDATE events SET at = at + $1 WHERE id = 10", 400 * DAY)
    async with log.hub() as service:
        await read(service)
        await service.housekeeping.every_hour(service.clock())
    assert await log.sql("SELECT min(id) FROM events") == [(31,)]


async def test_the_hub_does_not_forget_what_somebody_else_removed(log: Log) -> None:
    """To forget what is gone would make it good: the hub says so, and seals no more."""
    await aged_by(log, 40, 20)
    await log.sql("DELETE FROM events WHERE id BETWEEN 3 AND 5")
    async with log.hub() as service:
        await read(service)
        assert service.hub.audit.trouble == ""
        await service.housekeeping.every_hour(service.clock())
        assert service.hub.audit.trouble == "events 3 to 5 are gone from the history"
        await service.hub.committer.wait_until_stored()
        assert await service.store.events(types=["AUDIT_BROKEN"])


# --- 3. a person's word ----------------------------------------------------------------------------------------


@pytest.fixture
def heeds_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_log, "ACCEPTANCE_CHECK_EVERY", 0.01)


@pytest.mark.usefixtures("heeds_at_once")
async def test_a_break_is_sealed_over_only_by_a_persons_word_which_is_on_record(
    log: Log, tmp_path: Path
) -> None:
    monday = tmp_path / "monday.txt"
    monday.write_text(SealFile(log.state).read() or "")
    await rewritten(log)
    for _ in range(2):
        assert "not those that were sealed" in await trouble(log)
    assert SealFile(log.state).read() == monday.read_text()
    said = CliRunner().invoke(
        main, ["audit", "accept", "--state", str(log.state), "--reason", "restored on purpose"]
    )
    assert said.exit_code == 0, said.output
    async with log.hub() as service:
        await until(lambda: service.hub.audit.proves and SealFile(log.state).read() != monday.read_text())
        (told,) = await service.store.events(types=["AUDIT_ACCEPTED"])
        assert json.loads(told.data)["reason"] == "restored on purpose"
        assert "@" in json.loads(told.data)["by"]
        assert "not those that were sealed" in json.loads(told.data)["wrong"]
    assert not (log.state / acceptance.FILE_NAME).exists()
    found = await log.verify(monday)
    assert found.faults == []
    assert "restored on purpose" in found.accepted[0]
    assert await trouble(log) == ""


@pytest.mark.usefixtures("heeds_at_once")
async def test_who_changes_an_entry_alone_is_convicted_by_its_hash_until_a_person_accepts_that_change(
    log: Log,
) -> None:
    await log.sql("UPDATE deeds SET entry = $1 WHERE n = 7", FORGED)
    async with log.hub() as service:
        await read(service)
        await until(lambda: service.hub.committer.events)
        (told,) = await service.store.events(types=["AUDIT_BROKEN"])
        assert "entries 7 were changed" in json.loads(told.data)["reason"]
        assert (await log.verify()).faults[0].n == 7
        acceptance.request(log.state, "ann", "a slip")
        await until(lambda: not (log.state / acceptance.FILE_NAME).exists())
    assert not [one for one in (await log.verify()).faults if "hash" in one.text]
    async with log.hub() as service:
        await read(service)
        assert len(await service.store.events(types=["AUDIT_BROKEN"])) == 1, "it is not told again"
    await log.sql("UPDATE deeds SET entry = $1 WHERE n = 7", FORGED.replace(b"bob", b"eve"))
    assert (await log.verify()).faults[0].n == 7, "another change of the same entry is another"


@pytest.mark.usefixtures("heeds_at_once")
async def test_what_is_changed_after_it_was_accepted_is_found_again(log: Log) -> None:
    SealFile(log.state).path.unlink()
    acceptance.request(log.state, "ann", "lost")
    async with log.hub() as service:
        await until(lambda: SealFile(log.state).read())
        await act(service, *range(50, 60))
    assert (await log.verify()).good
    await rewritten(log, 3)
    found = await log.verify()
    assert FaultKind.REWRITTEN in [fault.how for fault in found.faults]
    assert await trouble(log)


@pytest.mark.usefixtures("heeds_at_once")
async def test_what_was_cut_off_and_accepted_grows_beyond_where_it_was(log: Log) -> None:
    """The old checkpoints, of more entries than there are now, are no faults; a change of what came since is one."""
    state = await row(log)
    await log.sql("DELETE FROM deeds WHERE n >= 30")
    await log.sql("DELETE FROM events WHERE id > 32")
    state.frontier = await frontier(log)
    await put_row(log, state)
    assert FaultKind.TRUNCATED in [fault.how for fault in (await log.verify()).faults]
    acceptance.request(log.state, "ann", "a backup was put back")
    async with log.hub() as service:
        await until(lambda: service.hub.audit.proves and service.hub.audit.newest)
        await act(service, *range(50, 55))
    found = await log.verify()
    assert (found.faults, found.entries) == ([], found.sealed)
    await log.sql("UPDATE deeds SET leaf = $1 WHERE n = 33", merkle.leaf(b"x"))
    assert not (await log.verify()).good


@pytest.mark.usefixtures("heeds_at_once")
async def test_a_word_that_was_given_beforehand_is_not_kept_for_later(log: Log) -> None:
    acceptance.request(log.state, "ann", "nothing is wrong yet")
    async with log.hub() as service:
        await read(service)
        await until(lambda: not (log.state / acceptance.FILE_NAME).exists())
        await service.hub.committer.wait_until_stored()
        assert await service.store.events(types=["AUDIT_ACCEPTED"]), "it is on record all the same"
    await rewritten(log)
    async with log.hub() as service:
        await read(service)
        await asyncio.sleep(0.05)
        assert service.hub.audit.trouble


@pytest.mark.usefixtures("heeds_at_once")
async def test_a_log_with_a_hole_cannot_be_accepted(log: Log, caplog: pytest.LogCaptureFixture) -> None:
    await log.sql("DELETE FROM deeds WHERE n = 7")
    async with log.hub() as service:
        await read(service)
        acceptance.request(log.state, "ann", "never mind")
        await until(lambda: not (log.state / acceptance.FILE_NAME).exists())
        assert service.hub.audit.trouble
        await act(service, 60)
    assert "entry 7 is missing, and there is nothing to seal in its place; put a backup back" in caplog.text


# --- from outside ----------------------------------------------------------------------------------------------


def verify(hub: Hub, *more: str) -> tuple[int, str]:
    done = hub.cli("audit", "verify", "--state", str(hub.state), *more, check=False)
    return done.returncode, done.stdout


def test_the_attack_is_found_told_and_ended_by_a_person(tmp_path: Path) -> None:
    """The way of somebody with the database and the folder, and of who runs the hub."""
    with serving(tmp_path) as hub:

        def alerts() -> str:
            return json.dumps(hub.get("/api/v1/alerts"))

        for n in range(5):
            hub.post("/api/v1/tokens", {"role": "viewer", "name": f"v{n}"})
        hub.stop()
        assert verify(hub)[0] == 0
        with contextlib.closing(apsw.Connection(str(hub.state / "lifesigns.db"))) as file:
            file.execute("DELETE FROM seals WHERE size > 2")
            ((entry,),) = file.execute("SELECT entry FROM deeds WHERE n = 3")
            other = entry.replace(b"viewer", b"admin")
            file.execute("UPDATE deeds SET entry = ?, leaf = ? WHERE n = 3", (other, merkle.leaf(other)))
        (hub.state / "audit.checkpoint").unlink()
        status, said = verify(hub)
        assert status == 1
        assert "audit.checkpoint is missing" in said
        for _ in range(2):
            hub.start()
            hub.until(lambda: hub.events("AUDIT_BROKEN"), "the hub tells of it")
            hub.until(lambda: "audit_broken" in alerts(), "it is an alert")
            assert "audit_broken" in hub.cli("alerts", "--json", check=False).stdout
            doctor = hub.cli("doctor", check=False)
            assert doctor.returncode != 0
            assert "audit log" in doctor.stdout
            assert "broken-audit-log" in doctor.stdout
            hub.stop()
            assert not (hub.state / "audit.checkpoint").exists(), "it was not sealed over"
            assert verify(hub)[0] == 1
        hub.start()
        hub.cli("audit", "accept", "--state", str(hub.state), "--reason", "the disk was copied by hand")
        hub.until(lambda: (hub.state / "audit.checkpoint").exists(), "it is sealed again")
        hub.until(lambda: "audit_broken" not in alerts(), "the alert is over")
        assert "audit log accepted" in hub.cli("audit").stdout
        assert "audit log" not in hub.cli("doctor", check=False).stdout
        status, said = verify(hub)
        assert status == 0, said
        assert "the disk was copied by hand" in said


# --- 4. witnesses ----------------------------------------------------------------------------------------------


class Bucket(ThreadingHTTPServer):
    """A server that keeps what is put or posted there, and gives it back; or does not."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _BucketHandler)
        self.heard: list[tuple[str, str]] = []
        self.kept: dict[str, str] = {}
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _BucketHandler(BaseHTTPRequestHandler):
    server: Bucket

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.server.status == 200:
            self.server.heard.append((f"{self.command} {self.path}", body))
            self.server.kept[self.path] = body
        self._answer(self.server.status)

    do_POST = do_PUT  # noqa: N815 -- its name is the server's

    def do_GET(self) -> None:
        found = self.server.kept.get(self.path)
        self._answer(404 if found is None else 200, found or "")

    def _answer(self, status: int, text: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 -- the server's name


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with Bucket() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


async def test_every_witness_gets_every_checkpoint_and_holds_the_hub_to_it(
    tmp_path: Path, bucket: Bucket
) -> None:
    state, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    state.mkdir()
    log = await written_log(str(state / "x.db"), state)
    kept = [
        FileWitness(elsewhere),
        HttpWitness("POST", f"{bucket.url}/hook"),
        HttpWitness("PUT", f"{bucket.url}/b/{{size}}"),
    ]
    async with log.hub(witnesses=kept) as service:
        await read(service)
        for n in (50, 51):
            await act(service, n)
            await service.hub.audit.seal(service.hub.committer, service.clock())
        await until(lambda: len(bucket.heard) >= 6)
    assert sorted(line for line, _ in bucket.heard) == [
        *["POST /hook"] * 3,
        *("PUT /b/40", "PUT /b/41", "PUT /b/42"),
    ]
    found = witnessed(f"file:{elsewhere}")
    assert [notes.read(one.note or "").size for one in found] == [40, 41, 42]
    assert {one.note for one in found} == {body for _, body in bucket.heard}
    # Who has everything on the machine, the key too, cannot change what is elsewhere.
    await rewritten(log)
    changed = await frontier(log)
    note = notes.write(42, changed.root(), log.signer)
    await log.sql("DELETE FROM seals")
    await put_row(log, AuditState(changed, note))
    SealFile(state).path.write_text(note)
    assert FaultKind.REWRITTEN not in [fault.how for fault in (await log.verify()).faults]
    for place in (f"file:{elsewhere}", f"{bucket.url}/hook", f"{bucket.url}/b/41"):
        (tmp_path / "kept").write_text(witnessed(place)[-1].note or "")
        faults = (await log.verify(tmp_path / "kept")).faults
        assert FaultKind.REWRITTEN in [fault.how for fault in faults], place


async def test_a_witness_that_is_away_is_in_nobodys_way_and_gets_what_it_missed(
    tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a restart of the hub, and also a witness that refuses for good: somebody may mend that."""
    monkeypatch.setattr(witnesses, "RETRY_AFTER", 0.01)
    log = await written_log(str(tmp_path / "x.db"), tmp_path)

    def there() -> HttpWitness:
        return HttpWitness("PUT", f"{bucket.url}/b/{{size}}")

    async with log.hub(witnesses=[there()]) as service:
        await read(service)
        await until(lambda: "/b/40" in bucket.kept)
        bucket.status = 403
        for n in (50, 51):
            await act(service, n)
            await service.hub.audit.seal(service.hub.committer, service.clock())
        assert service.hub.audit.newest is not None
        assert service.hub.audit.newest.size == 42, "the hub waits for nobody"
        await until(lambda: service.witnesses._all[0].why)
        assert service.witnesses.why_behind(service.clock()) == ""
        later = service.clock() + witnesses.BEHIND_AFTER
        assert "answered 403" in service.witnesses.why_behind(later)
    assert list(bucket.kept) == ["/b/40"]
    async with log.hub(witnesses=[there()]) as service:
        await read(service)
        await act(service, 52)
        await service.hub.audit.seal(service.hub.committer, service.clock())
        bucket.status = 200
        await until(lambda: "/b/43" in bucket.kept)
        assert service.witnesses.why_behind(service.clock() + 1e6) == ""
    assert list(bucket.kept) == ["/b/40", "/b/41", "/b/42", "/b/43"]


async def test_a_witness_that_hangs_does_not_keep_the_hub_from_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witnesses, "LAST_FOR", 0.1)
    monkeypatch.setattr(witnesses, "SEND_FOR", 0.05)
    monkeypatch.setattr(witnesses, "RETRY_AFTER", 0.01)
    hangs, ends = tmp_path / "hangs", threading.Event()
    disk = FileWitness(hangs)
    tried: list[str] = []

    def add(note: str) -> None:
        tried.append(note)
        ends.wait(30)

    monkeypatch.setattr(disk, "_add", add)
    log = await written_log(str(tmp_path / "x.db"), tmp_path)
    async with asyncio.timeout(10):
        async with log.hub(witnesses=[disk]) as service:
            await read(service)
            await until(lambda: "the disk does not answer" in service.witnesses._all[0].why)
            await act(service, 50)
            await service.hub.audit.seal(service.hub.committer, service.clock())
    assert len(tried) == 1, "one thread hangs, however often it is tried"
    ends.set()


def test_a_witness_that_cannot_be_read_is_an_error_and_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        witnessed(str(tmp_path / "nowhere"))
    (tmp_path / "empty").touch()
    with pytest.raises(UsageError, match="has no checkpoint"):
        witnessed(str(tmp_path / "empty"))
    with pytest.raises(UsageError, match="does not answer"):
        witnessed("http://127.0.0.1:9/nowhere")


# --- 5. the key elsewhere, all of it configured ----------------------------------------------------------------


def test_a_configured_witness_and_a_key_elsewhere_are_used_by_a_hub(tmp_path: Path) -> None:
    """As a user sets it up: file, key, `verify --witness`, and the attack of whoever has store and folder."""
    key, elsewhere = tmp_path / "vault" / "hub.key", tmp_path / "other-disk.checkpoints"
    config = {"audit": {"key": str(key), "witnesses": [f"file:{elsewhere}"]}}
    with serving(tmp_path, config) as hub:
        hub.post("/api/v1/tokens", {"role": "viewer", "name": "v"})
        hub.until(lambda: elsewhere.is_file() and elsewhere.stat().st_size, "it is witnessed")
        doctor = hub.cli("doctor", check=False).stdout
        assert f"{key}, apart from the state folder" in doctor.replace("\n", "")
        hub.stop()
        assert key.is_file()
        assert not (hub.state / "audit.key").exists()
        assert verify(hub, "--witness", str(elsewhere))[0] == 0
        with contextlib.closing(apsw.Connection(str(hub.state / "lifesigns.db"))) as file:
            for table in ("seals", "deeds", "events", "beliefs"):
                file.execute(f"DELETE FROM {table}")
        (hub.state / "audit.checkpoint").unlink()
        assert verify(hub)[0] == 0, "nothing on the machine says that there was a log"
        status, said = verify(hub, "--witness", str(elsewhere))
        assert status == 1
        assert "truncated: the end is missing: the log has 0 entries" in said


def test_a_key_that_is_not_where_it_should_be_is_not_made_anew(tmp_path: Path) -> None:
    """A disk that is not mounted: a new key would seal a log that nobody believes."""
    state, key = tmp_path / "state", tmp_path / "vault" / "hub.key"
    first = signer_in(state, key)
    assert signer_in(state, key).public == first.public
    key.unlink()
    with pytest.raises(UsageError, match=r"audit\.key: there is no .*hub\.key"):
        signer_in(state, key)
    assert not key.exists()
