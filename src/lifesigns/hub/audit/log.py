"""The audit log of a running hub.

Audited acts get their numbers with their commit; the same transaction stores them, their events and a seal over the
whole log (`state.py`). A checkpoint for others (in the table of seals, in the state folder, for the witnesses) follows
at once after a quiet time, then at most once a minute, and when the hub stops.

The law: a hub seals only what extends its last seal. After a start it reads the whole log once, in the background, and
compares it with the seals (`reading.py`). If the log is not what was sealed, the hub alerts people, leaves the old
seals where they are and seals no more: a seal over a changed log would approve the change. Only a person's decision
(`acceptance.py`) lets the log continue from its present state, and that is an entry of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import msgspec

from lifesigns.core import merkle
from lifesigns.core.effects import Fact
from lifesigns.core.printable import clean
from lifesigns.errors import AdapterError, UsageError
from lifesigns.events.hub_facts import AuditAccepted, AuditBroken
from lifesigns.hub.audit import acceptance, notes
from lifesigns.hub.audit.proofs import Tiles
from lifesigns.hub.audit.reading import AT_ONCE, LogReading, changed_word, compare_log, read_log
from lifesigns.hub.audit.records import audit_record, is_audited
from lifesigns.hub.audit.seal_file import SealFile
from lifesigns.hub.audit.state import KIND, AuditState, decode_state, encode_state
from lifesigns.hub.audit.witnesses import Witnesses
from lifesigns.ports import AuditRecord, Belief, Event, Seal, Signer, Store

SEAL_EVERY: Final = 60.0
ACCEPTANCE_CHECK_EVERY: Final = 2.0
"""How often the hub checks whether a person accepts the log as it is."""
CHANGED_MAX: Final = 100
"""A person can accept so many changed entries. If there are more, restore a backup."""

log: Final = logging.getLogger("lifesigns.hub")


class AuditWrites(msgspec.Struct, frozen=True):
    """The log's part of a commit."""

    audit_records: Sequence[AuditRecord] = ()
    seals: Sequence[Seal] = ()
    beliefs: Sequence[Belief] = ()


NOTHING: Final = AuditWrites()

Announce = Callable[[Fact], None]
"""Store and publish a fact."""


class AuditWriter(Protocol):
    """What the log needs of the committer."""

    def request_commit(self) -> None: ...

    async def wait_until_stored(self) -> None: ...


