"""Verifying what agents sign: by libsodium (`pip install 'lifesigns[signed]'`), in half the time that OpenSSL takes; by OpenSSL without it.

Both are strict: a signature has one form only, and a public key of small order, with which one signature is good for any text, is
nobody's key. `tests/adapters/test_verifying.py` holds both to that.
"""

from __future__ import annotations

from lifesigns.adapters.signing.ed25519 import verifies
from lifesigns.ports.signer import Verifies


def fastest() -> Verifies:
    """The faster one of those that are here."""
    try:
        return with_sodium()
    except ImportError:
        return verifies


def with_sodium() -> Verifies:
    """By libsodium. Raises `ImportError` where it is not."""
    from nacl.bindings import crypto_sign_open
    from nacl.exceptions import CryptoError

    def verifies_with_sodium(public: bytes, text: bytes, signature: bytes) -> bool:
        if len(public) != 32 or len(signature) != 64:  # It does not look, and reads on behind a shorter key.
            return False
        try:
            crypto_sign_open(signature + text, public)
        except CryptoError:
            return False
        return True

    return verifies_with_sodium
