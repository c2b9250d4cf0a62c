"""Printable: what others said, made safe for a terminal.

An id, a reason or a hub's answer may contain escape sequences, C1 controls that some terminals obey, or marks that
change the direction of text. None of them reaches a terminal as it came: `clean` removes them where people read,
`spelled_out` (logs, errors) and `spelled_out_json` (the same JSON) show them where people inspect.
"""

from __future__ import annotations

import re
from typing import Final

TEXT_MAX: Final = 500

_UNSEEN: Final = re.compile(
    r"[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e0fff]"
)
"""Characters that JSON leaves as they are but a terminal obeys or hides: controls, and marks that turn or join text."""


def clean(text: object, most: int = TEXT_MAX) -> str:
    """A text in one line, without invisible characters."""
    said = " ".join(str(text)[: most * 4].split())
    seen = "".join(sign for sign in said if sign.isprintable())
    return seen if len(seen) <= most else f"{seen[: most - 1]}…"


def spelled_out(text: str) -> str:
    """A text in one line, with invisible characters written as Python writes them: `\\x1b`, `\\n`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def spelled_out_json(written: str) -> str:
    """The same JSON, with invisible characters spelled out."""
    return _UNSEEN.sub(_as_json, written)


def _as_json(unseen: re.Match[str]) -> str:
    units = unseen[0].encode("utf-16-be")
    return "".join(f"\\u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2))
