"""The log, read from its beginning after a start: whether it is what was sealed, and what is needed to go on with it.

The seal in the state folder decides, and one that is missing speaks against the log. Entries beyond it that should have
been sealed long ago do, too.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lifesigns.core import merkle
from lifesigns.errors import UsageError, WireError
from lifesigns.hub.audit import notes
from lifesigns.hub.audit.proofs import Tiles
from lifesigns.hub.audit.unsealed import overdue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lifesigns.hub.audit.seal_file import SealFile
    from lifesigns.ports import AuditRecord, Seal, Signer, Store

AT_ONCE: Final = 1000
SEALS_MAX: Final = 20
"""The newest ones; beyond them there may be some of another hub."""


@dataclass(slots=True)
class Reading:
    """A log as it was read."""

    log: merkle.Frontier = field(default_factory=merkle.Frontier)
    tiles: Tiles = field(default_factory=Tiles)
    newest: Seal | None = None
    """The newest seal in the store, if it fits."""
    wrong: str = ""
    """Why the log is not what was sealed; empty if it is."""
    changed: str = ""
    """The first entry that does not have its hash. The hash is what is sealed, and convicts the change for ever."""

    def hear(
        self,
        some: Sequence[AuditRecord],
        sealed: notes.Note | None,
        in_store: dict[int, Seal],
        signer: Signer | None,
    ) -> None:
        """The next entries."""
        for one in some:
            if one.n != self.log.size:
                break
            if not self.changed and one.entry is not None and merkle.leaf(one.entry) != one.leaf:
                self.changed = f"entry {one.n} was changed"
            self.log.append(one.leaf)
            self.tiles.append(one.leaf)
            if (seal := in_store.get(self.log.size)) is not None and _fits(seal.note, self.log, signer):
                self.newest = seal
            if sealed is not None and sealed.size == self.log.size and sealed.root != self.log.root():
                self.wrong = f"its first {sealed.size} entries are not those that were sealed"
                return
        if not some or some[-1].n != self.log.size - 1:
            self.wrong = f"entry {self.log.size} is missing"


async def read_log(
    store: Store, size: int, file: SealFile | None = None, signer: Signer | None = None
) -> Reading:
    """Read a log of this size, and compare it with what was sealed. Without a file it is taken as it is."""
    found = Reading()
    try:
        note = None if file is None else file.read()
        sealed = None if note is None else notes.read(note)
    except (UsageError, WireError) as error:
        found.wrong = f"its seal cannot be read: {error}"
        return found
    if file is not None and note is None and size:
        found.wrong = f"its newest checkpoint, {file.path}, is missing"
        return found
    in_store = {seal.size: seal for seal in await store.seals(newest_first=True, limit=SEALS_MAX)}
    while found.log.size < size and not found.wrong:
        some = await store.audit_records(after=found.log.size - 1, before=size, limit=AT_ONCE)
        found.hear(some, sealed, in_store, signer)
        await asyncio.sleep(0)
    if not found.wrong and sealed is not None and sealed.size > found.log.size:
        found.wrong = f"it has {found.log.size} entries, and {sealed.size} were sealed"
    if not found.wrong and sealed is not None:
        in_both = max(sealed.size, 0 if found.newest is None else found.newest.size)
        found.wrong = await overdue(store, in_both)
    return found


def _fits(note: str, log: merkle.Frontier, signer: Signer | None) -> bool:
    """Whether this is the seal of this log. What we sign is always the same, so what we would not sign is not ours."""
    try:
        read = notes.read(note)
    except WireError:
        return False
    return read.root == log.root() and (signer is None or note == notes.write(read.size, read.root, signer))
