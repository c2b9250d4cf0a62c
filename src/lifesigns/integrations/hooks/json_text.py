"""JSON text: a change of a few members in a file that a person wrote, whose every other sign stays where it is.

Pure. Members and items that are the same before and after keep their text; what is new comes after the last one, in its style.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()


def changed_text(text: str, value: Any) -> str:
    """This JSON text, changed so that it says `value`."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    one_line = text.strip() and "\n" not in text.strip()
    style = _Style(text, None if one_line else found[1] if found else "  ")
    if not text.strip():
        return style.dumped(value, "") + "\n"
    begin = _space_after(text, 0)
    old, end = _DECODER.raw_decode(text, begin)
    return text[:begin] + style.patched(begin, end, old, value) + text[end:]


class _Part(NamedTuple):
    """A member of an object or an item of an array: the space before it, where it begins, its value, where that ends, and the space
    up to the next comma."""

    lead: str
    begin: int
    key: str | None
    value: Any
    value_begin: int
    end: int
    trail: str


class _Style:
    """The text, and by what it indents; None if all is in one line."""

    def __init__(self, text: str, indent: str | None) -> None:
        self._text, self._indent = text, indent

    def dumped(self, value: Any, base: str | None) -> str:
        """A value that is new, in lines that begin with this; None: in the line in which it stands."""
        if base is None or self._indent is None:
            return json.dumps(value, ensure_ascii=False)
        return json.dumps(value, indent=self._indent, ensure_ascii=False).replace("\n", "\n" + base)

    def patched(self, begin: int, end: int, old: Any, new: Any) -> str:
        """The text of the value that stands there, changed to say `new`."""
        if old == new and type(old) is type(new):
            return self._text[begin:end]
        parts = self._parts(begin) if type(old) is type(new) and isinstance(old, dict | list) else []
        if not parts or not new:
            return self.dumped(new, self._indentation(begin))
        kept, added = _member_changes(parts, new) if isinstance(new, dict) else _item_changes(parts, new)
        if not kept:
            return self.dumped(new, self._indentation(begin))
        pieces = [self._kept(part, value) for part, value in kept]
        last = parts[-1]
        lead = last.lead
        base = lead.rpartition("\n")[2] if "\n" in lead else None
        for key, value in added:
            named = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
            pieces.append(named + self.dumped(value, base))
        leads = [parts[0].lead, *(part.lead for part, _ in kept[1:]), *[lead or " "] * len(added)]
        trails = [*(part.trail for part, _ in kept), *[""] * len(added)][: len(pieces) - 1]
        written = zip(leads, pieces, [*trails, ""], strict=True)
        inner = ",".join(before + piece + after for before, piece, after in written)
        return self._text[begin] + inner + self._text[last.end : end]

    def _kept(self, part: _Part, value: Any) -> str:
        head = self._text[part.begin : part.value_begin]
        return head + self.patched(part.value_begin, part.end, part.value, value)

    def _indentation(self, pos: int) -> str | None:
        """Of the line in which this stands."""
        line = self._text[self._text.rfind("\n", 0, pos) + 1 : pos]
        return line[: len(line) - len(line.lstrip())]

    def _parts(self, begin: int) -> list[_Part]:
        """What is in the object or array that begins there."""
        text, pos, parts = self._text, begin + 1, list[_Part]()
        while True:
            start = _space_after(text, pos)
            if text[start] in "}]":
                return parts
            lead, key, value_begin = text[pos:start], None, start
            if text[begin] == "{":
                key, end = _DECODER.raw_decode(text, start)
                value_begin = _space_after(text, _space_after(text, end) + 1)  # Past the colon.
            value, end = _DECODER.raw_decode(text, value_begin)
            pos = _space_after(text, end)
            is_last = text[pos] != ","
            parts.append(_Part(lead, start, key, value, value_begin, end, "" if is_last else text[end:pos]))
            if is_last:
                return parts
            pos += 1


_Kept = list[tuple[_Part, Any]]
_Added = list[tuple[str | None, Any]]


def _member_changes(parts: Sequence[_Part], new: dict[str, Any]) -> tuple[_Kept, _Added]:
    kept = [(part, new[part.key]) for part in parts if part.key in new]
    known = {part.key for part, _ in kept}
    return kept, [(key, value) for key, value in new.items() if key not in known]


def _item_changes(parts: Sequence[_Part], new: Sequence[Any]) -> tuple[_Kept, _Added]:
    """The items that are in both, in their order; what is not among them is added at the end, or changed in its place."""
    if len(parts) == len(new):
        return [(part, value) for part, value in zip(parts, new, strict=True)], []
    kept, rest = list[tuple[_Part, Any]](), list(new)
    for part in parts:
        if rest and part.value == rest[0]:
            kept.append((part, rest.pop(0)))
    return kept, [(None, value) for value in rest]


def _space_after(text: str, pos: int) -> int:
    found = _SPACE.match(text, pos)
    assert found is not None
    return found.end()
