"""The signer: signs the audit log with a key that is not in the database."""

from __future__ import annotations

from typing import Protocol


class Signer(Protocol):
    """Signs with Ed25519."""

    @property
    def public(self) -> bytes:
        """The public key, 32 bytes."""

    def sign(self, text: bytes) -> bytes:
        """The signature, 64 bytes."""


class Verifies(Protocol):
    """Whether the owner of the public key made `signature` over `text`."""

    def __call__(self, public: bytes, text: bytes, signature: bytes) -> bool: ...