class AuditLog:
    """Numbers audited acts, seals them, proves them. Without a signer it seals nothing."""

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
        self._witnesses = witnesses
        self._next = 0
        """The number of the next entry: the size of the log, unless that is broken."""
        self._stored = merkle.Frontier()
        """The log without the commit in progress."""
        self.state = AuditState()
        """With that commit; `retention.py` notes in it what it dropped."""
        self._at_start = AuditState()
        """The log when the hub started."""
        self._extends_ours = False
        """Our key signed what was there at the start: a seal over what follows approves no change of older entries."""
        self._tiles = Tiles()
        self._unread: list[bytes] | None = []
        """New leaves while the older ones are being read; None: those are read."""
        self._unstored_seals: list[Seal] = []
        self._sealing = asyncio.Lock()
        self._grown = asyncio.Event()
        self.newest: Seal | None = None
        """The last stored seal."""
        self.trouble = ""
        """Why the hub seals no more."""

    @property
    def size(self) -> int:
        """The number of stored entries."""
        return self._stored.size

    @property
    def proves(self) -> bool:
        """Whether the hub can make proofs: it has read the log, and the log is what was sealed."""
        return self._unread is None and not self.trouble

    # --- on the writer ---------------------------------------------------------------------------------

    async def recall(self, rows: Iterable[Belief]) -> None:
        """Continue where the last hub stopped; after the last entry there is, even if the row that says where was
        changed."""
        for row in rows:
            if row.kind == KIND and row.value is not None:
                with suppress(
                    msgspec.MsgspecError
                ):  # Not ours: ignored, and the comparison with the seals will notice.
                    self.state = decode_state(row.value)
                    self._at_start = decode_state(row.value)
        self._stored = _copy(self.state.frontier)
        newest = await self._store.audit_records(newest_first=True, limit=1)
        self._next = max([self._stored.size, *(one.n + 1 for one in newest)])
        self._extends_ours = self._next == 0 or self._is_sealed(self._at_start)
        if self._witnesses is not None:
            self._witnesses.continue_from(self.state.witnessed)
        if self._stored.size:
            self._grown.set()

    def _is_sealed(self, state: AuditState) -> bool:
        note = None if self._signer is None else notes.signed_by(state.note, self._signer)
        return note is not None and (note.size, note.root) == (state.frontier.size, state.frontier.root())

    def record(self, events: Sequence[Event]) -> AuditWrites:
        """The log's part of the commit with these events."""
        state, frontier = self.state, self.state.frontier
        found: list[AuditRecord] = []
        for event in events:
            if is_audited(event):
                entry = audit_record(self._next, event)
                self._next += 1
                frontier.append(entry.leaf)
                found.append(entry)
        if not found and not self._unstored_seals:
            return NOTHING
        seals, self._unstored_seals = self._unstored_seals, []
        for one in found:
            self._append_leaf(one.leaf)
        if found and self._signer is not None and not self.trouble and (self.proves or self._extends_ours):
            state.note = notes.write(frontier.size, frontier.root(), self._signer)
        return AuditWrites(found, seals, [Belief(KIND, "", encode_state(state))] if found else ())

    def commit_stored(self) -> None:
        """The commit of the last `record` is stored."""
        if self._stored.size != self.state.frontier.size:
            self._stored = _copy(self.state.frontier)
            self._grown.set()

    def _append_leaf(self, leaf: bytes) -> None:
        if self._unread is None:
            self._tiles.append(leaf)
        else:
            self._unread.append(leaf)

    # --- sealing --------------------------------------------------------------------------------------

    async def run(
        self,
        writer: AuditWriter,
        clock: Callable[[], float],
        announce: Announce,
    ) -> None:
        """Check whether the log is what was sealed, then seal it whenever it has grown."""
        while self._unread is not None:
            try:
                await self._read_all(lambda why: announce(AuditBroken(clock(), why)))
            except AdapterError as error:
                log.warning("the audit log was not read: %s", error, extra={"action": "audit_unread"})
                await asyncio.sleep(SEAL_EVERY)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._run_sealing(writer, clock), name="lifesigns audit seals")
            both.create_task(self._run_acceptance(writer, clock, announce), name="lifesigns audit acceptance")

    async def _run_sealing(self, writer: AuditWriter, clock: Callable[[], float]) -> None:
        while True:
            await self._grown.wait()
            self._grown.clear()
            try:
                await self.seal(writer, clock())
            except AdapterError as error:
                log.warning("the audit log was not sealed: %s", error, extra={"action": "audit_not_sealed"})
            await asyncio.sleep(SEAL_EVERY)

    async def seal(self, writer: AuditWriter, now: float) -> None:
        """Seal what is stored, if it has grown; returns when the seal is stored, too."""
        async with self._sealing:
            seal = self.last_seal(now)
            if seal is not None:
                self._unstored_seals.append(seal)
                writer.request_commit()
                await writer.wait_until_stored()
                await asyncio.to_thread(self.note_seal, seal)
                self.send_to_witnesses(seal)

    def last_seal(self, now: float) -> Seal | None:
        """A seal over all stored entries; None if there is nothing new, or nothing may be sealed."""
        known = self.newest.size if self.newest is not None else 0
        if self._signer is None or not self.proves or self.size <= known:
            return None
        return Seal(self.size, now, notes.write(self.size, self._stored.root(), self._signer))

    def note_seal(self, seal: Seal) -> None:
        """Note a stored seal. Blocks while it writes it to the state folder."""
        self.newest = seal
        if self._file is not None:
            self._file.write(seal.size, seal.note)

    def send_to_witnesses(self, seal: Seal) -> None:
        """Send a stored seal to the witnesses."""
        if self._witnesses is not None:
            self._witnesses.send(seal)

    # --- after a start --------------------------------------------------------------------------------

    async def _read_all(self, broken: Callable[[str], None]) -> None:
        """Read the whole log once; calls `broken` with the reason if it is not what was sealed."""
        size = self._next - len(self._unread or ())
        found = await self._compare(size)
        self._tiles, self.newest = found.tiles, found.newest
        unread, self._unread = self._unread or [], None
        for leaf in unread:
            self._tiles.append(leaf)
        if not found.wrong and found.log.root() != self._at_start.frontier.root():
            found.wrong = "its last entries are not those that the last hub wrote"
        if found.wrong:
            self.give_up_sealing(found.wrong, broken)
        elif found.changed:
            # The seal covers the hash beside an entry, which exposes a change of the entry alone.
            self._complain(_named(found.changed), "Their hashes were not", broken)

    async def _compare(self, size: int) -> LogReading:
        if self._signer is None:
            return await read_log(self._store, size)
        found = await compare_log(self._store, size, self._signer, self._file, self._at_start.note)
        if size == 0 and not found.wrong and self._file is not None:
            # So that there always is a seal in the folder: a missing one was removed.
            await asyncio.to_thread(self._file.begin, notes.write(0, merkle.EMPTY, self._signer))
        return found

    def give_up_sealing(self, wrong: str, broken: Callable[[str], None]) -> None:
        """The log is not what was sealed: a seal over it would approve that."""
        self.trouble = wrong
        self._complain(wrong, "Nothing is sealed any more", broken)

    def _complain(self, wrong: str, more: str, broken: Callable[[str], None]) -> None:
        log.critical(
            "the audit log was changed: %s. %s; see lifesigns audit verify and lifesigns audit accept",
            wrong,
            more,
            extra={"action": "audit_broken"},
        )
        broken(wrong)

    # --- a person's word ------------------------------------------------------------------------------

    async def _run_acceptance(
        self, writer: AuditWriter, clock: Callable[[], float], announce: Announce
    ) -> None:
        """Check now and then whether a person accepts the log as it is."""
        if self._file is None or self._signer is None:
            return
        folder = self._file.path.parent
        while True:
            try:
                if (request := acceptance.requested(folder)) is not None:
                    await self._accept(request, folder, writer, clock, announce)
            except (UsageError, AdapterError) as error:
                log.error("the audit log is not accepted: %s", error, extra={"action": "audit_not_accepted"})
                if isinstance(error, UsageError) or not error.transient:
                    acceptance.clear(folder)
            await asyncio.sleep(ACCEPTANCE_CHECK_EVERY)

    async def _accept(
        self,
        request: acceptance.Acceptance,
        folder: Path,
        writer: AuditWriter,
        clock: Callable[[], float],
        announce: Announce,
    ) -> None:
        """Continue the log from its present state: an entry says who decided that, and why."""
        async with self._sealing:
            size, self._unread = self._next, []
            try:
                await writer.wait_until_stored()
                found = await read_log(self._store, size)
                if found.wrong:
                    raise UsageError(
                        f"{found.wrong}, and there is nothing to seal in its place; put a backup back"
                    )
                if len(found.changed) > CHANGED_MAX:
                    raise UsageError(f"{len(found.changed)} entries were changed; put a backup back")
                sealed = await self._longest_sealed(size)
            finally:
                unread, self._unread = self._unread or [], None
            # New entries may be in a commit in progress: they are in the log when it is stored.
            self._stored, self.state.frontier = _copy(found.log), _copy(found.log)
            self._tiles, self.newest = found.tiles, None
            for leaf in unread:
                self._tiles.append(leaf)
                self.state.frontier.append(leaf)
            wrong, self.trouble = self.trouble or _named(found.changed), ""
            if self._witnesses is not None:
                self._witnesses.rewind_to(size)
            by, reason = clean(request.by, 200), clean(request.reason, 1000)
            log.warning(
                "the audit log is accepted as it is by %s: %s", by, reason, extra={"action": "audit_accepted"}
            )
            changed = tuple(changed_word(n, content) for n, content in found.changed.items())
            acceptance.clear(
                folder
            )  # Before the entry: a person can repeat a lost decision, but one left here would count twice.
            announce(AuditAccepted(clock(), sealed, changed, by, reason, wrong))
            await writer.wait_until_stored()
        await self.seal(writer, clock())

    async def _longest_sealed(self, size: int) -> int:
        """The largest size of the log under a seal of ours."""
        assert self._signer is not None
        found = [self.state.note, "" if self._file is None else self._file.read() or ""]
        found += [seal.note for seal in await self._store.seals(newest_first=True, limit=AT_ONCE)]
        signed = [notes.signed_by(one, self._signer) for one in found]
        return max([size, *(note.size for note in signed if note is not None)])

    # --- proofs ---------------------------------------------------------------------------------------

    async def inclusion(self, n: int, size: int) -> list[bytes]:
        """The hashes that lead from entry `n` to the root of the log of this size."""
        return await self._tiles.inclusion(n, size, self._leaves)

    async def consistency(self, old: int, size: int) -> list[bytes]:
        """The hashes that show that the log of this size extends the one of the old size."""
        return await self._tiles.consistency(old, size, self._leaves)

    async def _leaves(self, first: int, before: int) -> list[bytes]:
        return [one.leaf for one in await self._store.audit_records(after=first - 1, before=before)]


def _copy(frontier: merkle.Frontier) -> merkle.Frontier:
    return merkle.Frontier(frontier.size, list(frontier.peaks))


def _named(changed: Iterable[int]) -> str:
    """The changed entries, the first few by number."""
    numbers = list(changed)
    more = f" and {len(numbers) - 3} more" if len(numbers) > 3 else ""
    return f"entries {', '.join(map(str, numbers[:3]))}{more} were changed" if numbers else ""
