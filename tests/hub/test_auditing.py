"""The audit log of a running hub: audited acts go with their events, seals with audited acts, and nothing is sealed that was changed."""

from __future__ import annotations

import asyncio
import json
import logging
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from lifesigns.adapters.signing.ed25519 import Ed25519Signer, verifies
from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.audit.keys import public_key, public_key_in, signer_in
from lifesigns.core import effects as e
from lifesigns.core import merkle
from lifesigns.core.effects import Pause
from lifesigns.core.health import Health
from lifesigns.core.signals import BeatReceived, NudgeRequested
from lifesigns.errors import UsageError, WireError
from lifesigns.events import event_of, message
from lifesigns.hub.audit import acceptance, log, notes, records
from lifesigns.hub.audit.proofs import Tiles
from lifesigns.hub.audit.retention import AuditRetention
from lifesigns.hub.audit.seal_file import SealFile
from lifesigns.hub.audit.state import AuditState, encode_state
from lifesigns.hub.housekeeping import Retention
from lifesigns.hub.service import Service
from lifesigns.ports import AuditRecord, Event, Store
from tests.hub.audited import Log, act, new_signer, read, written_log
from tests.hub.faulty_store import FaultyStore
from tests.hub.ground import Ground

DAY = 86400.0


# --- what is an audited act -----------------------------------------------------------------------------------


@pytest.mark.parametrize("to", list(Health))
def test_to_give_an_agent_up_is_a_deed_and_to_find_it_unwell_is_none(to: Health) -> None:
    flip = event_of(1, e.Flip(1.0, "a", Health.HEALTHY, to, "because"))
    assert records.is_audited(flip) == (to in (Health.DISCONNECTED, Health.TERMINATED))


def test_whatever_names_somebody_is_a_deed() -> None:
    assert records.is_audited(Event(1, 1.0, "NEW_KIND", "", b'{"by":"ann (k1)","what":"x"}'))
    assert not records.is_audited(Event(1, 1.0, "NEW_KIND", "", b'{"what":"x"}'))
    assert not records.is_audited(
        Event(1, 1.0, "NEW_KIND", "", b'{"by":"","what":"x"}'.replace(b'"by":"",', b""))
    )
    assert not records.is_audited(Event(1, 1.0, "NEW_KIND", "", rb'{"text":"a \"by\":\"b\" in a text"}'))


def test_every_intervention_is_a_deed_of_who_wanted_it() -> None:
    for rung in e.Rung:
        for stage in e.Stage:
            event = event_of(9, e.Intervention(1.0, "a", "o", rung, stage, 1, by="ann (k1)"))
            assert records.is_audited(event)
            assert records.audit_record(3, event).who == "ann (k1)"


def test_an_entry_is_the_event_as_it_was_told() -> None:
    event = event_of(9, e.ClaimChanged(1.5, "t", "a", e.ClaimStage.RELEASED, 1, "stale"))
    entry = records.audit_record(3, event)
    assert (entry.n, entry.event_id, entry.who, entry.entry) == (3, 9, "", message(event))
    assert entry.leaf == merkle.leaf(message(event))


# --- on the pages -------------------------------------------------------------------------------------


async def test_a_deed_is_on_the_page_of_its_event() -> None:
    store = FaultyStore()
    async with Ground(lambda: store) as ground:
        ground.hub.hear([BeatReceived("a", 1, "one")])
        await ground.hub.store_reports([NudgeRequested(agent_id="a", by="ann (k1)", message="hello")])
        pages = [page for page in store.pages if page.audit_records]
        (entry,) = [entry for page in pages for entry in page.audit_records]
        assert entry.event_id in [event.id for event in pages[0].events]
        assert (entry.n, entry.agent_id, entry.who) == (0, "a", "ann (k1)")
        assert [belief.kind for belief in pages[0].beliefs].count("audit") == 1


