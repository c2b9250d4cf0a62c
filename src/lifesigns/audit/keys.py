"""The key that seals the audit log, in the state folder or elsewhere; and its public half there, for verifiers."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lifesigns.core import merkle
from lifesigns.errors import UsageError, WireError
from lifesigns.files import write_whole
from lifesigns.hub.audit import notes
from lifesigns.hub.audit.seal_file import SealFile

if TYPE_CHECKING:
    from lifesigns.ports import Signer

KEY: Final = "audit.key"
PUBLIC: Final = "audit.pub"


def signer_in(state: Path, key: Path | None = None) -> Signer:
    """The signer of the hub in this folder; the first start makes its key, there or where `key` says.

    A key that was there before is not made anew: the old seals would no longer verify.
    """
    from lifesigns.adapters.signing.ed25519 import Ed25519Signer

    first_start = not (state / PUBLIC).exists()
    if key is not None and not key.exists() and not first_start:
        raise UsageError(
            f"audit.key: there is no {key}, and the log is sealed already. Mount the disk it is on, or move {state / KEY} there"
        )
    signer = Ed25519Signer.at(key or state / KEY)
    if first_start:
        # A second hub of the store has a log and no seal of it here; after this, a missing seal is a removed one.
        SealFile(state).begin(notes.write(0, merkle.EMPTY, signer))
    public = f"{notes.write_key(signer.public)}\n"
    with suppress(OSError):  # For verifiers; `lifesigns audit key` says if it is missing.
        if not (state / PUBLIC).is_file() or (state / PUBLIC).read_text() != public:
            write_whole(state / PUBLIC, public.encode(), mode=0o644)
    return signer


def public_key_in(state: Path) -> str | None:
    """The public key of the hub in this folder, as text; None if there is none."""
    try:
        return (state / PUBLIC).read_text().strip()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{state / PUBLIC} cannot be read: {error}") from error


def public_key(text: str) -> bytes:
    """A public key, from its text or from the file of this name."""
    path = Path(text)
    try:
        said = path.read_text() if len(text) < 4096 and "+" not in path.name and path.is_file() else text
        return notes.read_key(said)
    except (OSError, UnicodeDecodeError, WireError) as error:
        right = "it would be what `lifesigns audit key` prints, or a file with it"
        raise UsageError(f"the key {text[:100]!r} cannot be read ({error}); {right}") from error
