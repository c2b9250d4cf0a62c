"""Evidence: digests of a call's arguments and result, cheap enough for the agent not to notice.

The core's digest strips volatile parts by a pattern, which takes about 100 µs per KiB. We strip a text that way up to
`LONG`; of a longer one only its head and tail, and hash the middle exactly, at a hundredth of that cost. A volatile
part in the middle makes equal results differ: we lose evidence, which is the harmless mistake.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

import msgspec

from lifesigns.core.digests import digest
from lifesigns.wire.evidence import unwrapped

HEAD: Final = 4 * 1024
LONG: Final = 8 * HEAD
MIDDLE_MAX: Final = 512 * 1024
"""Beyond this only the length counts."""


def of_arguments(value: object) -> str:
    """Exact: the id in `delete(id)` is the whole difference. Empty arguments are comparable, too."""
    return digest(_short(unwrapped(value)), exact=True)


def of_result(value: object) -> str:
    """Without the parts that change from call to call and mean nothing."""
    return "" if value is None else digest(_short(unwrapped(value)))


def _short(value: object) -> object:
    """The value itself, or a stand-in if it is long."""
    if isinstance(value, str):
        return _ends(value) if len(value) > LONG else value
    if isinstance(value, int | float | bool):
        return value
    if not isinstance(value, bytes | bytearray):
        try:
            value_bytes = msgspec.json.encode(value)
        except (TypeError, ValueError, RecursionError):
            return value  # Not plain data: the core looks into it, within its bounds.
        if len(value_bytes) <= LONG:
            return value
        value = value_bytes
    if len(value) <= LONG:
        return bytes(value)
    head, tail = value[:HEAD].decode("utf-8", "replace"), value[-HEAD:].decode("utf-8", "replace")
    return [head, tail, len(value), _hashed(value[HEAD : HEAD + MIDDLE_MAX])]


def _ends(text: str) -> object:
    middle = text[HEAD : HEAD + MIDDLE_MAX].encode("utf-8", "surrogatepass")
    return [text[:HEAD], text[-HEAD:], len(text), _hashed(middle)]


def _hashed(middle: bytes | bytearray) -> str:
    """In letters only: the digest would strip hex as a volatile part."""
    return blake2b(middle, digest_size=8).hexdigest().translate(_LETTERS)


_LETTERS: Final = str.maketrans("0123456789", "ghijklmnop")