@pytest.mark.parametrize("cleanly", [True, False])
async def test_the_next_hub_goes_on_with_the_same_log(cleanly: bool) -> None:
    """Whatever the last one did in its last moment: the tree of what is kept is the tree it goes on with."""
    name = f"goes on {cleanly}"
    ground = Ground(lambda: MemoryStore(name))
    await ground.start()
    for _ in range(7):
        ground.hub.announce(Pause(1.0, "", "ann", None))
        await ground.hub.committer.wait_until_stored()
        await ground.restart(cleanly=cleanly)
    await ground.hub.stop()
    kept = await MemoryStore(name).audit_records()
    assert [entry.n for entry in kept] == list(range(7))
    frontier = merkle.Frontier()
    for entry in kept:
        frontier.append(entry.leaf)
    assert ground.hub.audit.state.frontier == frontier


async def test_entries_have_the_numbers_under_which_events_were_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where events had no place any more, the others moved up."""
    monkeypatch.setattr("lifesigns.hub.committer.EVENTS_MAX", 3)
    store = FaultyStore()
    async with Ground(lambda: store) as ground:
        ground.hub.announce(Pause(1.0, "", "ann", None))
        await ground.until(lambda: store.pages)
        store.fail()
        ground.hub.announce(Pause(1.0, "", "ann", None))
        await ground.until(lambda: ground.hub.committer.trouble)
        for _ in range(7):
            ground.hub.announce(Pause(1.0, "", "ann", None))
        store.heal()
        await ground.until(lambda: len(store.pages) == 3)
        kept, events = await store.audit_records(), await store.events()
        assert [entry.event_id for entry in kept] == [event.id for event in events] == [1, 2, 3, 4, 5]
        assert [entry.entry for entry in kept] == [message(event) for event in events]


# --- sealing ------------------------------------------------------------------------------------------


async def test_what_is_kept_is_sealed_at_once_then_after_a_while_and_at_the_end(tmp_path: Path) -> None:
    log_ = Log(str(tmp_path / "x.db"), tmp_path, new_signer())
    async with log_.hub() as service:
        audit = service.hub.audit
        await act(service, 1)
        await until(lambda: audit.newest is not None)
        assert audit.newest is not None
        assert audit.newest.size == 1
        await act(service, 2, 3)
        assert audit.newest.size == 1
    note = notes.read(SealFile(tmp_path).read() or "")
    assert note.size == 3
    assert note.trust([log_.signer.public], verifies) is notes.Trust.GOOD
    found = await log_.verify()
    assert (found.good, found.sealed) == (True, 3)


async def test_nothing_is_sealed_before_it_is_kept(tmp_path: Path) -> None:
    """A seal over an entry that the store never took would make a liar of an honest log."""
    store = FaultyStore()
    service = Service(store, state=tmp_path, signer=new_signer())
    await service.start()
    await read(service)
    await act(service, 1)
    await until(lambda: service.hub.audit.newest is not None)
    store.hold()
    service.hub.announce(Pause(1.0, "", "ann", None))
    await store.arrived.wait()
    assert service.hub.audit.last_seal(2.0) is None
    store.go_on()
    await service.hub.committer.wait_until_stored()
    seal = service.hub.audit.last_seal(3.0)
    assert seal is not None
    assert seal.size == 2
    await service.stop()


async def test_a_disk_that_takes_no_seal_is_logged_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    state = tmp_path / "state"
    service = Service(MemoryStore(), signer=new_signer(), state=state)
    await service.start()
    await read(service)
    (state / "audit.checkpoint").unlink()
    (state / "audit.checkpoint").mkdir()
    await act(service, 1)
    await until(
        lambda: "audit_seal_not_written" in [getattr(record, "action", "") for record in caplog.records]
    )
    await service.stop()
    assert service.hub.audit.newest is not None


# --- a hub that finds its log changed -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DELETE FROM deeds WHERE n >= 30", "missing"),
        ("DELETE FROM deeds WHERE n = 7", "missing"),
        ("UPDATE deeds SET leaf = zeroblob(32) WHERE n = 7", "not those that were sealed"),
        (
            "DELETE FROM beliefs WHERE kind = 'audit'; DELETE FROM deeds WHERE n >= 30",
            "30 entries, and 40 were",
        ),
    ],
)
async def test_a_hub_does_not_seal_what_was_changed(
    statement: str, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It tells people, and leaves the old seal where it is: a new one would make the change good."""
    caplog.set_level(logging.CRITICAL, "lifesigns.hub")
    log_ = await written_log(str(tmp_path / "x.db"), tmp_path)
    sealed = SealFile(tmp_path).read()
    await log_.sql(statement)
    async with log_.hub() as service:
        await read(service)
        assert reason in service.hub.audit.trouble
        await service.hub.committer.wait_until_stored()
        (told,) = await service.store.events(types=["AUDIT_BROKEN"])
        assert reason in json.loads(told.data)["reason"]
    assert SealFile(tmp_path).read() == sealed
    assert [getattr(record, "action", "") for record in caplog.records] == ["audit_broken"]
    assert not (await log_.verify()).good


