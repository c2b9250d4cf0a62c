"""Evidence: digests of a call's arguments and results, given as values or as JSON text."""

from __future__ import annotations

from typing import Final

import msgspec

from lifesigns.core.digests import digest

JSON_MAX: Final = 64 * 1024
"""We compare longer text as text: parsing it is not worth the time."""


def digest_of(value: object, *, exact: bool = False) -> str:
    """Like `core.digests.digest`; JSON text of an object or array has the same digest as the object or array."""
    return digest(unwrapped(value), exact=exact)


def unwrapped(value: object) -> object:
    """The parsed value if this is JSON text of an object or an array; else the value itself."""
    if not isinstance(value, str) or not 2 <= len(value) <= JSON_MAX or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return value
