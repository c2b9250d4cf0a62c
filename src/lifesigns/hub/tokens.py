"""Tokens: `ls_<id>_<secret>`. The id is for lists and logs, the secret is 256 random bits.

A hub stores only digests. Plain SHA-256 is right for them: slow, salted hashes make guessing *passwords* expensive, and
there is nothing to guess in 256 random bits; a slow hash would only make every request slow. The hub looks a digest up
instead of comparing texts: the time this takes tells about the digest of a guess, of which an attacker cannot choose
even a part.
"""

from __future__ import annotations

import re
import secrets
from hashlib import sha256
from typing import Final

TOKEN_MAX: Final = 256
"""Bytes; ours have 76. A longer one is not even hashed."""

_shape: Final = re.compile(rb"ls_([0-9a-zA-Z]{4,32})_([0-9a-zA-Z]{32,128})").fullmatch


def new_token() -> tuple[str, str]:
    """The id of a new token, and the token."""
    token_id = secrets.token_hex(4)
    return token_id, new_secret(token_id)


def new_secret(token_id: str) -> str:
    """A token with this id and a new secret."""
    return f"ls_{token_id}_{secrets.token_hex(32)}"


def digest_of(token: bytes) -> bytes:
    """The part of a token that the store has."""
    return sha256(token).digest()


def is_token(text: bytes) -> bool:
    """Whether this has the form of a token."""
    return _shape(text) is not None


def id_of(token: str) -> str:
    """The id within a token."""
    return token.split("_")[1]
