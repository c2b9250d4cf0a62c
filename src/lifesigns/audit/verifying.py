"""Verifying: whether a log is what was sealed, and if not, what was done to it.

It reads everything once, in order, in constant memory but for the hashes of recent entries. It names what it can: a
changed entry by its number, a missing one, two that changed places. The seals expose what was changed together with its
hash: the change lies between the last seal that matches and the first that does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec

from lifesigns.core import merkle
from lifesigns.errors import WireError
from lifesigns.events import fact_told, message
from lifesigns.events.hub_facts import AuditAccepted, AuditRetired, HistoryForgotten
from lifesigns.hub.audit import notes, records
from lifesigns.hub.audit.notes import Note, Trust
from lifesigns.hub.audit.reading import changed_word
from lifesigns.ports import AuditRecord, Event
from lifesigns.ports.signer import Verifies
from lifesigns.wire.codec import written

FAULTS_MAX: Final = 100
"""Listed one by one; the others are counted."""


class FaultKind(StrEnum):
    """What was done to a log."""

    CHANGED = "changed"
    REMOVED = "removed"
    SWAPPED = "swapped"
    TRUNCATED = "truncated"
    REWRITTEN = "rewritten"
    FORGED = "forged"
    WRONG_KEY = "wrong_key"
    UNREADABLE = "unreadable"
    UNSEALED = "unsealed"


class Fault(msgspec.Struct, frozen=True):
    """A difference between the log and its seals."""

    how: FaultKind
    text: str
    n: int | None = None
    """The entry, if it is one."""


@dataclass(slots=True)
class AuditVerdict:
    """The result of verifying a log."""

    entries: int = 0
    retired: int = 0
    sealed: int = 0
    """Entries that a valid seal covers."""
    seals: int = 0
    """Valid ones."""
    root: bytes = merkle.EMPTY
    faults: list[Fault] = field(default_factory=list)
    faults_total: int = 0
    accepted: list[str] = field(default_factory=list)
    """When, by whom and why people accepted the log as it was."""

    @property
    def good(self) -> bool:
        """Whether the log is what was sealed."""
        return self.faults_total == 0

    def blame(self, how: FaultKind, text: str, n: int | None = None) -> None:
        self.faults_total += 1
        if len(self.faults) < FAULTS_MAX:
            self.faults.append(Fault(how, text, n))


class VerifiedSeal(msgspec.Struct, frozen=True):
    """A seal with a valid signature, and where it is stored."""

    where: str
    note: Note


_Accepted = Sequence[tuple[AuditRecord, AuditAccepted]]
"""What people have accepted, and the entries that say so. They count if they are sealed."""


class Verifier:
    """Reads a log entry by entry, then returns its verdict."""

    def __init__(self, keys: Sequence[bytes], verifies: Verifies) -> None:
        self._keys = keys
        self._verifies = verifies
        self._verdict = AuditVerdict()
        self._seals: dict[int, list[VerifiedSeal]] = {}
        self._read = merkle.Frontier()
        self._whole = True
        """No entry is missing so far: roots can be compared."""
        self._end = 0
        """One more than the number of the last entry."""
        self._held = 0
        """The largest size with a matching seal."""
        self._unlike: list[tuple[int, str, int]] = []
        """Seals that do not match: size, place, and the largest matching size before."""
        self._last_event = 0
        self._newest_event = 0
        """The newest event of the entries that existed before the history was read."""
        self._first_event: int | None = None
        self._gone: list[tuple[int, int]] = []
        """Ranges of entries that were retired or removed."""
        self._retired_before = 0
        self._to_be_sealed: int | None = None
        self._watch_from: int | None = None
        self._missing: list[str] = []
        """Places where a hub writes a seal and none is."""
        self._accepted: list[tuple[AuditRecord, AuditAccepted]] = []
        """Entries by which people accepted the log as it was."""
        self._changed: dict[int, str] = {}
        """Entries that do not match their hash, and how an acceptance would name each."""
        self._history_from = 1
        """Events before this one were forgotten by an entry of the log."""
        self._gone_events: list[tuple[int, int]] = []
        """Ranges of events missing from the history."""
        self._unlogged: list[tuple[int, Fault]] = []
        """Events of the history that the log lacks, or has differently."""
        self._logged: dict[int, tuple[int, bytes]] = {}
        """Number and leaf of each event still in the history."""

    # --- what is heard --------------------------------------------------------------------------------

    def seal(self, where: str, text: str | None) -> None:
        """Add a seal, or None where one should be. All seals come before the entries."""
        if text is None:
            self._missing.append(where)
            return
        try:
            note = notes.read(text)
        except WireError as error:
            self._verdict.blame(FaultKind.UNREADABLE, f"{where}: {error.detail}")
            return
        match note.trust(self._keys, self._verifies):
            case Trust.GOOD:
                self._verdict.seals += 1
                self._seals.setdefault(note.size, []).append(VerifiedSeal(where, note))
                if note.size == 0:
                    self._compare(0)
            case Trust.FORGED:
                text = (
                    f"{where} (of {note.size} entries): its signature is not that of its key, {note.origin}"
                )
                self._verdict.blame(FaultKind.FORGED, text)
            case Trust.STRANGER:
                known = " or ".join(notes.key_name(key) for key in self._keys)
                signed = ", ".join(name for name, _, _ in note.signatures) or "nobody"
                text = f"{where} (of {note.size} entries) is signed by {signed}, not by {known}"
                self._verdict.blame(FaultKind.WRONG_KEY, text)

    def watch_events(self, first: int) -> None:
        """Remember the entries of events from this id on, for `compare_events`."""
        self._watch_from = first

    def hear(self, entries: Iterable[AuditRecord]) -> None:
        """Read the next entries."""
        for one in entries:
            if one.n != self._read.size and self._whole:
                self._out_of_place(one)
            self._hear(one)

    def _out_of_place(self, one: AuditRecord) -> None:
        expected = self._read.size
        self._whole = False
        if one.n > expected:
            last = f" to {one.n - 1}" if one.n > expected + 1 else ""
            self._verdict.blame(FaultKind.REMOVED, f"entry {expected}{last} is missing", expected)
        else:
            self._verdict.blame(
                FaultKind.SWAPPED, f"entry {one.n} stands where entry {expected} belongs", one.n
            )

    def _hear(self, one: AuditRecord) -> None:
        self._verdict.entries += 1
        if self._first_event is None:
            self._first_event = one.event_id
        if one.event_id <= self._last_event:
            text = (
                f"entry {one.n} (event {one.event_id}) stands after one of event {self._last_event}: swapped"
            )
            self._verdict.blame(FaultKind.SWAPPED, text, one.n)
        self._last_event = max(self._last_event, one.event_id)
        if self._to_be_sealed is not None and one.n < self._to_be_sealed:
            self._newest_event = max(self._newest_event, one.event_id)
        if one.entry is None:
            self._note_gone(one.n)
        elif merkle.leaf(one.entry) != one.leaf:
            self._changed[one.n] = changed_word(one.n, merkle.leaf(one.entry))
        elif wrong := self._wrong(one, one.entry):
            self._verdict.blame(FaultKind.CHANGED, f"entry {one.n} was changed: {wrong}", one.n)
        if self._watch_from is not None and one.event_id >= self._watch_from:
            self._logged[one.event_id] = one.n, one.leaf
        self._read.append(one.leaf)
        self._end = max(self._end, one.n + 1)
        if self._whole:
            self._compare(self._read.size)

    def _wrong(self, one: AuditRecord, entry: bytes) -> str:
        try:
            told, at = records.read(entry), written(one.at)
        except (msgspec.MsgspecError, ValueError):
            return "it cannot be read"
        fact = fact_told(told.type, one.at, one.agent_id, told.data)
        if isinstance(fact, AuditRetired):
            self._retired_before = max(self._retired_before, min(fact.before, one.n))
        if isinstance(fact, AuditAccepted):
            self._accepted.append((one, fact))
        if isinstance(fact, HistoryForgotten):
            self._history_from = max(self._history_from, min(fact.first_event, one.event_id))
        who = records.who_did(told.data.get("by"))
        if (told.id, told.agent_id, who) != (one.event_id, one.agent_id, one.who) or told.at != at:
            return "the columns beside it say something else than it does"
        return ""

    def _note_gone(self, n: int) -> None:
        if self._gone and self._gone[-1][1] == n:
            self._gone[-1] = (self._gone[-1][0], n + 1)
        else:
            self._gone.append((n, n + 1))

    def _compare(self, size: int) -> None:
        for sealed in self._seals.pop(size, ()):
            if sealed.note.root == self._read.root():
                self._held = size
            else:
                self._unlike.append((size, sealed.where, self._held))

    def compare_events(self, events: Iterable[Event]) -> Sequence[tuple[int, Event]]:
        """Compare events of the history, after all entries: each audited act must be in the log. Returns those that
        look different there, with the number of their entry."""
        differing = []
        for event in events:
            if not records.is_audited(event) or event.id < (self._first_event or 0):
                continue  # The log may have begun after the history.
            logged = self._logged.get(event.id)
            if logged is None:
                text = f"event {event.id} ({event.type} {event.agent_id}, {written(event.at)}) is missing in the log"
                self._unlogged.append((event.id, Fault(FaultKind.REMOVED, text)))
            elif logged[1] != merkle.leaf(message(event)):
                differing.append((logged[0], event))
        return differing

    def gone_from_history(self, first: int, before: int) -> None:
        """Events `first <= id < before` are not in the history."""
        self._gone_events.append((first, before))

    def history_ends(self, last: int) -> None:
        """The id of the last event in the history; the log may know of later ones."""
        if self._newest_event > last:
            self.gone_from_history(last + 1, self._newest_event + 1)

    def differs(self, event: Event, one: AuditRecord) -> None:
        """Compare an event and its entry, whose bytes differ, by their meaning."""
        try:
            same = one.entry is None or records.read(one.entry) == records.read(message(event))
        except msgspec.MsgspecError:
            same = False
        if not same:
            text = f"event {event.id} was changed in the history: the log has it otherwise, as entry {one.n}"
            self._unlogged.append((event.id, Fault(FaultKind.CHANGED, text, one.n)))

    def unreadable(self, what: str) -> None:
        """Report something unreadable."""
        self._verdict.blame(FaultKind.UNREADABLE, what)

    # --- what is said ---------------------------------------------------------------------------------

    def verdict(self) -> AuditVerdict:
        """The verdict, after everything was read."""
        found = self._verdict
        found.root, found.sealed = self._read.root(), self._held
        accepted = [(one, fact) for one, fact in self._accepted if one.n < self._held]
        self._blame_changed(accepted)
        self._blame_gone()
        self._blame_seals(accepted)
        self._blame_history(accepted)
        found.accepted = [
            f"{written(fact.at)} by {fact.by}, with entry {one.n}: {fact.reason} (found: {fact.wrong or 'nothing'})"
            for one, fact in accepted
        ]
        return found

    def must_be_sealed(self, size: int) -> None:
        """So many entries existed when the seals were read. Without this call all entries must be sealed."""
        self._to_be_sealed = size

    def _blame_changed(self, accepted: _Accepted) -> None:
        known = {word for _, fact in accepted for word in fact.changed}
        for n, word in self._changed.items():
            if word not in known:
                text = f"entry {n} was changed: it is not what its hash says"
                self._verdict.blame(FaultKind.CHANGED, text, n)

    def _blame_seals(self, accepted: _Accepted) -> None:
        """Seals that do not match, unless they existed when a person accepted the log; and entries without a seal."""
        found, explained = self._verdict, not self._whole
        since = max((max(one.n, fact.sealed) for one, fact in accepted), default=-1)
        for size, where, held in self._unlike:
            if size > since:
                after = f"from entry {held} on" if held else "somewhere from the beginning on"
                text = (
                    f"the first {size} entries are not those that were sealed ({where}): something was changed, removed or "
                    f"swapped together with its hash, {after}"
                )
                found.blame(FaultKind.REWRITTEN, text, held)
                explained = True
                break
        longest = max(self._seals, default=0)
        if longest > max(self._end, since):
            (sealed, *_) = self._seals[longest]
            text = f"the end is missing: the log has {self._end} entries, but {longest} were sealed ({sealed.where})"
            found.blame(FaultKind.TRUNCATED, text, self._end)
            explained = True
        for where in self._missing if self._read.size else ():
            found.blame(FaultKind.UNSEALED, f"{where} is missing: a hub always keeps one there")
        to_be_sealed = self._read.size if self._to_be_sealed is None else self._to_be_sealed
        if self._held < to_be_sealed and not explained:
            text = f"entry {self._held} and those after it are not sealed, as a hub does with every entry it writes"
            if not self._held:
                text = "there is no good seal at all: nothing vouches for this log"
            found.blame(FaultKind.UNSEALED, text, self._held)

    def _blame_history(self, accepted: _Accepted) -> None:
        """Differences from the log, since a person last accepted it."""
        since = max([self._history_from, *(one.event_id for one, _ in accepted)])
        for event_id, fault in self._unlogged:
            if event_id >= since:
                self._verdict.blame(fault.how, fault.text, fault.n)
        for first, before in self._gone_events:
            first = max(first, since)
            if first < before:
                which = f"event {first} is" if before == first + 1 else f"events {first} to {before - 1} are"
                logged = [str(n) for one, (n, _) in self._logged.items() if first <= one < before]
                known = f"; the log still has entries {', '.join(logged[:3])} of them" if logged else ""
                self._verdict.blame(FaultKind.REMOVED, f"{which} gone from the history{known}")

    def _blame_gone(self) -> None:
        for first, end in self._gone:
            retired = max(0, min(end, self._retired_before) - first)
            self._verdict.retired += retired
            if end > max(first, self._retired_before):
                first = max(first, self._retired_before)
                which = f"entry {first}" if end == first + 1 else f"entries {first} to {end - 1}"
                text = f"{which}: what is in it was removed, and no policy has retired it"
                self._verdict.blame(FaultKind.REMOVED, text, first)
