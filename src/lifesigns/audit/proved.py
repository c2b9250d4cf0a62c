"""The log of a remote hub, by the proofs that the hub gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lifesigns.adapters.signing.ed25519 import verifies
from lifesigns.audit.checkpoints import KeptCheckpoint
from lifesigns.audit.verifying import AuditVerdict, FaultKind
from lifesigns.client import Client
from lifesigns.core import merkle
from lifesigns.errors import WireError
from lifesigns.hub.audit import notes
from lifesigns.hub.audit.notes import Note, Trust


def verify_hub(
    client: Client, keys: Sequence[bytes], checkpoints: Sequence[KeptCheckpoint], entries: Sequence[int] = ()
) -> AuditVerdict:
    """Whether a hub can prove that its log extends these checkpoints, and has these entries (none: the newest ones).

    This trusts no word of the hub: every answer carries a checkpoint, and its signature is verified.
    """
    proving = _ProofReader(client, keys)
    proving.note("the hub's checkpoint", client.audit_checkpoint())
    for one in checkpoints:
        proving.continues(one)
    sealed = proving.verdict.sealed
    for n in entries or [one.n for one in client.audit(limit=20).entries if one.n < sealed]:
        proving.includes(n)
    return proving.verdict


class _ProofReader:
    """Asks a hub for proofs."""

    def __init__(self, client: Client, keys: Sequence[bytes]) -> None:
        self._client = client
        self._keys = keys
        self._known: dict[str, Note | None] = {}
        self.verdict = AuditVerdict()

    def note(self, where: str, text: str) -> Note | None:
        """The parsed checkpoint, if its signature is valid."""
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

    def continues(self, older: KeptCheckpoint) -> None:
        """Check that the log extends this checkpoint."""
        old = None if older.note is None else self.note(older.where, older.note)
        if old is None or old.size == 0:
            return
        newest = self.note("the hub's checkpoint", self._client.audit_checkpoint())
        if newest is not None and newest.size < old.size:
            text = f"the hub's log has {newest.size} entries, but {old.size} were sealed ({older.where})"
            self.verdict.blame(FaultKind.TRUNCATED, text, newest.size)
            return
        answer = self._client.audit_consistency(old.size)
        new = self.note("the checkpoint of a proof", answer.checkpoint)
        if new is None:
            return
        if not merkle.continues(old.size, old.root, new.size, new.root, _hashes(answer.proof)):
            text = f"the hub cannot prove that its log begins with the {old.size} entries of {older.where}"
            self.verdict.blame(FaultKind.REWRITTEN, text)

    def includes(self, n: int) -> None:
        """Check that entry `n` is in the log."""
        answer = self._client.audit_proof(n)
        note = self.note("the checkpoint of a proof", answer.checkpoint)
        if note is None:
            return
        self.verdict.entries += 1
        leaf = _hash(answer.leaf)
        if answer.entry is not None and merkle.leaf(answer.entry.encode("utf-8", "replace")) != leaf:
            self.verdict.blame(FaultKind.CHANGED, f"entry {n} was changed: it is not what its hash says", n)
        elif answer.n != n or not merkle.includes(leaf, n, note.size, _hashes(answer.proof), note.root):
            self.verdict.blame(
                FaultKind.CHANGED, f"the hub cannot prove that entry {n} is in the log that it sealed", n
            )


def _hashes(texts: Iterable[str]) -> list[bytes]:
    return [_hash(text) for text in texts]


def _hash(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""  # Not a hash: the proof fails.
