"""Signed messages: a line before the message names the key and the signature, and prevents replay.

    signed <key> <session> <number> <signature>
    <the message itself>

The key's name is the beginning of the SHA-256 of its public half. A session is one sender's stream of beats or of
reports: its start in milliseconds and eight random digits; its numbers rise. The signature (Ed25519, in hex) covers the
line up to itself and the message, for however many agents the message speaks.
"""

from __future__ import annotations

import re
import secrets
import time
from binascii import hexlify, unhexlify
from hashlib import sha256
from itertools import count
from typing import Final, NamedTuple, Protocol

from lifesigns.errors import WireError

LINE_MAX: Final = 256
"""The most bytes that a signature adds to a message."""
_BEGINNING: Final = b"signed "
_FORM: Final = "no signature: signed KEY SESSION NUMBER SIGNATURE"
_line: Final = re.compile(rb"(signed ([0-9a-f]{16}) ([0-9a-f]{20}) ([0-9]{1,18})) (.{128})\n").match


class Signer(Protocol):
    """Has a key and signs. See `lifesigns.ports.Signer`."""

    @property
    def public(self) -> bytes: ...
    def sign(self, text: bytes) -> bytes: ...


class Signed(NamedTuple):
    """A message with a signature that is not verified yet."""

    key_id: str
    session: bytes
    number: int
    text: bytes
    """The signed bytes."""
    signature: bytes
    message: bytes


class Seal:
    """Signs one stream of messages."""

    def __init__(self, signer: Signer) -> None:
        self._sign = signer.sign
        self._session = f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(4)}"
        self._numbers = count(1)
        self._line = f"signed {key_id(signer.public)} {self._session} ".encode()

    def signed(self, message: bytes) -> bytes:
        """Sign the message; the next call gives it another number."""
        line = b"%b%d" % (self._line, next(self._numbers))
        return b"%b %b\n%b" % (line, hexlify(self._sign(b"%b\n%b" % (line, message))), message)


def key_id(public: bytes) -> str:
    """The name of a key on the wire and in lists."""
    return sha256(public).hexdigest()[:16]


def is_signed(raw: bytes) -> bool:
    """Whether the message has a signature line: no message of ours begins like this."""
    return raw[:7] == _BEGINNING


def opened(raw: bytes) -> Signed:
    """The parts of a signed message. Raises `WireError`."""
    match = _line(raw)
    if match is None:
        raise WireError("", f"its first line is {_FORM}")
    _, key, session, number, digits = match.groups()
    try:
        signature = unhexlify(digits)
    except ValueError:
        signature = b""
    if hexlify(signature) != digits:  # Twice as fast as an expression, and it has to be lower case too.
        raise WireError("", f"its first line is {_FORM}")
    text = raw[: match.end(1)] + raw[match.end() - 1 :]
    return Signed(key.decode(), session, int(number), text, signature, raw[match.end() :])
