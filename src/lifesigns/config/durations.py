"""Durations as people write them: `30`, `30s`, `5 min`, `1h 30m`."""

from __future__ import annotations

import re
from typing import Final

MILLISECOND: Final = 0.001
SECOND: Final = 1.0
MINUTE: Final = 60.0
HOUR: Final = 3600.0
DAY: Final = 86400.0
WEEK: Final = 604800.0

_UNITS: Final = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), MILLISECOND),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), MINUTE),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), HOUR),
    **dict.fromkeys(("d", "day", "days"), DAY),
    **dict.fromkeys(("w", "week", "weeks"), WEEK),
}
_NUMBER: Final = r"[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?"
_PART: Final = re.compile(rf"({_NUMBER})\s*([a-z]+)\s*")
_BARE: Final = re.compile(_NUMBER)
_LENGTH_MAX: Final = 64

RIGHT: Final = "seconds (30) or a number with a unit (30s, 5 min, 2h, 1d)"


def parse(text: str) -> float:
    """The seconds that `text` means. Raises ValueError with a sentence that says what would be right."""
    plain = text.strip().lower()
    if len(plain) <= _LENGTH_MAX:
        if _BARE.fullmatch(plain):
            return float(plain)
        seconds = _sum_of_parts(plain)
        if seconds is not None:
            return seconds
    raise ValueError(f"{text[:_LENGTH_MAX]!r} is not a duration; write {RIGHT}")


def in_words(seconds: float) -> str:
    """The shortest exact way to write a duration: `600` is `10 min`, `90` is `90 s`."""
    if seconds == 0 or not float(seconds).is_integer() or seconds > 1e15:
        return f"{seconds:g} s" if float(f"{seconds:g}") == seconds else f"{seconds!r} s"
    for unit, size in (("d", DAY), ("h", HOUR), ("min", MINUTE)):
        if seconds % size == 0:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def _sum_of_parts(text: str) -> float | None:
    total, at = 0.0, 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part[2] not in _UNITS:
            return None
        total += float(part[1]) * _UNITS[part[2]]
        at = part.end()
    return total if text else None
