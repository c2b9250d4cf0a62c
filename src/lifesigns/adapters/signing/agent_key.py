"""Agent keys: `lsk_` and 64 hex digits, an Ed25519 key with which an agent signs its messages."""

from __future__ import annotations

import re
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from lifesigns.adapters.signing.ed25519 import Ed25519Signer
from lifesigns.errors import UsageError

_BEGINNING: Final = "lsk_"


def new_key() -> str:
    """A new random key."""
    return _BEGINNING + Ed25519PrivateKey.generate().private_bytes_raw().hex()


def signer_of(key: str) -> Ed25519Signer:
    """The signer with this key. Errors do not repeat the text."""
    if re.fullmatch(rf"{_BEGINNING}[0-9a-f]{{64}}", key) is None:
        raise UsageError(
            f"key is no key of an agent: that is {_BEGINNING} and 64 hex digits (lifesigns key create)"
        )
    return Ed25519Signer(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(key.removeprefix(_BEGINNING))))
