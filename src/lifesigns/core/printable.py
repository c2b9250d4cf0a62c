"""Printable: what others said, made safe for a terminal.

An id, a reason or a hub's answer may have escape sequences in it, controls of C1 that some terminals obey, or marks that turn
the order of signs. None of that reaches a terminal as it came: it is left out where people read (`clean`), and spelled out
where they look into it (`spelled_out`: logs, errors; `spelled_out_json`: JSON, which stays the same JSON).
"""

from __future__ import annotations

import re
from typing import Final

TEXT_MAX: Final = 500

_UNSEEN: Final = re.compile(
    r"[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e0fff]"
)
"""What a terminal obeys or hides, of what JSON leaves as it is: controls, and marks that turn or join text."""


def clean(text: object, most: int = TEXT_MAX) -> str:
    """A text without anything that is not seen, in one line."""
    said = " ".join(str(text)[: most * 4].split())
    seen = "".join(sign for sign in said if sign.isprintable())
    return seen if len(seen) <= most else f"{seen[: most - 1]}…"


def spelled_out(text: str) -> str:
    """A text in one line, in which what is not seen is written as Python writes it: `\\x1b`, `\\n`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def spelled_out_json(written: str) -> str:
    """The same JSON, in which what is not seen is spelled out."""
    return _UNSEEN.sub(_as_json, written)


def _as_json(unseen: re.Match[str]) -> str:
    units = unseen[0].encode("utf-16-be")
    return "".join(f"\\u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2))
