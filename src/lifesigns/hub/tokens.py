"""Tokens: `ls_<id>_<secret>`. The id is for lists and logs, the secret is 256 bits of chance.

A hub keeps only digests. Plain SHA-256 is right for them: slow, salted hashes make guessing *passwords* expensive, and
there is nothing to guess in 256 random bits; a slow hash would only make every request slow. Nothing is compared sign by
sign either: a token is hashed and its digest looked up, and how long that takes tells about the digest of the guess, of
which nobody can choose even a part.
"""

from __future__ import annotations

import re
import secrets
from hashlib import sha256
from typing import Final

TOKEN_MAX: Final = 256
"""Bytes; ours have 76. What is longer is not even hashed."""

_shape: Final = re.compile(rb"ls_([0-9a-zA-Z]{4,32})_([0-9a-zA-Z]{32,128})").fullmatch


def new_token() -> tuple[str, str]:
    """The id of a new token, and the token."""
    token_id = secrets.token_hex(4)
    return token_id, new_secret(token_id)


def new_secret(token_id: str) -> str:
    """A token with this id that nobody has seen yet."""
    return f"ls_{token_id}_{secrets.token_hex(32)}"


def digest_of(token: bytes) -> bytes:
    """What is kept of a token."""
    return sha256(token).digest()


def is_token(text: bytes) -> bool:
    """Whether this looks like one."""
    return _shape(text) is not None


def id_of(token: str) -> str:
    """The id within a token."""
    return token.split("_")[1]