@pytest.mark.parametrize("value", [None, b"another", b"\xc1"])
async def test_a_hub_that_was_robbed_of_its_own_memory_of_the_log_goes_on_when_a_person_wants_it(
    value: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is whole and the seals hold: it is told, the mark is in the log, and the log goes on."""
    monkeypatch.setattr(log, "ACCEPTANCE_CHECK_EVERY", 0.01)
    log_ = await written_log(str(tmp_path / "x.db"), tmp_path)
    if value is None:
        await log_.sql("DELETE FROM beliefs WHERE kind = 'audit'")
    elif value == b"\xc1":
        await log_.sql("UPDATE beliefs SET value = $1 WHERE kind = 'audit'", value)
    else:
        other = AuditState(merkle.Frontier())
        for n in range(40):
            other.frontier.append(bytes([n]) * 32)
        await log_.sql("UPDATE beliefs SET value = $1 WHERE kind = 'audit'", encode_state(other))
    async with log_.hub() as service:
        await act(service, 40, 41)
        await read(service)
        assert "its last entries are not those that the last hub wrote" in service.hub.audit.trouble
        acceptance.request(tmp_path, "ann@home", "a migration went wrong")
        await until(lambda: service.hub.audit.newest and service.hub.audit.newest.size == 44)
        await check_proofs(service, 44)
    async with log_.hub() as service:
        await read(service)
        assert service.hub.audit.trouble == ""
        assert len(await service.store.events(types=["AUDIT_BROKEN"])) == 1
    found = await log_.verify()
    assert (found.faults, found.entries, found.sealed) == ([], 44, 44)


async def test_a_seal_in_the_store_that_nobody_can_read_is_not_in_the_way(tmp_path: Path) -> None:
    log_ = await written_log(str(tmp_path / "x.db"), tmp_path)
    await log_.sql("UPDATE seals SET note = 'hello' WHERE size = 40")
    async with log_.hub() as service:
        await read(service)
        assert service.hub.audit.trouble == ""
    assert (await log_.verify()).good  # It was sealed anew.


async def test_a_seal_in_the_folder_that_nobody_can_read_is(tmp_path: Path) -> None:
    log_ = await written_log(str(tmp_path / "x.db"), tmp_path)
    SealFile(tmp_path).path.write_text("hello")
    async with log_.hub() as service:
        await read(service)
        assert "cannot be read" in service.hub.audit.trouble


async def test_who_takes_the_old_seal_away_gets_no_other(tmp_path: Path) -> None:
    log_ = await written_log(str(tmp_path / "x.db"), tmp_path)
    SealFile(tmp_path).path.unlink()
    for _ in range(2):
        async with log_.hub() as service:
            await read(service)
            assert "its newest checkpoint" in service.hub.audit.trouble
    assert SealFile(tmp_path).read() is None


async def test_an_empty_log_is_sealed_so_that_a_missing_seal_says_something(tmp_path: Path) -> None:
    log_ = Log(str(tmp_path / "x.db"), tmp_path, new_signer())
    async with log_.hub() as service:
        await read(service)
        assert notes.read(SealFile(tmp_path).read() or "").size == 0
    assert (await log_.verify()).good


async def test_what_comes_while_the_log_is_read_is_not_mistaken(tmp_path: Path) -> None:
    log_ = await written_log(str(tmp_path / "x.db"), tmp_path)
    async with log_.hub() as service:
        await act(service, 100, 101)
        await read(service)
        assert service.hub.audit.trouble == ""
        await service.hub.audit.seal(service.hub.committer, service.clock())
        newest = service.hub.audit.newest
        assert newest is not None
        assert newest.size == 42
        await check_proofs(service, 42)
    assert (await log_.verify()).good


# --- retiring -----------------------------------------------------------------------------------------


def retention(service: Service, store: Store | None = None) -> AuditRetention:
    hub = service.hub
    return AuditRetention(hub.audit, store or service.store, hub.committer, hub.announce)


async def test_entries_are_retired_by_policy_and_the_log_still_holds(tmp_path: Path) -> None:
    """What was retired is told from what was removed: that it was retired is an audited act itself."""
    log_ = await written_log(str(tmp_path / "x.db"), tmp_path)
    ((at,),) = await log_.sql("SELECT at FROM deeds WHERE n = 25")
    async with log_.hub() as service:
        await read(service)
        await retention(service).retire(at + DAY, DAY)
        await retention(service).retire(at + 2 * DAY - 1, DAY)  # Not again on the same day.
        kept = await service.store.audit_records()
        assert [entry.n for entry in kept if entry.entry is None] == list(range(25))
        told = [records.read(entry.entry) for entry in kept if entry.entry is not None]
        assert (told[-1].type, told[-1].data["before"]) == ("AUDIT_RETIRED", 25)
        assert len(kept) == 41
    found = await log_.verify()
    assert (found.faults, found.retired, found.entries) == ([], 25, 41)
    await log_.sql("UPDATE deeds SET entry = NULL WHERE n = 25")
    (fault,) = (await log_.verify()).faults
    assert (fault.how, fault.n) == ("removed", 25)


async def test_retiring_goes_on_after_a_crash_in_the_middle_of_it(tmp_path: Path) -> None:
    log_ = await written_log(str(tmp_path / "x.db"), tmp_path)
    async with log_.hub() as service:
        await read(service)
        now = service.clock()
        with pytest.raises(RuntimeError):
            await retention(service, Unretiring()).retire(now + 2 * DAY, DAY)
    async with log_.hub() as service:
        await read(service)
        await retention(service).retire(now + 2 * DAY, DAY)
        kept = await service.store.audit_records()
        assert [entry.n for entry in kept if entry.entry is not None] == [40]
    found = await log_.verify()
    assert (found.faults, found.retired) == ([], 40)


class Unretiring(MemoryStore):
    """All entries are old, and it crashes when they are to be dropped."""

    async def audit_records(self, *, after: int = -1, **_: Any) -> Sequence[AuditRecord]:
        return [AuditRecord(n, n, 0.0, "", "", b"", None) for n in range(after + 1, 40)]

    async def retire(self, first: int, before: int) -> int:
        raise RuntimeError


async def test_the_service_retires_what_the_policy_says() -> None:
    service = Service(MemoryStore(), retention=Retention(audit_for=10 * DAY))
    await service.start()
    await read(service)
    await act(service, 1, 2)
    await service.housekeeping.every_hour(service.clock() + 9 * DAY)
    assert all(entry.entry is not None for entry in await service.store.audit_records())
    await service.housekeeping.every_hour(service.clock() + 11 * DAY)
    assert [entry.entry is None for entry in await service.store.audit_records()] == [True, True, False]
    await service.stop()


# --- proofs -------------------------------------------------------------------------------------------


async def test_proofs_over_tiles_are_the_proofs_over_all_leaves() -> None:
    """For every entry of every log, and from every log to every later one; with tiles of four."""
    leaves = [merkle.leaf(bytes([n])) for n in range(37)]

    async def stored(first: int, before: int) -> Sequence[bytes]:
        assert before - first <= 4
        return leaves[first:before]

    for size in range(1, len(leaves) + 1):
        tiles = Tiles(4)
        for leaf in leaves:
            tiles.append(leaf)
        for n in range(size):
            assert await tiles.inclusion(n, size, stored) == merkle.inclusion_proof(n, leaves[:size])
        for old in range(size + 1):
            assert await tiles.consistency(old, size, stored) == merkle.consistency_proof(old, leaves[:size])


async def check_proofs(service: Service, size: int) -> None:
    leaves = [entry.leaf for entry in await service.store.audit_records()]
    root = merkle.root(leaves[:size])
    for n in (0, 1, size // 2, size - 1):
        proof = await service.hub.audit.inclusion(n, size)
        assert merkle.includes(leaves[n], n, size, proof, root)
    for old in (1, 10, size - 1):
        proof = await service.hub.audit.consistency(old, size)
        assert merkle.continues(old, merkle.root(leaves[:old]), size, root, proof)


# --- notes and keys -----------------------------------------------------------------------------------


def test_a_note_is_what_other_tools_read_too() -> None:
    """Text, a blank line, a signature line: an em dash, the key's name, its hash and the signature."""
    signer = new_signer()
    text = notes.write(7, merkle.EMPTY, signer)
    lines = text.split("\n")
    assert lines[:4] == [
        notes.key_name(signer.public),
        "7",
        "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
        "",
    ]
    assert lines[4].startswith(f"— {lines[0]} ")
    assert lines[5:] == [""]
    note = notes.read(text)
    assert (note.size, note.root) == (7, merkle.EMPTY)
    assert note.trust([new_signer().public, signer.public], verifies) is notes.Trust.GOOD
    assert note.trust([new_signer().public], verifies) is notes.Trust.STRANGER
    assert notes.read(text.replace("\n7\n", "\n8\n")).trust([signer.public], verifies) is notes.Trust.FORGED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "a\n1\n\n\n",
        "a\n-1\nAAAA\n\n— a b\n",
        "a\n01\nAAAA\n\n— a b\n",
        "a\n1\nAAAA\n\n— a AAAA\n",
        "a\n1\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n\n- a AAAA\n",
        "a\n1\n?\n\n— a b\n",
        "x" * 20_000,
    ],
)
def test_what_is_no_note_is_refused(text: str) -> None:
    with pytest.raises(WireError, match="checkpoint"):
        notes.read(text)


