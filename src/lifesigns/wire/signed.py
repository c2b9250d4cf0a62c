"""Signed messages: a line before the message says by which key it is signed, and lets nobody say it again.

    signed <key> <session> <number> <signature>
    <message, as it would be without>

The key is named by the beginning of the SHA-256 of its public half. A session is one sender's stream of beats or of reports: when it
began, in milliseconds, and eight digits of chance; its numbers rise. The signature (Ed25519, in hex) is over the line up to itself
and the message, however many agents speak in it.
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
"""Bytes that a signature adds to a message, at most."""
_BEGINNING: Final = b"signed "
_FORM: Final = "no signature: signed KEY SESSION NUMBER SIGNATURE"
_line: Final = re.compile(rb"(signed ([0-9a-f]{16}) ([0-9a-f]{20}) ([0-9]{1,18})) (.{128})\n").match


class Signer(Protocol):
    """Who has a key. See `lifesigns.ports.Signer`."""

    @property
    def public(self) -> bytes: ...
    def sign(self, text: bytes) -> bytes: ...


class Signed(NamedTuple):
    """A message that says to be signed; nobody has verified it yet."""

    key_id: str
    session: bytes
    number: int
    text: bytes
    """What is signed."""
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
        """The message, signed; another time it is another one."""
        line = b"%b%d" % (self._line, next(self._numbers))
        return b"%b %b\n%b" % (line, hexlify(self._sign(b"%b\n%b" % (line, message))), message)


def key_id(public: bytes) -> str:
    """How a key is named on the wire, and in lists."""
    return sha256(public).hexdigest()[:16]


def is_signed(raw: bytes) -> bool:
    """Whether it says so: no message of ours begins like this."""
    return raw[:7] == _BEGINNING


def opened(raw: bytes) -> Signed:
    """The parts of a message that is signed. Raises `WireError`."""
    found = _line(raw)
    if found is None:
        raise WireError("", f"its first line is {_FORM}")
    _, key, session, number, digits = found.groups()
    try:
        signature = unhexlify(digits)
    except ValueError:
        signature = b""
    if hexlify(signature) != digits:  # Twice as fast as an expression, and it has to be lower case too.
        raise WireError("", f"its first line is {_FORM}")
    text = raw[: found.end(1)] + raw[found.end() - 1 :]
    return Signed(key.decode(), session, int(number), text, signature, raw[found.end() :])
