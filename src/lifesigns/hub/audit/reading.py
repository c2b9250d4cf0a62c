"""The log, read from its beginning after a start: whether it is what was sealed, and what is needed to go on with it.

The seal in the state folder decides: whoever can change that one has the key beside it, and could seal anything.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lifesigns.core import merkle
from lifesigns.errors import UsageError, WireError
from lifesigns.hub.audit import notes
from lifesigns.hub.audit.proofs import Tiles

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lifesigns.hub.audit.seal_file import SealFile
    from lifesigns.ports import AuditRecord, Seal, Store

AT_ONCE: Final = 1000


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

    def hear(self, some: Sequence[AuditRecord], sealed: notes.Note | None, in_store: dict[int, Seal]) -> None:
        """The next entries."""
        for one in some:
            if one.n != self.log.size:
                break
            if not self.changed and one.entry is not None and merkle.leaf(one.entry) != one.leaf:
                self.changed = f"entry {one.n} was changed"
            self.log.append(one.leaf)
            self.tiles.append(one.leaf)
            if (seal := in_store.get(self.log.size)) is not None and _fits(seal.note, self.log):
                self.newest = seal
            if sealed is not None and sealed.size == self.log.size and sealed.root != self.log.root():
                self.wrong = f"its first {sealed.size} entries are not those that were sealed"
                return
        if not some or some[-1].n != self.log.size - 1:
            self.wrong = f"entry {self.log.size} is missing"


async def read_log(store: Store, size: int, file: SealFile | None) -> Reading:
    """Read a log of this size."""
    found = Reading()
    try:
        note = None if file is None else file.read()
        sealed = None if note is None else notes.read(note)
    except (UsageError, WireError) as error:
        found.wrong = f"its seal cannot be read: {error}"
        return found
    in_store = {seal.size: seal for seal in await store.seals(newest_first=True, limit=1)}
    while found.log.size < size and not found.wrong:
        some = await store.audit_records(after=found.log.size - 1, before=size, limit=AT_ONCE)
        found.hear(some, sealed, in_store)
        await asyncio.sleep(0)
    if not found.wrong and sealed is not None and sealed.size > found.log.size:
        found.wrong = f"it has {found.log.size} entries, and {sealed.size} were sealed"
    return found


def _fits(note: str, log: merkle.Frontier) -> bool:
    try:
        return notes.read(note).root == log.root()
    except WireError:
        return False
