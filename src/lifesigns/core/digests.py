"""Digests: whether two values say the same, without keeping either.

The receiver digests a call's arguments and result; `detectors/call_history.py` compares the digests. Hostile values are
the normal case here: all reading is bounded, and nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b
from itertools import chain, islice
from typing import Final

TEXT_MAX: Final = 64 * 1024
"""How many characters of one value we read, over all its strings. Of the rest only the length counts."""
ITEMS_MAX: Final = 10_000
"""How many items of one value we read, over all its containers: depth alone does not bound `[x, x]` in x."""
DEPTH_MAX: Final = 32

_VOLATILE: Final = (
    # Every branch begins at a fixed sign, repeats only within bounds and has no repetition inside
    # another, so that the worst text costs a bounded number of steps per character.
    r"""
    (?<![0-9A-Za-z])(?:
      (?=[0-9a-fA-F]{8})(?:
        [0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}    # uuid
      | (?=[0-9]{0,63}[a-fA-F])(?=[a-fA-F]{0,63}[0-9])[0-9a-fA-F]{8,128}               # commit, hash
      )
    | (?=[0-9])(?:
        0x[0-9a-fA-F]{6,16}                                                            # address
      # A day alone is meant (a report of that day); a day with a time is a timestamp.
      | [0-9]{4}-[0-9]{2}-[0-9]{2}[T\ ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?
        (?:\ ?Z|\ ?[+-][0-9]{2}:?[0-9]{2})?
      | [0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?                                # time of day
      | [0-9]{1,3}:[0-5][0-9]                                                          # minutes:seconds
      | 1[0-9]{9}(?:[0-9]{3}){0,3}(?:\.[0-9]{1,9})?                                    # epoch
      | [0-9]{1,4}[dhm][0-9]{1,4}(?:\.[0-9]{1,9})?(?:[hms]|ms)(?:[0-9]{1,4}(?:\.[0-9]{1,9})?s)?  # 3m12s, 1h5m
      | [0-9]{1,3}(?:\.[0-9]{1,9})?\ ?%
      # A unit that is a single letter stands close: "3m", "12 s", but not "3 m" or "2 h".
      | [0-9]{1,9}(?:\.[0-9]{1,9})?
        (?:[mh]|\ ?(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?|hrs?|hours?))
      )
    | (?:toolu|call|req|msg|resp|chatcmpl)[-_](?=[A-Za-z]{0,63}[0-9])[0-9A-Za-z]{16,64}
    | (?:[Pp]id|[Pp]ort|[Ll]ines?|[Aa]ttempts?|[Rr]etry|[Tt]ry)[\ =:\#]{1,2}[0-9]{1,9}(?:\ ?(?:/|of)\ ?[0-9]{1,9})?
    | (?:duration|elapsed|latency|took)\w{0,8}["']?\ ?[:=]\ ?[0-9]{1,12}(?:\.[0-9]{1,12})?
    )(?![0-9A-Za-z])
    # The line in `foo.py:12:3` and the port in `10.0.0.1:8080`, but not the count in `failed:3`.
    | :(?:(?<=\.\w:)|(?<=\.\w\w:)|(?<=\.\w\w\w:)|(?<=\.\w\w\w\w:)|(?<=localhost:))
      [0-9]{1,7}(?::[0-9]{1,7})?(?![0-9A-Za-z])
    | /tmp/(?=tmp|[^\s/"']{0,63}[0-9])[^\s/"']{1,255}
    | /var/folders/[^\s/"']{1,64}/[^\s/"']{1,64}/[A-Z]/[^\s/"']{1,255}
    """
)
_VOLATILE_FIELD: Final = re.compile(
    r"(?:duration|elapsed|latency|took)(?:_\w{1,8})?|timestamp|(?:request|trace|span)_id"
    r"|attempts?|percent(?:age)?|port|line(?:no|_number)?",
)
_DIGIT: Final = re.compile(r"[0-9]|/tmp/tmp")
_NEAR_A_DIGIT: Final = re.compile(
    r"[0-9](?:\ ?[%dhmnsuµ]|[:x-]|[0-9a-fA-F]{7}"
    r"|(?<=[:=].)|(?<=[ =:#][ =:#].)|(?<=(?:id|rt|ne|es|pt|ts|ry)[ =:#].))"
)
_LONG_ID: Final = re.compile(r"[a-fA-F_-](?:(?<=[_-])[0-9A-Za-z]{16}|(?<=[a-fA-F])[0-9a-fA-F]{7})")
"""What every volatile part has in it, but for the paths. Looked for first: each begins with a class of signs, to which the machine
jumps, where `_VOLATILE` tries all its branches at every sign. Half of all short results have nothing volatile in them."""


def digest(value: object, *, exact: bool = False) -> str:
    """A short, stable digest of a JSON-like value: 16 hex digits, whatever the order of its keys.

    Unless `exact`, what changes from call to call without meaning anything is left out: uuids, long hex
    ids, addresses, timestamps, durations, pids, ports, percents, line and attempt numbers, temporary paths. Results and errors are digested that
    way; arguments are digested exact, for the id in `delete(id)` is the whole difference.

    Returns "" for an opaque value, or one that raises when read: it equals nothing, so it is no evidence. Never
    raises.
    """
    try:
        if type(value) is str and len(value) <= TEXT_MAX:
            text = value if exact else steady(value)
            return fingerprint(_written("s", text))  # As below: most results are a text.
        return fingerprint("".join(_Reader(exact).parts_of(value)))
    except Exception:  # noqa: BLE001 - a stranger's object may raise anything when it is read
        return ""


def steady(text: str) -> str:
    """A text without what changes from time to time and means nothing."""
    return _volatile().sub("~", text) if _DIGIT.search(text) and _may_be_volatile(text) else text


@cache
def _volatile() -> re.Pattern[str]:
    """Compiled when it is needed: it takes 5 ms, and most commands and many agents digest nothing."""
    return re.compile(_VOLATILE, re.VERBOSE)


def _may_be_volatile(text: str) -> bool:
    return (
        _NEAR_A_DIGIT.search(text) is not None
        or _LONG_ID.search(text) is not None
        or "/tmp/" in text  # noqa: S108 -- a text that is looked for, no place
        or "/var/folders/" in text
    )


def fingerprint(text: str) -> str:
    """A text as 16 hex digits."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class _OpaqueError(Exception):
    """Nothing in this value can be compared."""


class _Reader:
    """Writes a value unambiguously, within the bounds."""

    __slots__ = ("exact", "items_left", "parts", "text_left")

    def __init__(self, exact: bool) -> None:
        self.exact = exact
        self.text_left = TEXT_MAX
        self.items_left = ITEMS_MAX
        self.parts: list[str] = []

    def parts_of(self, value: object) -> list[str]:
        self._read(value, 0)
        return self.parts

    def _read(self, value: object, depth: int) -> None:
        if type(value) is str and len(value) <= self.text_left:  # As below: most values are.
            self.text_left -= len(value)
            self.parts.append(_written("s", value if self.exact else steady(value)))
            return
        match value:
            case None | bool():
                self.parts.append(f"{value};")
            case str():
                self._text("s", value, len(value))
            case int() | float():
                self.parts.append(self._number(value))
            case bytes() | bytearray():
                readable = value[: self.text_left].decode("utf-8", "surrogateescape")
                self._text("b", readable, len(value))
            case _ if depth >= DEPTH_MAX:
                self.parts.append("deep;")
            case list() | tuple():
                self._items("l", len(value), value, depth)
            case dict():
                self._fields(value, depth)
            case _:
                self._fields(_inside(value), depth)

    def _text(self, tag: str, text: str, length: int) -> None:
        cut = length > self.text_left
        if cut or type(text) is not str:  # A type of its own may say what it likes about itself.
            text = str.__getitem__(text, slice(self.text_left))
        self.text_left -= len(text)
        if not self.exact:
            text = steady(text)
        self.parts.append(_written(tag, text))
        if cut:
            self.parts.append(f"of {length};")

    def _number(self, value: float) -> str:
        if value >= 1e9 and not self.exact and _is_moment(value):
            return "n~;"
        if isinstance(value, int):
            return f"i{value.bit_length()}:{value % (1 << 256):x};"
        return f"f{float.__repr__(value)};"

    def _items(self, tag: str, length: int, items: Iterable[object], depth: int) -> None:
        self.parts.append(f"{tag}{length}:")
        for item in items:
            if self.items_left <= 0:
                break
            self.items_left -= 1
            self._read(item, depth + 1)
        self.parts.append(";")

    def _fields(self, values: dict[object, object], depth: int) -> None:
        """Sorted by key; of a dict too large to read, the first ones in its own order."""
        first = list(islice(values.items(), self.items_left + 1))
        if not self.exact:
            first = [(k, v) for k, v in first if not _is_volatile_field(k)]
        first.sort(key=_order)
        self._items("d", len(values), chain.from_iterable(first), depth)


def _written(tag: str, text: str) -> str:
    return f"{tag}{len(text)}:{text};"


def _order(field: tuple[object, object]) -> tuple[str, str]:
    key = field[0]
    if type(key) is str:
        return "str", key
    if not isinstance(key, str | int | float | None):
        raise _OpaqueError
    return type(key).__name__, str(key)


def _is_moment(value: float) -> bool:
    """Whether a number looks like a time since the epoch in seconds, milli-, micro- or nanoseconds (2001 to 2033)."""
    return any(1e9 * unit <= value < 2e9 * unit for unit in (1, 1e3, 1e6, 1e9))


def _is_volatile_field(name: object) -> bool:
    return isinstance(name, str) and len(name) <= 32 and bool(_VOLATILE_FIELD.fullmatch(name))


def _inside(value: object) -> dict[object, object]:
    """The contents of a foreign object. We do not call its repr: that holds addresses and runs its code."""
    if isinstance(value, type):
        raise _OpaqueError
    if is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    inside = getattr(value, "__dict__", None)
    if not isinstance(inside, dict) or not inside:
        raise _OpaqueError
    return inside
