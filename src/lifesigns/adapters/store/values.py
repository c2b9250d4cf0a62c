"""Values that a database does not take unchanged. One of them must not make a commit impossible.

PostgreSQL has no NUL in a text, and no database has half of a surrogate pair, but a peer may name its task with either.
Every other text stays as it is. Databases count up to 2⁶³; a sum of peers' numbers may be larger.
"""

from __future__ import annotations

import re
from typing import Final

INT_MAX: Final = 2**63 - 1

_needs_escape = re.compile(r"[\0\\\ud800-\udfff]")
_escaped = re.compile(r"\\(?:([0\\])|u([0-9a-f]{4}))")
_SHORT = {"\0": r"\0", "\\": r"\\"}


def escaped(text: str) -> str:
    """Escape a text for a database."""
    if text.isascii() and "\\" not in text and "\0" not in text:
        return text
    return _needs_escape.sub(_escape, text)


def unescaped(text: str) -> str:
    """The original text."""
    if "\\" not in text:
        return text
    return _escaped.sub(_unescape, text)


def countable(value: int) -> int:
    """The number, or the nearest that a database can store."""
    return max(-INT_MAX, min(INT_MAX, value))


def _escape(match: re.Match[str]) -> str:
    return _SHORT.get(match[0]) or f"\\u{ord(match[0]):04x}"


def _unescape(match: re.Match[str]) -> str:
    if match[2] is not None:
        return chr(int(match[2], 16))
    return "\0" if match[1] == "0" else "\\"
