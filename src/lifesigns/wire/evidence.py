"""Evidence: digests of a call's arguments and results as they come to a door, JSON text or what it says."""

from __future__ import annotations

from typing import Final

import msgspec

from lifesigns.core.digests import digest

JSON_MAX: Final = 64 * 1024
"""Longer text is compared as text: reading it is not worth its time."""


def digest_of(value: object, *, exact: bool = False) -> str:
    """As `core.digests.digest`; an object or array as JSON text is the same as itself."""
    return digest(unwrapped(value), exact=exact)


def unwrapped(value: object) -> object:
    """What a JSON text says, if it is one of an object or an array; else the value."""
    if not isinstance(value, str) or not 2 <= len(value) <= JSON_MAX or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return value
