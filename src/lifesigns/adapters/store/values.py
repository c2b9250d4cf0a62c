"""Values that a database would not take as they are. One of them must not make a page impossible to keep.

PostgreSQL has no NUL in a text, and no database has half of a surrogate pair, but a peer may name its task with
either. Everything else is kept as people wrote it. Databases count up to 2⁶³, a sum of what peers told may be larger.
"""

from __future__ import annotations

import re
from typing import Final

INT_MAX: Final = 2**63 - 1

_needs_escape = re.compile(r"[\0\\\ud800-\udfff]")
_escaped = re.compile(r"\\(?:([0\\])|u([0-9a-f]{4}))")
_SHORT = {"\0": r"\0", "\\": r"\\"}


def escaped(text: str) -> str:
    """The text as a database takes it."""
    if text.isascii() and "\\" not in text and "\0" not in text:
        return text
    return _needs_escape.sub(_escape, text)


def unescaped(text: str) -> str:
    """The text as it was."""
    if "\\" not in text:
        return text
    return _escaped.sub(_unescape, text)


def countable(value: int) -> int:
    """The number, or the nearest that a database can keep."""
    return max(-INT_MAX, min(INT_MAX, value))


def _escape(found: re.Match[str]) -> str:
    return _SHORT.get(found[0]) or f"\\u{ord(found[0]):04x}"


def _unescape(found: re.Match[str]) -> str:
    if found[2] is not None:
        return chr(int(found[2], 16))
    return "\0" if found[1] == "0" else "\\"
