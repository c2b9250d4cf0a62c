"""A file as plain values, with the line of every key.

Numbers are those of YAML 1.2, so that `1e-7` is a number and `12:30` is not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_INT: Final = re.compile(r"[-+]?[0-9]{1,30}")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: Final[dict[str, object]] = {
    **dict.fromkeys(("", "~", "null"), None),
    **dict.fromkeys(("true", "yes", "on"), True),
    **dict.fromkeys(("false", "no", "off"), False),
    ".inf": float("inf"),
    "-.inf": float("-inf"),
    ".nan": float("nan"),
}

KeyPath = tuple[str, ...]


@dataclass(frozen=True)
class Document:
    """A file's content, and the line on which each key stands."""

    name: str
    value: object
    lines: dict[KeyPath, int]

    def where(self, path: KeyPath) -> str:
        """`lifesigns.yaml:12`, or just the file where the key has no line of its own."""
        line = self.lines.get(path)
        return f"{self.name}:{line}" if line else self.name


EMPTY: Final = Document("", None, {})


def name_of(path: Path) -> str:
    """A file's name as its reader would say it: from here, if it is below here."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def scalar(text: str) -> object:
    """A single plain value as YAML would read it: `true`, `5`, `1e-7`, `5 min`."""
    word = text.lower()
    if word in _WORDS:
        return _WORDS[word]
    if _INT.fullmatch(text):
        return int(text)
    return float(text) if len(text) < 64 and _FLOAT.fullmatch(text) else text
