"""The log as a file: exports all of it as JSON lines, and verifies such a file against its seals."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from lifesigns.adapters.signing.ed25519 import verifies
from lifesigns.audit.checkpoints import KeptCheckpoint
from lifesigns.audit.stored import AT_ONCE, Progress, records_of, row_of, seals_of
from lifesigns.audit.verifying import AuditVerdict, Verifier
from lifesigns.core.printable import spelled_out_json
from lifesigns.errors import UsageError, WireError
from lifesigns.hub.audit import notes
from lifesigns.ports import AuditRecord, Store

LINE_MAX: Final = 4 * 1024 * 1024


class _Line(msgspec.Struct, omit_defaults=True):
    """A line of an export: the header, a seal, or an entry."""

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


_decode: Final = msgspec.json.Decoder(_Line).decode


async def exported(
    store: Store, keys: Sequence[bytes], checkpoints: Sequence[KeptCheckpoint]
) -> AsyncIterator[bytes]:
    """The whole log, line by line: its keys, its checkpoints, its entries."""
    yield _written(_Line(lifesigns_audit=1, keys=[notes.write_key(key) for key in keys]))
    total = [audit_record.n + 1 for audit_record in await store.audit_records(newest_first=True, limit=1)]
    row = await row_of(store)
    # Entries that a hub adds meanwhile are left out, for the seals read before do not cover them; unsealed entries that
    # were there before are not.
    size = max([*total, *(_size_in(one) for one in row)], default=0)
    for one in [*checkpoints, *row]:
        if one.note is not None:
            yield _written(_Line(checkpoint=one.note))
    async for seal in seals_of(store):
        if seal.size <= size:
            yield _written(_Line(checkpoint=seal.note, at=seal.at))
    async for some in records_of(store):
        for audit_record in some:
            if audit_record.n < size:
                yield _written(_entry_line(audit_record))


def verify_export(
    path: Path,
    keys: Sequence[bytes],
    checkpoints: Sequence[KeptCheckpoint],
    progress: Progress = lambda _: None,
) -> AuditVerdict:
    """Whether the log in this export is what was sealed. The keys named in the export itself do not count."""
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


def _written(line: _Line) -> bytes:
    """As a line that is safe on a terminal. Decoding it gives the same bytes of the entry."""
    return spelled_out_json(msgspec.json.encode(line).decode()).encode() + b"\n"


def _size_in(checkpoint: KeptCheckpoint) -> int:
    try:
        return notes.read(checkpoint.note or "").size
    except WireError:
        return 0


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
