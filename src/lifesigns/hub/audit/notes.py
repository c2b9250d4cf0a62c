"""Notes: seals as text, in the form that transparency logs use (C2SP tlog-checkpoint, a signed note).

    lifesigns/5ad0c2...                     whose log: the name of its key
    1204                                    how many entries
    CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA...  the root of their tree
                                            a blank line; everything before it is signed
    — lifesigns/5ad0c2... Az3grl/ay8vT...   key name; four bytes of key hash and the signature

Nothing in a note is secret, and any tool that reads signed notes can check one.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Final

from msgspec import Struct

from lifesigns.errors import WireError
from lifesigns.ports.signer import Signer, Verifies

ED25519: Final = b"\x01"
"""The type of the key, in its text and in its hash."""
NOTE_MAX: Final = 16_384
_SIZE: Final = re.compile(r"0|[1-9][0-9]{0,17}")


class Trust(StrEnum):
    """What a note's signature is worth."""

    GOOD = "good"
    FORGED = "forged"
    STRANGER = "stranger"
    """No known key has signed it."""


class Note(Struct, frozen=True):
    """A parsed seal."""

    origin: str
    size: int
    root: bytes
    text: bytes
    """The signed part."""
    signatures: tuple[tuple[str, bytes, bytes], ...]
    """For each the key's name, its hash, and the signature."""

    def trust(self, keys: Sequence[bytes], verifies: Verifies) -> Trust:
        """Whether one of these keys has signed it."""
        found = Trust.STRANGER
        for public in keys:
            name = key_name(public)
            for signer, hashed, signature in self.signatures:
                if (signer, hashed) == (name, _key_hash(name, public)):
                    if verifies(public, self.text, signature):
                        return Trust.GOOD
                    found = Trust.FORGED
        return found


def write(size: int, root: bytes, signer: Signer) -> str:
    """A signed note for a log of this size and root."""
    name = key_name(signer.public)
    text = f"{name}\n{size}\n{b64encode(root).decode()}\n"
    signature = _key_hash(name, signer.public) + signer.sign(text.encode())
    return f"{text}\n— {name} {b64encode(signature).decode()}\n"


def read(note: str) -> Note:
    """Parse a note, without checking its signature. Raises `WireError`."""
    text, blank, signed = note.replace("\r\n", "\n").rpartition("\n\n")
    lines = text.split("\n")
    if len(note) > NOTE_MAX or not blank or len(lines) < 3 or not lines[0] or not _SIZE.fullmatch(lines[1]):
        raise WireError(
            "checkpoint", "is none: it would have a name, a number, a root, a blank line, signatures"
        )
    root = _bytes(lines[2], 32, "the root")
    signatures = tuple(_signature(line) for line in signed.splitlines() if line)
    return Note(lines[0], int(lines[1]), root, f"{text}\n".encode(), signatures)


def signed_by(note: str, signer: Signer) -> Note | None:
    """Parse a note, if this signer has signed it. Signing is deterministic: a note that the signer would write
    otherwise is not its own."""
    try:
        found = read(note)
    except WireError:
        return None
    return found if note == write(found.size, found.root, signer) else None


def split(text: str) -> list[str]:
    """The notes in a text of several, each followed by a blank line."""
    found: list[list[str]] = [[]]
    for line in text.replace("\r\n", "\n").split("\n"):
        ended = found[-1] and found[-1][-1].startswith("— ")
        if ended and not line.startswith("— "):
            found.append([])
        if line or found[-1]:
            found[-1].append(line)
    return ["\n".join(lines) + "\n" for lines in found if any(lines)]


def key_name(public: bytes) -> str:
    """The name of a key and of the log that it seals."""
    return f"lifesigns/{sha256(public).hexdigest()[:16]}"


def write_key(public: bytes) -> str:
    """A public key as text: name, hash and key."""
    name = key_name(public)
    return f"{name}+{_key_hash(name, public).hex()}+{b64encode(ED25519 + public).decode()}"


def read_key(text: str) -> bytes:
    """The public key. Raises `WireError`."""
    name, _, rest = text.strip().partition("+")
    hashed, _, encoded = rest.partition("+")
    public = _bytes(encoded, 33, "the key")[1:]
    if key_name(public) != name or _key_hash(name, public).hex() != hashed:
        raise WireError("key", "is damaged: name, hash and key do not belong together")
    return public


def _key_hash(name: str, public: bytes) -> bytes:
    return sha256(name.encode() + b"\n" + ED25519 + public).digest()[:4]


def _signature(line: str) -> tuple[str, bytes, bytes]:
    dash, _, rest = line.partition(" ")
    name, _, encoded = rest.partition(" ")
    if dash != "—" or not name:
        raise WireError("checkpoint", f"has the line {line[:60]!r} where a signature belongs (— NAME BASE64)")
    signed = _bytes(encoded, None, "a signature")
    return name, signed[:4], signed[4:]


def _bytes(encoded: str, length: int | None, what: str) -> bytes:
    try:
        found = b64decode(encoded, validate=True)
    except (NotBase64, ValueError):
        raise WireError("checkpoint", f"is damaged: {what} is not base64") from None
    if length is not None and len(found) != length:
        raise WireError("checkpoint", f"is damaged: {what} has {len(found)} bytes, not {length}")
    return found
