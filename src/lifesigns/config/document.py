"""A file as plain values, with the line of every key; and the source of a value.

Numbers are those of YAML 1.2, so that `1e-7` is a number and `12:30` is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

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
"""Names from the top down to a key; an entry of a list is `[1]`, `[2]`, ..."""


class Document(Struct, frozen=True):
    """A file's content, and the line of each key."""

    name: str
    value: object
    lines: Mapping[KeyPath, int]

    def where(self, path: KeyPath) -> str:
        """`lifesigns.yaml:12`; for a missing key the line of its section; or just the file."""
        while path and path not in self.lines:
            path = path[:-1]
        return f"{self.name}:{self.lines[path]}" if path else self.name


EMPTY: Final = Document("", None, {})


class Source(Struct, frozen=True):
    """The source of a value: the key as the user wrote it, and its file, variable or flag."""

    key: str = ""
    where: str = "default"
    written: bool = False
    """The user wrote this very value; otherwise it is a default, or follows from another value."""

    def __str__(self) -> str:
        if not self.key:
            return self.where
        follows = "" if self.written else "follows from "
        return f"{follows}{self.key}" + (f" ({self.where})" if self.where else "")


DEFAULT: Final = Source()


def dotted(path: KeyPath) -> str:
    """A path as people write it: `routes[1].channels`."""
    return re.sub(r"\.(\[[0-9]+\])", r"\1", ".".join(path))


def name_of(path: Path) -> str:
    """A file's name for people: relative, if it is below the current folder."""
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
