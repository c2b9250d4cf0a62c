"""What a bus accepts: subjects (words joined by dots), patterns over them, and payloads up to its limit.

The rules are those of NATS, the strictest of the three, so that every bus carries what one carries: no word is empty,
there is no white space, and in a pattern `*` stands for exactly one word and a final `>` for one or more.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from lifesigns.errors import AdapterError, UsageError

SUBJECT_MAX: Final = 1024
"""Bytes. A NATS server disconnects over a command line above 4 KiB; ours stay far below it."""

_unfit = re.compile(r"[\s\x00-\x1f\x7f]").search
_WORD: Final = r"[^.]+"


def check_subject(subject: str) -> None:
    """Refuse what is not a subject."""
    _check_words(subject, "subject")
    if "*" in subject or ">" in subject:
        raise UsageError(
            f"subject {subject!r} has a wildcard: publish to one subject, only patterns have * and >"
        )


def check_pattern(pattern: str) -> None:
    """Refuse what is not a pattern."""
    _check_words(pattern, "pattern")
    *others, last = pattern.split(".")
    if any("*" in word and word != "*" for word in (*others, last)):
        raise UsageError(f"pattern {pattern!r}: * stands for a whole word, as in heartbeat.*")
    if any(">" in word for word in others) or (">" in last and last != ">"):
        raise UsageError(
            f"pattern {pattern!r}: > stands for all words that follow and comes last, as in heartbeat.>"
        )


def check_payload(bus: str, subject: str, payload: bytes, limit: int) -> None:
    """Refuse a message over the limit of this bus; a retry would be as large."""
    if len(payload) > limit:
        raise AdapterError(
            f"a message of {len(payload)} bytes to {subject!r} is too large for {bus}: its limit is {limit} bytes",
            transient=False,
        )


def is_plain(pattern: str) -> bool:
    """Whether a pattern stands for one subject only."""
    return "*" not in pattern and ">" not in pattern


def matcher(pattern: str) -> Callable[[str], bool]:
    """A function that says whether a subject matches this pattern."""
    if is_plain(pattern):
        return pattern.__eq__
    wild = {"*": _WORD, ">": rf"{_WORD}(?:\.{_WORD})*"}
    fullmatch = re.compile(
        r"\.".join(wild.get(word) or re.escape(word) for word in pattern.split("."))
    ).fullmatch
    return lambda subject: fullmatch(subject) is not None


def _check_words(text: str, what: str) -> None:
    if not text:
        raise UsageError(f"a {what} is empty; it is words joined by dots, as in heartbeat.coder-7")
    if _unfit(text):
        raise UsageError(f"{what} {text!r} has white space or a control character in it")
    if "" in text.split("."):
        raise UsageError(
            f"{what} {text!r} has an empty word: no dot at the beginning, at the end or after a dot"
        )
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise UsageError(f"{what} {text!r} cannot be written as UTF-8") from error
    if size > SUBJECT_MAX:
        raise UsageError(f"{what} {text[:64]!r}… has {size} bytes; at most {SUBJECT_MAX} are carried")
