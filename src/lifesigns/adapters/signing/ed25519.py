"""Ed25519Signer: the hub's own key, in a file of its state folder.

The hub makes the key at the first start; it never leaves its file, which only its owner can read. Its public half lies
beside it for verification. If others could read the key file, the hub restricts it and logs a warning: anyone with the
key can seal a false log. A file of another owner is refused.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from lifesigns.errors import AdapterError, UsageError
from lifesigns.files import read_private, write_whole

KEY_MAX: Final = 4096

log: Final = logging.getLogger("lifesigns.signing")


class Ed25519Signer:
    """Signs with a private key. Implements `lifesigns.ports.Signer`."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = key.public_key().public_bytes_raw()

    @classmethod
    def at(cls, path: Path) -> Ed25519Signer:
        """The signer with the key in this file, which is made if it is missing."""
        pem = _read(path)
        if pem is None:
            pem = Ed25519PrivateKey.generate().private_bytes(
                Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
            )
            _write(path, pem)
        try:
            key = load_pem_private_key(pem, password=None)
        except (ValueError, TypeError) as error:
            raise UsageError(f"{path} does not hold a key (PEM): {error}") from error
        if not isinstance(key, Ed25519PrivateKey):
            raise UsageError(f"{path} holds another kind of key, not Ed25519")
        return cls(key)

    def sign(self, text: bytes) -> bytes:
        """Sign; the same text always gives the same signature."""
        return self._key.sign(text)


SMALL_ORDER: Final = frozenset(
    bytes.fromhex(y)
    for y in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)
"""The points of small order in all their forms, without the sign. OpenSSL takes them for keys, and then a signature that anybody can
make is good for any text."""


def verifies(public: bytes, text: bytes, signature: bytes) -> bool:
    """Whether the owner of this public key has signed this text."""
    if len(public) != 32 or public[:31] + bytes((public[31] & 0x7F,)) in SMALL_ORDER:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, text)
    except (InvalidSignature, ValueError):
        return False
    return True


def _read(path: Path) -> bytes | None:
    try:
        file = read_private(path, KEY_MAX)
    except UsageError as error:
        raise UsageError(f"the key of the audit log: {error}") from error
    if file is None:
        return None
    pem, exposed = file
    if exposed:
        log.warning(
            "%s could be read by others, %s; whoever has it can seal a false audit log",
            path,
            exposed,
            extra={"action": "audit_key_exposed"},
        )
    return pem


def _write(path: Path, pem: bytes) -> None:
    try:
        write_whole(path, pem)
    except OSError as error:
        raise AdapterError(
            f"the key of the audit log, {path}, cannot be written: {error.strerror}", transient=False
        ) from error
