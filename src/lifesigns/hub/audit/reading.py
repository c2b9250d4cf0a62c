"""Reads the log from its beginning after a start: whether it is what was sealed, and what is needed to continue it.

Three places have seals: the state folder, the row of the log (`state.py`), the table of seals. The one in the folder
must exist and match, and some seal must cover the last entry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lifesigns.core import merkle
from lifesigns.errors import UsageError, WireError
from lifesigns.events.hub_facts import AuditAccepted
from lifesigns.hub.audit import notes
from lifesigns.hub.audit.proofs import Tiles
from lifesigns.hub.audit.records import fact_in

if TYPE_CHECKING:
    from lifesigns.hub.audit.seal_file import SealFile
    from lifesigns.ports import AuditRecord, Seal, Signer, Store

AT_ONCE: Final = 1000
SEALS_MAX: Final = 20
"""The newest ones; some may not match."""


@dataclass(slots=True)
class LogReading:
    """The result of reading a log."""

    log: merkle.Frontier = field(default_factory=merkle.Frontier)
    tiles: Tiles = field(default_factory=Tiles)
    newest: Seal | None = None
    """The newest matching seal in the store."""
    sealed: int = 0
    """The largest size with a matching seal."""
    wrong: str = ""
    """Why the log is not what was sealed; empty if it is."""
    changed: dict[int, bytes] = field(default_factory=dict)
    """Entries that do not match their hash, with the hash of their present content. The seal covers the hash beside the
    entry, which proves the change for ever, unless a person has accepted it."""


async def read_log(store: Store, size: int) -> LogReading:
    """Read a log of this size as it is."""
    found = LogReading()
    await _read(store, size, found, {}, None)
    return found


async def compare_log(store: Store, size: int, signer: Signer, file: SealFile | None, row: str) -> LogReading:
    """Read a log of this size, and compare it with what this signer has sealed."""
    found = LogReading()
    in_folder: notes.Note | None = None
    if file is not None:
        in_folder, found.wrong = _in_folder(file, size, signer)
    await _read(store, size, found, await _in_store(store, signer, row), in_folder)
    if in_folder is not None and not found.wrong and in_folder.size > found.log.size:
        found.wrong = f"it has {found.log.size} entries, and {in_folder.size} were sealed"
    if not found.wrong and found.sealed < size:
        found.wrong = f"entry {found.sealed} and those after it are not sealed, as this hub would have done"
    return found


def _in_folder(file: SealFile, size: int, signer: Signer) -> tuple[notes.Note | None, str]:
    """The seal in the state folder; or what is wrong with it."""
    try:
        text = file.read()
        note = None if text is None else notes.read(text)
    except (UsageError, WireError) as error:
        return None, f"its seal cannot be read: {error}"
    if note is None or text is None:
        return None, f"its newest checkpoint, {file.path}, is missing" if size else ""
    if notes.signed_by(text, signer) is None:
        return None, f"its newest checkpoint, {file.path}, is not signed with the key of this hub"
    return note, ""


_Seals = Mapping[int, Mapping[bytes, "Seal | None"]]
"""By size and root; None stands for the seal in the row."""


async def _in_store(store: Store, signer: Signer, row: str) -> _Seals:
    """The seals in the store that this signer made. Anyone may have written the others."""
    found: dict[int, dict[bytes, Seal | None]] = {}
    if (note := notes.signed_by(row, signer)) is not None:
        found[note.size] = {note.root: None}
    for seal in await store.seals(newest_first=True, limit=SEALS_MAX):
        if (note := notes.signed_by(seal.note, signer)) is not None:
            found.setdefault(note.size, {})[note.root] = seal
    return found


async def _read(
    store: Store, size: int, found: LogReading, seals: _Seals, in_folder: notes.Note | None
) -> None:
    while found.log.size < size and not found.wrong:
        some = await store.audit_records(after=found.log.size - 1, before=size, limit=AT_ONCE)
        _hear(found, some, seals, in_folder)
        await asyncio.sleep(0)


def _hear(
    found: LogReading, some: Sequence[AuditRecord], seals: _Seals, in_folder: notes.Note | None
) -> None:
    """Process the next entries."""
    log = found.log
    for one in some:
        if one.n != log.size:
            break
        _note_change(found, one)
        log.append(one.leaf)
        found.tiles.append(one.leaf)
        if log.size in seals and log.root() in seals[log.size]:
            found.sealed, found.newest = log.size, seals[log.size][log.root()] or found.newest
        if in_folder is not None and in_folder.size == log.size:
            if in_folder.root != log.root():
                found.wrong = f"its first {log.size} entries are not those that were sealed"
                return
            found.sealed = log.size
    if not some or some[-1].n != log.size - 1:
        found.wrong = f"entry {log.size} is missing"


def _note_change(found: LogReading, one: AuditRecord) -> None:
    if one.entry is None:
        return
    content = merkle.leaf(one.entry)
    if content != one.leaf:
        found.changed[one.n] = content
        return
    fact = fact_in(one) if b"AUDIT_ACCEPTED" in one.entry else None
    if isinstance(fact, AuditAccepted):
        found.changed = {
            n: now for n, now in found.changed.items() if changed_word(n, now) not in fact.changed
        }


def changed_word(n: int, content: bytes) -> str:
    """How an accepting entry names a changed one: its number, and the hash of its present content."""
    return f"{n} {content.hex()}"
