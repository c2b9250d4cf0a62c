"""Skipping: a run of unwanted messages is passed over by one regular expression, without a look at each.

A server sends hundreds of thousands of messages a second and holds back megabytes of them for a client that is slower: whoever speaks
after them is heard seconds late. It goes by the length in each head, so that what looks like a message inside of a payload is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from lifesigns.ports import MessageFilter

SKIPPED_LENGTH_MAX: Final = 255
"""Of payloads. Larger ones are read one after the other: a server holds back fewer of them. A longer list takes longer to compile
(4 ms), each time that others are unwanted."""

TURN_FOR: Final = 0.005
"""Seconds of reading after which everything else on the loop gets its turn: a reader goes on while anything is there."""

WhatIsUnwanted = Callable[[], MessageFilter | None]


def skip(unwanted: MessageFilter, run: re.Pattern[bytes], mark: bytes, buf: bytearray, at: int) -> int:
    """The end of the unwanted messages that begin here, each of which has this mark. The subject of the last one, the group of
    `run`, stands for all of them: that matters only where several senders are unwanted."""
    found = run.match(buf, at)
    if found is None:
        return at
    unwanted.drops(found[1].decode(errors="replace"), buf.count(mark, at, found.end()))
    return found.end()


def length_and_bytes(each: str, digits: str = "") -> str:
    """A regular expression of a length that begins with these digits, a line's end, and as many bytes, `each` of them: a tree with a
    leaf for each length."""
    ways = [] if not digits else [rf"\r\n{each}{{{digits}}}"]
    if digits != "0":
        longer = (f"{digits}{digit}" for digit in range(10))
        ways += [one[-1] + length_and_bytes(each, one) for one in longer if int(one) <= SKIPPED_LENGTH_MAX]
    return f"(?:{'|'.join(ways)})"
