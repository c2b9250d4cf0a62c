"""The audit log, looked at from outside: in the store beside a running hub, in an export, or by proofs from a hub.

Nothing here takes over or writes: the store is read without being opened, and whatever is found is only told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from lifesigns.adapters.signing.ed25519 import verifies
from lifesigns.core import merkle
from lifesigns.errors import UsageError, WireError
from lifesigns.hub.audit import notes
from lifesigns.hub.audit.notes import Note, Trust
from lifesigns.hub.audit.records import AUDITED, FLIP
from lifesigns.hub.audit.seal_file import SealFile
from lifesigns.hub.audit.verifying import AuditVerdict, Fault, FaultKind, Verifier
from lifesigns.ports import AuditRecord, Seal, Store
from lifesigns.views import AuditConsistency, AuditList, AuditProof, moment

__all__ = ["AuditVerdict", "Fault", "FaultKind", "Found", "exported", "found_in", "key_name"]
__all__ += ["verify_export", "verify_hub", "verify_store"]

AT_ONCE: Final = 1000
LINE_MAX: Final = 4 * 1024 * 1024
key_name: Final = notes.key_name
Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Found:
    """A checkpoint, and where it was found."""

    where: str
    note: str


def found_in(files: Iterable[Path], state: Path | None = None) -> list[Found]:
    """The checkpoints in these files, and in the state folder if there is one there."""
    found = []
    for file in files:
        try:
            found.append(Found(f"the checkpoint {file}", file.read_text("utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"the checkpoint {file} cannot be read: {error}") from error
    if state is not None:
        file_ = SealFile(state)
        note = file_.read()
        if note is not None:
            found.append(Found(f"the checkpoint {file_.path}", note))
    return found


# --- in the store -------------------------------------------------------------------------------------


async def verify_store(
    store: Store, keys: Sequence[bytes], checkpoints: Sequence[Found], progress: Progress = lambda _: None
) -> AuditVerdict:
    """Whether the log in this store is what was sealed.

    The seals are read before the entries, and the end of the history too: a hub that works meanwhile has kept what they
    speak of.
    """
    verifier = Verifier(keys, verifies)
    for one in checkpoints:
        verifier.seal(one.where, one.note)
    async for seal in _seals(store):
        verifier.seal(f"the checkpoint of {moment(seal.at)} in the store", seal.note)
    first = await store.events(limit=1)
    until = [event.id for event in await store.events(newest_first=True, limit=1)]
    if first:
        verifier.watch_events(first[0].id)
    total = [audit_record.n + 1 for audit_record in await store.audit_records(newest_first=True, limit=1)]
    async for some in _deeds(store):
        verifier.hear(some)
        progress(some[-1].n / max(1, *total))
    if until:
        await _verify_events(store, verifier, until[0])
    return verifier.verdict()


async def _verify_events(store: Store, verifier: Verifier, until: int) -> None:
    """What the history says of audited acts must be what the log says."""
    after, types = 0, (*AUDITED, FLIP)
    while some := await store.events(after=after, until=until, types=types, limit=AT_ONCE):
        for n, event in verifier.compare_events(some):
            for audit_record in await store.audit_records(after=n - 1, before=n + 1):
                verifier.differs(event, audit_record)
        after = some[-1].id
        await asyncio.sleep(0)


async def _deeds(store: Store) -> AsyncIterator[Sequence[AuditRecord]]:
    after = -1
    while some := await store.audit_records(after=after, limit=AT_ONCE):
        yield some
        after = some[-1].n
        await asyncio.sleep(0)  # Here a Ctrl-C gets in.


async def _seals(store: Store) -> AsyncIterator[Seal]:
    after = -1
    while some := await store.seals(after=after, limit=AT_ONCE):
        for seal in some:
            yield seal
        after = some[-1].size


# --- as a file ----------------------------------------------------------------------------------------


class _Line(msgspec.Struct, omit_defaults=True):
    """A line of an export: what it is of, a seal, or an entry."""

    lifesigns_audit: int | None = None
    keys: list[str] = []
    checkpoint: str | None = None
    at: float = 0.0
    n: int = -1
    event_id: int = 0
    agent_id: str = ""
    who: str = ""
    leaf: str = ""
    entry: str | None = None


_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_Line).decode


async def exported(store: Store, keys: Sequence[bytes], checkpoints: Sequence[Found]) -> AsyncIterator[bytes]:
    """The whole log, line by line: who sealed it, its checkpoints, its entries."""
    yield _encode(_Line(lifesigns_audit=1, keys=[notes.write_key(key) for key in keys])) + b"\n"
    for one in checkpoints:
        yield _encode(_Line(checkpoint=one.note)) + b"\n"
    async for seal in _seals(store):
        yield _encode(_Line(checkpoint=seal.note, at=seal.at)) + b"\n"
    async for some in _deeds(store):
        for audit_record in some:
            yield _encode(_entry_line(audit_record)) + b"\n"


def verify_export(
    path: Path, keys: Sequence[bytes], checkpoints: Sequence[Found], progress: Progress = lambda _: None
) -> AuditVerdict:
    """Whether the log in this export is what was sealed. Its own word about its key is not taken for it."""
    verifier = Verifier(keys, verifies)
    for one in checkpoints:
        verifier.seal(one.where, one.note)
    try:
        with path.open("rb") as file:
            size, read = max(1, path.stat().st_size), 0
            for number, raw in enumerate(iter(lambda: file.readline(LINE_MAX), b""), 1):
                _hear_line(verifier, number, raw, path)
                read += len(raw)
                if number % AT_ONCE == 0:
                    progress(read / size)
    except OSError as error:
        raise UsageError(f"the export {path} cannot be read: {error.strerror}") from error
    return verifier.verdict()


def _hear_line(verifier: Verifier, number: int, raw: bytes, path: Path) -> None:
    try:
        line = _decode(raw)
        leaf = bytes.fromhex(line.leaf)
    except (msgspec.MsgspecError, ValueError) as error:
        if number == 1:
            raise UsageError(f"{path} is no export of an audit log: {error}") from error
        verifier.unreadable(f"line {number} cannot be read: {error}")
        return
    if number == 1 and line.lifesigns_audit != 1:
        raise UsageError(f"{path} is no export of an audit log that this lifesigns can read")
    if line.checkpoint is not None:
        verifier.seal(f"the checkpoint in line {number}", line.checkpoint)
    elif line.n >= 0:
        entry = None if line.entry is None else line.entry.encode("utf-8", "replace")
        verifier.hear([AuditRecord(line.n, line.event_id, line.at, line.agent_id, line.who, leaf, entry)])


def _entry_line(audit_record: AuditRecord) -> _Line:
    return _Line(
        at=audit_record.at,
        n=audit_record.n,
        event_id=audit_record.event_id,
        agent_id=audit_record.agent_id,
        who=audit_record.who,
        leaf=audit_record.leaf.hex(),
        entry=None if audit_record.entry is None else audit_record.entry.decode("utf-8", "replace"),
    )


# --- by proofs ----------------------------------------------------------------------------------------


class Asks(Protocol):
    """What is asked of a hub."""

    def audit(self, *, limit: int | None = None) -> AuditList: ...

    def audit_checkpoint(self) -> str: ...

    def audit_proof(self, n: int) -> AuditProof: ...

    def audit_consistency(self, from_size: int) -> AuditConsistency: ...


def verify_hub(
    client: Any, keys: Sequence[bytes], checkpoints: Sequence[Found], entries: Sequence[int] = ()
) -> AuditVerdict:
    """Whether a hub can prove that its log goes on from these checkpoints, and has these entries (none: the newest ones).

    The hub is believed nothing: every answer carries a checkpoint, whose signature is looked at.
    """
    asked: Asks = client
    proving = _Proving(asked, keys)
    proving.note("the hub's checkpoint", asked.audit_checkpoint())
    for one in checkpoints:
        proving.continues(one)
    sealed = proving.verdict.sealed
    for n in entries or [one.n for one in asked.audit(limit=20).entries if one.n < sealed]:
        proving.includes(n)
    return proving.verdict


class _Proving:
    """Asks a hub for proofs."""

    def __init__(self, asked: Asks, keys: Sequence[bytes]) -> None:
        self._asked = asked
        self._keys = keys
        self._known: dict[str, Note | None] = {}
        self.verdict = AuditVerdict()

    def note(self, where: str, text: str) -> Note | None:
        """A checkpoint, if its signature is good."""
        if text not in self._known:
            self._known[text] = self._trusted(where, text)
        return self._known[text]

    def _trusted(self, where: str, text: str) -> Note | None:
        verdict = self.verdict
        try:
            note = notes.read(text)
        except WireError as error:
            verdict.blame(FaultKind.UNREADABLE, f"{where}: {error.detail}")
            return None
        match note.trust(self._keys, verifies):
            case Trust.GOOD:
                verdict.seals += 1
                if note.size >= verdict.sealed:
                    verdict.sealed, verdict.root = note.size, note.root
                return note
            case Trust.FORGED:
                verdict.blame(
                    FaultKind.FORGED, f"{where}: its signature is not that of its key, {note.origin}"
                )
            case Trust.STRANGER:
                verdict.blame(FaultKind.WRONG_KEY, f"{where} is not signed by a key that is known here")
        return None

    def continues(self, older: Found) -> None:
        """Whether the log goes on from this checkpoint."""
        old = self.note(older.where, older.note)
        if old is None:
            return
        newest = self.note("the hub's checkpoint", self._asked.audit_checkpoint())
        if newest is not None and newest.size < old.size:
            text = f"the hub's log has {newest.size} entries, but {old.size} were sealed ({older.where})"
            self.verdict.blame(FaultKind.TRUNCATED, text, newest.size)
            return
        answer = self._asked.audit_consistency(old.size)
        new = self.note("the checkpoint of a proof", answer.checkpoint)
        if new is None:
            return
        if not merkle.continues(old.size, old.root, new.size, new.root, _hashes(answer.proof)):
            text = f"the hub cannot prove that its log begins with the {old.size} entries of {older.where}"
            self.verdict.blame(FaultKind.REWRITTEN, text)

    def includes(self, n: int) -> None:
        """Whether entry `n` is in the log."""
        answer = self._asked.audit_proof(n)
        note = self.note("the checkpoint of a proof", answer.checkpoint)
        if note is None:
            return
        self.verdict.entries += 1
        (leaf,) = _hashes([answer.leaf]) or [b""]
        if answer.entry is not None and merkle.leaf(answer.entry.encode("utf-8", "replace")) != leaf:
            self.verdict.blame(FaultKind.CHANGED, f"entry {n} was changed: it is not what its hash says", n)
        elif answer.n != n or not merkle.includes(leaf, n, note.size, _hashes(answer.proof), note.root):
            self.verdict.blame(
                FaultKind.CHANGED, f"the hub cannot prove that entry {n} is in the log that it sealed", n
            )


def _hashes(texts: Iterable[str]) -> list[bytes]:
    return list(_read_hashes(texts))


def _read_hashes(texts: Iterable[str]) -> Iterator[bytes]:
    for text in texts:
        try:
            yield bytes.fromhex(text)
        except ValueError:
            yield b""  # No hash: the proof leads nowhere.