def test_a_public_key_is_read_as_it_was_written_and_not_otherwise() -> None:
    public = new_signer().public
    text = notes.write_key(public)
    assert notes.read_key(f" {text}\n") == public
    name, hashed, encoded = text.split("+", 2)
    for wrong in (
        "",
        "x",
        f"{name}+00000000+{encoded}",
        f"other+{hashed}+{encoded}",
        f"{name}+{hashed}+AAAA",
    ):
        with pytest.raises(WireError):
            notes.read_key(wrong)


def test_the_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    first = signer_in(folder)
    assert signer_in(folder).public == first.public
    assert stat.S_IMODE((folder / "audit.key").stat().st_mode) == 0o600
    assert public_key(public_key_in(folder) or "") == first.public
    assert public_key(str(folder / "audit.pub")) == first.public


def test_a_key_that_others_could_read_is_closed_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    public = signer_in(tmp_path).public
    (tmp_path / "audit.key").chmod(0o644)
    assert Ed25519Signer.at(tmp_path / "audit.key").public == public
    assert stat.S_IMODE((tmp_path / "audit.key").stat().st_mode) == 0o600
    assert [getattr(record, "action", "") for record in caplog.records] == ["audit_key_exposed"]


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_a_file_that_holds_no_key_is_named(tmp_path: Path, content: bytes) -> None:
    """And not replaced: who lost a key should know."""
    (tmp_path / "audit.key").write_bytes(content)
    with pytest.raises(UsageError, match=r"audit\.key"):
        signer_in(tmp_path)
    assert (tmp_path / "audit.key").read_bytes() == content


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 -- what is waited for is not told by events
            await asyncio.sleep(0.001)
