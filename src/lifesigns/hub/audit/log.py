"""The audit log of a running hub.

Audited acts get their numbers when their page is made, and are kept in the same transaction as the events they are. What is
kept is sealed: at once after a quiet time, then at most once a minute, and when the hub stops. So what came in the last
minute before a crash is on record, but not sealed; the next hub seals it with what comes.

The law: a hub seals only what goes on from its last seal. After a start the whole log is read once, in the background, and
compared with the seal in the state folder (`reading.py`). If it is not what was sealed, people are told, the old seal
stays where it is, and nothing is sealed any more: a seal over a changed log would make the change good. Only a person's
word (`acceptance.py`) lets the log go on from how it is then, and that is an entry of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from lifesigns.core import merkle
from lifesigns.core.effects import Fact
from lifesigns.core.printable import clean
from lifesigns.errors import AdapterError, UsageError
from lifesigns.events.hub_facts import AuditAccepted, AuditBroken, AuditRetired
from lifesigns.hub.audit import acceptance, notes
from lifesigns.hub.audit.proofs import Tiles
from lifesigns.hub.audit.reading import AT_ONCE, read_log
from lifesigns.hub.audit.records import audit_record, is_deed
from lifesigns.hub.audit.seal_file import SealFile
from lifesigns.hub.audit.witnesses import Witnesses
from lifesigns.ports import AuditRecord, Belief, Event, Seal, Signer, Store

KIND: Final = "audit"
SEAL_EVERY: Final = 60.0
RETIRE_EVERY: Final = 86400.0
HEED_EVERY: Final = 2.0
"""How often a hub that seals nothing looks whether somebody accepts the log as it is."""

log: Final = logging.getLogger("lifesigns.hub")


@dataclass(slots=True)
class AuditState:
    """What has to be known to go on with a log: a row of the store, on every commit that has audit records."""

    frontier: merkle.Frontier = field(default_factory=merkle.Frontier)
    retired_from: int = 0
    """What was retired last; done again after a crash in the middle of it."""
    retired: int = 0
    """All entries before this number are retired."""
    retired_at: float = 0.0


@dataclass(frozen=True, slots=True)
class AuditWrites:
    """What a page has to hold for the log."""

    audit_records: Sequence[AuditRecord] = ()
    seals: Sequence[Seal] = ()
    beliefs: Sequence[Belief] = ()


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(AuditState).decode
NOTHING: Final = AuditWrites()

Announce = Callable[[Fact], None]
"""Tell that something happened, and keep it."""


class AuditWriter(Protocol):
    """What the log asks of the pages."""

    def wanted(self) -> None: ...

    async def kept(self) -> None: ...


class AuditLog:
    """Numbers audited acts, seals them, proves them. Without a signer nothing is sealed."""

    def __init__(
        self,
        store: Store,
        signer: Signer | None = None,
        file: SealFile | None = None,
        witnesses: Witnesses | None = None,
    ) -> None:
        self._store = store
        self._signer = signer
        self._file = file
        self._witnesses = witnesses or Witnesses()
        self._next = 0
        """The number of the next entry: the size of the log, unless that is broken."""
        self._kept = merkle.Frontier()
        """The log without the page that is on its way."""
        self._standing = AuditState()
        """With that page."""
        self._found = merkle.Frontier()
        """As it was when the hub started."""
        self._tiles = Tiles()
        self._unread: list[bytes] | None = []
        """Leaves that came before the older ones were read; None: those were."""
        self._to_keep: list[Seal] = []
        self._sealing = asyncio.Lock()
        self._grown = asyncio.Event()
        self.newest: Seal | None = None
        """The last seal that is kept."""
        self.trouble = ""
        """Why nothing is sealed any more."""

    @property
    def size(self) -> int:
        """Entries that are kept."""
        return self._kept.size

    @property
    def proves(self) -> bool:
        """Whether proofs can be made: the log is read, and is what was sealed."""
        return self._unread is None and not self.trouble

    # --- on the pages ---------------------------------------------------------------------------------

    async def recall(self, rows: Iterable[Belief]) -> None:
        """Go on where the last hub stopped; and after what is there, whatever was done to the row that says where."""
        for row in rows:
            if row.kind == KIND and row.value is not None:
                with suppress(
                    msgspec.MsgspecError
                ):  # Not ours: as if there were none, which will be noticed.
                    self._standing = _decode(row.value)
        self._kept, self._found = _copy(self._standing.frontier), _copy(self._standing.frontier)
        newest = await self._store.audit_records(newest_first=True, limit=1)
        self._next = max([self._kept.size, *(one.n + 1 for one in newest)])
        if self._kept.size:
            self._grown.set()

    def record(self, events: Sequence[Event]) -> AuditWrites:
        """These events are kept next, together with what this returns."""
        frontier = self._standing.frontier
        found: list[AuditRecord] = []
        for event in events:
            if is_deed(event):
                entry = audit_record(self._next, event)
                self._next += 1
                frontier.append(entry.leaf)
                found.append(entry)
        if not found and not self._to_keep:
            return NOTHING
        seals, self._to_keep = self._to_keep, []
        for one in found:
            self._read_on(one.leaf)
        return AuditWrites(found, seals, [Belief(KIND, "", _encode(self._standing))] if found else ())

    def page_kept(self) -> None:
        """The page with what was recorded last is kept."""
        if self._kept.size != self._standing.frontier.size:
            self._kept = _copy(self._standing.frontier)
            self._grown.set()

    def _read_on(self, leaf: bytes) -> None:
        if self._unread is None:
            self._tiles.append(leaf)
        else:
            self._unread.append(leaf)

    # --- sealing --------------------------------------------------------------------------------------

    async def tend_on(
        self,
        pages: AuditWriter,
        clock: Callable[[], float],
        announce: Announce,
    ) -> None:
        """Look whether the log is what was sealed, then seal it whenever it has grown."""
        while self._unread is not None:
            try:
                await self._read_all(lambda why: announce(AuditBroken(clock(), why)))
            except AdapterError as error:
                log.warning("the audit log was not read: %s", error, extra={"action": "audit_unread"})
                await asyncio.sleep(SEAL_EVERY)
        while True:
            while self.trouble:
                await asyncio.sleep(HEED_EVERY)
                await self._heed(pages, clock, announce)
            self._forget_word()
            await self._grown.wait()
            self._grown.clear()
            try:
                await self.seal(pages, clock())
            except AdapterError as error:
                log.warning("the audit log was not sealed: %s", error, extra={"action": "audit_not_sealed"})
            await asyncio.sleep(SEAL_EVERY)

    async def seal(self, pages: AuditWriter, now: float) -> None:
        """Seal what is kept, if it has grown; returns when the seal is kept, too."""
        async with self._sealing:
            seal = self.last_seal(now)
            if seal is not None:
                self._to_keep.append(seal)
                pages.wanted()
                await pages.kept()
                await asyncio.to_thread(self.put_down, seal)

    def last_seal(self, now: float) -> Seal | None:
        """A seal over everything that is kept; None if there is nothing new, or nothing may be sealed."""
        known = self.newest.size if self.newest is not None else 0
        if self._signer is None or not self.proves or self.size <= known:
            return None
        return Seal(self.size, now, notes.write(self.size, self._kept.root(), self._signer))

    def put_down(self, seal: Seal) -> None:
        """This seal is kept. Blocks while it is written into the state folder."""
        self.newest = seal
        if self._file is not None:
            self._file.write(seal.size, seal.note)
        self._witnesses.tell(seal.note)

    # --- after a start --------------------------------------------------------------------------------

    async def _read_all(self, broken: Callable[[str], None]) -> None:
        """Read the whole log once; `broken` says why it is not what was sealed."""
        size = self._next - len(self._unread or ())
        found = await read_log(self._store, size, self._file, self._signer)
        if size == 0 and not found.wrong and self._file is not None and self._signer is not None:
            # So that there always is a seal in the folder: one that is missing was taken away.
            await asyncio.to_thread(self._file.begin, notes.write(0, merkle.EMPTY, self._signer))
        self._tiles, self.newest = found.tiles, found.newest
        unread, self._unread = self._unread or [], None
        for leaf in unread:
            self._tiles.append(leaf)
        if not found.wrong and found.log.root() != self._found.root():
            found.wrong = "its last entries are not those that the last hub wrote"
        self.trouble = found.wrong
        if wrong := found.wrong or found.changed:
            # The hash of an entry convicts who changed the entry alone, whatever is sealed; all else would be made good.
            what = (
                f"{wrong}. Nothing is sealed any more" if found.wrong else f"{wrong}, though its hash was not"
            )
            log.critical(
                "the audit log was changed: %s; see lifesigns audit verify and accept",
                what,
                extra={"action": "audit_broken"},
            )
            broken(wrong)

    async def _heed(self, pages: AuditWriter, clock: Callable[[], float], announce: Announce) -> None:
        """See whether a person accepts the log as it is."""
        if self._file is None:
            return
        folder = self._file.path.parent
        try:
            word = acceptance.asked(folder)
            if word is None:
                return
            await self._accept(word, pages, clock, announce)
        except (UsageError, AdapterError) as error:
            log.error("the audit log is not accepted: %s", error, extra={"action": "audit_not_accepted"})
            if isinstance(error, AdapterError) and error.transient:
                return
        acceptance.done(folder)

    def _forget_word(self) -> None:
        """Nothing is wrong: what somebody has accepted beforehand must not be used later."""
        if self._file is not None:
            acceptance.done(self._file.path.parent)

    async def _accept(
        self, word: acceptance.Acceptance, pages: AuditWriter, clock: Callable[[], float], announce: Announce
    ) -> None:
        """Go on from the log as it is now: the first entry after it says who wanted that, and why."""
        size, self._unread = self._next, []
        under_way, kept = self._standing.frontier.size - self._kept.size, self._kept.size
        await pages.kept()
        found = await read_log(self._store, size)
        if found.wrong:
            self._unread = None
            raise UsageError(f"it cannot be sealed as it is, for {found.wrong}; put a backup back")
        sealed = max([size, *(one.size for one in await self._store.seals(newest_first=True, limit=1))])
        unread, self._unread = self._unread, None
        kept_since = max(0, self._kept.size - kept - under_way)
        self._kept, self._standing.frontier = _copy(found.log), _copy(found.log)
        self._tiles, self.newest = found.tiles, None
        for n, leaf in enumerate(unread):
            self._tiles.append(leaf)
            self._standing.frontier.append(leaf)
            if n < kept_since:
                self._kept.append(leaf)
        wrong, self.trouble = self.trouble, ""
        by, reason = clean(word.by, 200), clean(word.reason, 1000)
        log.warning(
            "the audit log is accepted as it is by %s: %s", by, reason, extra={"action": "audit_accepted"}
        )
        announce(AuditAccepted(clock(), sealed, by, reason, wrong))
        await pages.kept()
        await self.seal(pages, clock())

    # --- proofs ---------------------------------------------------------------------------------------

    async def inclusion(self, n: int, size: int) -> list[bytes]:
        """The hashes that lead from entry `n` to the root of the log of this size."""
        return await self._tiles.inclusion(n, size, self._leaves)

    async def consistency(self, old: int, size: int) -> list[bytes]:
        """The hashes that show that the log of this size begins with the one of the old size."""
        return await self._tiles.consistency(old, size, self._leaves)

    async def _leaves(self, first: int, before: int) -> list[bytes]:
        return [one.leaf for one in await self._store.audit_records(after=first - 1, before=before)]

    # --- retiring -------------------------------------------------------------------------------------

    async def retire(
        self,
        now: float,
        keep_for: float,
        pages: AuditWriter,
        announce: Announce,
    ) -> None:
        """Drop entries older than `keep_for`, at most once a day. That is an audited act itself, and kept before it is done: so
        what was retired can be told from what somebody removed."""
        standing = self._standing
        if self.proves and now - standing.retired_at >= RETIRE_EVERY:
            before = await self._first_kept(now - keep_for)
            if before > standing.retired:
                standing.retired_from, standing.retired, standing.retired_at = standing.retired, before, now
                announce(AuditRetired(now, before, keep_for))
                await pages.kept()
        if standing.retired > standing.retired_from:
            await self._store.retire(standing.retired_from, standing.retired)

    async def _first_kept(self, oldest: float) -> int:
        """The number of the first entry that is not too old. Numbers count, not moments: a clock may be set back."""
        n = self._standing.retired
        while some := await self._store.audit_records(after=n - 1, limit=AT_ONCE):
            for one in some:
                if one.at >= oldest:
                    return one.n
            n = some[-1].n + 1
        return n


def _copy(frontier: merkle.Frontier) -> merkle.Frontier:
    return merkle.Frontier(frontier.size, list(frontier.peaks))
